"""Datasets of TFRecord files: the base class for records in any layout, and `get_tfrecord`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.bad_samples import current_bad_sample_log
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.class_names import current_class_names
from moxing.tensorflow.datasets.sample_source import Features, SampleSource, with_private_threads
from moxing.tensorflow.datasets.tfrecord.record_objects import StoredRecordIndex
from moxing.tensorflow.datasets.tfrecord.record_samples import (
    RecordSamples,
    StoredRecordSamples,
    explain_example,
    explain_image,
    log_damaged_parts,
    readable_record,
    record_order,
)
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import (
    BaseTFRecordMetadata,
    ImageClassificationTFRecordMetadata,
)
from moxing.tf1.contrib import slim
from moxing.tf1.graph.data_seeds import dataset_seed

__all__ = ["BaseTFRecordDataset", "BaseTFRecordMetadata", "ImageClassificationTFRecordMetadata", "get_tfrecord"]


class BaseTFRecordDataset(BaseDataset):
    """Records in any layout. A subclass defines the features. Create it inside `input_fn`.

    A subclass overrides `_build_features`. It takes the parsed tensors in the order of `feature_keys` and calls
    `self._add_feature(name, tensor)` for each feature. In the first versions of MoXing a subclass overrode
    `_parser(self, record)`, which returns the tensors, and `_build_feature`, which takes them; this still works.
    Without any of them, the features are the parsed tensors under their keys.

    Args:
      metadata: a `BaseTFRecordMetadata`.
      feature_keys: the keys to parse.
      feature_values: the type of each key, such as `tf.FixedLenFeature([], tf.int64)`.
      shuffle: whether to shuffle the records, in another order each epoch.
      num_parallel: the number of groups of records that are read, and of records that are parsed, in parallel.
      num_epochs: the number of passes over the data; None repeats it forever.
      shuffle_buffer_size: the number of records to shuffle over.
      batch_size: records per batch; None returns single records, which `mox.run` batches.
      drop_remainder: whether to drop the last batch if it is short.
      private_num_threads: the number of threads of the dataset's own; 0 uses TensorFlow's.

    Example:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> with tf.python_io.TFRecordWriter(folder + '/a.tfrecord') as writer:
      ...     age = tf.train.Feature(int64_list=tf.train.Int64List(value=[42]))
      ...     writer.write(tf.train.Example(features=tf.train.Features(feature={'age': age})).SerializeToString())
      >>> class People(BaseTFRecordDataset):
      ...     def _build_features(self, age):
      ...         self._add_feature('months', 12 * age)
      >>> metadata = BaseTFRecordMetadata(folder, '*.tfrecord')
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     people = People(metadata, feature_keys=['age'], feature_values=[tf.FixedLenFeature([], tf.int64)])
      ...     months, = people.get(['months'])
      ...     int(session.run(months))
      504
    """

    def __init__(
        self,
        metadata: BaseTFRecordMetadata,
        feature_keys: Sequence[str] | None = None,
        feature_values: Sequence[Any] | None = None,
        shuffle: bool = True,
        num_parallel: int = 8,
        num_epochs: int | None = None,
        shuffle_buffer_size: int = 6400,
        batch_size: int | None = None,
        drop_remainder: bool = False,
        private_num_threads: int = 0,
    ) -> None:
        if len(feature_keys or ()) != len(feature_values or ()):
            raise ValueError(
                f"feature_keys={feature_keys!r} and feature_values={feature_values!r}: expected one value for each key."
            )
        if len(set(feature_keys or ())) < len(feature_keys or ()):
            raise ValueError(f"feature_keys={feature_keys!r}: expected every key once.")
        if not feature_keys and not self._overridden("_parser"):
            raise ValueError("feature_keys: expected the keys to parse, unless the class overrides _parser.")
        self._keys = dict(zip(feature_keys or (), feature_values or (), strict=True))

        def finish(dataset: tf.data.Dataset) -> tf.data.Dataset:
            if batch_size is not None:
                dataset = dataset.batch(batch_size, drop_remainder=drop_remainder)
            return with_private_threads(dataset, private_num_threads) if private_num_threads else dataset

        check_counts(batch_size=batch_size)
        check_counts(at_least=0, private_num_threads=private_num_threads)
        self._source = record_source(
            metadata,
            [(lambda features: self._features_of(readable_record(features)), num_parallel)],
            RecordReading(shuffle, num_parallel, num_epochs, shuffle_buffer_size),
            finish=finish,
            samples_per_element=batch_size or 1,
            # What the user's own _parser expects of a record is unknown.
            explain_content=None if self._overridden("_parser") else lambda record: explain_example(record, self._keys),
        )

    def _parser(self, record: tf.Tensor) -> Any:
        """Returns the tensors of a serialised record, in the order of `feature_keys`."""
        parsed = tf.parse_single_example(record, self._keys)
        return tuple(parsed[key] for key in self._keys)

    def _build_features(self, *tensors: Any) -> None:
        """Adds the features of a record; override it."""
        if len(tensors) != len(self._keys):
            raise ValueError(
                f"{type(self).__name__}: _parser returned {len(tensors)} values for {len(self._keys)} feature_keys; "
                "override _build_features as well, to name them."
            )
        for key, tensor in zip(self._keys, tensors, strict=True):
            self._add_feature(key, tensor)

    def _build_feature(self, *tensors: Any) -> None:
        """The name of `_build_features` in the first versions."""
        self._build_features(*tensors)

    def _add_feature(self, name: str, tensor: Any) -> None:
        """Adds a feature, for `get`."""
        self._built[name] = tensor if isinstance(tensor, tf.SparseTensor) else tf.convert_to_tensor(tensor)

    def _features_of(self, record: tf.Tensor) -> Features:
        self._built: Features = {}
        parsed = self._parser(record)
        self._build_feature(*(parsed if isinstance(parsed, tuple | list) else [parsed]))
        if not self._built:
            raise ValueError(
                f"{type(self).__name__}: _build_features added no feature; call self._add_feature(name, tensor)."
            )
        return self._built

    def _overridden(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(BaseTFRecordDataset, method)


@dataclass(frozen=True)
class RecordReading:
    """The order and the parallelism in which records are read.

    Attributes:
      shuffle: whether to shuffle the records, in another order each epoch.
      num_parallel: the number of groups of records that are read in parallel.
      num_epochs: the number of passes over the data; None repeats it forever.
      shuffle_buffer_size: the number of records to shuffle over.
      capacity: the number of records to prefetch.
    """

    shuffle: bool = True
    num_parallel: int = 8
    num_epochs: int | None = None
    shuffle_buffer_size: int = 6400
    capacity: int = 256


def record_source(
    metadata: BaseTFRecordMetadata,
    stages: list[tuple[Callable[[Features], Features], int]],
    reading: RecordReading,
    finish: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda dataset: dataset,
    samples_per_element: int = 1,
    explain_content: Callable[[bytes], str | None] | None = None,
) -> SampleSource:
    """Returns the source of the records of `metadata`.

    Args:
      metadata: the files.
      stages: as in `SampleSource`.
      reading: the order and the parallelism.
      finish: as in `SampleSource`.
      samples_per_element: as in `SampleSource`.
      explain_content: returns what is wrong with a record that was read but cannot be used, or None if unknown.
    """
    if not isinstance(metadata, BaseTFRecordMetadata):
        raise ValueError(f"metadata={metadata!r}: expected a BaseTFRecordMetadata or one of its subclasses.")
    check_counts(
        num_parallel=reading.num_parallel,
        num_epochs=reading.num_epochs,
        shuffle_buffer_size=reading.shuffle_buffer_size,
    )
    seed, bad_samples = dataset_seed(), current_bad_sample_log()
    log_damaged_parts(metadata.index, bad_samples)
    labels = getattr(metadata, "labels_to_names", None)
    if labels:
        current_class_names().add(labels)
    is_stored = isinstance(metadata.index, StoredRecordIndex)
    return SampleSource(
        (StoredRecordSamples if is_stored else RecordSamples)(metadata.index, explain_content),
        record_order(
            metadata.index, reading.num_epochs, seed if reading.shuffle else None, reading.shuffle_buffer_size
        ),
        seed,
        bad_samples,
        stages,
        capacity=reading.capacity,
        # Requests to an object store have threads of their own.
        fetchers=1 if is_stored else reading.num_parallel,
        finish=finish,
        samples_per_element=samples_per_element,
    )


def decoded_source(
    metadata: BaseTFRecordMetadata,
    keys_to_features: Mapping[str, Any],
    items_to_handlers: Mapping[str, Any],
    reading: RecordReading,
) -> SampleSource:
    """Returns the source of records that slim's `TFExampleDecoder` decodes; for the arguments see `get_tfrecord`."""
    for item, handler in items_to_handlers.items():
        for key in handler.keys:
            if key not in keys_to_features:
                raise ValueError(
                    f"items_to_handlers[{item!r}]: its key {key!r} is not in keys_to_features, which has "
                    f"{', '.join(keys_to_features)}."
                )
    decoder = slim.tfexample_decoder.TFExampleDecoder(dict(keys_to_features), dict(items_to_handlers))
    items = decoder.list_items()
    images = [handler for handler in items_to_handlers.values() if isinstance(handler, slim.tfexample_decoder.Image)]

    def explain_decoded(record: bytes) -> str | None:
        reason = explain_example(record, keys_to_features)
        return explain_image(record, images[0].keys[0]) if reason is None and images else reason

    def decode(features: Features) -> Features:
        return dict(zip(items, decoder.decode(readable_record(features), items), strict=True))

    return record_source(
        metadata,
        [(decode, reading.num_parallel)],
        reading,
        explain_content=explain_decoded,
    )


