"""Files and directories as all backends describe them."""

from __future__ import annotations

import stat as stat_module
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class FileStatistics:
    """The result of `stat`: `length`, `mtime_nsec`, `is_directory`, also under the names of `os.stat`.

    Example:
      >>> FileStatistics(length=3, mtime_nsec=2_000_000_000, is_directory=False).st_mtime
      2.0
    """

    length: int
    mtime_nsec: int
    is_directory: bool
    st_mode: int = stat_module.S_IFREG | 0o644

    @property
    def st_size(self) -> int:
        """The length, under its name in `os.stat`."""
        return self.length

    @property
    def st_mtime_ns(self) -> int:
        """The modification time in nanoseconds, under its name in `os.stat`."""
        return self.mtime_nsec

    @property
    def st_mtime(self) -> float:
        """The modification time in seconds since 1970."""
        return self.mtime_nsec / 1e9


class FileEntry(NamedTuple):
    """An entry of a directory, local or remote. `relative` is its path in the directory, `version` its ETag, if any.

    Example:
      >>> FileEntry('train/a.jpg', False, 3).statistics().length
      3
    """

    relative: str
    is_directory: bool
    length: int = 0
    mtime_nsec: int = 0
    version: str = ""

    def statistics(self) -> FileStatistics:
        """Returns it as `stat` does."""
        return make_statistics(self.length, self.mtime_nsec, self.is_directory)


def make_statistics(length: int, mtime_nsec: int, is_directory: bool) -> FileStatistics:
    """Returns statistics with the mode bits of a file or directory.

    Example:
      >>> stat_module.S_ISDIR(make_statistics(0, 0, True).st_mode)
      True
    """
    mode = stat_module.S_IFDIR | 0o755 if is_directory else stat_module.S_IFREG | 0o644
    return FileStatistics(0 if is_directory else length, mtime_nsec, is_directory, mode)
