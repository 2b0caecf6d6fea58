"""From encoded image to the feature `image`: decoding, resizing, augmentation, batches. For files and records alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.array_cache import ArrayCache
from moxing.tensorflow.datasets.sample_source import NUMBER, SEED, Features, with_private_threads
from moxing.tensorflow.preprocessing.decoding import decode_image
from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture, Picture
from moxing.tensorflow.preprocessing.preprocessing_factory import Augmentation
from moxing.tf1.surgery import has_fixed_seed

#: What a `preprocess_fn` takes and returns, in this order.
PREPROCESSED = ("image_name", "image", "label", "label_desc")

Stage = tuple[Callable[[Features], Features], int]


class ImageStages:
    """The work on images that the arguments of a data set ask for.

    Args:
      read: gives the encoded image of a sample; None: it is there already.
      readers: how many samples are read at once.
      threads: how many are decoded and augmented at once.
      batch_size: samples per batch; None: single samples.
      image_size: height and width, or one number for both, to resize to.
      preprocess_fn: takes the place of decoding and resizing.
      augmentation_fn: from image to image.
      drop_remainder: leave out the last batch if it is short.
      num_classes: for labels as vectors; None: labels stay numbers.
      private_threads: threads of the data set's own; 0: TensorFlow's.
      cache: keeps what was read and decoded for the following epochs; None: nothing is kept.
    """

    def __init__(
        self,
        read: Callable[[Features], tf.Tensor] | None,
        readers: int,
        threads: int,
        batch_size: int | None = None,
        image_size: Any = None,
        preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None,
        augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        drop_remainder: bool = False,
        num_classes: int | None = None,
        private_threads: int = 0,
        cache: ArrayCache | None = None,
    ) -> None:
        if batch_size is not None and image_size is None and preprocess_fn is None and augmentation_fn is None:
            raise ValueError(
                f"batch_size={batch_size}: images of different sizes cannot stand in one batch. Give image_size, or a "
                "preprocess_fn or an augmentation_fn that brings them to one size; or leave batch_size out and let "
                "mox.run batch."
            )
        for name, function in (("preprocess_fn", preprocess_fn), ("augmentation_fn", augmentation_fn)):
            if function is not None and not callable(function):
                raise ValueError(f"{name}={function!r}: expected a function.")
        self._read, self._readers, self._threads = read, readers, threads
        self._batch_size, self._size = batch_size, _height_and_width(image_size)
        self._preprocess_fn, self._augmentation_fn = preprocess_fn, augmentation_fn
        self._drop_remainder, self._num_classes = drop_remainder, num_classes
        self._private_threads, self._cache = private_threads, cache

    def stages(self) -> list[Stage]:
        """What is done on each sample and may find it unusable."""
        if self._cache is not None:
            return [(self._through_cache, self._threads)]

        def read(features: Features) -> Features:
            return _without_fetched({**features, "image": self._encoded(features)})

        def prepare(features: Features) -> Features:
            return self._prepare(features, lambda: features["image"])

        prepared = (prepare, self._threads)
        return [prepared] if self._read is None else [(read, self._readers), prepared]

    def finish(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """What is done with samples that are known to be good: the user's augmentation, vectors of labels, batches."""
        batches = self._batch_size is not None
        if batches and self._preprocess_fn is not None:
            dataset = self._batched(dataset).map(self._preprocess, num_parallel_calls=self._threads)
            if self._augmentation_fn is not None:
                dataset = self._batched(self._augmented(dataset.unbatch()))
        else:
            if not self._augments_while_decoding():
                dataset = self._augmented(dataset)
            if batches:
                dataset = self._batched(dataset)
        if self._num_classes is not None:
            dataset = dataset.map(self._with_vector)
        return with_private_threads(dataset, self._private_threads).prefetch(2 if batches else 16)

    def _encoded(self, features: Features) -> tf.Tensor:
        return features["image"] if self._read is None else self._read(features)

    def _augments_while_decoding(self) -> bool:
        """True where the augmentation is one of ours: it decides what is decoded, and draws from the sample's seed."""
        return isinstance(self._augmentation_fn, Augmentation) and self._preprocess_fn is None

    def _prepare(self, features: Features, encoded: Callable[[], tf.Tensor]) -> Features:
        """The features with the image decoded, as far as single samples are worked on before they are batched."""
        if self._preprocess_fn is not None:
            features = {**features, "image": encoded()}
            return features if self._batch_size is not None else self._preprocess(features)
        if self._augments_while_decoding() and self._size is None:
            return {**features, "image": self._augment(EncodedPicture(encoded()), features)}
        return {**features, "image": self._sized(decode_image(encoded()), features)}

    def _sized(self, image: tf.Tensor, features: Features) -> tf.Tensor:
        if self._size is not None:
            image = tf.image.resize_nearest_neighbor(image[tf.newaxis], self._size)[0]
        return self._augment(DecodedPicture(image), features) if self._augments_while_decoding() else image

    def _augment(self, picture: Picture, features: Features) -> tf.Tensor:
        if not isinstance(self._augmentation_fn, Augmentation):
            raise TypeError("not an augmentation of ours")
        return self._augmentation_fn.apply(picture, features[SEED])

    def _through_cache(self, features: Features) -> Features:
        """Like reading and preparing, with the work up to the decoded image kept for the next epoch."""
        cache = self._cache
        if cache is None:
            raise TypeError("no cache")
        keeps_bytes = self._preprocess_fn is not None

        def look_up(number: np.ndarray) -> tuple[np.bool_, Any]:
            array = cache.get(int(number))
            nothing: np.ndarray = np.zeros([0] if keeps_bytes else [0, 0, 3], np.uint8)
            kept = nothing if array is None else array
            return np.bool_(array is not None), kept.tobytes() if keeps_bytes else kept

        def keep(number: np.ndarray, value: Any) -> Any:
            cache.put(int(number), np.frombuffer(value, np.uint8) if keeps_bytes else value)
            return value

        def first_time() -> tf.Tensor:
            encoded = self._encoded(features)
            value = encoded if keeps_bytes else decode_image(encoded)
            kept = tf.numpy_function(keep, [features[NUMBER], value], kind)
            kept.set_shape(value.shape)
            return kept

        kind = tf.string if keeps_bytes else tf.uint8
        found, kept = tf.numpy_function(look_up, [features[NUMBER]], [tf.bool, kind])
        found.set_shape([])
        value = tf.cond(found, lambda: kept, first_time)
        rest = _without_fetched(features)
        if keeps_bytes:
            value.set_shape([])
            return self._prepare(rest, lambda: value)
        value.set_shape([None, None, 3])
        return {**rest, "image": self._sized(value, rest)}

    def _augmented(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        augment = self._augmentation_fn
        if augment is None:
            return dataset

        def augmented(features: Features) -> Features:
            # An augmentation of ours draws from the sample's seed; another one is only given the image.
            seeds = [features[SEED]] if isinstance(augment, Augmentation) else []
            image = augment(features["image"], *seeds)
            graphs.append(tf.get_default_graph())
            return {**features, "image": image}

        graphs: list[tf.Graph] = []
        in_parallel = dataset.map(augmented, num_parallel_calls=self._threads)
        # Seeded numbers come in one order; in parallel, which image gets which would be a matter of luck.
        return dataset.map(augmented) if _draws_seeded_numbers(graphs[-1]) else in_parallel

    def _preprocess(self, features: Features) -> Features:
        if self._preprocess_fn is None:
            return features
        returned = self._preprocess_fn(*(features[name] for name in PREPROCESSED))
        if not isinstance(returned, tuple | list) or len(returned) != len(PREPROCESSED):
            raise ValueError("preprocess_fn: expected it to return (image_name, image, label, label_desc).")
        tensors = [tf.convert_to_tensor(value) for value in returned]
        return {**features, **dict(zip(PREPROCESSED, tensors, strict=True))}

    def _batched(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        return dataset.batch(self._batch_size, drop_remainder=self._drop_remainder)

    def _with_vector(self, features: Features) -> Features:
        return {**features, "label": tf.one_hot(features["label"], self._num_classes, dtype=tf.float32)}


def _without_fetched(features: Features) -> Features:
    """The features without what a reader needed; that is no feature of the data set, and may be a whole file."""
    return {name: value for name, value in features.items() if name != "fetched"}


def _draws_seeded_numbers(graph: tf.Graph) -> bool:
    """True when a random operation with a fixed seed is in a graph or its functions."""
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