class _DecodedTFRecords(BaseDataset):
    def __init__(self, source: SampleSource) -> None:
        self._source = source


def get_tfrecord(
    dataset_dir: str,
    file_pattern: str | Sequence[str],
    keys_to_features: Mapping[str, Any],
    items_to_handlers: Mapping[str, Any],
    num_samples: int | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
) -> BaseDataset:
    """Returns a dataset of TFRecord files that slim's decoders decode, for `input_fn` or any TensorFlow 1 graph.

    Args:
      dataset_dir: the directory of the files.
      file_pattern: a glob such as `'*.tfrecord'`, or several.
      keys_to_features: what stands in a record, for `tf.parse_single_example`.
      items_to_handlers: the handler of every feature, such as `slim.tfexample_decoder.Tensor('label')`.
      num_samples: the number of records, if known.
      num_epochs: the number of passes over the data; None repeats it forever.
      shuffle: whether to shuffle the records, in another order each epoch.

    Returns:
      An object whose `get([name, ...])` returns the tensors of a record.

    Example:
      >>> import tempfile
      >>> from moxing.tf1.contrib import slim
      >>> folder = tempfile.mkdtemp()
      >>> with tf.python_io.TFRecordWriter(folder + '/a.tfrecord') as writer:
      ...     age = tf.train.Feature(int64_list=tf.train.Int64List(value=[42]))
      ...     writer.write(tf.train.Example(features=tf.train.Features(feature={'age': age})).SerializeToString())
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     dataset = get_tfrecord(folder, '*.tfrecord', {'age': tf.FixedLenFeature([], tf.int64)},
      ...                            {'years': slim.tfexample_decoder.Tensor('age')})
      ...     [int(session.run(tensor)) for tensor in dataset.get(['years'])]
      [42]
    """
    metadata = BaseTFRecordMetadata(dataset_dir, file_pattern, num_samples)
    reading = RecordReading(shuffle, num_epochs=num_epochs)
    return _DecodedTFRecords(decoded_source(metadata, keys_to_features, items_to_handlers, reading))
