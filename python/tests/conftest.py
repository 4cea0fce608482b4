# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.fixture
def examples():
    return ROOT / "examples"


def pytest_collection_modifyitems(items):
    """Tests marked `gpu` are skipped where PyTorch has no GPU; whoever runs them on one sees them run."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    try:
        import torch

        if torch.cuda.is_available():
            return
        why = "PyTorch has no GPU here"
    except ImportError:
        why = "PyTorch is not installed"
    for item in marked:
        item.add_marker(pytest.mark.skip(reason=why))
