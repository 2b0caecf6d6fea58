"""Inspects a dataset of images before training: classes, formats, sizes, and samples that cannot be used."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.bad_samples import BadSample
from moxing.tensorflow.datasets.raw.class_order import order_classes
from moxing.tensorflow.datasets.raw.folders import ImageFolder, list_image_folder
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import fault_of_object, is_stored
from moxing.tensorflow.datasets.tfrecord.record_samples import explain_example
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import SLIM_FEATURES
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata
from moxing.tensorflow.datasets.tools.image_records import ImageDecoder
from moxing.tensorflow.preprocessing.decoding import image_format_and_size, pixel_limit

#: File names of TFRecord files.
_RECORD_FILE = re.compile(r".*\.(tfrecords?|records?)|.*-\d+-of-\d+", re.IGNORECASE)
#: The header is rarely longer; the rest of a file is read only if it is.
_HEADER_BYTES = 1 << 16
_THREADS = 16
#: Files per task. One future per file would take a gigabyte of memory for a large dataset.
_CHUNK = 64
#: A note is added if the largest class has this many times the samples of the smallest.
_IMBALANCE = 5


@dataclass
class Spread:
    """The minimum, median and maximum of some numbers.

    Example:
      >>> Spread.of([3, 1, 2])
      Spread(min=1, median=2, max=3)
    """

    min: int
    median: int
    max: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Spread:
        """Returns the spread of a list, which must not be empty."""
        return cls(int(np.min(numbers)), int(np.median(numbers)), int(np.max(numbers)))


@dataclass
class ClassCount:
    """A class and its number of samples. The label None stands for samples without a label."""

    label: int | None
    name: str
    samples: int


@dataclass
class Inspection:
    """The result of `inspect_dataset`.

    Attributes:
      directory: the directory.
      kind: `image folder` or `TFRecord files`.
      decoded: whether every image was decoded; otherwise only its header was read.
      classes: the classes in the order of their labels.
      formats: the number of usable images by format.
      width: the widths of usable images in pixels; None if there are none.
      height: the heights likewise.
      bad: the samples that cannot be used.
      ignored: how many files in the folders are not samples, by kind.
      problems: why training would reject the dataset.
      notes: hints for the user.
    """

    directory: str
    kind: str
    decoded: bool
    classes: list[ClassCount]
    formats: dict[str, int] = field(default_factory=dict)
    width: Spread | None = None
    height: Spread | None = None
    bad: list[BadSample] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of samples, including bad ones."""
        return sum(found.samples for found in self.classes)

    def as_dict(self) -> dict[str, Any]:
        """Returns the inspection as a dict for JSON."""
        return {"total": self.total, **asdict(self)}


class _Checked(NamedTuple):
    """One sample that was checked: either `reason` says what is wrong with it, or the other fields are set."""

    location: tuple[str, int | None]
    reason: str | None = None
    format: str = ""
    width: int = 0
    height: int = 0
    label: int | None = None
    class_name: str = ""


_Check = Callable[[bytes], "tuple[str, int, int]"]


def inspect_dataset(directory: Url, pattern: str | None = None, full: bool = False) -> Inspection:
    """Checks every sample of an image folder, or of TFRecord files in the layout of TF-Slim.

    Args:
      directory: a folder with one folder per class, or the directory of the TFRecord files.
      pattern: the pattern of the TFRecord files, such as `'*.tfrecord'`. None: an image folder or, without class
        folders, the files with the usual names of TFRecord files.
      full: whether to decode every image, as training does. Otherwise only the header is read, which is much faster
        but does not find truncated images.

    Raises:
      ValueError: `directory` is neither.

    Example:
      >>> import tempfile
      >>> from PIL import Image
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.mkdir(folder + '/daisy')
      ...     Image.new('RGB', (8, 6)).save(folder + '/daisy/0.jpg')
      ...     open(folder + '/daisy/1.jpg', 'w').close()
      ...     found = inspect_dataset(folder)
      >>> found.classes, found.formats, found.width.max, found.bad[0].reason
      ([ClassCount(label=0, name='daisy', samples=2)], {'JPEG': 1}, 8, 'empty file')
    """
    with ImageDecoder() if full else nullcontext() as decoder:
        limit = pixel_limit()

        def check(encoded: bytes) -> tuple[str, int, int]:
            if decoder is not None and (fault := decoder.fault(encoded)):
                raise ValueError(fault)
            kind, width, height = image_format_and_size(encoded)
            if width * height > limit:
                raise ValueError(f"{kind} claims {width}x{height} pixels, more than --max_image_pixels={limit}")
            return kind, width, height

        patterns = find_record_pattern(directory) if pattern is None else pattern
        return (
            _inspect_records(directory, patterns, check, full) if patterns else _inspect_folder(directory, check, full)
        )


