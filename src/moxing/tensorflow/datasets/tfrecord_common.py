"""The import path of the first versions of MoXing."""

from moxing.tensorflow.datasets.tfrecord.tfrecord_common import (
    BaseTFRecordDataset,
    BaseTFRecordMetadata,
    ImageClassificationTFRecordMetadata,
    get_tfrecord,
)
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset

__all__ = [
    "BaseTFRecordDataset",
    "BaseTFRecordMetadata",
    "ImageClassificationTFRecordDataset",
    "ImageClassificationTFRecordMetadata",
    "get_tfrecord",
]
