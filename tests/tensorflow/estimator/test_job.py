"""Estimators in jobs: TF_CONFIG from MoXing's flags."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from helpers.estimator_models import input_fn, make
from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster.roles import Role
from moxing.tensorflow.estimator.job import set_tf_config, tf_config


@pytest.mark.parametrize(
    ("role", "task"),
    [
        (Role("worker", 0, ("a:1", "b:1"), ("c:1",)), {"type": "chief", "index": 0}),
        (Role("worker", 1, ("a:1", "b:1"), ("c:1",)), {"type": "worker", "index": 0}),
        (Role("ps", 0, ("a:1", "b:1"), ("c:1",)), {"type": "ps", "index": 0}),
    ],
)
def test_tf_config(role, task):
    config = json.loads(tf_config(role))
    assert config == {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": task}


def test_the_environment_of_the_user_stays(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    set_tf_config()
    assert "TF_CONFIG" not in os.environ
    for name, value in (("worker_hosts", "a:1,b:1"), ("ps_hosts", "c:1"), ("job_name", "worker"), ("task_index", 1)):
        FLAGS.set(name, value)
    monkeypatch.setenv("TF_CONFIG", '{"mine": 1}')
    set_tf_config()
    assert os.environ["TF_CONFIG"] == '{"mine": 1}'
    monkeypatch.setenv("TF_CONFIG", "")
    set_tf_config()
    assert json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


def test_workers_without_ps_are_refused(tmp_path):
    for name, value in (("worker_hosts", "a:1,b:1"), ("job_name", "worker"), ("task_index", 0)):
        FLAGS.set(name, value)
    with pytest.raises(ValueError, match=r"a job of 2 workers without parameter servers.*--ps 1"):
        make(tmp_path).train(input_fn, steps=1)


SCRIPT = """
import sys
sys.path.append(TESTS)
import tensorflow as tf
from helpers.estimator_models import input_fn, make
tf.logging.set_verbosity(tf.logging.INFO)
one = make(MODEL)
train = tf.estimator.TrainSpec(input_fn, max_steps=300)
tf.estimator.train_and_evaluate(one, train, tf.estimator.EvalSpec(lambda: input_fn().take(5)))
print('ROLE', one.config.task_type, one.config.task_id)
"""


@pytest.mark.slow
def test_a_job_of_the_launcher(tmp_path, request):
    tests = str(request.config.rootpath / "tests")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("TESTS", repr(tests)).replace("MODEL", repr(str(tmp_path / "model"))))
    words = [sys.executable, "-m", "moxing", "run", "--workers", "2", "--ps", "1", str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ROLE chief 0" in done.stdout and "ROLE worker 0" in done.stdout
    reader = __import__("tensorflow").compat.v1.train.load_checkpoint(str(tmp_path / "model"))
    assert reader.get_tensor("global_step") >= 300
