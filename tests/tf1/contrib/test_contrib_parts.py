"""rnn, lookup, image, layers beyond slim, util: built and run in a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.:UserWarning"),
]


def run(*fetches: Any) -> list[Any]:
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        return session.run(list(fetches))


def test_cells_and_static_rnn() -> None:
    rnn = contrib.rnn
    with tf.Graph().as_default():
        cell = rnn.MultiRNNCell([rnn.DropoutWrapper(rnn.BasicLSTMCell(4), output_keep_prob=0.5), rnn.GRUCell(3)])
        outputs, _ = rnn.static_rnn(cell, [v1.random_normal([2, 5])] * 3, dtype=tf.float32)
        dynamic, _ = v1.nn.dynamic_rnn(rnn.LSTMCell(4), v1.random_normal([2, 3, 5]), dtype=tf.float32)
        loss = tf.reduce_sum(outputs[-1]) + tf.reduce_sum(dynamic)
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        values = run(outputs[-1], dynamic, train_op)
    assert values[0].shape == (2, 3)
    assert values[1].shape == (2, 3, 4)


def test_stacked_bidirectional_rnn() -> None:
    rnn = contrib.rnn
    with tf.Graph().as_default():
        cells = [[rnn.GRUCell(3), rnn.GRUCell(4)] for _ in range(2)]
        outputs, states_fw, states_bw = rnn.stack_bidirectional_dynamic_rnn(
            cells[0], cells[1], v1.random_normal([2, 5, 6]), dtype=tf.float32
        )
        assert len(states_fw) == len(states_bw) == 2
        names = [variable.op.name for variable in v1.global_variables()]
        assert run(outputs)[0].shape == (2, 5, 8)
    assert names[0] == "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/gru_cell/gates/kernel"
    with pytest.raises(ValueError, match="got 1 and 0"):
        rnn.stack_bidirectional_dynamic_rnn([object()], [], None)


def test_lookup_tables(tmp_path: Path) -> None:
    lookup = contrib.lookup
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\n")
    with tf.Graph().as_default():
        table = lookup.HashTable(lookup.KeyValueTensorInitializer(["x", "y"], [7, 8]), -1)
        from_file = lookup.index_table_from_file(str(words), num_oov_buckets=1)
        back = lookup.index_to_string_table_from_tensor(["p", "q"])
        found = run(
            table.lookup(tf.constant(["y", "z"])),
            from_file.lookup(tf.constant(["c", "?"])),
            back.lookup(tf.constant([1], tf.int64)),
        )
    assert [value.tolist() for value in found] == [[8, -1], [2, 3], [b"q"]]


def test_rotate_translate_and_transform() -> None:
    picture = np.arange(9, dtype=np.float32).reshape(3, 3)
    with tf.Graph().as_default():
        quarter = contrib.image.rotate(picture, np.pi / 2)
        batch = contrib.image.rotate(np.stack([picture, picture])[..., None], [0.0, np.pi], "BILINEAR")
        moved = contrib.image.translate(picture[..., None], [1, 0])
        assert moved.shape.as_list() == [3, 3, 1]
        quarter, batch, moved = run(quarter, batch, moved)
    np.testing.assert_array_equal(quarter, np.rot90(picture))
    np.testing.assert_allclose(batch[..., 0], [picture, picture[::-1, ::-1]], atol=1e-4)
    np.testing.assert_array_equal(moved[..., 0], [[0, 0, 1], [0, 3, 4], [0, 6, 7]])
    with pytest.raises(ValueError, match="interpolation must be NEAREST or BILINEAR, got 'cubic'"):
        contrib.image.rotate(picture, 0.0, "cubic")
    with pytest.raises(ValueError, match="2, 3 or 4 dimensions"):
        contrib.image.rotate([1.0], 0.0)


def test_embed_sequence_shares_its_variable() -> None:
    with tf.Graph().as_default():
        ids = tf.constant([[1, 2], [0, 1]])
        first = contrib.layers.embed_sequence(ids, vocab_size=3, embed_dim=4, scope="words")
        again = contrib.layers.embed_sequence(ids, scope="words", reuse=True)
        assert [variable.op.name for variable in v1.global_variables()] == ["words/embeddings"]
        first, again = run(first, again)
    np.testing.assert_array_equal(first, again)
    assert first.shape == (2, 2, 4)
    with pytest.raises(ValueError, match="vocab_size and embed_dim are needed"):
        contrib.layers.embed_sequence([[1]], 3)


@pytest.mark.filterwarnings("ignore:.*feature_column:UserWarning")
def test_feature_columns() -> None:
    layers = contrib.layers
    with tf.Graph().as_default():
        age = layers.real_valued_column("age")
        colour = layers.sparse_column_with_keys("colour", ["red", "blue"])
        columns = [
            age,
            layers.bucketized_column(age, [10, 20]),
            layers.one_hot_column(colour),
            layers.embedding_column(layers.sparse_column_with_hash_bucket("town", 5), 2),
        ]
        features = {"age": tf.constant([[5.0], [15.0]]), "colour": tf.constant([["blue"], ["red"]])}
        features["town"] = tf.constant([["x"], ["y"]])
        rows = run(layers.input_from_feature_columns(features, columns))[0]
    assert rows.shape == (2, 1 + 3 + 2 + 2)


def test_util() -> None:
    proto = contrib.util.make_tensor_proto([1.0, 2.0])
    assert contrib.util.make_ndarray(proto).tolist() == [1.0, 2.0]
