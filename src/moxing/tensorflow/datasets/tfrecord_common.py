"""The import path of the first versions of MoXing."""

from moxing.tensorflow.datasets.tfrecord.tfrecord_common import (
    BaseTFRecordDataset,
    BaseTFRecordMetadata,
    ImageClassificationTFRecordMetadata,
    get_tfrecord,
)

__all__ = ["BaseTFRecordDataset", "BaseTFRecordMetadata", "ImageClassificationTFRecordMetadata", "get_tfrecord"]
