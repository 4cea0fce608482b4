# SPDX-License-Identifier: Apache-2.0
"""bench/programs.py without a GPU: what the ends of children become. The children are stand-ins."""

import json
import sys

import pytest
from conftest import ROOT

CHILD = """
import sys, time
sys.path.insert(0, {bench!r})
import supervise
what = sys.argv[1]
supervise.say(needs=1000)
supervise.ask()
supervise.say(part=dict(eager_ms=2.0, bytes=1e6))
supervise.ask()
if what == "hangs":
    supervise.begin("our first launch", 0.3)
    time.sleep(30)
if what == "dies":
    supervise.begin("timing", 5)
    sys.exit(3)
supervise.say(part=dict(ours_ms=1.0, samples=3))
supervise.say(note="a note")
supervise.say(done=True)
"""


def test_ends_of_children(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import programs

    (tmp_path / "child.py").write_text(CHILD.format(bench=str(ROOT / "bench")))
    ends = {"1": "works", "2": "hangs", "3": "dies"}
    monkeypatch.setattr(programs, "child_command", lambda entry, options: [
        sys.executable, str(tmp_path / "child.py"), ends[entry.problem.name]])
    out = tmp_path / "rows.jsonl"
    arguments = ["programs.py", "--suite", "level1", "--case", "1", "--case", "2", "--case", "3", "--tool", sys.executable,
                 "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert programs.main() == 1, "one died"
    rows = {r["case"]: r for r in map(json.loads, out.read_text().splitlines())}
    assert rows["1"]["ours_ms"] == 1.0 and rows["1"]["ratio_to_peer"] == 2.0 and rows["1"]["notes"] == ["a note"]
    assert rows["2"]["over"] and rows["2"]["ours_ms"] == pytest.approx(300)
    assert rows["3"]["wrong"] == "died at: timing"
    programs.main()
    assert len(out.read_text().splitlines()) == 3, "what has a row is not timed again"
    monkeypatch.setattr(sys, "argv", [*arguments, "--again", "--limit-seconds", "0"])
    assert programs.main() == 1
    assert "3 not reached" in capsys.readouterr().out
