"""Wrong arguments of hooks. The errors name the hook, the argument and what is expected."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from hook_runs import best

import moxing.tensorflow as mox

WRONG = [
    (lambda: mox.ThroughputHook(0), "ThroughputHook(every_n_steps=0): expected an integer from 1"),
    (lambda: mox.GradientNormHook(2.5), "GradientNormHook(every_n_steps=2.5): expected an integer from 1"),
    (lambda: mox.GradientNormHook(log=1), "GradientNormHook(log=1): expected True or False"),
    (lambda: mox.RunEndHook(lambda: 1), "expected a function of one argument"),
    (lambda: mox.NanGuardHook(action="retry"), "NanGuardHook(action='retry'): expected 'stop' or 'restore'"),
    (lambda: mox.NanGuardHook(factor=0), "NanGuardHook(factor=0): expected a number above 0"),
    (lambda: mox.NanGuardHook(max_restores=0), "NanGuardHook(max_restores=0): expected an integer from 1"),
    (lambda: mox.NanGuardHook({"n": tf.constant(1)}), "tensors['n']="),
    (lambda: mox.NanGuardHook(tf.constant(1.0)), "expected a dict of tensors by name, or a list"),
    (lambda: mox.NanGuardHook([object()]), "expected a tensor"),
    (lambda: mox.ProfilerHook(-1), "ProfilerHook(start_step=-1): expected an integer from 0"),
    (lambda: mox.ProfilerHook(steps=0), "ProfilerHook(steps=0): expected an integer from 1"),
    (lambda: mox.ProfilerHook(directory=""), "ProfilerHook(directory=''): expected a path"),
    (lambda: mox.RunEndHook("print"), "RunEndHook(callback='print'): expected a function"),
    (lambda: best({"x": tf.constant(1.0)}, "y"), "monitor='y'"),
    (lambda: best({"x": tf.constant(1.0)}, "x", keep=0), "keep=0"),
    (lambda: best({"x": tf.constant(1.0)}, "x", mode="best"), "mode='best'"),
    (lambda: best({"x": tf.constant(1.0)}, "x", min_delta=-1), "min_delta=-1"),
    (lambda: best({"x": tf.constant(1.0)}, "x", directory="a/b"), "directory='a/b'"),
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_arguments(make, words):
    with tf.Graph().as_default(), pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert words in str(caught.value)