def find_record_pattern(directory: Url) -> list[str] | None:
    """Returns patterns for the TFRecord files in a directory, or None if it is an image folder.

    Raises:
      ValueError: `directory` does not exist, or has neither class folders nor TFRecord files.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     open(folder + '/train-00000-of-00001', 'w').close()
      ...     find_record_pattern(folder)
      ['train-00000-of-00001']
    """
    folder = list_image_folder(directory, "directory")
    if any(folder.classes.values()):
        return None
    records = [name for name in folder.top_files if _RECORD_FILE.fullmatch(name)]
    if records:
        # Escaped: a name may contain brackets.
        return [re.sub(r"([*?[])", r"[\1]", name) for name in records]
    if folder.top_files:
        shown = ", ".join(folder.top_files[:5])
        raise ValueError(
            f"directory={folder.base_dir!r} has no class folders with images, and no file with the name of a TFRecord "
            f"file: {shown}. If these are TFRecord files, pass a pattern such as '*'."
        )
    raise ValueError(
        f"directory={folder.base_dir!r} has no images: expected directory/<class>/<image>, or TFRecord files."
    )


def _inspect_folder(directory: Url, check: _Check, full: bool) -> Inspection:
    folder = list_image_folder(directory, "directory")
    problems: list[str] = []
    names = list(folder.classes)
    try:
        names = order_classes(folder, "labels.txt")
    except ValueError as error:
        problems.append(str(error))
    report = Inspection(
        folder.base_dir,
        "image folder",
        full,
        [ClassCount(label, name, len(folder.classes[name])) for label, name in enumerate(names)],
        ignored=dict(folder.ignored),
        problems=problems,
    )
    if folder.stray_images:
        report.ignored["images outside the class folders"] = len(folder.stray_images)
    paths = [os.path.join(folder.base_dir, name, inner) for name in names for inner in folder.classes[name]]
    _add_samples(report, _in_chunks(paths, lambda path: _check_file(path, check, full)))
    _add_notes(report)
    _note_split_folder(report, folder)
    return report


def _check_file(path: str, check: _Check, full: bool) -> _Checked:
    location = (path, None)
    try:
        with file.File(path, "rb") if is_stored(path) else open(path, "rb") as stream:
            begin = stream.read(-1 if full else _HEADER_BYTES)
            try:
                return _Checked(location, None, *check(begin))
            except ValueError:
                rest = stream.read()
                if not rest:
                    raise
                return _Checked(location, None, *check(begin + rest))
    except ValueError as error:
        return _Checked(location, str(error))
    except OSError as error:
        reason = fault_of_object(error) if is_stored(path) else f"cannot be read: {error.strerror or error}"
        if reason is None:
            raise
        return _Checked(location, reason)


