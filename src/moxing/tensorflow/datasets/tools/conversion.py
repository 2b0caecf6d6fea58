"""Converts an image folder to TFRecord files, in the layout of TF-Slim."""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

from moxing.framework import file
from moxing.framework.file.atomic_write import replace_file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.bad_samples import FILE_NAME as BAD_SAMPLES
from moxing.tensorflow.datasets.bad_samples import BadSample
from moxing.tensorflow.datasets.dataset_utils import write_label_file
from moxing.tensorflow.datasets.raw.class_order import order_classes
from moxing.tensorflow.datasets.raw.folders import list_image_folder
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import (
    UnusableObjectError,
)
from moxing.tensorflow.datasets.tfrecord.checksums import masked_crc32c
from moxing.tensorflow.datasets.tools.conversion_manifest import (
    FinishedShard,
    open_conversion,
    write_manifest,
)
from moxing.tensorflow.datasets.tools.conversion_plan import Image, RecordFiles, Shard, digest, plan_shards
from moxing.tensorflow.datasets.tools.image_records import BadImageError, ImageDecoder, image_record, store_image
from moxing.tensorflow.datasets.tools.split import check_sizes, check_spec
from moxing.tensorflow.datasets.tools.target import check_target, local_target, only_process, progress_bar, real_source

#: Converted images per thread that wait to be written.
_AHEAD = 4
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Conversion:
    """The result of `convert_image_folder`.

    Attributes:
      records: the number of records by split.
      shards: the names of the files by split.
      bytes: the size of the files by split.
      kept: the number of images that were stored unchanged, by format.
      changed: the number of images that were converted, by conversion.
      bad: the images that were skipped.
      resumed: the number of files that were complete from an earlier call.
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
        """The number of image files, including bad ones."""
        return sum(self.records.values()) + len(self.bad)


def convert_image_folder(
    src_dir: Url,
    dst_dir: Url,
    split_spec: Mapping[str, float] | None = None,
    records: RecordFiles = RecordFiles(),  # noqa: B008
    threads: int | None = None,
    overwrite: bool = False,
) -> Conversion:
    """Writes the images of a folder into TFRecord files that `ImageClassificationTFRecordDataset` and TF-Slim read.

    The files are called `train-00000-of-00004`, or with a prefix `flowers_train_00000-of-00004.tfrecord`; `labels.txt`
    next to them names the classes. Every file contains a mix of all classes, in the same order in every call.
    See `image_records.store_image` for which images are stored unchanged and which are converted.

    The same call with the same images resumes an interrupted conversion; `dst_dir/.moxing_convert.json` lists the
    complete files. Images that cannot be decoded are skipped and listed in `dst_dir/bad_samples.jsonl`.

    Args:
      src_dir: the folder with one folder per class, as for `ImageClassificationRawMetadata`.
      dst_dir: the local directory for the files, outside `src_dir`; created if missing. It holds one conversion.
      split_spec: the fraction of every split, as in `split_image_classification_dataset`; None puts all into `train`.
      records: how many files are written, their names, and the size of their images.
      threads: the number of images that are converted in parallel; None uses the number of cores, or for images on an
        object store `--data_requests`.
      overwrite: whether to replace the records of an earlier conversion.

    Raises:
      ValueError: an argument is wrong, `src_dir` is not an image folder, or `dst_dir` holds other records.

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
    check_counts(threads=threads)
    fractions = check_spec({"train": 1.0} if split_spec is None else split_spec)
    source = list_image_folder(src_dir, "src_dir")
    names = order_classes(source, "labels.txt")
    check_sizes(source.classes, fractions)
    dst = local_target(dst_dir)
    check_target(source.base_dir, dst)

    plan = plan_shards(source, names, fractions, records)
    order = {"version": _FORMAT_VERSION, "src_dir": real_source(source.base_dir), "split_spec": fractions}
    order |= {**asdict(records), "images": digest(plan)}
    os.makedirs(dst, exist_ok=True)
    with only_process(dst, "writing"):
        done = open_conversion(dst, order, overwrite)
        resumed = len(done)
        write_label_file(dict(enumerate(names)), dst)
        # A thread that waits for an object store needs no core.
        default = requests_at_once() if source.objects else os.cpu_count() or 1
        _write_shards(dst, plan, order, done, records.resize_short_side, threads or default)
        result = _summarize(list(fractions), plan, done, resumed)
        _write_bad(dst, result.bad)
        write_manifest(dst, order, done, finished=True)
    return result


def _summarize(
    splits: Sequence[str], plan: Sequence[Shard], done: Mapping[str, FinishedShard], resumed: int
) -> Conversion:
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


def _write_bad(dst: str, bad: Sequence[BadSample]) -> None:
    path = os.path.join(dst, BAD_SAMPLES)
    if not bad:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    lines = "".join(json.dumps(asdict(sample), ensure_ascii=False) + "\n" for sample in bad)
    file.write(path, lines.encode("utf-8", "surrogateescape"), binary=True)


def _write_shards(
    dst: str,
    plan: Sequence[Shard],
    order: Mapping[str, Any],
    done: dict[str, FinishedShard],
    resize_short_side: int | None,
    threads: int,
) -> None:
    """Writes the missing files and adds them to `done`. A file gets its name when it is complete."""
    write_manifest(dst, order, done, finished=False)
    total = sum(len(shard.images) for shard in plan)
    with (
        ImageDecoder() as decoder,
        ThreadPoolExecutor(threads, "mox-convert") as pool,
        progress_bar("convert", total) as advance,
    ):

        def convert(image: Image) -> tuple[bytes, str | None, str] | BadSample:
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
            entry = FinishedShard()

            def fill(stream: IO[bytes], images: Sequence[Image] = shard.images, entry: FinishedShard = entry) -> None:
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
            write_manifest(dst, order, done, finished=False)


def write_record(stream: IO[bytes], record: bytes) -> None:
    """Appends a record to an open TFRecord file.

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
    """Like `pool.map`, but keeps only `ahead` results in memory."""
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
