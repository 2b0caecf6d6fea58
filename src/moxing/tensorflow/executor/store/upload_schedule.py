"""When a file may be uploaded again: not too often while it grows, later and later while it fails."""

from __future__ import annotations

import time

#: Uploads of a growing file, which send all of it, take at most this fraction of the time.
_FRACTION_OF_TIME = 0.1
#: Seconds between two uploads of a file: minimum, and maximum after failures.
_MIN_PAUSE, _MAX_PAUSE = 4.0, 60.0


class UploadSchedule:
    """Remembers for each file when its next upload is due.

    Example:
      >>> schedule = UploadSchedule()
      >>> schedule.is_due('events')
      True
      >>> schedule.failed('events')
      >>> schedule.is_due('events')
      False
    """

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def is_due(self, name: str) -> bool:
        """True when the file may be uploaded now."""
        return self._due.get(name, 0.0) <= time.monotonic()

    def seconds_until(self, name: str) -> float | None:
        """Seconds until the next upload of a file is due; None before its first upload."""
        return self._due[name] - time.monotonic() if name in self._due else None

    def succeeded(self, name: str, seconds: float | None = None) -> None:
        """Notes an upload.

        Args:
          name: the file.
          seconds: how long the upload took; None: the next one is due at once.
        """
        self._failures.pop(name, None)
        if seconds is not None:
            self._due[name] = time.monotonic() + max(_MIN_PAUSE, seconds / _FRACTION_OF_TIME)

    def failed(self, name: str) -> None:
        """Notes a failed upload; the pause doubles with every failure."""
        self._failures[name] = self._failures.get(name, 0) + 1
        self._due[name] = time.monotonic() + min(_MIN_PAUSE * 2 ** self._failures[name], _MAX_PAUSE)
