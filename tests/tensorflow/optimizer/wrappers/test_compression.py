"""What one worker keeps and sends of its gradients, and the settings of the compression."""

from __future__ import annotations

import numpy as np
import pytest

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.wrappers.compression import Compressor, settings


def test_all_that_was_added_is_sent_or_kept():
    worker = Compressor(1000, np.dtype(np.float32))
    random, total, sent = np.random.RandomState(0), np.zeros(1000), np.zeros(1000)
    for _ in range(30):
        gradient = random.randn(1000).astype(np.float32)
        total += gradient
        places, values = worker.select(gradient, 0.99)
        assert np.all(np.diff(places.astype(int)) > 0)
        sent[places] += values
    np.testing.assert_allclose(sent + worker._accumulated, total, atol=1e-4)


@pytest.mark.parametrize("shape", [(64, 3, 3, 512), (1000, 2048), (1_000_003,)])
@pytest.mark.parametrize("sparsity", [0.75, 0.999])
def test_a_sampled_threshold_sends_about_as_many(shape, sparsity):
    """Also where channels, the last dimension, are of very different sizes."""
    random = np.random.RandomState(0)
    size = int(np.prod(shape))
    worker = Compressor(size, np.dtype(np.float32), 0.9)
    scales = np.geomspace(1e-3, 10, shape[-1]).astype(np.float32)
    for _ in range(4):
        places, values = worker.select(random.randn(*shape).astype(np.float32) * scales, sparsity)
        assert 0.6 < places.size / (size * (1 - sparsity)) <= 1.26
        assert values.size == places.size and places.dtype == np.uint32


def test_an_unlucky_sample_does_not_send_everything():
    worker = Compressor(1_000_000, np.dtype(np.float32))
    gradient = np.ones(1_000_000, np.float32)
    gradient[1::13] = 0  # what is looked at is of no use: every 13th, which does not divide the size
    places, _ = worker.select(gradient, 0.999)
    assert 0 < places.size <= 1250


def test_zeros_are_not_sent_and_what_is_not_finite_is():
    worker = Compressor(100, np.dtype(np.float32))
    places, values = worker.select(np.zeros(100, np.float32), 0.5)
    assert places.size == values.size == 0
    gradient = np.ones(100, np.float32)
    gradient[7] = np.nan
    places, values = worker.select(gradient, 0.9)
    assert 7 in places and np.isnan(values).any()


def test_settings_come_from_arguments_then_flags_then_are_the_usual_ones():
    usual = settings()
    assert (usual.sparsities, usual.momentum, usual.nesterov, usual.masking) == ((0.999,), None, None, True)
    assert settings(total_samples=50).sparsities == (0.75, 0.9375, 0.984375, 0.996, 0.999)
    mox.set_flag("dgc_momentum", 0.8)
    mox.set_flag("dgc_momentum_type", "nesterov")
    mox.set_flag("dgc_sparsity_strategy", "0.5, 0.9")
    mox.set_flag("dgc_total_samples", 100)
    mox.set_flag("dgc_momentum_factor_masking", False)
    mox.set_flag("min_size_in_kb", 7)
    found = settings(momentum=0.7)
    assert (found.sparsities, found.momentum, found.nesterov, found.masking) == ((0.5, 0.9), 0.7, True, False)
    assert (found.total_samples, found.min_bytes) == (100, 7168)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sparsity_strategy": "0.7,x", "total_samples": 5}, "'x' is not a sparsity"),
        ({"sparsity_strategy": "1"}, "'1' is not a sparsity"),
        ({"sparsity_strategy": "0.7,0.9"}, "needs --dgc_total_samples"),
        ({"momentum": 1.0}, r"dgc\(momentum=1.0\): expected a number from 0 to below 1"),
        ({"momentum": True}, "expected a number"),
        ({"momentum_type": "fast"}, "expected vanilla or nesterov"),
        ({"momentum_factor_masking": "yes"}, "expected True or False"),
        ({"total_samples": 0}, "an integer from 1"),
        ({"min_size_in_kb": -1}, "an integer from 0"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        settings(**arguments)


def test_a_bad_flag_is_named():
    mox.set_flag("dgc_momentum", 2.0)
    with pytest.raises(ValueError, match="--dgc_momentum=2.0: expected"):
        settings()
