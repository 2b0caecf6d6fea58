"""What stands in for the modules that TensorFlow 2.21 lacks."""

from __future__ import annotations

import json

import pytest

from moxing.tensorflow import estimator
from moxing.tf1.estimator import stand_ins


def test_names_of_tpus_exist_and_refuse():
    module = stand_ins.modules()["tensorflow.python.tpu.tpu_embedding"]
    assert isinstance(module.AdamParameters, type)
    assert module.AdamParameters is module.AdamParameters
    with pytest.raises(NotImplementedError, match=r"tpu_embedding\.AdamParameters is not available.*use_tpu=False"):
        module.AdamParameters(0.1)
    assert not hasattr(module, "__wrapped__")


def test_a_strategy_in_a_job_is_refused_by_name(monkeypatch):
    import tensorflow.compat.v1 as tf

    cluster = {"chief": ["127.0.0.1:1111"], "worker": ["127.0.0.1:2222"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with pytest.raises(ValueError, match=r"RunConfig\(train_distribute=MirroredStrategy\w*\) in a job of 2 processes"):
        estimator.RunConfig(train_distribute=strategy)
    monkeypatch.delenv("TF_CONFIG")
    assert estimator.RunConfig(train_distribute=strategy).train_distribute is strategy
