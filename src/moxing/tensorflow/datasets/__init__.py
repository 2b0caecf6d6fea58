"""Datasets of images in folders and of TFRecord files.

`raw/` has the datasets of image files, `tfrecord/` those of TFRecord files, `catalog` the well-known ones. All of them
are built by `sample_source` from numbered samples; `image_stages` decodes and augments. `stored/` reads from object
stores, `tools/` are the tools of `moxing data`. Import the names below from here or from `moxing.tensorflow`.
"""

from moxing.tensorflow.datasets.catalog import get_dataset, get_dataset_meta
from moxing.tensorflow.datasets.raw.raw_dataset import (
    ImageClassificationRawDataset,
    MultilabelClassificationRawDataset,
)
from moxing.tensorflow.datasets.raw.raw_metadata import (
    ImageClassificationRawMetadata,
    MultilabelClassificationRawMetadata,
)
from moxing.tensorflow.datasets.reader.readers import AsyncRawGenerator, ParallelReader
from moxing.tensorflow.datasets.tfrecord.tfrecord_common import (
    BaseTFRecordDataset,
    BaseTFRecordMetadata,
    ImageClassificationTFRecordMetadata,
    get_tfrecord,
)
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset

__all__ = [
    "AsyncRawGenerator",
    "BaseTFRecordDataset",
    "BaseTFRecordMetadata",
    "ImageClassificationRawDataset",
    "ImageClassificationRawMetadata",
    "ImageClassificationTFRecordDataset",
    "ImageClassificationTFRecordMetadata",
    "MultilabelClassificationRawDataset",
    "MultilabelClassificationRawMetadata",
    "ParallelReader",
    "get_dataset",
    "get_dataset_meta",
    "get_tfrecord",
]
