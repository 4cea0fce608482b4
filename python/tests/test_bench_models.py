# SPDX-License-Identifier: Apache-2.0
"""bench/models.py without a GPU: its cases, how it resumes, what failures become, and its page. Children are stand-ins that
speak the protocol of bench/supervise.py."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

RECORDED = ROOT / "bench" / "results" / "2026-11-18_h200_grids_complete.jsonl"

# Says what it was asked for, then behaves as the file `plan` says for systems of its case.
CHILD = """
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
sys.path.insert(0, {bench!r})
import supervise
case = sys.argv[sys.argv.index("--child") + 1]
names = sys.argv[sys.argv.index("--systems") + 1].split(",")
with open(here / "started", "a") as file:
    file.write(case + ": " + ",".join(names) + "\\n")
plan = json.loads((here / "plan").read_text())
if "start" in plan:
    sys.exit("no module named torch")
supervise.say(needs=1000)
supervise.begin("inputs", 5)
supervise.ask()
able = []
for name in names:
    supervise.begin(name + ": first call", 0.5)
    what = plan.get(name)
    if what == "refuses":
        supervise.say(failed=name, why="no such kernel")
        continue
    if what == "hangs":
        time.sleep(30)
    if what == "dies":
        print("Segmentation fault", flush=True)
        sys.exit(3)
    able.append(name)
supervise.ask()
supervise.begin("timing", 5)
if plan.get("timing") == "dies":
    sys.exit(3)
supervise.say(rows=[dict(candidate=n, ms_median=2.0 if n == "cudnn" else 1.0, ms_p25=1.0, ms_p75=1.0, rel_error=1e-3,
                         samples=7) for n in able])
supervise.say(done=True)
"""


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "child.py").write_text(CHILD.format(bench=str(ROOT / "bench")))
    (tmp_path / "plan").write_text("{}")

    def run(*arguments, plan=None):
        (tmp_path / "plan").write_text(json.dumps(plan or {}))
        (tmp_path / "started").write_text("")
        done = subprocess.run(
            [sys.executable, str(ROOT / "bench" / "models.py"), "--child-program", str(tmp_path / "child.py"), "--out",
             str(tmp_path / "rows.jsonl"), *arguments], capture_output=True, text=True, timeout=120, check=False)
        started = sorted((tmp_path / "started").read_text().splitlines())
        rows = []
        if (tmp_path / "rows.jsonl").exists():
            rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
        return done, started, rows

    return run


# In bf16 and in fp8.
TWO = ("--case", "llama2 attention d128 causal B1 H32 S1024", "--case", "llama2 attention d128 causal fp8 B1 H32 S1024",
       "--without", "flex flash", "--without", "flash")


def test_list():
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "models.py"), "--list"], capture_output=True, text=True,
                          check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "150 cases"
    suites = [line.split()[0] for line in lines[:-1]]
    assert {s: suites.count(s) for s in set(suites)} == {"prefill_grid": 60, "prefill_fp8": 60, "decode_grid": 30}
    assert len(set(lines)) == 151
    assert "flex decode" in lines[-2] and "cudnn of casts" in next(line for line in lines if "fp8" in line)


def test_programs_of_the_cases(monkeypatch):
    """All open with the sizes of their cases."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import cases
    import nautilus

    for math in sorted({case.math for case in cases.grid_of_models()}):
        file, _, sizes = math.partition(":")
        op = nautilus.compile(ROOT / "golden" / file, **{n: int(v) for n, _, v in (s.partition("=") for s in sizes.split(","))})
        assert [t.name for t in op.inputs] == ["Q", "K", "V"] and op.outputs[0].dtype == "bf16"
        assert {t.dtype for t in op.inputs} == {"f8e4m3" if "fp8" in file else "bf16"}


