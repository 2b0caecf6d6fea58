"""Records as the numbered samples of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.bad_samples import BadSample, BadSampleLog
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tensorflow.datasets.sample_source import Features, Samples
from moxing.tensorflow.datasets.stored.look_ahead import requests_ahead
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.preprocessing.decoding import explain, image_format_and_size, pixel_limit

#: The number of neighbouring records that are read at about the same time, to save seeks.
_RUN = 64

#: The reason if no fault of the record itself is known.
NOT_BUILT = "the record was read, but the features could not be built from it"

#: The field of a `tf.train.Feature` that has the values of a type.
_KINDS = {tf.string: "bytes_list", tf.float32: "float_list", tf.int64: "int64_list"}


class RecordSamples(Samples):
    """The records of an index.

    Args:
      index: the locations of the records.
      explain_content: returns what is wrong with a record that was read but cannot be used, or None if unknown.
    """

    columns = {
        "record": tf.TensorSpec([], tf.string),
        "readable": tf.TensorSpec([], tf.bool),
    }

    def __init__(self, index: RecordIndex, explain_content: Callable[[bytes], str | None] | None = None) -> None:
        self._index, self._reader = index, index.reader()
        self._explain_content = explain_content

    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        wanted = numbers.tolist()
        self._reader.will_need(wanted)  # the disk reads all of them while the first one is processed
        records = self._reader.read(wanted)
        readable = np.array([record is not None for record in records])
        return [np.array([record or b"" for record in records], object), readable]

    def explain(self, number: int) -> BadSample:
        path, offset, _ = self._index.locate(number)
        (record,) = self._reader.read([number])
        if record is None:
            return BadSample(path, offset, self._reader.reason(number))
        reason = self._explain_content(record) if self._explain_content else None
        return BadSample(path, offset, reason or NOT_BUILT)


class StoredRecordSamples(RecordSamples):
    """The records of files on an object store. Those that come next are requested ahead."""

    def __init__(self, index: RecordIndex, explain_content: Callable[[bytes], str | None] | None = None) -> None:
        super().__init__(index, explain_content)
        self.lookahead = requests_ahead()

    def prefetch(self, numbers: np.ndarray) -> None:
        self._reader.will_need(numbers.tolist())


def explain_example(record: bytes, keys: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with a record that should be a `tf.train.Example` with these keys, or None.

    Example:
      >>> explain_example(b'', {'label': tf.FixedLenFeature([], tf.int64)})
      "has no 'label'; it has no keys at all"
    """
    try:
        found = tf.train.Example.FromString(record).features.feature
    except Exception:  # protobuf's own exception, whose class depends on its implementation
        return "not a tf.train.Example"
    # Not `found.get`: a lookup would add the key.
    kinds = {key: found[key].WhichOneof("kind") for key in found}
    for key, wanted in keys.items():
        if kinds.get(key) is None:
            if isinstance(wanted, tf.FixedLenFeature) and wanted.default_value is None:
                return _missing(key, found)
            continue
        reason = _explain_values(key, getattr(found[key], kinds[key]).value, kinds[key], wanted)
        if reason is not None:
            return reason
    return None


def _missing(key: str, found: Mapping[str, Any]) -> str:
    keys = f"it has {', '.join(sorted(found))}" if found else "it has no keys at all"
    return f"has no {key!r}; {keys}"


def _explain_values(key: str, values: Sequence[Any], kind: str, wanted: Any) -> str | None:
    """Returns why the values of a key do not match the requested feature, or None."""
    if not isinstance(wanted, tf.FixedLenFeature | tf.VarLenFeature | tf.FixedLenSequenceFeature):
        return None
    expected = _KINDS[tf.as_dtype(wanted.dtype)]
    if kind != expected:
        return f"{key!r} is a {kind}, but a feature of {tf.as_dtype(wanted.dtype).name} needs {expected}"
    if isinstance(wanted, tf.FixedLenFeature):
        count = tf.TensorShape(wanted.shape).num_elements()
        if count != len(values):
            return f"{key!r} has {len(values)} values, but tf.FixedLenFeature({wanted.shape}, ...) needs {count}"
    return None


def explain_label(record: bytes, key: str, classes: int) -> str | None:
    """Returns that the label under `key` of a `tf.train.Example` is outside of the classes, or None.

    Example:
      >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
      >>> example = tf.train.Example(features=tf.train.Features(feature={'label': feature}))
      >>> explain_label(example.SerializeToString(), 'label', 5)
      "'label' is 7, expected 0 to 4 (num_classes=5)"
    """
    found = tf.train.Example.FromString(record).features.feature
    label = next(iter(found[key].int64_list.value), None) if key in found else None
    if not classes or label is None or 0 <= label < classes:
        return None
    return f"{key!r} is {label}, expected 0 to {classes - 1} (num_classes={classes})"


def explain_image(record: bytes, key: str) -> str:
    """Returns why the image under `key` of a `tf.train.Example` could not be decoded, as far as known."""
    found = tf.train.Example.FromString(record).features.feature
    if key not in found:
        return _missing(key, found)
    encoded = found[key].bytes_list.value
    if not encoded:
        return f"has no image in {key!r}"
    reason = explain(encoded[0], pixel_limit())
    if reason is not None:
        return f"{key!r}: {reason}"
    kind, width, height = image_format_and_size(encoded[0])
    return f"{NOT_BUILT}; the image is a valid {kind}, {width}x{height}"


def readable_record(features: Features) -> tf.Tensor:
    """Returns the bytes of a record; fails if they could not be read."""
    with tf.control_dependencies([tf.debugging.Assert(features["readable"], ["the record could not be read"])]):
        return tf.identity(features["record"])


def record_order(
    index: RecordIndex, num_epochs: int | None, seed: tuple[int, int] | None, shuffle_buffer_size: int
) -> SampleOrder:
    """Returns the order of records: shuffles runs of neighbours, then the records within a buffer."""
    runs: list[int] = []
    for count in index.counts.tolist():
        runs += [_RUN] * (count // _RUN) + ([count % _RUN] if count % _RUN else [])
    return SampleOrder(len(index), num_epochs, seed, runs, shuffled_over=shuffle_buffer_size)


def log_damaged_parts(index: RecordIndex, bad_samples: BadSampleLog) -> None:
    """Adds the parts of the files without a readable record to the log of bad samples."""
    for damage in index.damages:
        bad_samples.add(BadSample(damage.path, damage.offset, f"{damage.reason} ({damage.length} bytes)"), len(index))
