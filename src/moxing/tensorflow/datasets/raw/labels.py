"""The file `labels.txt`, which numbers the classes."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping, Sequence

import numpy as np

from moxing.framework import file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.stored.objects import describe_object, is_stored

_INDEXED = re.compile(r"([0-9]{1,18})\s*:(.*)", re.DOTALL)
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_MAX_LISTED = 10


def read_labels(path: Url) -> list[str]:
    """Returns the class names in `labels.txt`, in the order of their indices.

    A line is `0: daisy` (the manual) or `0:daisy` (TF-Slim); everything after the first colon is the name. If no line
    begins with a number and a colon, the file is a plain list: one name per line, numbered from 0. Blank lines, spaces
    around a name, Windows line ends and a byte order mark are ignored.

    Args:
      path: the file.

    Raises:
      ValueError: the file is empty, a line has no index or no name, an index or a name is repeated, or the indices are
        not 0, 1, ... without gaps. The message names the file and the line.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     file.write(folder + '/labels.txt', '1: red rose\\n0: daisy\\n')
      ...     read_labels(folder + '/labels.txt')
      ['daisy', 'red rose']
    """
    lines = _read_lines(path)
    shown = os.fsdecode(path)
    first_line: dict[str, int] = {}
    for _, number, name in lines:
        if name in first_line:
            raise ValueError(f"{shown!r} line {number}: the name {name!r} is in line {first_line[name]} already.")
        first_line[name] = number
    count = len(lines)
    by_index = {index: name for index, _, name in lines}
    for index, number, _ in lines:
        if index >= count:
            missing = [str(wanted) for wanted in range(count) if wanted not in by_index]
            raise ValueError(
                f"{shown!r} line {number}: index {index}, but {count} labels have the indices 0 to {count - 1}; "
                f"missing: {', '.join(missing[:_MAX_LISTED])}{', ...' if len(missing) > _MAX_LISTED else ''}."
            )
    return [by_index[index] for index in range(count)]


def find_labels_file(base_dir: str, labels_filename: str | None) -> str | None:
    """Returns the path of the labels file, or None if there is none.

    Raises:
      ValueError: a file other than the default `labels.txt` was named and is missing.

    Example:
      >>> find_labels_file('/no/such/folder', 'labels.txt') is None
      True
    """
    if labels_filename is None:
        return None
    if not isinstance(labels_filename, str) or not labels_filename:
        raise ValueError(f"labels_filename={labels_filename!r}: expected the name of a file in base_dir, or None.")
    path = os.path.join(base_dir, labels_filename)
    if _is_file(path):
        return path
    if labels_filename != "labels.txt":
        raise ValueError(
            f"labels_filename={labels_filename!r}: there is no file {path!r}. Pass None to use no labels file."
        )
    return None


def _is_file(path: str) -> bool:
    if is_stored(path):
        return describe_object(path) is not None
    return os.path.lexists(path) and not os.path.isdir(path)


def read_label_map(path: Url) -> dict[int, str]:
    """Returns the names in `labels.txt` by index, for data that has numeric labels already.

    Like `read_labels`, but gaps and repeated names are allowed: the ImageNet labels of TF-Slim have two classes called
    `crane`.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     file.write(folder + '/labels.txt', '134:crane\\n517:crane\\n')
      ...     read_label_map(folder + '/labels.txt')
      {134: 'crane', 517: 'crane'}
    """
    return {index: name for index, _, name in sorted(_read_lines(path))}


def write_labels(path: Url, names: Sequence[str] | Mapping[int, str], separator: str = ": ") -> None:
    """Writes `labels.txt` atomically.

    Args:
      path: the file; its directory exists.
      names: the names in the order of their indices, or a dict from index to name.
      separator: what separates index and name: `': '` in the manual, `':'` in TF-Slim, whose reader keeps spaces.

    Raises:
      ValueError: a name cannot be read back: it is empty, has a line break, or begins or ends with a space.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     write_labels(folder + '/labels.txt', ['daisy', 'roses'])
      ...     file.read(folder + '/labels.txt')
      '0: daisy\\n1: roses\\n'
    """
    file.write(path, format_labels(names, separator), binary=True)


def format_labels(names: Sequence[str] | Mapping[int, str], separator: str = ": ") -> bytes:
    """Returns the content of a `labels.txt`. Arguments and errors are those of `write_labels`.

    Example:
      >>> format_labels(['daisy'])
      b'0: daisy\\n'
    """
    items = sorted(names.items()) if isinstance(names, Mapping) else list(enumerate(names))
    for index, name in items:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or index < 0:
            raise ValueError(f"names has the index {index!r}: expected integers from 0.")
        if not isinstance(name, str):
            raise TypeError(f"names[{index}]={name!r}: expected a str.")
        if not fits_labels_file(name):
            raise ValueError(
                f"names[{index}]={name!r} does not fit into a labels file: "
                "expected a name without line breaks and without spaces at its ends."
            )
    text = "".join(f"{index}{separator}{name}\n" for index, name in items)
    return text.encode("utf-8", "surrogateescape")


def fits_labels_file(name: str) -> bool:
    """Returns whether a name can be written to a labels file and read back.

    Example:
      >>> fits_labels_file('red rose'), fits_labels_file('rose ')
      (True, False)
    """
    return bool(name) and name == name.strip() and not _LINE_ENDS.search(name)


def decode_text(content: bytes) -> str:
    """Decodes a label file. Bytes that are not UTF-8 are decoded as `os.fsdecode` does in file names.

    So a label in an old encoding equals the folder with the same bytes in its name.

    Example:
      >>> decode_text(b'\\xef\\xbb\\xbfcaf\\xc3\\xa9')
      'café'
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")  # "Unicode" in the Windows editor
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def split_lines(text: str) -> list[str]:
    """Splits a text at line ends of any system. Unlike `str.splitlines` it ignores Unicode separators.

    Example:
      >>> split_lines('a\\r\\nb\\u2028c')
      ['a', 'b\\u2028c']
    """
    return _LINE_ENDS.split(text)


def _read_lines(path: Url) -> list[tuple[int, int, str]]:
    """Returns index, line number and name of every line; the indices are distinct."""
    shown = os.fsdecode(path)
    stripped = [line.strip() for line in split_lines(decode_text(file.read(path, binary=True)))]
    lines = [(number, line) for number, line in enumerate(stripped, start=1) if line]
    if not lines:
        raise ValueError(f"{shown!r} is empty: expected lines such as '0: daisy'.")
    matches = [_INDEXED.fullmatch(line) for _, line in lines]
    if not any(matches):
        return [(index, number, name) for index, (number, name) in enumerate(lines)]
    result: list[tuple[int, int, str]] = []
    first_line: dict[int, int] = {}
    for (number, line), match in zip(lines, matches, strict=True):
        if match is None:
            raise ValueError(f"{shown!r} line {number}: {line!r} has no index, expected a line such as '0: daisy'.")
        index, name = int(match[1]), match[2].strip()
        if not name:
            raise ValueError(f"{shown!r} line {number}: {line!r} has no name, expected a line such as '0: daisy'.")
        if index in first_line:
            raise ValueError(f"{shown!r} line {number}: the index {index} is in line {first_line[index]} already.")
        first_line[index] = number
        result.append((index, number, name))
    return result
