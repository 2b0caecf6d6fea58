"""Where a run reads and writes on this machine: its paths as they are, or a stage for those that are urls."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.progress import transfer_bar
from moxing.framework.flags import FLAGS
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.tensorflow.cluster.server import staying
from moxing.tensorflow.datasets.stored.patience import seconds_of
from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.fetching import WORTH_A_LINE, RemoteDirectory, fetch_log_dir, fetch_named, set_aside
from moxing.tensorflow.executor.mirror import Mirror
from moxing.tensorflow.executor.restore import choose_source
from moxing.tensorflow.executor.shown_names import AS_IT_IS, ShownNames
from moxing.tensorflow.executor.specs import ModeKeys, RunResult
from moxing.tensorflow.executor.uploads import UploadError

_Found = TypeVar("_Found")


class Stage:
    """The local paths of a run; where they are the user's own there is nothing to do.

    Args:
      config: the run.

    Attributes:
      config: the same run with local paths.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config

    def choose_source(self) -> checkpoint.Source | None:
        """The checkpoint that the run begins with."""
        self._start_over()
        return choose_source(self.config)

    def _start_over(self) -> None:
        """Sets the checkpoints of a local `log_dir` aside if the user wants that."""
        if self.config.mode is ModeKeys.TRAIN and self.config.log_dir and FLAGS.get("restart"):
            checkpoint.set_aside(self.config.log_dir)

    @contextmanager
    def completed(self) -> Iterator[None]:
        """What is written inside is in its place when it ends, whatever ends it."""
        yield

    def result(self, result: RunResult) -> RunResult:
        """The result as the caller sees it."""
        return result


class RemoteStage(Stage):
    """A stage for a run of which some paths are urls.

    Args:
      config: the run.
      root: an empty local directory.
      names: is told what stands for what.
    """

    def __init__(self, config: RunConfig, root: str, names: ShownNames) -> None:
        super().__init__(config)
        self._root, self._names = root, names
        self._log: RemoteDirectory | None = None
        self._mirror: Mirror | None = None
        self._url = config.log_dir
        self.is_whole = True
        place = find_place(config.log_dir, "log_dir") if config.log_dir else None
        if place is not None:
            directory = os.path.join(root, "log")
            os.makedirs(directory)
            names.add(directory, place.url)
            self.config = replace(config, log_dir=directory)
            training = config.mode is ModeKeys.TRAIN
            if training or config.export:
                _make_directory(place)
            if training and FLAGS.get("restart"):
                set_aside(place)
            seconds_of("upload_patience")  # a wrong one is told now
            self._log = RemoteDirectory(place, directory)
            self._mirror = Mirror(directory, os.path.join(root, "links"), place, fetch_log_dir(self._log, training))

    def choose_source(self) -> checkpoint.Source | None:
        if self._log is None:
            self._start_over()
            return choose_source(self.config, named=self._named)
        log = self._log
        source = _found(
            None if self.config.mode is ModeKeys.TRAIN else log,
            lambda: choose_source(self.config, log.fetch_checkpoint, self._named),
        )
        if self._mirror is not None:
            self._mirror.start()
        return source

    def _named(self, path: str) -> checkpoint.Source:
        place = find_place(path, "checkpoint_path")
        if place is None:
            return checkpoint.named(path)
        directory = os.path.join(self._root, "checkpoint")
        local, remote = fetch_named(place, directory)
        self._names.add(directory, remote.place.url)
        return _found(remote, lambda: checkpoint.named(local, remote.fetch_checkpoint))

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
        """Waits until everything is on the store."""
        if self._mirror is None:
            return
        self.is_whole = False
        try:
            left = self._mirror.waiting()
            total = sum(left.values())
            if total >= WORTH_A_LINE and not sys.stderr.isatty():
                tf.logging.info("Uploading the last %d files, %.1f MB.", len(left), total / 1e6)
            with staying(), transfer_bar(total, "Uploading"):
                self._mirror.finish()
        except KeyboardInterrupt:
            self._mirror.give_up()
            if not (left := self._mirror.waiting()):
                raise
            tf.logging.warning(
                "%d files were not uploaded to %s: %s is kept.",
                len(left),
                self._url,
                self.config.log_dir,
                extra=AS_IT_IS,
            )
            raise
        self.is_whole = True

    def finish_after_error(self) -> None:
        """The same where an error has ended the run, which is what its caller must see."""
        try:
            self.finish()
        except UploadError as error:
            tf.logging.error("%s", error, extra=AS_IT_IS)

    def result(self, result: RunResult) -> RunResult:
        shown = self._names.shown
        return replace(
            result,
            checkpoint_path=shown(result.checkpoint_path) if result.checkpoint_path else None,
            export_path=shown(result.export_path) if result.export_path else None,
        )


def _make_directory(place: Place) -> None:
    """Makes `log_dir`: who may not write there is to learn it now, not after hours."""
    try:
        place.backend.make_directory(place.path)
    except OSError as error:
        advice = "these keys may not write there: " if error.errno == errno.EACCES else ""
        error.strerror = f"log_dir: {advice}{error.strerror}"
        raise


def _found(remote: RemoteDirectory | None, find: Callable[[], _Found]) -> _Found:
    """What `find` returns; where it fails and `remote` has changed meanwhile, it looks again."""
    while True:
        try:
            return find()
        except ValueError:
            if remote is None or not remote.look_again():
                raise


@contextmanager
def open_stage(config: RunConfig) -> Iterator[Stage]:
    """A place for the run on this machine; what was fetched or written there is removed at the end.

    Args:
      config: the run.
    """
    urls = [path for path in (config.log_dir, config.checkpoint_path) if path and find_place(path, "path")]
    if not urls:
        yield Stage(config)
        return
    names = ShownNames()
    start = f"moxing-{hashlib.sha256(urls[0].encode()).hexdigest()[:12]}-"
    for kept in OwnedDirectory.left_to_stay(tempfile.gettempdir(), start):
        tf.logging.warning(
            "An earlier run could not upload all to %s and kept it in %s. The upload would overwrite what this run "
            "writes: copy it before, or remove it.",
            urls[0],
            kept,
        )
    directory = OwnedDirectory(tempfile.gettempdir(), start)
    with names.in_logs():
        stage = None
        try:
            stage = RemoteStage(config, directory.path, names)
            yield stage
            # What hooks wrote when they were told of the end.
            stage.finish()
        except UploadError:  # it names the local copy
            raise
        except BaseException as error:
            names.rename(error)
            if stage is not None and stage.is_whole:
                stage.finish_after_error()
            raise
        finally:
            if stage is not None and not stage.is_whole:
                directory.leave()
            else:
                directory.remove()
