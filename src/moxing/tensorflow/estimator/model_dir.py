"""A `model_dir` on an object store: the Estimator works in a local directory, the store gets a copy.

`Estimator.model_dir` and `Estimator.config.model_dir` are the local directory, so that TensorFlow's own functions can
read it (`tf.train.latest_checkpoint(estimator.model_dir)`). Log lines and errors show the url. What a call of an
Estimator has written is on the store when the call returns; checkpoints are uploaded while it trains.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import RemotePath, find_remote
from moxing.framework.file.waiting import seconds_flag
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.tensorflow.estimator.resume import drop_damaged
from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX, files_in, valid_checkpoints
from moxing.tensorflow.executor.store.fetching import fetch_checkpoint_path
from moxing.tensorflow.executor.store.mirror import Mirror
from moxing.tensorflow.executor.store.remote_directory import Checkpoints, RemoteDirectory
from moxing.tensorflow.executor.store.shown_names import SHOW_LOCAL_PATHS, ShownNames
from moxing.tensorflow.executor.store.uploads import UploadError

#: The stages of this process by url, and the directories of checkpoints that were fetched from elsewhere.
_stages: dict[str, StoredModelDir] = {}
_fetched: list[OwnedDirectory] = []


class StoredModelDir:
    """The local directory of a `model_dir` on a store.

    Args:
      location: the directory on the store.

    Attributes:
      url: its url.
      directory: the local directory.
    """

    def __init__(self, location: RemotePath) -> None:
        self.url = location.url
        self._location = location
        start = f"moxing-{hashlib.sha256(self.url.encode()).hexdigest()[:12]}-"
        for leftover in OwnedDirectory.released(tempfile.gettempdir(), start):
            tf.logging.warning(
                "An earlier run could not upload all files to %s and kept them in %s. Copy them there now or remove "
                "them: copying them later would overwrite the files of this run.",
                self.url,
                leftover,
            )
        self._owned = OwnedDirectory(tempfile.gettempdir(), start)
        self.directory = os.path.join(self._owned.path, "model")
        os.makedirs(self.directory)
        self.names = ShownNames()
        self.names.add(self.directory, self.url)
        self._logs = ExitStack()
        self._logs.enter_context(self.names.in_logs())
        self._marker: str | None = None
        self._remote: RemoteDirectory | None = None
        self._on_store: Checkpoints = {}
        self._mirror: Mirror | None = None
        self._is_writer = False
        self._depth = 0
        self._is_uploaded = True

    def update(self) -> None:
        """Fetches the newest checkpoint, if there is another one than before.

        A process that trains here has the newest itself.
        """
        if self._is_writer or self._depth:
            return
        marker_url = self._location.child(MARKER).url
        marker = file.read(marker_url) if file.exists(marker_url) else ""
        if marker == self._marker:
            return
        for name in files_in(self.directory):
            if name == MARKER or name.startswith(PREFIX):
                os.remove(os.path.join(self.directory, name))
        self._remote = remote = RemoteDirectory(self._location, self.directory)
        self._on_store = {}
        if remote.fetch_marker():
            self._on_store[""] = remote.checkpoints()
            prefixes = valid_checkpoints(self.directory)
            # A saver counts old checkpoints by their index, and removes them when there are too many.
            remote.fetch(f"{os.path.basename(prefix)}.index" for prefix in prefixes)
            remote.fetch_checkpoint(prefixes[0])
        # Exporters and early stopping compare with earlier evaluations.
        for name in remote.folders:
            if name.startswith("eval"):
                folder = RemoteDirectory(self._location.child(name), os.path.join(self.directory, name))
                folder.fetch(found for found in folder.files if ".tfevents." in found)
        self._marker = marker

    def fetch_checkpoint(self, prefix: str) -> None:
        """Fetches an older checkpoint."""
        if self._remote is not None:
            self._remote.fetch_checkpoint(prefix)

    @contextmanager
    def writing(self, trains: bool) -> Iterator[None]:
        """Inside, what changes in the directory is uploaded; afterwards all of it is on the store.

        Args:
          trains: whether checkpoints are written.
        """
        if self._depth:
            with self._nested():
                yield
            return
        self._open(trains)
        try:
            with self._nested():
                yield
        except BaseException as error:
            self.names.rename(error)
            try:
                self._finish()
            except UploadError as upload_error:  # the caller must see the error of the training
                tf.logging.error("%s", upload_error, extra=SHOW_LOCAL_PATHS)
            raise
        self._finish()

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _open(self, trains: bool) -> None:
        seconds_flag("upload_patience")  # raises now if the flag is wrong
        if trains and not self._is_writer:
            _make_directory(self._location)
            drop_damaged(self.directory, self.fetch_checkpoint)
        if self._mirror is None or not self._is_writer:
            links = os.path.join(self._owned.path, "links")
            self._mirror = Mirror(self.directory, links, self._location, self._on_store)
        self._is_writer = self._is_writer or trains
        self._mirror.start()

    def _finish(self) -> None:
        if self._mirror is not None:
            self._is_uploaded = False
            self._mirror.finish()
            self._is_uploaded = True

    def close(self) -> None:
        """Removes the local directory, unless files of it are not on the store."""
        waiting = self._mirror.waiting() if self._mirror is not None and self._is_writer else {}
        if waiting or not self._is_uploaded:
            tf.logging.warning(
                "%d files are not on %s; they are kept in %s.",
                len(waiting),
                self.url,
                self.directory,
                extra=SHOW_LOCAL_PATHS,
            )
            self._owned.release()
        else:
            self._owned.remove()
        self._logs.close()


def local_model_dir(path: str | None, argument: str = "model_dir") -> str | None:
    """The directory in which an Estimator works: the path itself, or for a url a local directory.

    Args:
      path: a path or url.
      argument: its name, for errors.

    Example:
      >>> local_model_dir('/tmp/model')
      '/tmp/model'
    """
    location = find_remote(path, argument) if path else None
    if location is None or path is None:
        return path
    location = RemotePath(location.backend, location.path.rstrip("/"), location.url.rstrip("/"))
    if location.url not in _stages:
        _stages[location.url] = StoredModelDir(location)
    return _stages[location.url].directory


def is_url(path: object) -> bool:
    """True for the url of a directory on a store.

    Example:
      >>> is_url('s3://bucket/export'), is_url('/tmp/export'), is_url(None)
      (True, False, False)
    """
    return isinstance(path, str) and find_remote(path, "export_dir_base") is not None


def stage_of(directory: str) -> StoredModelDir | None:
    """The stage whose local directory this is; None for a directory of the user."""
    return next((stage for stage in _stages.values() if stage.directory == directory), None)


def local_path(path: str) -> str | None:
    """The local path of a url below a `model_dir` of this process; None for other urls.

    Example:
      >>> local_path('s3://bucket/other/export') is None
      True
    """
    for url, stage in _stages.items():
        if path == url or path.startswith(url + "/"):
            return stage.directory + path.removeprefix(url)
    return None


def local_checkpoint(path: str, argument: str) -> str:
    """The local path of a checkpoint, fetched if it is on a store.

    Args:
      path: the prefix of a checkpoint, a directory of checkpoints, or the url of one.
      argument: its name, for errors.
    """
    path = local_path(path) or path
    for stage in _stages.values():
        if path.startswith(stage.directory + os.sep):
            stage.update()
            stage.fetch_checkpoint(path)
            return path
    location = find_remote(path, argument)
    if location is None:
        return path
    owned = OwnedDirectory(tempfile.gettempdir(), "moxing-checkpoint-")
    _fetched.append(owned)
    directory = os.path.join(owned.path, "checkpoint")
    local, remote = fetch_checkpoint_path(location, directory)
    if local == directory:
        for prefix in valid_checkpoints(directory)[:1]:
            remote.fetch_checkpoint(prefix)
    return local


@contextmanager
def export_directory(base: str) -> Iterator[str]:
    """The local directory for the exports of a url; what is in it afterwards is copied to the url.

    Args:
      base: the url.
    """
    with tempfile.TemporaryDirectory(prefix="moxing-export-") as directory:
        yield directory
        found = [os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names]
        # The graph comes last: readers take an export with a graph as complete.
        for path in sorted(found, key=lambda path: os.path.basename(path).startswith("saved_model.")):
            file.copy(path, f"{base.rstrip('/')}/{os.path.relpath(path, directory)}")


@atexit.register
def close_stages() -> None:
    """Removes the local directories of this process."""
    while _stages:
        _stages.popitem()[1].close()
    while _fetched:
        _fetched.pop().remove()


def _make_directory(location: RemotePath) -> None:
    """Creates `model_dir`, so that missing write permission is an error now and not at the first checkpoint."""
    try:
        location.backend.make_directory(location.path)
    except OSError as error:
        error.strerror = f"model_dir={location.url!r}: {error.strerror}"
        raise
