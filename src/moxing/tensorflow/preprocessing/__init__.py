"""Data augmentation: one pipeline per file, each written once for decoded and for encoded images."""

from moxing.tensorflow.preprocessing.preprocessing_factory import (
    Augmentation,
    PreprocessingKeys,
    get_data_augmentation_fn,
)

__all__ = ["Augmentation", "PreprocessingKeys", "get_data_augmentation_fn"]
