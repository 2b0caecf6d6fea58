"""Splits an image folder into training and evaluation folders."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import Url, is_inside
from moxing.tensorflow.datasets.raw.class_order import order_classes
from moxing.tensorflow.datasets.raw.folders import ImageFolder, list_image_folder
from moxing.tensorflow.datasets.raw.labels import find_labels_file, format_labels
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import is_stored
from moxing.tensorflow.datasets.tools.target import check_target, local_target, only_process, progress_bar, real_source

_LABELS = "labels.txt"
_MARKER = ".moxing_split.json"
#: With `overwrite=True`: the directories of the new splits until they are complete, and of the old ones to remove.
_NEW, _OLD, _TRASH = ".moxing_split.new", ".moxing_split.old", ".moxing_split.trash"
_TEMPORARY = ".mox-split-"
_TOLERANCE = 1e-6
_THREADS = 16
#: Files per task. One future per file would take a gigabyte of memory for a large dataset.
_CHUNK = 32
_MAX_LISTED = 10

#: The relative paths of the files, by split and class.
Plan = dict[str, dict[str, list[str]]]


def split_image_classification_dataset(
    split_spec: Mapping[str, float], src_dir: Url, dst_dir: Url, overwrite: bool = False
) -> dict[str, int]:
    """Splits an image folder into several: copies its files to `dst_dir/<split>/<class>/<file>`.

    Every class is split by the same fractions. The split of a file depends only on the hash of its name: the same call
    gives the same splits on every machine, and a file that is added later moves very few others. Every split gets a
    `labels.txt`, so that the classes have the same numbers in all splits.

    The same call with the same files resumes an interrupted split; `dst_dir/.moxing_split.json` identifies it.

    Args:
      split_spec: the fraction of every split, for instance `{'train': 0.9, 'eval': 0.1}`. They sum to at most 1; with
        less, the remaining files are not copied.
      src_dir: the folder with one folder per class, as for `ImageClassificationRawMetadata`.
      dst_dir: the local directory for the splits, outside `src_dir`; created if missing.
      overwrite: whether to replace existing splits. They are kept until the new ones are complete.

    Returns:
      The number of files by split.

    Raises:
      ValueError: the fractions or directories are wrong, `src_dir` is not an image folder, a class has fewer files than
        there are splits, or a split exists already.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/all/daisy')
      ...     for index in range(10):
      ...         open(f'{folder}/all/daisy/{index}.jpg', 'w').close()
      ...     split_image_classification_dataset({'train': 0.9, 'eval': 0.1}, folder + '/all', folder + '/split')
      {'train': 9, 'eval': 1}
    """
    fractions = check_spec(split_spec)
    source = list_image_folder(src_dir, "src_dir")
    names = order_classes(source, _LABELS)
    check_sizes(source.classes, fractions)
    dst = local_target(dst_dir)
    _check_places(source.base_dir, source.classes, dst, fractions)
    labels_file = find_labels_file(source.base_dir, _LABELS)
    labels = format_labels(names) if labels_file is None else file.read(labels_file, binary=True)

    plan = make_plan(source.classes, fractions)
    marker = {
        "src_dir": real_source(source.base_dir),
        "split_spec": dict(sorted(fractions.items())),
        "files": _digest(plan, labels),
    }
    os.makedirs(dst, exist_ok=True)
    with only_process(dst, "writing splits"):
        _undo_half_swap(dst)
        if overwrite:
            _replace(source, dst, plan, labels, marker)
        else:
            _check_free(dst, plan, marker)
            shutil.rmtree(os.path.join(dst, _NEW), ignore_errors=True)
            _fill(source, dst, plan, labels, marker)
    return {split: sum(map(len, plan[split].values())) for split in split_spec}


def check_spec(split_spec: Any) -> dict[str, float]:
    """Checks the fractions of the splits and returns them as floats."""
    example = "expected fractions by split, such as {'train': 0.9, 'eval': 0.1}"
    if not isinstance(split_spec, Mapping) or not split_spec:
        raise ValueError(f"split_spec={split_spec!r}: {example}.")
    for split, fraction in split_spec.items():
        if not isinstance(split, str) or not split or split[0] == "." or "/" in split or "\0" in split:
            raise ValueError(f"split_spec has the split {split!r}: expected the name of a folder.")
        number = not isinstance(fraction, bool | str) and hasattr(fraction, "__float__")
        if not number or not math.isfinite(float(fraction)) or float(fraction) <= 0:
            raise ValueError(f"split_spec[{split!r}]={fraction!r}: expected a positive fraction.")
    fractions = {split: float(fraction) for split, fraction in split_spec.items()}
    total = math.fsum(fractions.values())
    if total > 1 + _TOLERANCE:
        raise ValueError(f"split_spec={dict(split_spec)!r} sums to {total:g}: {example}, with a sum of at most 1.")
    return fractions


def check_sizes(classes: Mapping[str, Sequence[str]], fractions: Mapping[str, float]) -> None:
    """Raises an error if a class has fewer files than there are splits."""
    small = [f"{name!r} ({len(files)})" for name, files in classes.items() if len(files) < len(fractions)]
    if small:
        more = f" and {len(small) - _MAX_LISTED} more" if len(small) > _MAX_LISTED else ""
        raise ValueError(
            f"src_dir: classes with fewer files than the {len(fractions)} splits in split_spec: "
            f"{', '.join(small[:_MAX_LISTED])}{more}. Every split needs at least one file of every class."
        )


def _check_places(src: str, classes: Mapping[str, Any], dst: str, fractions: Mapping[str, float]) -> None:
    check_target(src, dst)
    sources = [real_source(src), *(real_source(os.path.join(src, name)) for name in classes)]
    for split in fractions:
        target = os.path.realpath(os.path.join(dst, split))
        for source in sources:
            if is_inside(source, target) or is_inside(target, source):
                raise ValueError(
                    f"dst_dir={dst!r}: the split {split!r} would overwrite the source {source!r}. "
                    "Pass another dst_dir or another name for the split."
                )


def make_plan(classes: Mapping[str, Sequence[str]], fractions: Mapping[str, float]) -> Plan:
    """Assigns the files of every class to the splits."""
    # Sorted, so that the order of the dict does not matter.
    splits = sorted(fractions)
    plan: Plan = {split: {} for split in splits}
    for name, files in classes.items():
        ordered = sorted(files, key=lambda inner: (_hash(f"{name}/{inner}"), inner))
        start = 0
        for split, count in _counts(len(files), fractions).items():
            plan[split][name] = sorted(ordered[start : start + count])
            start += count
    return plan


def _hash(text: str) -> bytes:
    return hashlib.blake2b(os.fsencode(text), digest_size=16).digest()


def _counts(size: int, fractions: Mapping[str, float]) -> dict[str, int]:
    """Returns how many of `size` files every split gets: by largest remainder, at least one each."""
    splits = sorted(fractions)
    shares = {split: size * fractions[split] for split in splits}
    whole = math.fsum(fractions.values())
    total = size if whole > 1 - _TOLERANCE else min(size, math.floor(size * whole + 0.5))
    counts = {split: min(math.floor(shares[split]), size) for split in splits}
    by_remainder = sorted(splits, key=lambda split: (counts[split] - shares[split], split))
    for split in by_remainder[: max(0, total - sum(counts.values()))]:
        counts[split] += 1
    for split in splits:
        if not counts[split]:
            counts[split] = 1
            if sum(counts.values()) > total and max(counts.values()) > 1:
                counts[max(splits, key=lambda other: (counts[other], other))] -= 1
    return counts


def _digest(plan: Plan, labels: bytes) -> str:
    """Returns a digest of the files of all splits and of the labels."""
    hasher = hashlib.blake2b(labels, digest_size=16)
    for split, classes in plan.items():
        for name, files in classes.items():
            hasher.update(b"\0\0" + os.fsencode("\0".join([split, name, *files])))
    return hasher.hexdigest()


def _check_free(dst: str, plan: Plan, marker: Mapping[str, Any]) -> None:
    occupied = [split for split in plan if _has_files(os.path.join(dst, split))]
    if not occupied:
        return
    found = _read_marker(dst)
    state = f"dst_dir={dst!r} has files in {', '.join(map(repr, occupied))} already"
    if not found or found.get("finished"):
        raise ValueError(f"{state}: overwrite=True replaces them.")
    changed = [key for key, value in marker.items() if found.get(key) != value]
    if changed:
        causes = {"src_dir": "another src_dir", "split_spec": "another split_spec", "files": "other files in src_dir"}
        raise ValueError(
            f"{state}, from an interrupted split with {', '.join(causes[key] for key in changed)}. "
            "Repeat that call to resume it; overwrite=True starts over."
        )
    tf.logging.info("Resuming the interrupted split in %r.", dst)


def _has_files(directory: str) -> bool:
    return os.path.lexists(directory) and (
        not os.path.isdir(directory) or any(files for _, _, files in os.walk(directory, followlinks=True))
    )


def _read_marker(root: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read(os.path.join(root, _MARKER)))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_marker(root: str, marker: Mapping[str, Any], finished: bool) -> None:
    file.write(os.path.join(root, _MARKER), json.dumps({**marker, "finished": finished}, indent=2) + "\n")


def _replace(src: ImageFolder, dst: str, plan: Plan, labels: bytes, marker: Mapping[str, Any]) -> None:
    """Writes the new splits to a separate directory and swaps them with the old ones when they are complete."""
    new, old = os.path.join(dst, _NEW), os.path.join(dst, _OLD)
    unfinished = _read_marker(new)
    if any(unfinished.get(key) != value for key, value in marker.items()):
        shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new, exist_ok=True)
    _fill(src, new, plan, labels, marker)
    earlier = _read_marker(dst).get("split_spec", {})
    try:
        os.mkdir(old)
        for split in plan:
            if os.path.lexists(os.path.join(dst, split)):
                os.rename(os.path.join(dst, split), os.path.join(old, split))
            os.rename(os.path.join(new, split), os.path.join(dst, split))
        os.rename(old, os.path.join(dst, _TRASH))  # from here on the new splits are valid
    except BaseException:
        _undo_half_swap(dst)
        raise
    os.replace(os.path.join(new, _MARKER), os.path.join(dst, _MARKER))
    shutil.rmtree(os.path.join(dst, _TRASH))
    shutil.rmtree(new)
    for split in earlier:
        if split not in plan and _has_files(os.path.join(dst, split)):
            tf.logging.warning(
                "%r is from an earlier split and may contain images of the new ones: remove it if you do not need it.",
                os.path.join(dst, split),
            )


def _undo_half_swap(dst: str) -> None:
    """Undoes an interrupted swap, so that either all splits are old or all are new."""
    shutil.rmtree(os.path.join(dst, _TRASH), ignore_errors=True)
    old, new = os.path.join(dst, _OLD), os.path.join(dst, _NEW)
    if not os.path.isdir(old):
        return
    for split in os.listdir(old):
        if os.path.lexists(os.path.join(dst, split)):
            # A complete new split: move it back to the others, where the next call finds it.
            os.rename(os.path.join(dst, split), os.path.join(new, split))
        os.rename(os.path.join(old, split), os.path.join(dst, split))
    os.rmdir(old)


def _fill(src: ImageFolder, root: str, plan: Plan, labels: bytes, marker: Mapping[str, Any]) -> None:
    """Copies the files that are missing in `root`. A file gets its name when it is complete."""
    _write_marker(root, marker, finished=False)
    missing: list[tuple[str, str]] = []
    sizes = {item.url: item.length for item in src.objects.values()}
    for split, classes in plan.items():
        for name, files in classes.items():
            target = os.path.join(root, split, name)
            missing.extend(_missing_files(os.path.join(src.base_dir, name), target, files, sizes))
        file.write(os.path.join(root, split, _LABELS), labels, binary=True)
    total = sum(len(files) for classes in plan.values() for files in classes.values())
    with progress_bar("split", total) as advance:
        advance(total - len(missing))
        _copy_all(missing, advance)
    _write_marker(root, marker, finished=True)


def _missing_files(
    source: str, target: str, files: Sequence[str], sizes: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yields source and target of the files to copy; creates their directories."""
    for directory in sorted({os.path.dirname(inner) for inner in files}):
        os.makedirs(os.path.join(target, directory), exist_ok=True)
        with os.scandir(os.path.join(target, directory)) as entries:
            for left in [entry.path for entry in entries if entry.name.startswith(_TEMPORARY)]:
                os.unlink(left)
    for inner in files:
        origin, copy = os.path.join(source, inner), os.path.join(target, inner)
        # A crash of the machine can leave a file without its content.
        size = sizes[origin] if origin in sizes else os.path.getsize(origin)
        if not os.path.isfile(copy) or os.path.getsize(copy) != size:
            yield origin, copy


def _copy_all(pairs: Sequence[tuple[str, str]], advance: Callable[[int], None]) -> None:
    chunks = [pairs[start : start + _CHUNK] for start in range(0, len(pairs), _CHUNK)]
    stored = bool(pairs) and is_stored(pairs[0][0])
    threads = requests_at_once(_THREADS) if stored else _THREADS
    with ThreadPoolExecutor(threads, thread_name_prefix="mox-split") as pool:
        futures = [pool.submit(_copy_chunk, chunk) for chunk in chunks]
        try:
            for future in as_completed(futures):
                advance(future.result())
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _copy_chunk(pairs: Sequence[tuple[str, str]]) -> int:
    for origin, copy in pairs:
        # Not derived from the name, which may already have the maximum length.
        temporary = os.path.join(os.path.dirname(copy), f"{_TEMPORARY}{os.urandom(8).hex()}.tmp")
        try:
            (file.copy if is_stored(origin) else shutil.copy2)(origin, temporary)
            os.replace(temporary, copy)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    return len(pairs)
