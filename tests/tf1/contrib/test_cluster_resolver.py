"""tf.contrib.cluster_resolver."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import cluster_resolver


def test_tpus_are_refused_with_the_words_of_tpu_estimator():
    with pytest.raises(ValueError, match=r"tpu='node-1'\): TensorFlow 2.21 can no longer run an Estimator on a TPU"):
        cluster_resolver.TPUClusterResolver("node-1", zone=None, project=None)
    assert cluster_resolver.TFConfigClusterResolver is tf.distribute.cluster_resolver.TFConfigClusterResolver
