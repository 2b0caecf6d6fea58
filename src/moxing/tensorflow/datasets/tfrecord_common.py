"""Import path of MoXing's first versions."""

from moxing.tensorflow.datasets.tfrecord.tfrecord_common import (
    BaseTFRecordDataset,
    BaseTFRecordMetadata,
    ImageClassificationTFRecordMetadata,
    get_tfrecord,
)

__all__ = ["BaseTFRecordDataset", "BaseTFRecordMetadata", "ImageClassificationTFRecordMetadata", "get_tfrecord"]
