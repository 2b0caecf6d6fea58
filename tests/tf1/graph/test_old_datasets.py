"""The arguments that `Dataset.map` had before TensorFlow 1.4."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph import old_datasets


def test_map_takes_threads_and_a_buffer():
    old_datasets.install()
    old_datasets.install()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        plain = tf.data.Dataset.range(3)
        mapped = plain.map(lambda i: i * 2, num_threads=2, output_buffer_size=5)
        read = tf.data.make_one_shot_iterator(mapped.batch(3)).get_next()
        assert session.run(read).tolist() == [0, 2, 4]
        assert {"ParallelMapDatasetV2", "PrefetchDataset"} & {op.type for op in graph.get_operations()}
        assert mapped._variant_tensor.op.type == "PrefetchDataset"
        with pytest.raises(ValueError, match="num_threads=2 and num_parallel_calls"):
            plain.map(lambda i: i, num_threads=2, num_parallel_calls=3)
