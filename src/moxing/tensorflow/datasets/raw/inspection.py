"""What is in a data set of images, before it is trained on: classes, formats, sizes, and what cannot be used."""

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
from moxing.framework.file.paths import Url
from moxing.tensorflow.datasets.journal import BadSample
from moxing.tensorflow.datasets.raw.folders import ImageFolder, list_image_folder
from moxing.tensorflow.datasets.raw.raw_metadata import order_classes
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import fault_of_object, is_stored
from moxing.tensorflow.datasets.tfrecord.image_records import ImageDecoder
from moxing.tensorflow.datasets.tfrecord.record_samples import explain_example
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import SLIM_FEATURES
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata
from moxing.tensorflow.preprocessing.decoding import image_format_and_size, pixel_limit

#: How files of records are called.
_RECORD_FILE = re.compile(r".*\.(tfrecords?|records?)|.*-\d+-of-\d+", re.IGNORECASE)
#: A header seldom reaches further; the rest of a file is read only if it does.
_HEADER_BYTES = 1 << 16
_THREADS = 16
#: Files per task. A future per file would cost a large data set a gigabyte of memory.
_CHUNK = 64
#: The largest class has so many times the images of the smallest: that is worth a note.
_IMBALANCE = 5


@dataclass
class Spread:
    """Smallest, middle and largest of some numbers.

    Example:
      >>> Spread.of([3, 1, 2])
      Spread(min=1, median=2, max=3)
    """

    min: int
    median: int
    max: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Spread:
        """The spread of a list that is not empty."""
        return cls(int(np.min(numbers)), int(np.median(numbers)), int(np.max(numbers)))


@dataclass
class ClassCount:
    """A class and how many samples it has; without a number it stands for samples that have no label."""

    label: int | None
    name: str
    samples: int


@dataclass
class Inspection:
    """What `inspect_dataset` found.

    Attributes:
      directory: Where.
      kind: `image folder` or `TFRecord files`.
      decoded: Whether every image was decoded; otherwise only its header was read.
      classes: The classes in the order of their numbers.
      formats: The number of usable images by format.
      width: In pixels, of usable images; None if there are none.
      height: The same.
      bad: Samples that cannot be used.
      ignored: What lies in the folders and is no sample: kind to number.
      problems: Why training would refuse the data set as it is.
      notes: What is worth knowing.
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
        """The number of samples, bad ones included."""
        return sum(found.samples for found in self.classes)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {"total": self.total, **asdict(self)}


class _Seen(NamedTuple):
    """One sample that was looked at: either `reason` says what is wrong with it, or the rest is known."""

    place: tuple[str, int | None]
    reason: str | None = None
    format: str = ""
    width: int = 0
    height: int = 0
    label: int | None = None
    class_name: str = ""


_Look = Callable[[bytes], "tuple[str, int, int]"]


def inspect_dataset(directory: Url, pattern: str | None = None, full: bool = False) -> Inspection:
    """Looks at every sample of an image folder, or of TFRecord files in the layout of TF-Slim.

    Args:
      directory: A folder with one folder per class, or the directory of the TFRecord files.
      pattern: Which files of records, such as `'*.tfrecord'`; None: an image folder, or if there are no class folders
        the files that are called as files of records are.
      full: Decode every image, as training does; otherwise only its header is read, which is much faster and does not
        find images that are cut short.

    Raises:
      ValueError: `directory` is neither of them.

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

        def look(encoded: bytes) -> tuple[str, int, int]:
            if decoder is not None and (fault := decoder.fault(encoded)):
                raise ValueError(fault)
            kind, width, height = image_format_and_size(encoded)
            if width * height > limit:
                raise ValueError(f"{kind} claims {width}x{height} pixels, more than --max_image_pixels={limit}")
            return kind, width, height

        patterns = find_record_pattern(directory) if pattern is None else pattern
        return _inspect_records(directory, patterns, look, full) if patterns else _inspect_folder(directory, look, full)


