# SPDX-License-Identifier: Apache-2.0
"""The sample of guard.py with its ratios, read and written, and the tables it prints.

guard.json has a line for each case, so that a change of the ratios reads well:

    {"suite": "gemm", "case": "gemm bf16 nt 8192x8192x8192", "peer": "cublas", "ratio": 1.025,
     "source": "file of bench/results:line"}

A ratio of null has not been measured yet: such a case is checked and timed, and cannot fall.
"""
import json
import statistics

import cases
import report


class Record:
    def __init__(self, path, allowed_fall, listed):
        self.path, self.allowed_fall, self.cases = path, allowed_fall, listed

    def known_cases(self):
        """The cases of cases.py, in order."""
        known = {(c.suite, c.name): c for c in cases.all_cases()}
        unknown = [c["case"] for c in self.cases if (c["suite"], c["case"]) not in known]
        if unknown:
            raise SystemExit(f"{self.path}: bench/cases.py has no case {'; '.join(unknown)} "
                             "in the suite that is named")
        return [known[c["suite"], c["case"]] for c in self.cases]

    def update(self, ratios, source):
        """New ratios {case: ratio}, written at once; the others stay."""
        for case in self.cases:
            if case["case"] in ratios:
                case.update(ratio=round(ratios[case["case"]], 3), source=source)
        lines = ",\n".join("    " + json.dumps(case) for case in self.cases)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f'{{\n  "allowed_fall": {self.allowed_fall},\n  "cases": [\n{lines}\n  ]\n}}\n')


def load(path):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    return Record(path, content["allowed_fall"], content["cases"])


def is_bad(entry, allowed):
    """Wrong, not measured, or slower than allowed."""
    return bool(entry.wrong) or entry.ratio is None or (
        entry.change is not None and entry.change < -allowed)


def _number(value, form):
    return "-" if value is None else format(value, form)


def _verdict(entry, allowed):
    if entry.wrong:
        return f"WRONG {entry.wrong}"
    if entry.ratio is None:
        return "NOT MEASURED"
    if entry.change is None:
        return "new"
    if entry.change < -allowed:
        return "FELL"
    return "rose" if entry.change > allowed else ""


def plan(entries):
    lines = [("case", "program", "peer", "recorded", "source")]
    lines += [(e.name, e.path, e.recorded["peer"], _number(e.recorded["ratio"], ".3f"),
               e.recorded["source"]) for e in entries]
    return report.aligned(lines, 3)


def table(entries, allowed):
    """All cases, then a line of what is wrong: the last one read in a log."""
    lines = [("case", "peer", "ours ms", "recorded", "now", "change")]
    for e in entries:
        ours = [t for _, times in e.timings for t in times]
        lines.append((e.name, e.recorded["peer"],
                      _number(statistics.median(ours) if ours else None, ".4f"),
                      _number(e.recorded["ratio"], ".3f"), _number(e.ratio, ".3f"),
                      "-" if e.change is None else f"{100 * e.change:+.1f} %"))
    verdicts = ["", *(_verdict(e, allowed) for e in entries)]
    shown = [f"{line}  {text}".rstrip()
             for line, text in zip(report.aligned(lines, 2).splitlines(), verdicts)]
    bad = [e for e in entries if is_bad(e, allowed)]
    fell = [e.name for e in bad if not e.wrong and e.ratio is not None]
    other = [e.name for e in bad if e.name not in fell]
    verdict = [f"{len(entries) - len(bad)} of {len(entries)} cases are right and no more than "
               f"{100 * allowed:g} % below their recorded ratio"]
    if fell:
        verdict.append("FELL: " + "; ".join(fell))
    if other:
        verdict.append("WRONG OR NOT MEASURED: " + "; ".join(other))
    return "\n".join([*shown, *verdict])
