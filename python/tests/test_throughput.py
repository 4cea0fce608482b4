# SPDX-License-Identifier: Apache-2.0
"""bench/throughput.py on the host, with tiny layers: its rows and its table, not its times."""

import json
import os
import subprocess
import sys

import nautilus._library
import pytest
from conftest import ROOT

pytest.importorskip("torch")
pytest.importorskip("transformers")


def run(tmp_path, *more):
    environment = dict(os.environ, NAUTILUS_LIBRARY=nautilus._library.library_path())
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "throughput.py"), "--tiny", "--prompt", "8", "--cache", "12", "--steps", "2",
         "--turns", "2", "--layers", "1", "--models", "llama", "--out", str(tmp_path / "rows.jsonl"), *more],
        capture_output=True, text=True, timeout=300, env=environment, check=False)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    return done, rows


def test_rows_and_failures(tmp_path):
    done, rows = run(tmp_path, "--implementations", "nautilus,sdpa,nobody", "--budget-seconds", "250")
    assert done.returncode == 0, done.stdout + done.stderr
    timed = {(r["implementation"], r["phase"]): r for r in rows if "failed" not in r}
    assert set(timed) == {(i, p) for i in ("nautilus", "sdpa") for p in ("prefill", "decode")}
    row = timed["nautilus", "prefill"]
    assert row["tokens"] == 8 and row["samples"] == 2 and row["layers"] == 1 and row["tokens_per_s"] > 0
    assert timed["sdpa", "prefill"]["difference"] < 0.05
    assert [r["implementation"] for r in rows if "failed" in r] == ["nobody"]
    assert "failed: llama nobody" in done.stdout and "speed to base" in done.stdout


def test_no_time(tmp_path):
    done, rows = run(tmp_path, "--budget-seconds", "0")
    assert done.returncode == 1
    assert rows and all(r["failed"].startswith("not reached") for r in rows)
