"""tf-slim with the names that TensorFlow has moved."""

import importlib

import pytest

from moxing.tf1 import environment
from moxing.tf1.contrib import _slim_repairs

environment.prepare()


@pytest.mark.parametrize(("module", "private"), sorted(_slim_repairs._MOVED))
def test_every_moved_name_is_there(module, private):
    _slim_repairs.load()
    repaired = getattr(importlib.import_module(module), private)
    assert [name for name in _slim_repairs._MOVED[module, private] if not hasattr(repaired, name)] == []


def test_tensorflow_itself_does_not_change():
    _slim_repairs.load()
    import tensorflow as tf
    from tensorflow.python.framework import ops

    proxy = importlib.import_module("tf_slim.learning").ops
    assert proxy.Tensor is tf.Tensor and proxy is not ops and proxy.Graph is ops.Graph
