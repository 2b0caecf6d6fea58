"""Checkpoints of TensorFlow 2.15 continue here, and ours there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.estimator_models import weights
from helpers.launcher import output_of

DATA = Path(__file__).parent / "data"
#: An interpreter with TensorFlow 2.15.
VARIABLE = "MOXING_OLD_PYTHON"


def test_a_training_of_215_continues_here(tmp_path):
    """As 2.15 continues itself. `benchmarks/compat/estimator_checkpoints.py` wrote the data."""
    model_dir = Path(shutil.copytree(DATA / "model_of_215", tmp_path / "model"))
    assert weights(model_dir)["global_step"] == 10
    output_of(DATA / "train_dense.py", model_dir, 20)
    expected = json.loads((DATA / "step_20_of_215.json").read_text())
    found = weights(model_dir)
    assert set(found) == set(expected) and found["global_step"] == 20
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.slow
def test_trainings_continue_in_both_directions(request):
    old_python = os.environ.get(VARIABLE)
    if not old_python:
        pytest.skip(f"{VARIABLE} names no interpreter with TensorFlow 2.15")
    script = request.config.rootpath / "benchmarks" / "compat" / "estimator_checkpoints.py"
    done = subprocess.run([sys.executable, script, "--old_python", old_python], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": step 20, ") == 4