def _inspect_records(directory: Url, pattern: str | Sequence[str], check: _Check, full: bool) -> Inspection:
    metadata = ImageClassificationTFRecordMetadata(os.fspath(os.fsdecode(directory)), pattern)
    index, reader = metadata.index, metadata.index.reader()

    def check_record(number: int) -> _Checked:
        path, offset, _ = index.locate(number)
        (record,) = reader.read([number])
        if record is None:
            return _Checked((path, offset), reader.reason(number))
        reason = explain_example(record, SLIM_FEATURES)
        if reason is not None:
            return _Checked((path, offset), reason)
        features = tf.train.Example.FromString(record).features.feature
        encoded, label = features["image/encoded"].bytes_list.value, features["image/class/label"].int64_list.value
        if not encoded or len(label) != 1:
            return _Checked((path, offset), "expected bytes in 'image/encoded' and one integer in 'image/class/label'")
        texts = features["image/class/text"].bytes_list.value if "image/class/text" in features else ()
        name = os.fsdecode(texts[0]) if texts else ""
        try:
            return _Checked((path, offset), None, *check(encoded[0]), label[0], name)
        except ValueError as error:
            return _Checked((path, offset), str(error), label=label[0], class_name=name)

    where = metadata.base_dir if is_stored(metadata.base_dir) else os.path.abspath(metadata.base_dir)
    report = Inspection(where, "TFRecord files", full, [])
    report.bad += [BadSample(damage.path, damage.offset, damage.reason) for damage in index.damages]
    counts: Counter[int] = Counter()
    found_names: dict[int, str] = {}
    without_label = 0

    def count_labels() -> Iterator[_Checked]:
        nonlocal without_label
        for sample in _in_chunks(range(len(index)), check_record):
            if sample.label is None:
                without_label += 1
            else:
                counts[sample.label] += 1
                found_names.setdefault(sample.label, sample.class_name)
            yield sample

    _add_samples(report, count_labels())
    known = metadata.labels_to_names or {}
    for label in sorted({*counts, *known}):
        report.classes.append(ClassCount(label, known.get(label) or found_names.get(label) or "", counts[label]))
    if without_label:
        report.classes.append(ClassCount(None, "", without_label))
    strange = sorted(set(counts) - set(known)) if known else []
    if strange:
        report.notes.append(f"Labels that labels.txt does not name: {', '.join(map(str, strange[:10]))}.")
    _add_notes(report)
    return report


def _in_chunks(items: Sequence[Any], function: Callable[[Any], _Checked]) -> Iterator[_Checked]:
    def work(start: int) -> list[_Checked]:
        return [function(item) for item in items[start : start + _CHUNK]]

    stored = len(items) > 0 and isinstance(items[0], str) and is_stored(items[0])
    threads = requests_at_once(_THREADS) if stored else _THREADS
    with ThreadPoolExecutor(threads, thread_name_prefix="mox-inspect") as pool:
        for chunk in pool.map(work, range(0, len(items), _CHUNK)):
            yield from chunk


def _add_samples(report: Inspection, samples: Iterator[_Checked]) -> None:
    formats: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    for sample in samples:
        if sample.reason is not None:
            report.bad.append(BadSample(*sample.location, sample.reason))
        else:
            formats[sample.format] += 1
            sizes.append((sample.width, sample.height))
    report.formats = dict(formats.most_common())
    if sizes:
        report.width, report.height = (Spread.of(numbers) for numbers in zip(*sizes, strict=True))


def _add_notes(report: Inspection) -> None:
    empty = [found for found in report.classes if not found.samples]
    if empty:
        report.notes.append(f"Classes without a sample: {', '.join(_title(found) for found in empty[:10])}.")
    filled = sorted(
        (found.samples, _title(found)) for found in report.classes if found.samples and found.label is not None
    )
    if filled and filled[-1][0] >= _IMBALANCE * filled[0][0]:
        (least, smallest), (most, largest) = filled[0], filled[-1]
        report.notes.append(
            f"The classes are not balanced: {largest} has {most / least:.0f} times as many samples as {smallest}. "
            "Accuracy says little about the small classes."
        )


def _title(found: ClassCount) -> str:
    return found.name or f"label {found.label}"


def _note_split_folder(report: Inspection, folder: ImageFolder) -> None:
    """Adds a note if the folders look like splits: all folders below a class folder belong to that class."""
    nested = {name: {inner.split("/")[0] for inner in files if "/" in inner} for name, files in folder.classes.items()}
    shared = set.intersection(*nested.values()) if len(nested) > 1 else set()
    if len(shared) > 1:
        report.notes.append(
            f"All class folders contain the folders {', '.join(sorted(shared)[:5])}. If those are the classes, "
            f"inspect {os.path.join(folder.base_dir, next(iter(nested)))} instead."
        )
