"""tensorflow-estimator on TensorFlow 2.21, imported first by whatever name."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import tensorflow_estimator",
        "from tensorflow_estimator.python.estimator import run_config",
        "from tensorflow_estimator.python.estimator.tpu import tpu_estimator",
        "from tensorflow_estimator.python.estimator.canned import dnn",
    ],
)
def test_the_package_is_repaired_under_every_name(statement):
    program = f"""
from moxing.tf1.estimator import repair
repair.install()
{statement}
import sys
import tensorflow as tf
assert not [name for name in sys.modules if name.endswith(('.estimator_training', '.session_support'))]
assert not hasattr(tf.python if hasattr(tf, 'python') else tf, 'estimator_training')
api = repair.load()
assert api.RunConfig().is_chief and api.Estimator and api.tpu.TPUEstimator
assert tf.compat.v1.estimator if hasattr(tf.compat.v1, 'estimator') else True
print('DONE')
"""
    assert run(program).split() == ["DONE"]


def test_nothing_is_called_deprecated():
    program = """
from moxing.tf1.estimator import repair
api = repair.load()
import tempfile
api.Estimator(lambda features: None, model_dir=tempfile.mkdtemp())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr
