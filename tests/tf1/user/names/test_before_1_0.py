"""Names of TensorFlow 0.x."""

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tf1.user import facade
from moxing.tf1.user.names import before_1_0 as old


def test_old_names_and_orders_give_the_numbers_of_the_new():
    a, b = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant(a), tf.constant(b)
        computed = [
            (old.mul(x, y), a * b),
            (old.sub(x, y), a - b),
            (old.neg(x), -a),
            (old.pack([x, y]), np.stack([a, b])),
            (old.select(x > 1.0, x, y), np.where(a > 1, a, b)),
            (old.concat(1, [x, y]), np.concatenate([a, b], 1)),
            (old.concat([x, y], 0), np.concatenate([a, b], 0)),
            (old.concat(values=[x, y], axis=1), np.concatenate([a, b], 1)),
            (old.concat(concat_dim=1, values=[x, y]), np.concatenate([a, b], 1)),
            (old.split(1, 2, x)[1], a[:, 1:]),
            (old.split(x, 2, 1)[0], a[:, :1]),
            (old.split(value=x, num_or_size_splits=2, axis=1)[0], a[:, :1]),
        ]
        for found, (_, expected) in zip(session.run([tensor for tensor, _ in computed]), computed, strict=True):
            np.testing.assert_array_equal(found, expected)
        old.scalar_summary("loss", x[0, 0])
        assert session.run(old.merge_all_summaries())


def test_scripts_see_them():
    shown = facade.module("tensorflow")
    assert shown.mul is old.mul and shown.concat is old.concat
    assert facade.module("tensorflow.train").SummaryWriter is tf.summary.FileWriter