def test_rows_and_resuming(bench):
    done, started, rows = bench(*TWO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(started) == 2
    wanted = {"ours", "cudnn", "flex triton", "compiled formula"}
    assert {r["candidate"] for r in rows if r["suite"] == "prefill_grid"} == wanted
    ours = next(r for r in rows if r["candidate"] == "ours")
    assert (ours["model"], ours["peer"], ours["ratio_to_peer"], ours["mode"]) == ("llama2", "cudnn", 2.0, "sustained")
    assert ours["tflops"] == pytest.approx(4 * 32 * 1024 * 1024 * 128 / 2 / 1e9)
    done, started, again = bench(*TWO)
    assert not started and again == rows, "what has rows is not timed again"
    # Another system: all that have not failed are timed once more with it, for times of one loop compare.
    _, started, again = bench(*TWO[:-2])
    assert len(started) == 2 and started[0].endswith(": ours,cudnn,flash,flex triton,compiled formula")
    assert len(again) > len(rows)


def test_a_refusal_is_a_row(bench):
    done, started, rows = bench(*TWO, plan={"flex triton": "refuses"})
    failed = [r for r in rows if r.get("failed")]
    assert {(r["candidate"], r["failed"]) for r in failed} == {("flex triton", "no such kernel")}
    assert all("ms_median" not in r for r in failed)
    assert "flex triton: no such kernel" in done.stdout
    assert done.returncode == 0, "others may fail, ours may not"
    _, started, _ = bench(*TWO)
    assert not started, "a failure is a result"
    _, started, rows = bench(*TWO, "--failures-again")
    assert len(started) == 2 and "flex triton" in started[0]
    assert not [r for r in rows[-4:] if r.get("failed")]


@pytest.mark.parametrize("how, why", [("hangs", "hung at: flex triton: first call"),
                                      ("dies", "died at: flex triton: first call: Segmentation fault")])
def test_who_hangs_or_dies_costs_nobody_else_a_row(bench, how, why):
    _, started, rows = bench(*TWO, plan={"flex triton": how})
    assert len(started) == 4, "each of both cases goes once more without it"
    of_case = {r["candidate"]: r for r in rows if r["suite"] == "prefill_grid"}
    assert of_case["flex triton"]["failed"].startswith(why)
    assert of_case["ours"]["ms_median"] == 1.0 and of_case["compiled formula"]["ms_median"] == 1.0


def test_what_dies_in_the_loop_is_a_failure_of_all(bench):
    done, started, rows = bench(*TWO, plan={"timing": "dies"})
    assert len(started) == 2
    assert all(r["failed"].startswith("died at: timing") for r in rows) and len(rows) == 9
    assert done.returncode == 1
    assert "failed" in done.stdout


def test_children_that_do_not_start_leave_no_rows(bench):
    done, _, rows = bench(*TWO, plan={"start": "dies"})
    assert not rows and done.returncode == 1
    assert "no module named torch" in done.stdout and "2 not reached" in done.stdout


def test_budget(bench):
    done, started, rows = bench(*TWO, "--budget-seconds", "0")
    assert not started and not rows
    assert "the same command goes on with them" in done.stdout and done.returncode == 1


def test_no_such_case(bench):
    done, _, _ = bench("--case", "gpt5")
    assert done.returncode != 0 and "no case has such a name" in done.stderr


@pytest.mark.parametrize("causal", [False, True])
def test_the_formula(monkeypatch, causal):
    """What torch.compile gets is attention."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import systems

    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    torch.testing.assert_close(systems.formula(q, k, v, causal), want, rtol=1e-5, atol=1e-5)


def make_page(tmp_path, *files):
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "models_page.py"), *map(str, files), "--out",
                           str(tmp_path / "page.html")], capture_output=True, text=True, check=False)
    page = tmp_path / "page.html"
    return done, page.read_text() if page.exists() else ""


def test_page_of_recorded_rows(tmp_path):
    done, text = make_page(tmp_path, RECORDED)
    assert done.returncode == 0, done.stderr
    assert "90 of 150 configurations" in text and "NVIDIA H200" in text
    assert text.count("<svg") == 4, "ratios, roofline, and bars of both suites"
    for network in ("http://", "https://", "src="):
        assert network not in text.replace("http://www.w3.org/2000/svg", "")
    assert "None." in text, "no failures"


def test_page_shows_failures(tmp_path, bench):
    _, _, rows = bench(*TWO, plan={"flex triton": "refuses"})
    assert rows
    done, text = make_page(tmp_path, tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    assert "no such kernel" in text and "<path d=" in text
    assert "<td style=\"text-align:left\">failed</td>" in text


def test_page_of_other_rows(tmp_path):
    (tmp_path / "other.jsonl").write_text(json.dumps(dict(work="gemm", shape="1x1x1", candidate="cublas")) + "\n")
    done, text = make_page(tmp_path, tmp_path / "other.jsonl")
    assert done.returncode != 0 and not text and "no row of these files" in done.stderr