def find_record_pattern(directory: Url) -> list[str] | None:
    """Patterns for the TFRecord files in a directory; None if it is an image folder.

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
        # As patterns: a name may have brackets in it.
        return [re.sub(r"([*?[])", r"[\1]", name) for name in records]
    if folder.top_files:
        shown = ", ".join(folder.top_files[:5])
        raise ValueError(
            f"directory={folder.base_dir!r} has no class folders with images, and no file that is called as a TFRecord "
            f"file is: {shown}. If these are TFRecord files, give a pattern such as '*'."
        )
    raise ValueError(
        f"directory={folder.base_dir!r} has no images: expected directory/<class>/<image>, or TFRecord files."
    )


def _inspect_folder(directory: Url, look: _Look, full: bool) -> Inspection:
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
        ignored=dict(folder.left_out),
        problems=problems,
    )
    if folder.stray_images:
        report.ignored["images beside the class folders"] = len(folder.stray_images)
    paths = [os.path.join(folder.base_dir, name, inner) for name in names for inner in folder.classes[name]]
    _add_seen(report, _in_chunks(paths, lambda path: _look_at_file(path, look, full)))
    _add_notes(report)
    _note_split_folder(report, folder)
    return report


def _look_at_file(path: str, look: _Look, full: bool) -> _Seen:
    place = (path, None)
    try:
        with file.File(path, "rb") if is_stored(path) else open(path, "rb") as stream:
            begin = stream.read(-1 if full else _HEADER_BYTES)
            try:
                return _Seen(place, None, *look(begin))
            except ValueError:
                rest = stream.read()
                if not rest:
                    raise
                return _Seen(place, None, *look(begin + rest))
    except ValueError as error:
        return _Seen(place, str(error))
    except OSError as error:
        reason = fault_of_object(error) if is_stored(path) else f"cannot be read: {error.strerror or error}"
        if reason is None:
            raise
        return _Seen(place, reason)


def _inspect_records(directory: Url, pattern: str | Sequence[str], look: _Look, full: bool) -> Inspection:
    metadata = ImageClassificationTFRecordMetadata(os.fspath(os.fsdecode(directory)), pattern)
    index, reader = metadata.index, metadata.index.reader()

    def look_at_record(number: int) -> _Seen:
        path, offset, _ = index.locate(number)
        (record,) = reader.read([number])
        if record is None:
            return _Seen((path, offset), reader.reason(number))
        reason = explain_example(record, SLIM_FEATURES)
        if reason is not None:
            return _Seen((path, offset), reason)
        features = tf.train.Example.FromString(record).features.feature
        encoded, label = features["image/encoded"].bytes_list.value, features["image/class/label"].int64_list.value
        if not encoded or len(label) != 1:
            return _Seen((path, offset), "expected bytes in 'image/encoded' and one integer in 'image/class/label'")
        texts = features["image/class/text"].bytes_list.value if "image/class/text" in features else ()
        name = os.fsdecode(texts[0]) if texts else ""
        try:
            return _Seen((path, offset), None, *look(encoded[0]), label[0], name)
        except ValueError as error:
            return _Seen((path, offset), str(error), label=label[0], class_name=name)

    where = metadata.base_dir if is_stored(metadata.base_dir) else os.path.abspath(metadata.base_dir)
    report = Inspection(where, "TFRecord files", full, [])
    report.bad += [BadSample(damage.path, damage.offset, damage.reason) for damage in index.damages]
    counts: Counter[int] = Counter()
    found_names: dict[int, str] = {}
    without_label = 0

    def counted() -> Iterator[_Seen]:
        nonlocal without_label
        for seen in _in_chunks(range(len(index)), look_at_record):
            if seen.label is None:
                without_label += 1
            else:
                counts[seen.label] += 1
                found_names.setdefault(seen.label, seen.class_name)
            yield seen

    _add_seen(report, counted())
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


def _in_chunks(items: Sequence[Any], function: Callable[[Any], _Seen]) -> Iterator[_Seen]:
    def work(start: int) -> list[_Seen]:
        return [function(item) for item in items[start : start + _CHUNK]]

    stored = len(items) > 0 and isinstance(items[0], str) and is_stored(items[0])
    threads = requests_at_once(_THREADS) if stored else _THREADS
    with ThreadPoolExecutor(threads, thread_name_prefix="mox-inspect") as pool:
        for chunk in pool.map(work, range(0, len(items), _CHUNK)):
            yield from chunk


def _add_seen(report: Inspection, samples: Iterator[_Seen]) -> None:
    formats: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    for seen in samples:
        if seen.reason is not None:
            report.bad.append(BadSample(*seen.place, seen.reason))
        else:
            formats[seen.format] += 1
            sizes.append((seen.width, seen.height))
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
            "Accuracy says little about the small ones."
        )


def _title(found: ClassCount) -> str:
    return found.name or f"label {found.label}"


def _note_split_folder(report: Inspection, folder: ImageFolder) -> None:
    """Sub-folders of sub-folders are all one class, which is seldom meant where the folders are splits."""
    nested = {name: {inner.split("/")[0] for inner in files if "/" in inner} for name, files in folder.classes.items()}
    shared = set.intersection(*nested.values()) if len(nested) > 1 else set()
    if len(shared) > 1:
        report.notes.append(
            f"All class folders have the folders {', '.join(sorted(shared)[:5])} in them. If those are the classes, "
            f"inspect {os.path.join(folder.base_dir, next(iter(nested)))} instead."
        )
