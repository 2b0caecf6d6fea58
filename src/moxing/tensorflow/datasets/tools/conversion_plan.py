"""Which image goes into which TFRecord file of a conversion."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.raw.folders import ImageFolder
from moxing.tensorflow.datasets.stored.objects import StoredObject, read_object, version_number

# The same splits as `moxing data split`, so that both commands put an image into the same split.
from moxing.tensorflow.datasets.tools.split import make_plan

#: The approximate size of a file of records if the caller does not pass their number.
_SHARD_BYTES = 150_000_000
_STAT_THREADS = 16


@dataclass(frozen=True)
class RecordFiles:
    """The files that a conversion writes.

    Args:
      shards: the number of files per split; None aims at about 150 MB of images per file.
      prefix: the beginning of the file names.
      resize_short_side: shrinks images whose shorter side is longer than this.

    Example:
      >>> RecordFiles(shards=4, prefix='flowers').shards
      4
    """

    shards: int | None = None
    prefix: str | None = None
    resize_short_side: int | None = None

    def __post_init__(self) -> None:
        check_counts(shards=self.shards, resize_short_side=self.resize_short_side)
        prefix: object = self.prefix
        if prefix is not None and (not isinstance(prefix, str) or not prefix or prefix[0] == "." or "/" in prefix):
            raise ValueError(f"prefix={prefix!r}: expected the beginning of a file name, such as 'flowers'.")


@dataclass(frozen=True)
class Image:
    """An image to convert: its path or url, its class, and its size and time of change for the digest."""

    path: str
    label: int
    class_name: str
    size: int
    mtime_ns: int
    stored: StoredObject | None = None

    def read(self) -> bytes:
        """Returns the content of the file."""
        if self.stored is not None:
            return read_object(self.stored)[0]
        with open(self.path, "rb") as stream:
            return stream.read()


@dataclass(frozen=True)
class Shard:
    """A TFRecord file to write."""

    split: str
    name: str
    images: Sequence[Image]


def plan_shards(
    source: ImageFolder, names: Sequence[str], fractions: Mapping[str, float], records: RecordFiles
) -> list[Shard]:
    labels = {name: label for label, name in enumerate(names)}
    cut = make_plan(source.classes, fractions)
    result = []
    for split in fractions:
        wanted = [(name, inner) for name, files in cut[split].items() for inner in files]
        wanted.sort(key=lambda pair: _hash(*pair))
        with ThreadPoolExecutor(_STAT_THREADS, thread_name_prefix="mox-convert") as pool:
            images = list(pool.map(lambda pair: _describe(source, labels[pair[0]], *pair), wanted))
        number = records.shards or max(1, round(sum(image.size for image in images) / _SHARD_BYTES))
        if number > len(images):
            raise ValueError(f"shards={number}: the split {split!r} has only {len(images)} images.")
        for index in range(number):
            part = images[index * len(images) // number : (index + 1) * len(images) // number]
            result.append(Shard(split, shard_name(split, f"{index:05d}", f"{number:05d}", records.prefix), part))
    return result


def shard_name(split: str, index: str, number: str, prefix: str | None) -> str:
    return f"{split}-{index}-of-{number}" if prefix is None else f"{prefix}_{split}_{index}-of-{number}.tfrecord"


def _hash(name: str, inner: str) -> bytes:
    # Another hash than that of the splits, or every split would be a range of it.
    return hashlib.blake2b(os.fsencode(f"{name}/{inner}"), digest_size=16, person=b"moxing-shards").digest()


def _describe(source: ImageFolder, label: int, name: str, inner: str) -> Image:
    if source.objects:
        item = source.objects[f"{name}/{inner}"]
        return Image(item.url, label, name, item.length, version_number(item), item)
    path = f"{source.base_dir.rstrip('/')}/{name}/{inner}"
    try:
        status = os.stat(path)
    except OSError:  # reported when it is read
        return Image(path, label, name, 0, 0)
    return Image(path, label, name, status.st_size, status.st_mtime_ns)


def digest(plan: Sequence[Shard]) -> str:
    """Returns a digest of the images and their labels."""
    hasher = hashlib.blake2b(digest_size=16)
    for image in sorted((image for shard in plan for image in shard.images), key=lambda image: image.path):
        hasher.update(os.fsencode(f"{image.path}\0{image.label}\0{image.size}\0{image.mtime_ns}\0"))
    return hasher.hexdigest()
