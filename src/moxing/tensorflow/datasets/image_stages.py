"""From the encoded image to the feature `image`: decode, resize, augment, batch. For image files and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.array_cache import ArrayCache
from moxing.tensorflow.datasets.sample_source import NUMBER, SEED, Features, with_private_threads
from moxing.tensorflow.preprocessing.augmentation import Augmentation
from moxing.tensorflow.preprocessing.decoding import decode_image
from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture
from moxing.tf1.graph.surgery import has_fixed_seed

#: The arguments of a `preprocess_fn`, which are also its results, in this order.
PREPROCESSED = ("image_name", "image", "label", "label_desc")

Stage = tuple[Callable[[Features], Features], int]


@dataclass(eq=False)
class ImageStages:
    """The processing of images that the arguments of a dataset ask for.

    Attributes:
      read: returns the encoded image for the feature `fetched`; None if the feature `image` holds it already.
      readers: the number of samples that are read in parallel.
      threads: the number of samples that are decoded and augmented in parallel.
      batch_size: samples per batch; None for single samples.
      image_size: the height and width to resize to, or one number for both.
      preprocess_fn: replaces decoding and resizing.
      augmentation_fn: takes an image and returns an image.
      drop_remainder: whether to drop the last batch if it is short.
      num_classes: the length of one-hot labels; None keeps the labels as numbers.
      private_threads: the number of threads of the dataset's own; 0 uses TensorFlow's.
      cache: keeps the decoded images for the following epochs; None keeps nothing.
    """

    read: Callable[[tf.Tensor], tf.Tensor] | None
    readers: int
    threads: int
    batch_size: int | None = None
    image_size: Any = None
    preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None
    augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None
    drop_remainder: bool = False
    num_classes: int | None = None
    private_threads: int = 0
    cache: ArrayCache | None = None

    def __post_init__(self) -> None:
        resizing = (self.image_size, self.preprocess_fn, self.augmentation_fn)
        if self.batch_size is not None and all(argument is None for argument in resizing):
            raise ValueError(
                f"batch_size={self.batch_size}: a batch needs images of one size. Pass image_size, or a preprocess_fn "
                "or an augmentation_fn that resizes them; or omit batch_size and let mox.run batch."
            )
        for name, function in (("preprocess_fn", self.preprocess_fn), ("augmentation_fn", self.augmentation_fn)):
            if function is not None and not callable(function):
                raise ValueError(f"{name}={function!r}: expected a function.")
        self._size = _height_and_width(self.image_size)
        # An augmentation of ours decides how much of the image is decoded, so it runs together with the decoding.
        ours = isinstance(self.augmentation_fn, Augmentation) and self.preprocess_fn is None
        self._decoding_augmentation: Augmentation | None = self.augmentation_fn if ours else None  # type: ignore[assignment]

    def stages(self) -> list[Stage]:
        """Returns the functions that process single samples and may fail, each with its number of parallel calls."""
        if self.cache is not None:
            return [(self._decode_through_cache, self.threads)]
        decode = (self._decode, self.threads)
        return [decode] if self.read is None else [(self._read, self.readers), decode]

    def finish(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Processes the good samples: applies the user's augmentation, one-hot labels and batching."""
        batches = self.batch_size is not None
        if batches and self.preprocess_fn is not None:
            dataset = self._batch(dataset).map(self._preprocess, num_parallel_calls=self.threads)
            if self.augmentation_fn is not None:
                dataset = self._batch(self._augment(dataset.unbatch()))
        else:
            if self._decoding_augmentation is None:
                dataset = self._augment(dataset)
            if batches:
                dataset = self._batch(dataset)
        if self.num_classes is not None:
            dataset = dataset.map(self._one_hot)
        if self.private_threads:
            dataset = with_private_threads(dataset, self.private_threads)
        return dataset.prefetch(2 if batches else 16)

    def _read(self, features: Features) -> Features:
        return {**_without_fetched(features), "image": self._encoded(features)}

    def _encoded(self, features: Features) -> tf.Tensor:
        return features["image"] if self.read is None else self.read(features["fetched"])

    def _decode(self, features: Features) -> Features:
        """Decodes, resizes and augments one sample, or calls the user's `preprocess_fn` for it."""
        if self.preprocess_fn is not None:
            return features if self.batch_size is not None else self._preprocess(features)
        if self._decoding_augmentation is not None and self._size is None:
            image = self._decoding_augmentation.apply(EncodedPicture(features["image"]), features[SEED])
        else:
            image = self._resize(decode_image(features["image"]), features)
        return {**features, "image": image}

    def _resize(self, image: tf.Tensor, features: Features) -> tf.Tensor:
        """Resizes a decoded image, and augments it if the augmentation is one of ours."""
        if self._size is not None:
            image = tf.image.resize_nearest_neighbor(image[tf.newaxis], self._size)[0]
        if self._decoding_augmentation is None:
            return image
        return self._decoding_augmentation.apply(DecodedPicture(image), features[SEED])

    def _decode_through_cache(self, features: Features) -> Features:
        """Reads and decodes one sample. The cache keeps the result up to the decoded image for the next epoch."""
        cache = self.cache
        if cache is None:
            raise TypeError("there is no cache")
        keeps_bytes = self.preprocess_fn is not None

        def look_up(number: np.ndarray) -> tuple[np.bool_, Any]:
            array = cache.get(int(number))
            empty: np.ndarray = np.zeros([0] if keeps_bytes else [0, 0, 3], np.uint8)
            value = empty if array is None else array
            return np.bool_(array is not None), value.tobytes() if keeps_bytes else value

        def store(number: np.ndarray, value: Any) -> Any:
            cache.put(int(number), np.frombuffer(value, np.uint8) if keeps_bytes else value)
            return value

        def first_time() -> tf.Tensor:
            encoded = self._encoded(features)
            value = encoded if keeps_bytes else decode_image(encoded)
            stored = tf.numpy_function(store, [features[NUMBER], value], kind)
            stored.set_shape(value.shape)
            return stored

        kind = tf.string if keeps_bytes else tf.uint8
        found, cached = tf.numpy_function(look_up, [features[NUMBER]], [tf.bool, kind])
        found.set_shape([])
        value = tf.cond(found, lambda: cached, first_time)
        rest = _without_fetched(features)
        if keeps_bytes:
            value.set_shape([])
            return self._decode({**rest, "image": value})
        value.set_shape([None, None, 3])
        return {**rest, "image": self._resize(value, rest)}

    def _augment(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        augmentation_fn = self.augmentation_fn
        if augmentation_fn is None:
            return dataset

        def augment(features: Features) -> Features:
            # An augmentation of ours uses the seed of the sample; the user's takes the image only.
            seeds = [features[SEED]] if isinstance(augmentation_fn, Augmentation) else []
            image = augmentation_fn(features["image"], *seeds)
            graphs.append(tf.get_default_graph())
            return {**features, "image": image}

        graphs: list[tf.Graph] = []
        in_parallel = dataset.map(augment, num_parallel_calls=self.threads)
        # Operations with a fixed seed draw in sequence: in parallel, the result would depend on timing.
        return dataset.map(augment) if _has_seeded_operations(graphs[-1]) else in_parallel

    def _preprocess(self, features: Features) -> Features:
        if self.preprocess_fn is None:
            return features
        returned = self.preprocess_fn(*(features[name] for name in PREPROCESSED))
        if not isinstance(returned, tuple | list) or len(returned) != len(PREPROCESSED):
            raise ValueError("preprocess_fn: expected it to return (image_name, image, label, label_desc).")
        tensors = [tf.convert_to_tensor(value) for value in returned]
        return {**features, **dict(zip(PREPROCESSED, tensors, strict=True))}

    def _batch(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        return dataset.batch(self.batch_size, drop_remainder=self.drop_remainder)

    def _one_hot(self, features: Features) -> Features:
        return {**features, "label": tf.one_hot(features["label"], self.num_classes, dtype=tf.float32)}


def _without_fetched(features: Features) -> Features:
    """Returns the features without `fetched`, which is for the reader only and may be a whole file."""
    return {name: value for name, value in features.items() if name != "fetched"}


def _has_seeded_operations(graph: tf.Graph) -> bool:
    """Whether a graph or its functions have a random operation with a fixed seed."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return any(map(has_fixed_seed, nodes))


def _height_and_width(image_size: Any) -> tuple[int, int] | None:
    if image_size is None:
        return None
    sizes = tuple(image_size) if np.iterable(image_size) else (image_size, image_size)
    counts = [size for size in sizes if isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0]
    if len(sizes) != 2 or len(counts) != 2:
        raise ValueError(f"image_size={image_size!r}: expected a number of pixels, or a pair (height, width).")
    return int(sizes[0]), int(sizes[1])
