"""The import path of the first versions of MoXing."""

from moxing.tensorflow.datasets.reader.readers import AsyncRawGenerator, ParallelReader
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset

__all__ = ["AsyncRawGenerator", "ParallelReader", "split_image_classification_dataset"]
