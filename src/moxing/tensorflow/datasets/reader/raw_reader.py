"""Import path of MoXing's first versions."""

from moxing.tensorflow.datasets.raw.split import split_image_classification_dataset
from moxing.tensorflow.datasets.reader.readers import AsyncRawGenerator, ParallelReader

__all__ = ["AsyncRawGenerator", "ParallelReader", "split_image_classification_dataset"]
