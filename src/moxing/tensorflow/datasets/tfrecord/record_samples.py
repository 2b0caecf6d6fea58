"""Records by number, as a data set reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.journal import BadSample, Journal
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tensorflow.datasets.sample_source import Features, byte_strings
from moxing.tensorflow.datasets.stored.look_ahead import requests_ahead
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.preprocessing.decoding import explain, image_format_and_size, pixel_limit

#: Records that lie one after the other and are read about together, so that a disk need not jump for each.
_RUN = 64

#: The reason where nothing is known to be wrong with a record itself.
NOT_BUILT = "the record was read, but the features could not be built from it"

#: Where a `tf.train.Feature` has the values of a type.
_KINDS = {tf.string: "bytes_list", tf.float32: "float_list", tf.int64: "int64_list"}


class RecordSamples:
    """The records of an index.

    Args:
      index: where they are.
      explain_content: says what is wrong with a record that could be read but not used; None: it does not know.
    """

    columns: Mapping[str, tf.TensorSpec] = {
        "record": tf.TensorSpec([], tf.string),
        "readable": tf.TensorSpec([], tf.bool),
    }

    def __init__(self, index: RecordIndex, explain_content: Callable[[bytes], str | None] | None = None) -> None:
        self._index, self._reader = index, index.reader()
        self._explain_content = explain_content

    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        wanted = numbers.tolist()
        self._reader.will_need(wanted)  # the disk works on all of them while the first is being read
        records = self._reader.read(wanted)
        readable = np.array([record is not None for record in records])
        return [byte_strings(record or b"" for record in records), readable]

    def explain(self, number: int) -> BadSample:
        path, offset, _ = self._index.locate(number)
        (record,) = self._reader.read([number])
        if record is None:
            return BadSample(path, offset, self._reader.reason(number))
        reason = self._explain_content(record) if self._explain_content else None
        return BadSample(path, offset, reason or NOT_BUILT)


class StoredRecordSamples(RecordSamples):
    """The records of files on a store: those that come next are asked for ahead."""

    @property
    def lookahead(self) -> int:
        """How many samples ahead are worth asking for."""
        return requests_ahead()

    def expect(self, numbers: np.ndarray) -> None:
        """Asks the store for what is fetched next."""
        self._reader.will_need(numbers.tolist())


def explain_example(record: bytes, keys: Mapping[str, Any]) -> str | None:
    """What is wrong with a record that should be a `tf.train.Example` with these keys, or None.

    Example:
      >>> explain_example(b'', {'label': tf.FixedLenFeature([], tf.int64)})
      "has no 'label'; it has no keys at all"
    """
    try:
        found = tf.train.Example.FromString(record).features.feature
    except Exception:  # protobuf's own exception, whose class depends on its implementation
        return "not a tf.train.Example"
    # Asked for with `in`: looking a key up would add it.
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
    there = f"it has {', '.join(sorted(found))}" if found else "it has no keys at all"
    return f"has no {key!r}; {there}"


def _explain_values(key: str, values: Sequence[Any], kind: str, wanted: Any) -> str | None:
    """Why the values under a key are not those that were asked for, or None."""
    if not isinstance(wanted, tf.FixedLenFeature | tf.VarLenFeature | tf.FixedLenSequenceFeature):
        return None
    expected = _KINDS[tf.as_dtype(wanted.dtype)]
    if kind != expected:
        return f"{key!r} is a {kind}, and a feature of {tf.as_dtype(wanted.dtype).name} wants {expected}"
    if isinstance(wanted, tf.FixedLenFeature):
        count = tf.TensorShape(wanted.shape).num_elements()
        if count != len(values):
            return f"{key!r} has {len(values)} values, and tf.FixedLenFeature({wanted.shape}, ...) wants {count}"
    return None


def explain_image(record: bytes, key: str) -> str:
    """Why no image could be made of what a `tf.train.Example` has under `key`, as far as that can be told."""
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
    return f"{NOT_BUILT}; the image is a good {kind}, {width}x{height}"


def readable_record(features: Features) -> tf.Tensor:
    """The bytes of a record; fails where they could not be read."""
    with tf.control_dependencies([tf.debugging.Assert(features["readable"], ["the record could not be read"])]):
        return tf.identity(features["record"])


def record_order(
    index: RecordIndex, num_epochs: int | None, seed: tuple[int, int] | None, shuffle_buffer_size: int
) -> SampleOrder:
    """The order of records: runs of neighbours are shuffled, then the records of as many as the buffer would hold."""
    runs: list[int] = []
    for count in index.counts.tolist():
        runs += [_RUN] * (count // _RUN) + ([count % _RUN] if count % _RUN else [])
    return SampleOrder(len(index), num_epochs, seed, runs, mixed=shuffle_buffer_size)


def note_damages(index: RecordIndex, journal: Journal) -> None:
    """Tells of places in the files where no record could be found."""
    for damage in index.damages:
        journal.add_bad(BadSample(damage.path, damage.offset, f"{damage.reason} ({damage.length} bytes)"), len(index))
