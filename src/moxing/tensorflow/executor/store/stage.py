"""The local paths of a run: its own, or for urls a stage, a local directory whose files are copied to the store."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.file.progress import transfer_bar
from moxing.framework.file.urls import RemotePath, find_remote
from moxing.framework.file.waiting import seconds_flag
from moxing.framework.flags import FLAGS
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.framework.util.terminal import has_terminal
from moxing.tensorflow.cluster.server import no_exit_on_peer_loss
from moxing.tensorflow.executor.checkpoints.choose import ChosenCheckpoint, choose_checkpoint, find_checkpoint
from moxing.tensorflow.executor.checkpoints.lock import train_in
from moxing.tensorflow.executor.checkpoints.restart import move_aside
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys, RunResult
from moxing.tensorflow.executor.store.fetching import fetch_checkpoint_path, fetch_log_dir
from moxing.tensorflow.executor.store.mirror import Mirror
from moxing.tensorflow.executor.store.remote_directory import LOGGED_BYTES, RemoteDirectory
from moxing.tensorflow.executor.store.restart import move_aside_on_store
from moxing.tensorflow.executor.store.shown_names import SHOW_LOCAL_PATHS, ShownNames
from moxing.tensorflow.executor.store.uploads import UploadError

_Result = TypeVar("_Result")


@dataclass
class Stage:
    """A run whose paths are all local: there is nothing to fetch or upload.

    Attributes:
      config: the run with local paths only.
      checkpoint: the checkpoint that the run starts from, if any.
      completed: a context; everything that is written inside is uploaded when it ends, also after an error.
    """

    config: RunConfig
    checkpoint: ChosenCheckpoint | None = None
    completed: ClassVar[Callable[..., AbstractContextManager[None]]] = staticmethod(nullcontext)

    def result(self, result: RunResult) -> RunResult:
        """The result with the paths that the user gave."""
        return result


class RemoteStage(Stage):
    """A run with urls among its paths: it works in a local directory.

    Args:
      config: the run.
      root: an empty local directory.
      names: learns which url each local directory stands for.

    Attributes:
      is_uploaded: false while, or when, files of the run are not on the store.
    """

    def __init__(self, config: RunConfig, root: str, names: ShownNames) -> None:
        super().__init__(config)
        self._root, self._names = root, names
        self._log: RemoteDirectory | None = None
        self._mirror: Mirror | None = None
        self._url = config.log_dir
        self.is_uploaded = True
        location = find_remote(config.log_dir, "log_dir") if config.log_dir else None
        if location is not None:
            directory = os.path.join(root, "log")
            os.makedirs(directory)
            names.add(directory, location.url)
            self.config = replace(config, log_dir=directory)
            training = config.mode is ModeKeys.TRAIN
            if training or config.export:
                _make_directory(location)
            if training and FLAGS.get("restart"):
                move_aside_on_store(location)
            seconds_flag("upload_patience")  # raises now if the flag is wrong
            self._log = RemoteDirectory(location, directory)
            self._mirror = Mirror(directory, os.path.join(root, "links"), location, fetch_log_dir(self._log, training))

    def choose_checkpoint(self) -> ChosenCheckpoint | None:
        """The checkpoint that the run starts from, fetched. From here on files of the run are uploaded."""
        if self._log is None:
            _move_aside(self.config)
            return choose_checkpoint(self.config, find=self._find_checkpoint)
        log = self._log
        checkpoint = _retry_if_changed(
            None if self.config.mode is ModeKeys.TRAIN else log,
            lambda: choose_checkpoint(self.config, log.fetch_checkpoint, self._find_checkpoint),
        )
        if self._mirror is not None:
            self._mirror.start()
        return checkpoint

    def _find_checkpoint(self, path: str) -> ChosenCheckpoint:
        location = find_remote(path, "checkpoint_path")
        if location is None:
            return find_checkpoint(path)
        directory = os.path.join(self._root, "checkpoint")
        local, remote = fetch_checkpoint_path(location, directory)
        self._names.add(directory, remote.location.url)
        return _retry_if_changed(remote, lambda: find_checkpoint(local, remote.fetch_checkpoint))

    @contextmanager
    def completed(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._names.rename(error)
            self.finish_after_error()
            raise
        self.finish()

    def finish(self) -> None:
        """Uploads the rest; returns when everything is on the store."""
        if self._mirror is None:
            return
        self.is_uploaded = False
        try:
            left = self._mirror.waiting()
            total = sum(left.values())
            if total >= LOGGED_BYTES and not has_terminal():
                tf.logging.info("Uploading the last %d files, %.1f MB.", len(left), total / 1e6)
            with no_exit_on_peer_loss(), transfer_bar(total, "Uploading"):
                self._mirror.finish()
        except KeyboardInterrupt:
            self._mirror.cancel()
            if not (left := self._mirror.waiting()):
                raise
            tf.logging.warning(
                "%d files were not uploaded to %s; they are kept in %s.",
                len(left),
                self._url,
                self.config.log_dir,
                extra=SHOW_LOCAL_PATHS,
            )
            raise
        self.is_uploaded = True

    def finish_after_error(self) -> None:
        """Like `finish`, but logs an `UploadError`: the caller must see the error that ended the run."""
        try:
            self.finish()
        except UploadError as error:
            tf.logging.error("%s", error, extra=SHOW_LOCAL_PATHS)

    def result(self, result: RunResult) -> RunResult:
        shown = self._names.shown
        return replace(
            result,
            checkpoint_path=shown(result.checkpoint_path) if result.checkpoint_path else None,
            export_path=shown(result.export_path) if result.export_path else None,
        )


def _move_aside(config: RunConfig) -> None:
    """Moves the checkpoints of a local `log_dir` aside with `--restart`."""
    if config.mode is ModeKeys.TRAIN and config.log_dir and FLAGS.get("restart"):
        move_aside(config.log_dir)


def _make_directory(location: RemotePath) -> None:
    """Creates `log_dir`, so that missing write permission is an error now and not at the first checkpoint."""
    try:
        location.backend.make_directory(location.path)
    except OSError as error:
        advice = "no permission to write with these keys: " if error.errno == errno.EACCES else ""
        error.strerror = f"log_dir: {advice}{error.strerror}"
        raise


def _retry_if_changed(remote: RemoteDirectory | None, find: Callable[[], _Result]) -> _Result:
    """Calls `find`, again if it fails and `remote` has changed meanwhile."""
    while True:
        try:
            return find()
        except ValueError:
            if remote is None or not remote.refresh():
                raise


@contextmanager
def open_stage(config: RunConfig) -> Iterator[Stage]:
    """The local paths of a run, and its checkpoint. A stage is removed at the end, unless files could not be uploaded.

    Args:
      config: the run.
    """
    urls = [path for path in (config.log_dir, config.checkpoint_path) if path and find_remote(path, "path")]
    local = config.log_dir if config.log_dir and not find_remote(config.log_dir, "log_dir") else None
    with train_in(local) if local and config.mode is ModeKeys.TRAIN else nullcontext():
        if urls:
            with _open_remote(config, urls) as stage:
                yield stage
        else:
            _move_aside(config)
            yield Stage(config, choose_checkpoint(config))


@contextmanager
def _open_remote(config: RunConfig, urls: Sequence[str]) -> Iterator[Stage]:
    names = ShownNames()
    start = f"moxing-{hashlib.sha256(urls[0].encode()).hexdigest()[:12]}-"
    for leftover in OwnedDirectory.released(tempfile.gettempdir(), start):
        tf.logging.warning(
            "An earlier run could not upload all files to %s and kept them in %s. Copy them there now or remove them: "
            "copying them later would overwrite the files of this run.",
            urls[0],
            leftover,
        )
    directory = OwnedDirectory(tempfile.gettempdir(), start)
    with names.in_logs():
        stage = None
        try:
            stage = RemoteStage(config, directory.path, names)
            stage.checkpoint = stage.choose_checkpoint()
            yield stage
            # Uploads what hooks wrote after the end of the run.
            stage.finish()
        except UploadError:  # names the local directory, which must not be replaced by the url
            raise
        except BaseException as error:
            names.rename(error)
            if stage is not None and stage.is_uploaded:
                stage.finish_after_error()
            raise
        finally:
            if stage is not None and not stage.is_uploaded:
                directory.release()
            else:
                directory.remove()
