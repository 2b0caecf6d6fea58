"""An image folder as TFRecord files, in the layout of TF-Slim."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from moxing.framework import file
from moxing.framework.file.paths import Url
from moxing.framework.file.replacing import replace_file
from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.dataset_utils import write_label_file
from moxing.tensorflow.datasets.journal import FILE_NAME as BAD_SAMPLES
from moxing.tensorflow.datasets.journal import BadSample
from moxing.tensorflow.datasets.raw.folders import ImageFolder, list_image_folder
from moxing.tensorflow.datasets.raw.raw_metadata import order_classes

# The cut of `moxing data split`, so that both commands put an image into the same split.
from moxing.tensorflow.datasets.raw.split import check_sizes, check_spec, make_plan
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import (
    StoredObject,
    UnusableObjectError,
    read_object,
    version_number,
)
from moxing.tensorflow.datasets.target import check_target, local_target, only_process, progress_bar, real_source
from moxing.tensorflow.datasets.tfrecord.image_records import BadImageError, ImageDecoder, image_record, store_image
from moxing.tf1.records import masked_crc32c

MANIFEST = ".moxing_convert.json"

#: What a file of records holds, about, where the caller does not say how many there are to be.
_SHARD_BYTES = 150_000_000
#: Images that are converted ahead of the one that is written, for each thread.
_AHEAD = 4
_STAT_THREADS = 16
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Conversion:
    """What `convert_image_folder` did.

    Attributes:
      records: The number of records by split.
      shards: The names of the files by split.
      bytes: The size of the files by split.
      kept: Images whose bytes are in the records as they are: kind to number.
      changed: Images that were converted: what was done to number.
      bad: Images that were left out.
      resumed: Files that were complete from an earlier call.
    """

    records: dict[str, int]
    shards: dict[str, list[str]]
    bytes: dict[str, int]
    kept: Counter[str]
    changed: Counter[str]
    bad: tuple[BadSample, ...]
    resumed: int

    @property
    def images(self) -> int:
        """The number of image files, bad ones included."""
        return sum(self.records.values()) + len(self.bad)


@dataclass(frozen=True)
class _Image:
    path: str
    label: int
    class_name: str
    size: int
    mtime_ns: int
    stored: StoredObject | None = None

    def read(self) -> bytes:
        if self.stored is not None:
            return read_object(self.stored)[0]
        with open(self.path, "rb") as stream:
            return stream.read()


@dataclass(frozen=True)
class _Shard:
    split: str
    name: str
    images: Sequence[_Image]


@dataclass
class _Done:
    """What the manifest remembers of a complete file."""

    records: int = 0
    bytes: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    bad: list[dict[str, Any]] = field(default_factory=list)


def convert_image_folder(
    src_dir: Url,
    dst_dir: Url,
    split_spec: Mapping[str, float] | None = None,
    shards: int | None = None,
    prefix: str | None = None,
    resize_short_side: int | None = None,
    threads: int | None = None,
    overwrite: bool = False,
) -> Conversion:
    """Writes the images of a folder into TFRecord files that `ImageClassificationTFRecordDataset` and TF-Slim read.

    The files are called `train-00000-of-00004`, or with a prefix `flowers_train_00000-of-00004.tfrecord`; `labels.txt`
    beside them names the classes. Every file is a mix of all classes, in an order that is the same in every call.
    See `image_records.store_image` for which images are stored as they are and which are converted.

    A call that was interrupted goes on where it stopped when it is made again with the same arguments and the same
    images; `dst_dir/.moxing_convert.json` remembers which files are complete. Images that cannot be decoded are left
    out and listed in `dst_dir/bad_samples.jsonl`.

    Args:
      src_dir: The folder with one folder per class, as `ImageClassificationRawMetadata` takes it.
      dst_dir: The local directory for the files, created if need be, outside `src_dir`. It holds one conversion.
      split_spec: The fraction of every split, cut as `split_image_classification_dataset` cuts; None: all is `train`.
      shards: The number of files per split; None: so many that each has about 150 MB of images.
      prefix: The beginning of the files' names.
      resize_short_side: Makes images smaller whose shorter side is longer than this.
      threads: Images that are converted at once; None: as many as the machine has cores, or for images on a store
        `--data_requests`.
      overwrite: Replace the records of an earlier conversion.

    Raises:
      ValueError: An argument is wrong, `src_dir` is no image folder, or `dst_dir` holds other records.

    Example:
      >>> import tempfile
      >>> from PIL import Image
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/images/daisy')
      ...     Image.new('RGB', (8, 6)).save(folder + '/images/daisy/0.jpg')
      ...     done = convert_image_folder(folder + '/images', folder + '/records')
      >>> done.records, done.shards
      ({'train': 1}, {'train': ['train-00000-of-00001']})
    """
    check_counts(shards=shards, resize_short_side=resize_short_side, threads=threads)
    if prefix is not None and (not isinstance(prefix, str) or not prefix or prefix[0] == "." or "/" in prefix):
        raise ValueError(f"prefix={prefix!r}: expected the beginning of a file name, such as 'flowers'.")
    fractions = check_spec({"train": 1.0} if split_spec is None else split_spec)
    source = list_image_folder(src_dir, "src_dir")
    names = order_classes(source, "labels.txt")
    check_sizes(source.classes, fractions)
    dst = local_target(dst_dir)
    check_target(source.base_dir, dst)

    plan = _make_shards(source, names, fractions, shards, prefix)
    order = {"version": _FORMAT_VERSION, "src_dir": real_source(source.base_dir), "split_spec": fractions}
    order |= {"shards": shards, "prefix": prefix, "resize_short_side": resize_short_side, "images": _digest(plan)}
    os.makedirs(dst, exist_ok=True)
    with only_process(dst, "writing"):
        done = _begin(dst, order, overwrite)
        resumed = len(done)
        write_label_file(dict(enumerate(names)), dst)
        # A thread that waits for a store needs no core.
        default = requests_at_once() if source.objects else os.cpu_count() or 1
        _write_shards(dst, plan, order, done, resize_short_side, threads or default)
        result = _summarize(list(fractions), plan, done, resumed)
        _write_bad(dst, result.bad)
        _write_manifest(dst, order, done, finished=True)
    return result


# --- what goes where --------------------------------------------------------------------------------------------------


def _make_shards(
    source: ImageFolder, names: Sequence[str], fractions: Mapping[str, float], count: int | None, prefix: str | None
) -> list[_Shard]:
    labels = {name: label for label, name in enumerate(names)}
    cut = make_plan(source.classes, fractions)
    result = []
    for split in fractions:
        wanted = [(name, inner) for name, files in cut[split].items() for inner in files]
        wanted.sort(key=lambda pair: _hash(*pair))
        with ThreadPoolExecutor(_STAT_THREADS, thread_name_prefix="mox-convert") as pool:
            images = list(pool.map(lambda pair: _look_at(source, labels[pair[0]], *pair), wanted))
        number = count or max(1, round(sum(image.size for image in images) / _SHARD_BYTES))
        if number > len(images):
            raise ValueError(f"shards={number}: the split {split!r} has {len(images)} images only.")
        for index in range(number):
            part = images[index * len(images) // number : (index + 1) * len(images) // number]
            result.append(_Shard(split, _shard_name(split, f"{index:05d}", f"{number:05d}", prefix), part))
    return result


def _shard_name(split: str, index: str, number: str, prefix: str | None) -> str:
    return f"{split}-{index}-of-{number}" if prefix is None else f"{prefix}_{split}_{index}-of-{number}.tfrecord"


def _hash(name: str, inner: str) -> bytes:
    # Not the hash by which the splits are cut, or every split would be a range of it.
    return hashlib.blake2b(os.fsencode(f"{name}/{inner}"), digest_size=16, person=b"moxing-shards").digest()


def _look_at(source: ImageFolder, label: int, name: str, inner: str) -> _Image:
    if source.objects:
        item = source.objects[f"{name}/{inner}"]
        return _Image(item.url, label, name, item.length, version_number(item), item)
    path = f"{source.base_dir.rstrip('/')}/{name}/{inner}"
    try:
        status = os.stat(path)
    except OSError:  # it is reported when it cannot be read
        return _Image(path, label, name, 0, 0)
    return _Image(path, label, name, status.st_size, status.st_mtime_ns)


def _digest(plan: Sequence[_Shard]) -> str:
    """Stands for the images and their labels: others give another digest."""
    hasher = hashlib.blake2b(digest_size=16)
    for image in sorted((image for shard in plan for image in shard.images), key=lambda image: image.path):
        hasher.update(os.fsencode(f"{image.path}\0{image.label}\0{image.size}\0{image.mtime_ns}\0"))
    return hasher.hexdigest()


# --- the manifest -----------------------------------------------------------------------------------------------------


def _begin(dst: str, order: Mapping[str, Any], overwrite: bool) -> dict[str, _Done]:
    """Makes room in `dst` and returns what is complete there already."""
    for name in os.listdir(dst):
        if name.startswith(".mox-") and name.endswith(".tmp"):  # left by a process that was killed
            os.unlink(os.path.join(dst, name))
    found = _read_manifest(dst)
    there = _existing_shards(dst, order, found)
    changed = [key for key, value in order.items() if found.get(key) != value]
    if found and not changed and not (overwrite and found.get("finished")):
        return {
            name: _Done(**entry)
            for name, entry in found["done"].items()
            if name in there and os.path.getsize(os.path.join(dst, name)) == entry["bytes"]
        }
    if not overwrite and found:
        state = "a finished conversion" if found.get("finished") else "an interrupted conversion"
        causes = {
            "version": "another version of MoXing",
            "images": "other images",
            "shards": "another number of shards",
        }
        other = ", ".join(causes.get(key, f"another {key}") for key in changed)
        raise ValueError(
            f"dst_dir={dst!r} holds {state}, with {other} ({MANIFEST} remembers it): repeat that call to go on with "
            "it, give another dst_dir, or replace its records with overwrite=True."
        )
    if not overwrite and there:
        raise ValueError(f"dst_dir={dst!r} has records already, {min(there)} for one: overwrite=True replaces them.")
    # The manifest goes first: without it nobody takes what is left for complete.
    for name in [MANIFEST, *there]:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(dst, name))
    return {}


def _existing_shards(dst: str, *orders: Mapping[str, Any]) -> set[str]:
    """Files that would be read together with those of these orders: the same names, whatever their number."""
    names = {
        re.escape(_shard_name(split, "\0", "\0", order.get("prefix"))).replace(re.escape("\0"), r"\d+")
        for order in orders
        for split in order.get("split_spec", ())
    }
    return {name for name in os.listdir(dst) if any(re.fullmatch(pattern, name) for pattern in names)}


def _read_manifest(dst: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read(os.path.join(dst, MANIFEST)))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("done"), dict) else {}


def _write_manifest(dst: str, order: Mapping[str, Any], done: Mapping[str, _Done], finished: bool) -> None:
    content = {**order, "finished": finished, "done": {name: asdict(entry) for name, entry in done.items()}}
    file.write(os.path.join(dst, MANIFEST), json.dumps(content) + "\n")


def _write_bad(dst: str, bad: Sequence[BadSample]) -> None:
    path = os.path.join(dst, BAD_SAMPLES)
    if not bad:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    lines = "".join(json.dumps(asdict(sample), ensure_ascii=False) + "\n" for sample in bad)
    file.write(path, lines.encode("utf-8", "surrogateescape"), binary=True)


def _summarize(splits: Sequence[str], plan: Sequence[_Shard], done: Mapping[str, _Done], resumed: int) -> Conversion:
    shards = {split: [shard.name for shard in plan if shard.split == split] for split in splits}
    entries = [done[shard.name] for shard in plan]
    return Conversion(
        records={split: sum(done[name].records for name in shards[split]) for split in splits},
        shards=shards,
        bytes={split: sum(done[name].bytes for name in shards[split]) for split in splits},
        kept=sum((Counter(entry.kept) for entry in entries), Counter[str]()),
        changed=sum((Counter(entry.changed) for entry in entries), Counter[str]()),
        bad=tuple(BadSample(**sample) for entry in entries for sample in entry.bad),
        resumed=resumed,
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_shards(
    dst: str,
    plan: Sequence[_Shard],
    order: Mapping[str, Any],
    done: dict[str, _Done],
    resize_short_side: int | None,
    threads: int,
) -> None:
    """Writes the files that are missing and adds them to `done`. Each appears under its name when it is complete."""
    _write_manifest(dst, order, done, finished=False)
    total = sum(len(shard.images) for shard in plan)
    with (
        ImageDecoder() as decoder,
        ThreadPoolExecutor(threads, "mox-convert") as pool,
        progress_bar("convert", total) as advance,
    ):

        def convert(image: _Image) -> tuple[bytes, str | None, str] | BadSample:
            try:
                stored = store_image(image.read(), decoder, resize_short_side)
            except (BadImageError, UnusableObjectError) as error:
                return BadSample(image.path, None, str(error))
            except OSError as error:
                if image.stored is not None:
                    raise
                return BadSample(image.path, None, f"cannot be read: {error.strerror or error}")
            return image_record(stored, image.label, image.class_name, image.path), stored.change, stored.kind

        for shard in plan:
            if shard.name in done:
                advance(len(shard.images))
                continue
            entry = _Done()

            def fill(stream: IO[bytes], images: Sequence[_Image] = shard.images, entry: _Done = entry) -> None:
                for converted in _in_order(pool, convert, images, _AHEAD * threads):
                    if isinstance(converted, BadSample):
                        entry.bad.append(asdict(converted))
                    else:
                        record, change, kind = converted
                        write_record(stream, record)
                        entry.records += 1
                        counts = entry.kept if change is None else entry.changed
                        counts[change or kind] = counts.get(change or kind, 0) + 1
                    advance(1)
                entry.bytes = stream.tell()

            replace_file(os.path.join(dst, shard.name), "dst_dir", fill)
            done[shard.name] = entry
            _write_manifest(dst, order, done, finished=False)


def write_record(stream: IO[bytes], record: bytes) -> None:
    """Adds a record to an open TFRecord file.

    Example:
      >>> import io
      >>> stream = io.BytesIO()
      >>> write_record(stream, b'hello')
      >>> len(stream.getvalue())
      21
    """
    length = len(record).to_bytes(8, "little")
    stream.write(length + masked_crc32c(length).to_bytes(4, "little"))
    stream.write(record)
    stream.write(masked_crc32c(record).to_bytes(4, "little"))


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], items: Sequence[Any], ahead: int
) -> Iterator[Any]:
    """As `pool.map`, but only `ahead` results are held in memory."""
    waiting: deque[Future[Any]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
