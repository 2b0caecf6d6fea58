"""Decoding and augmentation of images.

`preprocessing_factory` finds the pipeline of a network; there is one pipeline per file (`vgg_preprocessing`, ...), each
written against `pictures.Picture` and so for decoded and encoded images alike. `decoding` decodes, `resizing` resizes
and crops, `randomness` derives random numbers from the seed of a sample. Import the names below; `datasets` also uses
`decoding` and `pictures`.
"""

from moxing.tensorflow.preprocessing.augmentation import Augmentation
from moxing.tensorflow.preprocessing.preprocessing_factory import PreprocessingKeys, get_data_augmentation_fn

__all__ = ["Augmentation", "PreprocessingKeys", "get_data_augmentation_fn"]
