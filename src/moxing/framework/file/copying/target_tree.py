"""The local directory that a copy writes into. Every path is checked before the first file is written."""

from __future__ import annotations

import errno
import os

from moxing.framework.file.errors import MoxFileNameDuplicateException
from moxing.framework.file.urls import is_inside


class TargetTree:
    """Directories and files that a copy will create below `dst`. Nothing may leave it, by name or through a link.

    Args:
      dst: The directory; it need not exist.
      src: The local directory that is copied. Nothing may be written into it.

    Example:
      >>> tree = TargetTree('/data/new')
      >>> tree.add_file('train/a.txt')
      '/data/new/train/a.txt'
      >>> list(tree.directories)
      ['/data/new', '/data/new/train']
    """

    def __init__(self, dst: str, src: str | None = None) -> None:
        self.dst = dst.rstrip("/") or "/"
        self.src = src
        self.directories: dict[str, str] = {}  # With their resolved paths.
        self.files: set[str] = set()
        self._real_dst = os.path.realpath(self.dst)
        self._real_src = None if src is None else os.path.realpath(src)
        self._add_directory(self.dst, self._real_dst)

    def add_file(self, relative: str) -> str:
        """Adds a file and returns its path."""
        target = self._join(relative)
        self._add_parents(target)
        if os.path.isdir(target) or target in self.directories:
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a directory has the name of a file", target)
        if os.path.islink(target):
            self._check_target(os.path.realpath(target), target)
        self.files.add(target)
        return target

    def add_directory(self, relative: str) -> None:
        """Adds a directory."""
        target = self._join(relative)
        self._add_parents(target)
        self._add_child_directory(target)

    def make_directories(self) -> None:
        """Creates the directories that do not exist."""
        for directory in self.directories:
            os.makedirs(directory, exist_ok=True)

    def _join(self, relative: str) -> str:
        if os.path.isabs(relative) or os.pardir in relative.split(os.sep):
            raise ValueError(f"dst_url={self.dst!r}: the path {relative!r} leads out of it; nothing was copied.")
        return os.path.join(self.dst, relative)

    def _add_parents(self, target: str) -> None:
        missing = []
        while (target := os.path.dirname(target)) not in self.directories:
            missing.append(target)
        for parent in reversed(missing):
            self._add_child_directory(parent)

    def _add_child_directory(self, target: str) -> None:
        if target not in self.directories:
            parent, name = os.path.split(target)
            # Resolve links only: the parent is resolved already, and resolving every path is slow in deep trees.
            is_link = os.path.islink(target)
            self._add_directory(
                target, os.path.realpath(target) if is_link else os.path.join(self.directories[parent], name)
            )

    def _add_directory(self, target: str, real: str) -> None:
        self._check_target(real, target)
        if target in self.files or (os.path.lexists(target) and not os.path.isdir(target)):
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a file has the name of a directory", target)
        self.directories[target] = real

    def _check_target(self, real: str, target: str) -> None:
        if not is_inside(real, self._real_dst):
            raise ValueError(f"dst_url={self.dst!r}: {target!r} is a link that leads out of it, to {real!r}.")
        if self._real_src is not None and is_inside(real, self._real_src):
            # src_url lies in dst_url: the copy would replace files before they are read.
            raise ValueError(f"dst_url={self.dst!r}: {target!r} would be written into src_url={self.src!r}.")
