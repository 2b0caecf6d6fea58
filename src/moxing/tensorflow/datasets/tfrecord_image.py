"""The import path of the first versions of MoXing."""

from moxing.tensorflow.datasets.tfrecord.progressive import ProgressiveImagenetDataset
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset

__all__ = ["ImageClassificationTFRecordDataset", "ProgressiveImagenetDataset"]
