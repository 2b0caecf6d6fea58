"""A program of the time of BERT under `moxing run`: TPUEstimator without a TPU, its own optimizer, a warm start."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from subprocess import STDOUT

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers import launcher, warm
from moxing.tf1.contrib import cluster_resolver

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "tpu_estimator_program.py"
#: Runs the program and says how often it has called session.run.
COUNTED = """
import atexit, runpy, sys
import tensorflow as tf

calls = []
run = tf.Session.run
tf.Session.run = lambda self, *args, **kwargs: (calls.append(1), run(self, *args, **kwargs))[1]
atexit.register(lambda: print("CALLS", len(calls), flush=True))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def variables(checkpoint):
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_equal(one, other):
    one, other = variables(one), variables(other)
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_it_trains_evaluates_predicts_and_exports(tmp_path):
    counted = tmp_path / "counted.py"
    counted.write_text(COUNTED)
    words = ("--do_train", "--do_eval", "--do_predict", "--do_export", "--num_train_steps=300")
    output = launcher.output_of(counted, PROGRAM, f"--output_dir={tmp_path / 'model'}", *words)
    assert "EVALUATED 300 1.0" in output
    assert "PREDICTED 100 of 100" in output
    assert "EXPORTED [1, 0]" in output
    # Most are those of the evaluation and the prediction, with 13 batches each.
    assert int(re.search(r"CALLS (\d+)", output)[1]) < 120
    # As often as log_step_count_steps says, whatever iterations_per_loop is.
    assert output.count("examples/sec") == 2
    assert "has not been increased" not in output


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_resumes_bit_for_bit(tmp_path, number):
    model_dir, whole = tmp_path / "model", tmp_path / "whole"
    words = ("run", str(PROGRAM), f"--output_dir={model_dir}", "--do_train")
    program = warm.Program("moxing", launcher.MAIN, (*words, "--num_train_steps=100000", "--slow=0.01"))
    with warm.WarmProcess(program, warm.Surroundings(tmp_path), stdout=tmp_path / "log", stderr=STDOUT) as one:
        try:
            deadline = time.monotonic() + warm.DEADLINE
            while not (model_dir / "model.ckpt-50.index").exists():
                assert one.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.02)
            one.send_signal(number)
            assert one.wait() == (-9 if number == signal.SIGKILL else 143), (tmp_path / "log").read_text()
        finally:
            one.kill()
    reached = int(tf.train.load_variable(str(model_dir), "global_step"))
    last = f"--num_train_steps={reached + 30}"
    output = launcher.output_of(PROGRAM, f"--output_dir={model_dir}", "--do_train", last)
    assert f"Restoring parameters from {model_dir}/model.ckpt-{reached}" in output
    launcher.output_of(PROGRAM, f"--output_dir={whole}", "--do_train", last)
    assert_equal(model_dir, whole)


@pytest.mark.slow
def test_it_starts_from_another_checkpoint(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    launcher.output_of(PROGRAM, f"--output_dir={first}", "--do_train", "--num_train_steps=50")
    checkpoint = f"--init_checkpoint={first / 'model.ckpt-50'}"
    words = (checkpoint, "--do_train", "--do_eval", "--num_train_steps=60")
    output = launcher.output_of(PROGRAM, f"--output_dir={second}", *words)
    assert "EVALUATED 60 1.0" in output
    trained, start = variables(first / "model.ckpt-50"), variables(second / "model.ckpt-0")
    np.testing.assert_array_equal(start["encoder/embeddings"], trained["encoder/embeddings"])
    # The assignment map has only variables of the encoder, and no slots.
    assert not np.array_equal(start["output_weights"], trained["output_weights"])
    assert not start["encoder/embeddings/adam_m"].any()


def test_a_tpu_is_refused(tmp_path):
    words = ("run", PROGRAM, f"--output_dir={tmp_path}", "--do_train", "--use_tpu")
    done = launcher.warm_moxing(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert "TPUEstimator(use_tpu=True)" in done.stderr and "Pass use_tpu=False" in done.stderr


def test_a_cluster_of_tpus_is_refused_with_the_words_of_tpu_estimator():
    expected = r"tpu='node-1'\): TensorFlow 2.21 can no longer run an Estimator on a TPU"
    with pytest.raises(ValueError, match=expected):
        cluster_resolver.TPUClusterResolver("node-1", zone=None, project=None)
