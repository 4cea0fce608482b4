# SPDX-License-Identifier: Apache-2.0
"""What --json prints is JSON, of programs that work and of programs that do not.

usage: test_json.py NAUTILUS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "examples/softmax.naut"

# Each with the status that it may have, and a member that it must have (of an object) or nothing.
# None of them has a GPU: what needs one must fail as JSON.
CASES = [
    (["check", GOOD, "--json"], (0,), None),
    (["check", "{bad}", "--json"], (1,), None),
    (["print", GOOD, "--json"], (0,), "text"),
    (["print", "{bad}", "--json"], (1,), "messages"),
    (["print", "--words", "--json"], (0,), "dtypes"),
    (["print", "--library", "--json"], (0,), None),
    (["print", "--codes", "--json"], (0,), None),
    (["print", "--ops", "matile", "--json"], (0,), None),
    (["print", "--ops", "decisions", "--json"], (0,), None),
    (["print", "--ops", "layout", "--json"], (0,), None),
    (["print", "golden/softmax_4096.matile", "--resources", "--json"], (0,), "text"),
    (["eval", GOOD, "--json"], (0,), "outputs"),
    (["opt", "--list", "--json"], (0,), None),
    (["opt", "--rules", "--json"], (0,), None),
    (["opt", GOOD, "--pass", "simplify", "--json"], (0,), "text"),
    (["opt", "{bad}", "--pass", "simplify", "--json"], (1,), "messages"),
    (["schedule", "examples/gemm.naut", "--json"], (0,), "schedule"),
    (["schedule", "examples/gemm.naut", "--program", "--json"], (0,), "program"),
    (["schedule", "examples/gemm.naut", "--sweep", "--limit", "2", "--json"], (0,), "schedules"),
    (["schedule", "{bad}", "--json"], (1,), "messages"),
    (["explain", GOOD, "--json"], (0,), "text"),
    (["explain", "{bad}", "--json"], (1,), "messages"),
    (["compile", GOOD, "--json"], (0, 1), "ok"),
    (["compile", "{bad}", "--json"], (1,), "messages"),
    (["run", GOOD, "--emulate", "--check", "--json"], (0,), "outputs"),
    (["run", GOOD, "--emulate", "--json"], (0,), "launches"),
    (["run", "{bad}", "--emulate", "--json"], (1,), "messages"),
    (["run", GOOD, "--json"], (0, 1), "ok"),
    (["bench", GOOD, "--reps", "1", "--json"], (0, 1), "ok"),
    (["bench", "{bad}", "--json"], (1,), "messages"),
    (["test", "test/spec", "--json"], (0,), "passed"),
    (["test", "--list", "--json"], (0,), None),
    (["new", "{folder}/made", "--kind", "rows", "--json"], (0,), "next"),
    (["db", "--db", "{folder}/trials.db", "list", "--json"], (0,), None),
    (["db", "--db", "{folder}/trials.db", "best", "--json"], (0,), None),
    (["db", "--db", "{folder}/trials.db", "gc", "--json"], (0,), "dropped"),
    (["db", "--db", "{folder}/other.db", "merge", "{folder}/trials.db", "--json"], (0,), "read"),
    (["db", "--db", "{folder}/nothing.db", "list", "--json"], (1,), "error"),
    (["build", GOOD, "-o", "{folder}/bundle", "--json"], (0, 1), "programs"),
    (["build", "{bad}", "-o", "{folder}/bundle", "--json"], (1,), "messages"),
    (["reduce", "{bad}", "--most", "20", "--json"], (0,), "text"),
    (["reduce", GOOD, "--command", "true", "--json"], (1,), "error"),
    (["doctor", "--json"], (0, 1), "missing"),
    (["version", "--json"], (0,), "targets"),
]
# Changes of a complete schedule of examples/gemm.naut that are refused where it is replayed, or where its kernels are lowered: all
# with the same code, the line and the number that it may have.
REFUSED = [
    ("tile i 128", "tile i 100", "64 rows"),
    ("rows i", "rows q", "rows q"),
    ("fuse C", "fuse Z", "there is no statement `Z`"),
    ("in_flight 1", "in_flight 7", "0 or 1 products"),
    ("promote A 128", "promote A 77", "0, 64, 128, 256 bytes"),
    ("loader 0", "loader 9", "loader 9"),
]
# One JSON value on each line.
LINES = [
    (["tune", "examples/rmsnorm.naut", "--emulate", "--trials", "1", "--db", "{folder}/trials.db", "--json"], (0,)),
    (["tune", "examples/rmsnorm.naut", "--emulate", "--dry-run", "--db", "{folder}/trials.db", "--json"], (0,)),
    (["worker", "--list", "{folder}/jobs", "--status", "--json"], (0,)),
    (["db", "--db", "{folder}/trials.db", "show", "--json"], (0,)),
    (["db", "--db", "{folder}/trials.db", "export"], (0,)),
]


def main():
    nautilus = str(pathlib.Path(sys.argv[1]).resolve())
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        bad = pathlib.Path(folder) / "bad.naut"
        (pathlib.Path(folder) / "jobs").write_text("examples/rmsnorm.naut M=4\n")
        bad.write_text("dims M\nX: f32[M]\nY[i] = X[j] -> f32\n")

        def run(words):
            words = [w.format(folder=folder, bad=bad) for w in words]
            return words, subprocess.run([nautilus] + words, cwd=ROOT, capture_output=True, text=True, check=False)

        databases = json.loads(run(["version", "--json"])[1].stdout)["databases"]
        for words, statuses in LINES:
            if not databases and "--db" in words:
                continue
            words, done = run(words)
            try:
                rows = [json.loads(line) for line in done.stdout.splitlines()]
            except ValueError as e:
                rows = None
                faults.append(f"{' '.join(words)}: {e}\n{done.stdout[:400]}")
            if done.returncode not in statuses or rows == []:
                faults.append(f"{' '.join(words)}: status {done.returncode}, {rows}\n{done.stderr}")
        for words, statuses, key in CASES:
            if not databases and words[0] == "db":
                continue
            words, done = run(words)
            line = " ".join(words)
            if done.returncode not in statuses:
                faults.append(f"{line}: status {done.returncode}\n{done.stderr}")
            try:
                value = json.loads(done.stdout)
            except ValueError as e:
                faults.append(f"{line}: {e}\n{done.stdout[:400]}\n{done.stderr[:400]}")
                continue
            if key and key not in value:
                faults.append(f"{line}: no `{key}` in {list(value)}")
            if isinstance(value, dict) and "ok" in value and value["ok"] != (done.returncode == 0):
                faults.append(f"{line}: ok is {value['ok']}, the status {done.returncode}")
        schedule = run(["schedule", "examples/gemm.naut"])[1].stdout
        changed = pathlib.Path(folder) / "changed.sched"
        for old, new, number in REFUSED:
            if old not in schedule:
                faults.append(f"no `{old}` in the schedule of gemm")
            changed.write_text(schedule.replace(old, new))
            words, done = run(["compile", "examples/gemm.naut", "--schedule", str(changed), "--json"])
            messages = json.loads(done.stdout).get("messages", [])
            if done.returncode != 1 or not messages or messages[0]["code"] != "E0720" or number not in messages[0]["message"]:
                faults.append(f"{new}: {messages}")
    version = json.loads(run(["version", "--json"])[1].stdout)
    if "sm_90a" not in version["targets"] or "oracle" in version["targets"]:
        faults.append(f"version: {version}")
    print("\n".join(faults) if faults else "json: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
