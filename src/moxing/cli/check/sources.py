"""Finds the Python files and notebooks of a program and parses them; Python 2 is converted in memory first."""

from __future__ import annotations

import ast
import io
import os
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from moxing.cli.check import python2

#: Directories that hold no source of the program.
_SKIPPED = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", "venv", "env", "build", "dist"})


@dataclass(frozen=True)
class Source:
    """A file and its syntax tree.

    Attributes:
      path: the file.
      name: its path relative to what is checked.
      text: its content.
      tree: its syntax tree; None if it cannot be parsed.
      error: why `moxing run` cannot run it, if so.
    """

    path: str
    name: str
    text: str
    tree: ast.Module | None
    error: SyntaxError | None = None


def root_of(path: str) -> str:
    """Returns the directory of the program: `path` itself, or the directory of the script.

    Example:
      >>> root_of('/no/such/train.py')
      '/no/such'
    """
    full = os.path.abspath(path)
    return full if os.path.isdir(full) else os.path.dirname(full)


def find(path: str) -> list[str]:
    """Returns the Python files and notebooks at `path`, a script or a directory, in the order of their names.

    Raises:
      FileNotFoundError: there is nothing at `path`.
      ValueError: it is another kind of file, or a directory without Python files.

    Example:
      >>> find('/no/such/train.py')
      Traceback (most recent call last):
      FileNotFoundError: [Errno 2] No such file or directory: '/no/such/train.py'
    """
    if os.path.isfile(path):
        if os.path.splitext(path)[1] not in ("", ".py", ".ipynb"):
            raise ValueError(f"PATH={path!r}: expected a Python file, a notebook or a directory")
        return [path]
    if not os.path.isdir(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    files = sorted(_walk(path))
    if not files:
        raise ValueError(f"PATH={path!r}: there is no Python file in this directory")
    return files


def _walk(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(folder, name) for name in names if name.endswith((".py", ".ipynb")))


def read(path: str, name: str) -> Source:
    """Reads and parses a file.

    Args:
      path: the file.
      name: what to call it in the report.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile('w', suffix='.py') as file:
      ...   _ = file.write('import os')
      ...   file.flush()
      ...   read(file.name, 'train.py').tree.body[0].names[0].name
      'os'
    """
    try:
        data = _content(path)
    except ValueError as error:  # a damaged notebook
        return Source(path, name, "", None, SyntaxError(str(error), (path, 1, 1, "")))
    text = _decode(data)
    try:
        _compile(data, path)
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte
        syntax = error if isinstance(error, SyntaxError) else SyntaxError(str(error), (path, 1, 1, ""))
        return Source(path, name, text, python2.parse(text), syntax)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Source(path, name, text, _parse(text, data))


def _content(path: str) -> bytes:
    """Returns the source in a file: that of the code cells of a notebook."""
    from moxing.tf1.user import notebooks

    if notebooks.is_notebook(path):
        return notebooks.as_script(path).encode("utf-8", "replace")
    with open(path, "rb") as file:
        return file.read()


def _compile(data: bytes, path: str) -> None:
    """Compiles a file as `moxing run` does, and does not execute it."""
    from moxing.tf1.user.user_modules import UserSourceLoader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        UserSourceLoader("__moxing_check__", path).source_to_code(data, path)


def _parse(text: str, data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except SyntaxError:
        # The loader of user modules accepts more than Python 3.
        return python2.parse(text)


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        encoding = "utf-8"
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
