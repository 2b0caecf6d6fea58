"""Uploads a local directory of checkpoints, event files and exports while the run writes into it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf

from moxing.framework.file.errors import is_transient
from moxing.framework.file.urls import RemotePath
from moxing.framework.file.waiting import seconds_flag
from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX
from moxing.tensorflow.executor.store.checkpoint_uploads import CheckpointUploads
from moxing.tensorflow.executor.store.remote_directory import SAVED_MODEL, Checkpoints
from moxing.tensorflow.executor.store.upload_schedule import UploadSchedule
from moxing.tensorflow.executor.store.uploads import Uploader, UploadError, Version, is_unreachable, version_of

#: Seconds between two scans of the directory.
_SCAN_PERIOD = 0.5
#: Minimum number of attempts to upload the rest at the end, and the seconds between them.
_FINAL_ATTEMPTS, _FINAL_PAUSE = 3, 2.0
#: Minimum seconds between two warnings at the end.
_WARNING_PERIOD = 30.0


class Mirror:
    """Uploads what changes in a directory, in a thread of its own.

    It looks at the files only: whatever writes into the directory does not need to know about it.

    Args:
      directory: the local directory.
      links: another directory on the same disk, for hard links that keep files while they are uploaded.
      location: the directory on the store.
      on_store: checkpoints that are on the store already.
    """

    def __init__(self, directory: str, links: str, location: RemotePath, on_store: Checkpoints) -> None:
        self._directory = directory
        self._ending = threading.Event()
        self._uploader = Uploader(location)
        self._checkpoints = CheckpointUploads(directory, links, self._uploader, on_store, self._ending.is_set)
        self._sent = self._checkpoints.sent
        self.schedule = UploadSchedule()
        self._last_error: Exception | None = None
        self._next_warning = 0.0
        self._is_failing = False
        self._has_succeeded = False  # in the current pass
        self._thread: threading.Thread | None = None
        self._is_started = False

    def start(self) -> None:
        """Starts the thread, also again after `finish`.

        Files that are in the directory at the first start came from the store and are not uploaded.
        """
        if not self._is_started:
            self._sent.update(self._versions())
        self._is_started = True
        self._ending.clear()
        self._thread = threading.Thread(target=self._upload_until_end, name="mox-mirror", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Stops the thread and uploads the rest. Retries for `--upload_patience` seconds while the store is down.

        Raises:
          UploadError: something could not be uploaded.
        """
        if not self._is_started:
            return
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        started, attempts = time.monotonic(), 0
        while attempts < _FINAL_ATTEMPTS or self._should_retry_until(started + seconds_flag("upload_patience")):
            if attempts:
                time.sleep(_FINAL_PAUSE)
            self._pass()
            if not (waiting := self.waiting()):
                return
            attempts += 1
        names = ", ".join(list(waiting)[:8]) + (", ..." if len(waiting) > 8 else "")
        files = "1 file" if len(waiting) == 1 else f"{len(waiting)} files"
        url = self._uploader.url
        raise UploadError(
            f"{files} of this run could not be uploaded to {url}: {names} ({self._last_error}). They are kept in "
            f"{self._directory}; upload them with mox.file.copy_parallel({self._directory!r}, {url!r})."
        )

    def cancel(self) -> None:
        """Starts no more uploads; those under way are completed."""
        self._uploader.cancel()

    def waiting(self) -> dict[str, int]:
        """Sizes of the files that are not on the store in their present version, by name, newest file first."""
        if not self._is_started:
            return {}
        waiting = [
            (relative, version)
            for relative, version in self._versions()
            if self._sent.get(relative) != version and self._belongs_on_store(relative)
        ]
        waiting.sort(key=lambda file: file[1][2], reverse=True)
        return {relative: size for relative, (_, size, _) in waiting}

    def _should_retry_until(self, end: float) -> bool:
        """True while the last error may be temporary and `end` is not reached."""
        is_temporary = self._is_failing and self._last_error is not None and is_transient(self._last_error)
        return is_temporary and not self._uploader.is_cancelled and time.monotonic() < end

    def _belongs_on_store(self, relative: str) -> bool:
        """False for the files of a checkpoint that is not valid."""
        folder, name = os.path.split(relative)
        if not name.startswith(PREFIX):
            return True
        return any(name.startswith(one + ".") for one in self._checkpoints.valid_names(folder))

    def _versions(self) -> Iterator[tuple[str, Version]]:
        """All complete files of the directory: names that start with a dot are still being written."""
        for folder, folders, names in os.walk(self._directory):
            # TensorFlow writes parts of a checkpoint into directories named like it.
            folders[:] = [name for name in folders if not name.startswith((".", PREFIX))]
            for name in names:
                path = os.path.join(folder, name)
                if not name.startswith(".") and (version := version_of(path)) is not None:
                    yield os.path.relpath(path, self._directory), version

    def _upload_until_end(self) -> None:
        """The thread."""
        while not self._ending.wait(_SCAN_PERIOD):
            try:
                self._pass()
            except Exception as error:  # of the local disk; without the thread nothing would be uploaded before the end
                tf.logging.warning("The upload to %s failed (%s). Retrying.", self._uploader.url, error)

    def _pass(self) -> None:
        """Uploads all files that are due; logs failures, whose files are retried in a later pass."""
        failures: dict[str, Exception] = {}
        self._has_succeeded = False
        changed = [relative for relative, version in self._versions() if self._sent.get(relative) != version]
        # Checkpoints first. A hook may have changed the JSON of one that is on the store.
        self._send_all([name for name in changed if self._checkpoints.has_new_position(name)], failures)
        markers = [name for name in changed if os.path.basename(name) == MARKER]
        for marker in markers:
            self._send_checkpoints(marker, failures)
        plain = [name for name in changed if name not in markers and not os.path.basename(name).startswith(PREFIX)]
        graphs = [name for name in plain if os.path.basename(name) == SAVED_MODEL]
        self._send_all([name for name in plain if name not in graphs], failures)
        # The graph of an export comes last: readers take an export with a graph as complete.
        left = [name for name in plain if name not in graphs and not self._is_sent(name)]
        complete = [name for name in graphs if not any(_is_in_export(other, name) for other in left)]
        self._send_all(complete, failures)
        if failures and not self._uploader.is_cancelled:
            self._warn(failures)
        elif self._is_failing and self._has_succeeded:
            self._is_failing, self._next_warning = False, 0.0
            tf.logging.info("Uploads to %s work again.", self._uploader.url)

    def _send_checkpoints(self, marker: str, failures: dict[str, Exception]) -> None:
        while self._is_due(marker) and not self._is_sent(marker):
            if _is_store_down(failures) or not self._attempt(marker, self._checkpoints.upload_next, failures):
                break
            if not self._ending.is_set():
                break  # other files are waiting too, and the next pass is soon

    def _send_all(self, names: list[str], failures: dict[str, Exception]) -> None:
        due = [name for name in names if self._is_due(name)]
        if due and not _is_store_down(failures):
            self._uploader.for_each(due, lambda name: self._attempt(name, self._send, failures))

    def _send(self, relative: str) -> bool:
        path = os.path.join(self._directory, relative)
        version = version_of(path)
        if version is not None:
            self._uploader.send(path, relative)
            self._sent[relative] = version
        return version is not None

    def _is_sent(self, relative: str) -> bool:
        return self._sent.get(relative) == version_of(os.path.join(self._directory, relative))

    def _is_due(self, relative: str) -> bool:
        return self._ending.is_set() or self.schedule.is_due(relative)

    def _attempt(self, relative: str, action: Callable[[str], bool], failures: dict[str, Exception]) -> bool:
        """Calls `action` with a file and returns its result; an error goes into `failures`."""
        started = time.monotonic()
        try:
            done = action(relative)
        except Exception as error:  # the training continues, whatever it is
            failures[relative] = error
            self.schedule.failed(relative)
            return False
        self._has_succeeded = self._has_succeeded or done
        is_marker = os.path.basename(relative) == MARKER
        self.schedule.succeeded(relative, None if is_marker else time.monotonic() - started)
        return done

    def _warn(self, failures: dict[str, Exception]) -> None:
        self._last_error, self._is_failing = next(iter(failures.values())), True
        if self._ending.is_set():  # attempts come every few seconds now
            if time.monotonic() < self._next_warning:
                return
            self._next_warning = time.monotonic() + _WARNING_PERIOD
        names = ", ".join(list(failures)[:3]) + (", ..." if len(failures) > 3 else "")
        tf.logging.warning("Could not upload to %s: %s (%s). Retrying.", self._uploader.url, names, self._last_error)


def _is_store_down(failures: dict[str, Exception]) -> bool:
    return any(map(is_unreachable, failures.values()))


def _is_in_export(relative: str, graph: str) -> bool:
    """True when a file belongs to the export with the graph file `graph`."""
    return relative.startswith(os.path.dirname(graph) + "/")
