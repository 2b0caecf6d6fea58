"""The label files of images with several labels: `labels/0.jpg.txt` has the names for `images/0.jpg`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.raw.class_order import quote_names
from moxing.tensorflow.datasets.raw.folders import list_files
from moxing.tensorflow.datasets.raw.labels import decode_text, split_lines
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import is_stored

_READ_THREADS = 16


def match_label_files(images: Sequence[str], labels_dir: str, extension: str) -> list[str | None]:
    """Returns the label file of every image, relative to `labels_dir`; None for an image without one.

    Args:
      images: the image files, relative to their directory.
      labels_dir: the directory of the label files, a path or a url.
      extension: what the name of a label file has after the name of its image, such as '.txt'.

    Raises:
      ValueError: no image has a label file.
    """
    # Files of every extension: the caller says which one label files have.
    found = set(list_files(labels_dir, other_extensions=frozenset()).files)
    matched = [name + extension if name + extension in found else None for name in images]
    unused = sorted(name for name in found.difference(matched) if name.endswith(extension))
    if all(name is None for name in matched):
        raise ValueError(
            f"No image has a label file in {labels_dir!r}: expected for instance {images[0] + extension!r}, "
            f"found {quote_names(sorted(found)) or 'nothing'}."
        )
    if unused:
        tf.logging.warning(
            "%d label files in %r belong to no image and are not used: %s.",
            len(unused),
            labels_dir,
            quote_names(unused, 3),
        )
    return matched


def read_sample_labels(path: Url, label_sep: str = "\n") -> list[str]:
    """Returns the label names in the label file of one image, each once, in the order of the file.

    Args:
      path: the label file.
      label_sep: the separator of the names. A line end always separates; `' '` stands for any white space.

    Raises:
      ValueError: `label_sep` is empty or not a str.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile() as stream:
      ...     _ = stream.write(b'red rose, daisy')
      ...     stream.flush()
      ...     read_sample_labels(stream.name, ',')
      ['red rose', 'daisy']
    """
    if not isinstance(label_sep, str) or not label_sep:
        raise ValueError(f"label_sep={label_sep!r}: expected a separator such as '\\n' or ','.")
    parts: list[str] = []
    for line in _read_lines(path):
        if label_sep == " ":
            parts.extend(line.split())
        else:
            parts.extend(part.strip() for part in line.split(label_sep))
    return [name for name in dict.fromkeys(parts) if name]


def collect_label_names(labels_dir: str, label_paths: Iterable[str | None]) -> tuple[list[str], str]:
    """Returns all names in the label files, sorted, and the separator that was guessed.

    Args:
      labels_dir: the directory of the label files, for the error message.
      label_paths: the label files; None is skipped.

    Raises:
      ValueError: all label files are empty.
    """
    contents = read_in_threads(_read_lines, [path for path in label_paths if path is not None])
    distinct = {line for lines in contents for line in lines}
    if not distinct:
        raise ValueError(
            f"The label files in {labels_dir!r} are all empty: expected label names in them, or a labels.txt."
        )
    if any(len(lines) > 1 for lines in contents) or not any(len(line.split()) > 1 for line in distinct):
        return sorted(distinct), "\n"
    return sorted({name for line in distinct for name in line.split()}), " "


def read_in_threads(read: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """Calls `read` for each of `paths`, in many threads; in more if the paths are on an object store.

    Example:
      >>> read_in_threads(len, ['a', 'bc'])
      [1, 2]
    """
    threads = requests_at_once(_READ_THREADS) if paths and is_stored(paths[0]) else _READ_THREADS
    with ThreadPoolExecutor(threads, thread_name_prefix="mox-labels") as pool:
        return list(pool.map(read, paths))


def _read_lines(path: Url) -> list[str]:
    lines = split_lines(decode_text(file.read(path, binary=True)))
    return [stripped for line in lines if (stripped := line.strip())]
