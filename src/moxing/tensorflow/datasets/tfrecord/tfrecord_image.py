"""Datasets of images in TFRecord files, in the layout of TF-Slim."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.array_cache import ArrayCache, resolve_cache_dir
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.image_stages import PREPROCESSED, ImageStages
from moxing.tensorflow.datasets.sample_source import Features
from moxing.tensorflow.datasets.tfrecord.record_samples import (
    explain_example,
    explain_image,
    explain_label,
    readable_record,
)
from moxing.tensorflow.datasets.tfrecord.tfrecord_common import RecordReading, decoded_source, record_source
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata

#: The keys of TF-Slim's image records. Not all records have the file name and the class name.
SLIM_FEATURES: Mapping[str, Any] = {
    "image/encoded": tf.FixedLenFeature([], tf.string),
    "image/class/label": tf.FixedLenFeature([], tf.int64),
    "image/class/text": tf.FixedLenFeature([], tf.string, default_value=""),
    "image/filename": tf.FixedLenFeature([], tf.string, default_value=""),
}


_FIRST_FORM = ("metadata", "keys_to_features", "items_to_handlers")
#: The arguments that can be combined with them.
_WITH_FIRST_FORM = (*_FIRST_FORM, "shuffle", "num_readers", "num_epochs", "num_parallel")


def _accepts_first_form(initialize: Callable[..., None]) -> Callable[..., None]:
    """Also accepts the signature of the first versions: `(metadata, keys_to_features, items_to_handlers, ...)`."""

    @functools.wraps(initialize)
    def either(self: Any, *arguments: Any, **named: Any) -> None:
        if len(arguments) > 1 and isinstance(arguments[1], Mapping):
            if len(arguments) > len(_FIRST_FORM) or not named.keys().isdisjoint(_FIRST_FORM[: len(arguments)]):
                raise TypeError(
                    f"expected (metadata, keys_to_features, items_to_handlers) and all other arguments by name, got "
                    f"{len(arguments)} arguments by position and {', '.join(named) or 'none'} by name."
                )
            named = {**dict(zip(_FIRST_FORM, arguments, strict=False)), **named}
            arguments = ()
        if any(named.get(name) is not None for name in _FIRST_FORM[1:]):
            unused = [name for name in named if name not in _WITH_FIRST_FORM]
            if unused or len(arguments) > 1:
                raise ValueError(
                    f"{', '.join(unused) or 'arguments by position'}: not used with keys_to_features, where handlers "
                    f"return the features; expected some of {', '.join(_WITH_FIRST_FORM)}."
                )
        initialize(self, *arguments, **named)

    return either


class ImageClassificationTFRecordDataset(BaseDataset):
    """Images with labels from TFRecord files. Create it inside `input_fn`.

    Features: `image` (uint8, height x width x 3, unless an augmentation changes that), `label` (int64), `label_desc`
    (the class name), `image_name` (empty if the records have none), and the custom features under their keys.

    Args:
      metadata: an `ImageClassificationTFRecordMetadata`.
      batch_size: samples per batch; None returns single samples, which `mox.run` batches.
      shuffle: whether to shuffle the records, in another order each epoch.
      shuffle_buffer_size: the number of records to shuffle over.
      num_parallel: the number of groups of records that are read, and of records that are decoded, in parallel.
      num_epochs: the number of passes over the data; None repeats it forever.
      cache_dir: a directory that keeps decoded images for the following epochs; 'ENV' is `$DLS_LOCAL_CACHE_PATH`.
      preprocess_fn: takes `(image_name, image_buf, label, label_desc)` and returns the same four; it replaces decoding
        and resizing. With `batch_size` it is called with batches.
      image_size: a number, or (height, width), to resize to (nearest neighbour).
      remove_cache_on_finish: whether to remove the cache when the process ends.
      private_num_threads: the number of threads of the dataset's own; 0 uses TensorFlow's.
      custom_feature_keys: more keys to parse.
      custom_feature_values: the type of each of these keys, such as `tf.FixedLenFeature([], tf.float32)`.
      drop_remainder: whether to drop the last batch if it is short.
      augmentation_fn: takes an image and returns an image. One of `mox.get_data_augmentation_fn` decodes only the part
        of an image that it uses.
      label_one_hot: whether `label` is a one-hot float32 vector.
      keys_to_features, items_to_handlers, num_readers: the signature of the first versions, `(metadata,
        keys_to_features, items_to_handlers, shuffle=, num_readers=, num_epochs=)`: slim's handlers return the features.
    """

    @_accepts_first_form
    def __init__(
        self,
        metadata: ImageClassificationTFRecordMetadata,
        batch_size: int | None = None,
        shuffle: bool = True,
        shuffle_buffer_size: int = 6400,
        num_parallel: int = 8,
        num_epochs: int | None = None,
        cache_dir: str | None = None,
        preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None,
        image_size: Any = None,
        remove_cache_on_finish: bool = True,
        private_num_threads: int = 0,
        custom_feature_keys: Sequence[str] | None = None,
        custom_feature_values: Sequence[Any] | None = None,
        drop_remainder: bool = False,
        augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        label_one_hot: bool = False,
        keys_to_features: Mapping[str, Any] | None = None,
        items_to_handlers: Mapping[str, Any] | None = None,
        num_readers: int | None = None,
    ) -> None:
        if not isinstance(metadata, ImageClassificationTFRecordMetadata):
            raise ValueError(f"metadata={metadata!r}: expected an ImageClassificationTFRecordMetadata.")
        if keys_to_features is not None or items_to_handlers is not None:
            if keys_to_features is None or items_to_handlers is None:
                raise ValueError("keys_to_features and items_to_handlers: expected both or neither.")
            readers = num_parallel if num_readers is None else num_readers
            check_counts(num_readers=readers)
            reading = RecordReading(shuffle, readers, num_epochs)
            self._source = decoded_source(metadata, keys_to_features, items_to_handlers, reading)
            return
        if num_readers is not None:
            raise ValueError(f"num_readers={num_readers}: only valid with keys_to_features; pass num_parallel instead.")
        keys = list(custom_feature_keys or ())
        if len(keys) != len(custom_feature_values or ()):
            raise ValueError(
                f"custom_feature_keys={keys!r} and custom_feature_values={custom_feature_values!r}: expected one value "
                "for each key."
            )
        for key in keys:
            if key in PREPROCESSED or keys.count(key) > 1:
                raise ValueError(
                    f"custom_feature_keys={keys!r}: {key!r} would replace another feature. For records in another "
                    "layout, derive a class from BaseTFRecordDataset."
                )
        if label_one_hot and not metadata.num_classes:
            raise ValueError(
                "label_one_hot=True: pass num_classes to the metadata, or put a labels.txt next to the files."
            )
        check_counts(batch_size=batch_size, num_parallel=num_parallel)
        check_counts(at_least=0, private_num_threads=private_num_threads)
        parsed = {**SLIM_FEATURES, **dict(zip(keys, custom_feature_values or (), strict=True))}
        directory = resolve_cache_dir(cache_dir)
        images = ImageStages(
            read=None,
            readers=num_parallel,
            threads=num_parallel,
            batch_size=batch_size,
            image_size=image_size,
            preprocess_fn=preprocess_fn,
            augmentation_fn=augmentation_fn,
            drop_remainder=drop_remainder,
            num_classes=metadata.num_classes if label_one_hot else None,
            private_threads=private_num_threads,
            cache=_cache(metadata, directory, preprocess_fn is None, remove_cache_on_finish) if directory else None,
        )
        names = _names_table(metadata.labels_to_names)
        # The vector of a label outside of the classes would be zero.
        classes = metadata.num_classes if label_one_hot else metadata.given_classes

        def parse(features: Features) -> Features:
            values = tf.parse_single_example(readable_record(features), parsed)
            label = _checked_label(values["image/class/label"], classes)
            return {
                **{name: features[name] for name in features if name.startswith("moxing/")},
                "image": values["image/encoded"],
                "label": label,
                "label_desc": values["image/class/text"] if names is None else _name_of(names, label),
                "image_name": values["image/filename"],
                **{key: values[key] for key in keys},
            }

        self._source = record_source(
            metadata,
            [(parse, num_parallel), *images.stages()],
            RecordReading(shuffle, num_parallel, num_epochs, shuffle_buffer_size),
            finish=images.finish,
            samples_per_element=batch_size or 1,
            explain_content=lambda record: (
                explain_example(record, parsed)
                or explain_label(record, "image/class/label", classes)
                or explain_image(record, "image/encoded")
            ),
        )


def _checked_label(label: tf.Tensor, classes: int) -> tf.Tensor:
    """Returns the label; fails if it is outside of a known number of classes."""
    if not classes:
        return label
    inside = tf.logical_and(label >= 0, label < classes)
    with tf.control_dependencies([tf.debugging.Assert(inside, ["the label is outside of the classes"])]):
        return tf.identity(label)


def _names_table(labels_to_names: Mapping[int, str] | None) -> list[str] | None:
    """Returns the class names in the order of their labels, "" for a label without a name."""
    if not labels_to_names:
        return None
    return [labels_to_names.get(number, "") for number in range(max(labels_to_names) + 1)]


def _name_of(names: list[str], label: tf.Tensor) -> tf.Tensor:
    index = tf.clip_by_value(label, 0, len(names) - 1)
    return tf.where(tf.equal(index, label), tf.gather(tf.constant(names), index), tf.constant(""))


def _cache(
    metadata: ImageClassificationTFRecordMetadata, directory: str, decoded: bool, remove_on_finish: bool
) -> ArrayCache:
    return ArrayCache(directory, metadata.versions, "decoded" if decoded else "encoded", remove_on_finish)
