# SPDX-License-Identifier: Apache-2.0
"""nautilus.results: rows of benchmarks as plots. Needs no library."""

import xml.dom.minidom

import nautilus
import pytest
from conftest import ROOT

RESULTS = ROOT / "bench" / "results"


def row(candidate, ms, shape="B1 S1024", **more):
    return dict(work="attention", shape=shape, candidate=candidate, mode="sustained", ms_median=ms, tflops=100 / ms, **more)


def test_ratios_and_summary():
    rows = [row("cudnn", 2.0), row("attention_full", 1.0), row("cudnn", 1.0, "B1 S2048"), row("attention_full", 2.0, "B1 S2048"),
            row("flash", 3.0), row("copy", 0.1), dict(row("cudnn", 9.0), mode="burst")]
    found = nautilus.results(rows)
    assert found.ratios("cudnn") == {"attention B1 S1024": 2.0, "attention B1 S2048": 0.5}
    assert found.ratios() == {"attention B1 S1024": 2.0, "attention B1 S2048": 0.5}, "the fastest peer"
    assert found.systems == ["ours", "cudnn", "flash"]
    name, problems, mean, low, high, failures = found.summary()[0]
    assert (name, problems, low, high, failures) == ("cudnn", 2, 0.5, 2.0, 0) and mean == pytest.approx(1.0)
    assert len(found.only("2048")) == 1 and len(found) == 2
    with pytest.raises(nautilus.ArgumentError, match="flex"):
        found.ratios("flex")


def test_failures_and_later_rows():
    failed = dict(work="attention", shape="B1 S1024", candidate="flex triton", mode="sustained", failed="no <kernel>")
    found = nautilus.results([row("cudnn", 2.0), row("ours", 1.0), failed])
    assert found.failures() == [("attention B1 S1024", "flex triton", "no <kernel>")]
    assert "no &lt;kernel&gt;" in found._repr_html_() and "<path" in found.bars().svg
    later = nautilus.results([row("cudnn", 2.0), row("ours", 1.0), failed, row("flex triton", 4.0)])
    assert not later.failures() and later.ratios("flex triton") == {"attention B1 S1024": 4.0}


@pytest.mark.parametrize("name", ["2026-11-18_h200_grids_complete", "2026-11-18_h200_level1", "2026-11-18_h200_foreign"])
def test_recorded_rows(name, tmp_path):
    """Of bench/run.py and of bench/programs.py."""
    found = nautilus.results(RESULTS / f"{name}.jsonl")
    assert len(found) > 50 and "H200" in found.card
    for figure in (found.bars(), found.distribution()):
        xml.dom.minidom.parseString(figure.svg)
    assert found.roofline() is None, "these rows do not say FLOPs and bytes"
    text = found._repr_html_()
    assert text.count("<svg") == 2 and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    found.bars().save(str(tmp_path / "bars.svg"))
    assert (tmp_path / "bars.svg").read_text().startswith("<svg")


def test_roofline():
    rows = [row("ours", 1.0, flops=1e11, bytes=1e9, gpu="NVIDIA H200"), row("cudnn", 2.0, flops=1e11, bytes=1e9)]
    figure = nautilus.results(rows).roofline()
    xml.dom.minidom.parseString(figure.svg)
    assert "4.8 TB/s" in figure.svg and "989 TFLOP/s" in figure.svg
    unknown = nautilus.results([dict(r, gpu="another card") for r in rows]).roofline()
    assert "TB/s" not in unknown.svg


def test_nothing():
    found = nautilus.results([])
    assert len(found) == 0 and "nobody" in repr(found)
    assert "0 problems" in found._repr_html_()
    with pytest.raises(FileNotFoundError):
        nautilus.results("there-is-no-such-file.jsonl")
