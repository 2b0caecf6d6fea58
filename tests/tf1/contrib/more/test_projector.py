"""The file that tells TensorBoard about embeddings."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.more import projector


def test_the_file_beside_the_events(tmp_path):
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name = "words"
    embedding.metadata_path = "vocab.tsv"
    embedding.sprite.image_path = "sprite.png"
    embedding.sprite.single_image_dim.extend([28, 28])
    config.embeddings[0].tensor_shape.extend([10, 2])
    with tf.Graph().as_default(), tf.summary.FileWriter(str(tmp_path)) as writer:
        projector.visualize_embeddings(writer, config)
    words = (tmp_path / "projector_config.pbtxt").read_text().split()
    assert " ".join(words) == (
        'embeddings { tensor_name: "words" metadata_path: "vocab.tsv" tensor_shape: 10 tensor_shape: 2 '
        'sprite { image_path: "sprite.png" single_image_dim: 28 single_image_dim: 28 } }'
    )
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = projector.Nothing
