"""`moxing run` with a command line that cannot be carried out: a message, no traceback, exit code 2."""

from __future__ import annotations

import os

import pytest

from helpers.launcher import warm_moxing

SCRIPT = """
import tensorflow as tf
import moxing.tensorflow as mox

mox.run(input_fn=lambda mode: tf.zeros([1]),
        model_fn=lambda inputs, mode: mox.ModelSpec(loss=tf.get_variable('w', [1])[0] + inputs[0][0]),
        optimizer_fn=mox.get_optimizer_fn('sgd', 0.1), run_mode='TRAIN', max_number_of_steps=2)
"""


def run(directory, *words, **environment):
    (directory / "train.py").write_text(SCRIPT)
    variables = {**os.environ, "MOX_SILENT_MODE": "1", **environment}
    return warm_moxing("run", "train.py", *words, cwd=directory, env=variables)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--gradient_clip_type=globalnorm"],
            "--gradient_clip_type='globalnorm': expected one of norm, global_norm, value. Did you mean 'global_norm'?",
        ),
        (
            ["--worker_hosts=a:1,b:1", "--job_name=worker", "--task_index=2"],
            "--task_index=2: --worker_hosts has 2 hosts (a:1,b:1), expected 0 to 1.",
        ),
    ],
    ids=["flag", "role"],
)
def test_the_message_alone(tmp_path, words, message):
    result = run(tmp_path, *words)
    assert result.returncode == 2
    assert result.stderr == f"moxing run: error: {message}\n"


def test_what_a_scheduler_says_and_a_misspelt_flag(tmp_path):
    result = run(tmp_path, "--num_gpu=2", TF_CONFIG="{worker")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    warning, error = result.stderr.splitlines()
    assert warning.endswith("Ignoring --num_gpu: not a flag of MoXing or of this script. Did you mean --num_gpus?")
    assert error.startswith("moxing run: error: TF_CONFIG='{worker' is not JSON (")
