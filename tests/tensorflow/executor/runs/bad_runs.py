"""Helpers for tests of errors: runs that must fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow.compat.v1 as tf
from line_problem import run

import moxing.tensorflow as mox


def error_of(kind: type[BaseException], *args: Any, **arguments: Any) -> str:
    with pytest.raises(kind) as caught:
        run(*args, **arguments)
    assert type(caught.value) is kind
    return str(caught.value)


def holds(text: str, *parts: str) -> bool:
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in: {text}"
    return True


def forbidden_model(inputs, mode):
    pytest.fail("model_fn was called although an argument is wrong")


def trained(directory: Path, **arguments: Any) -> Path:
    run(log_dir=directory, **arguments)
    return directory


def with_w(**spec: Any):
    def model_fn(inputs, mode):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        return mox.ModelSpec(**{name: make(w) for name, make in spec.items()})

    return model_fn


def two_scopes(inputs, mode, **spec):
    with tf.variable_scope("generator"):
        g = tf.identity(tf.get_variable("g", shape=[], initializer=tf.zeros_initializer()))
    with tf.variable_scope("discriminator"):
        d = tf.identity(tf.get_variable("d", shape=[], initializer=tf.zeros_initializer()))
    return mox.ModelSpec(loss=[g, d], **spec)
