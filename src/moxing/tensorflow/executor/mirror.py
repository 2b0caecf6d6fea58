"""A local directory of checkpoints, event files and exports, brought to a store while it is being written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf

from moxing.framework.file.backends import Place
from moxing.tensorflow.datasets.stored.patience import may_pass, seconds_of
from moxing.tensorflow.executor.checkpoint import MARKER, PREFIX
from moxing.tensorflow.executor.checkpoint_uploads import CheckpointUploads
from moxing.tensorflow.executor.fetching import SAVED_MODEL, Checkpoints
from moxing.tensorflow.executor.uploads import Uploader, UploadError, Version, is_away, version_of

#: Seconds between two looks at the directory.
_PERIOD = 0.5
#: A file that grows, of which each upload sends all, takes no more than this part of the time.
_SHARE_OF_TIME = 0.1
#: Seconds between two uploads of a file: at least, and at most after failures.
_LEAST_PAUSE, _MOST_PAUSE = 4.0, 60.0
#: How often what is left is tried at the end at least, and the seconds between.
_LAST_TRIES, _LAST_PAUSE = 3, 2.0
#: Seconds between two warnings at the end.
_SECONDS_A_LINE = 30.0


class Mirror:
    """Uploads what changes in a directory, from a thread of its own; on the store lie the same files.

    It goes by the files alone, so whatever writes into the directory need not know of it.

    Args:
      directory: the local directory.
      links: another one on the same disk, for files that must stay while they are uploaded.
      place: the directory on the store.
      known: checkpoints that are on the store.
    """

    def __init__(self, directory: str, links: str, place: Place, known: Checkpoints) -> None:
        self._directory = directory
        self._ending = threading.Event()
        self._uploader = Uploader(place)
        self._checkpoints = CheckpointUploads(directory, links, self._uploader, known, self._ending.is_set)
        self._sent = self._checkpoints.sent
        #: For each file that was uploaded: when it may be again, and how often it has failed since it last succeeded.
        self._not_before: dict[str, float] = {}
        self._failed: dict[str, int] = {}
        self._reason: Exception | None = None
        self._next_line = 0.0
        #: Whether uploads fail, and whether one has succeeded in the present pass.
        self._is_failing = self._has_succeeded = False
        self._thread: threading.Thread | None = None
        self._is_started = False

    def start(self) -> None:
        """From now on, what changes is uploaded; what is there has come from the store."""
        self._sent.update(self._versions())
        self._is_started = True
        self._thread = threading.Thread(target=self._work, name="mox-mirror", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Uploads what is left. While the store is away, it is tried for `--upload_patience` seconds.

        Raises:
          UploadError: something could not be uploaded.
        """
        if not self._is_started:
            return
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        started, tries = time.monotonic(), 0
        while tries < _LAST_TRIES or self._may_pass_before(started + seconds_of("upload_patience")):
            if tries:
                time.sleep(_LAST_PAUSE)
            self._pass()
            if not (waiting := self.waiting()):
                return
            tries += 1
        names = ", ".join(list(waiting)[:8]) + (", ..." if len(waiting) > 8 else "")
        files = "1 file" if len(waiting) == 1 else f"{len(waiting)} files"
        url = self._uploader.url
        raise UploadError(
            f"{files} of this run could not be uploaded to {url}: {names} ({self._reason}). They are in "
            f"{self._directory}, which is kept: mox.file.copy_parallel({self._directory!r}, {url!r}) brings them there."
        )

    def _may_pass_before(self, end: float) -> bool:
        """Whether what failed last may succeed by then."""
        is_passing = self._is_failing and self._reason is not None and may_pass(self._reason)
        return is_passing and not self._uploader.has_given_up and time.monotonic() < end

    def give_up(self) -> None:
        """Nothing more is sent; what is under way comes to its end."""
        self._uploader.give_up()

    def waiting(self) -> dict[str, int]:
        """The sizes of the files that are not on the store as they are here, by name, the newest file first."""
        if not self._is_started:
            return {}
        waiting = [
            (relative, version)
            for relative, version in self._versions()
            if self._sent.get(relative) != version and self._counts(relative)
        ]
        waiting.sort(key=lambda file: file[1][2], reverse=True)
        return {relative: size for relative, (_, size, _) in waiting}

    def _counts(self, relative: str) -> bool:
        """Whether a file is to be on the store: one of a checkpoint only if the marker names that."""
        folder, name = os.path.split(relative)
        if not name.startswith(PREFIX):
            return True
        return any(name.startswith(one + ".") for one in self._checkpoints.names(folder))

    def _versions(self) -> Iterator[tuple[str, Version]]:
        """All files; those that are still being written under another name begin with a dot."""
        for folder, folders, names in os.walk(self._directory):
            # What TensorFlow is putting together stands in directories that are called as the checkpoint.
            folders[:] = [name for name in folders if not name.startswith((".", PREFIX))]
            for name in names:
                path = os.path.join(folder, name)
                if not name.startswith(".") and (version := version_of(path)) is not None:
                    yield os.path.relpath(path, self._directory), version

    def _work(self) -> None:
        while not self._ending.wait(_PERIOD):
            try:
                self._pass()
            except Exception as error:  # of the local disk: a thread that ended would leave everything to the end
                tf.logging.warning("The upload to %s could not go on (%s); it tries again.", self._uploader.url, error)

    def _pass(self) -> None:
        """Uploads what is due; failures are told, and what failed is tried again later."""
        failures: dict[str, Exception] = {}
        self._has_succeeded = False
        changed = [relative for relative, version in self._versions() if self._sent.get(relative) != version]
        # What was trained comes first; to the JSON of a checkpoint that is there, a hook may have added something.
        self._send_all([name for name in changed if self._checkpoints.has_new_position(name)], failures)
        markers = [name for name in changed if os.path.basename(name) == MARKER]
        for marker in markers:
            self._commit_all(marker, failures)
        plain = [name for name in changed if name not in markers and not os.path.basename(name).startswith(PREFIX)]
        graphs = [name for name in plain if os.path.basename(name) == SAVED_MODEL]
        self._send_all([name for name in plain if name not in graphs], failures)
        # Who looks for an export looks for its graph: it comes when the rest is there.
        left = [name for name in plain if name not in graphs and not self._is_sent(name)]
        whole = [name for name in graphs if not any(_is_beside(other, name) for other in left)]
        self._send_all(whole, failures)
        if failures and not self._uploader.has_given_up:
            self._tell(failures)
        elif self._is_failing and self._has_succeeded:
            self._is_failing, self._next_line = False, 0.0
            tf.logging.info("Uploads to %s work again.", self._uploader.url)

    def _commit_all(self, marker: str, failures: dict[str, Exception]) -> None:
        while self._is_due(marker) and not self._is_sent(marker):
            if _are_away(failures) or not self._attempt(marker, self._checkpoints.commit_next, failures):
                break
            if not self._ending.is_set():
                break  # other files are waiting, too; the next look is soon

    def _send_all(self, names: list[str], failures: dict[str, Exception]) -> None:
        due = [name for name in names if self._is_due(name)]
        if due and not _are_away(failures):
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
        return self._ending.is_set() or self._not_before.get(relative, 0.0) <= time.monotonic()

    def _attempt(self, relative: str, act: Callable[[str], bool], failures: dict[str, Exception]) -> bool:
        """Does something for a file; true when it was done."""
        started = time.monotonic()
        try:
            done = act(relative)
        except Exception as error:  # whatever it is, the training goes on
            failures[relative] = error
            self._failed[relative] = self._failed.get(relative, 0) + 1
            pause = min(_LEAST_PAUSE * 2 ** self._failed[relative], _MOST_PAUSE)
            self._not_before[relative] = time.monotonic() + pause
            return False
        self._failed.pop(relative, None)
        self._has_succeeded = self._has_succeeded or done
        ended = time.monotonic()
        if os.path.basename(relative) != MARKER:
            self._not_before[relative] = ended + max(_LEAST_PAUSE, (ended - started) / _SHARE_OF_TIME)
        return done

    def _tell(self, failures: dict[str, Exception]) -> None:
        self._reason, self._is_failing = next(iter(failures.values())), True
        if self._ending.is_set():
            # It is tried every few seconds now.
            if time.monotonic() < self._next_line:
                return
            self._next_line = time.monotonic() + _SECONDS_A_LINE
        names = ", ".join(list(failures)[:3]) + (", ..." if len(failures) > 3 else "")
        tf.logging.warning("Not uploaded to %s: %s (%s). It is tried again.", self._uploader.url, names, self._reason)


def _are_away(failures: dict[str, Exception]) -> bool:
    return any(map(is_away, failures.values()))


def _is_beside(relative: str, graph: str) -> bool:
    """Whether a file belongs to the export that `graph` is the graph of."""
    return relative.startswith(os.path.dirname(graph) + "/")
