"""tf.contrib.layers beyond slim."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_embed_sequence_shares_its_variable() -> None:
    with tf.Graph().as_default():
        ids = tf.constant([[1, 2], [0, 1]])
        first = contrib.layers.embed_sequence(ids, vocab_size=3, embed_dim=4, scope="words")
        again = contrib.layers.embed_sequence(ids, scope="words", reuse=True)
        assert [variable.op.name for variable in v1.global_variables()] == ["words/embeddings"]
        first, again = run(first, again)
    np.testing.assert_array_equal(first, again)
    assert first.shape == (2, 2, 4)
    with pytest.raises(ValueError, match="vocab_size and embed_dim are required"):
        contrib.layers.embed_sequence([[1]], 3)
