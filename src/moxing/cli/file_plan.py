"""What `moxing file cp` and `sync` are going to copy: planned and checked as a whole, then shown or done."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from moxing.cli.file_paths import join
from moxing.cli.output import files, human_size, show
from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.copying import CopyTask
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import MoxFileNameDuplicateException, is_a_directory, not_exists
from moxing.framework.file.paths import is_inside, local_path
from moxing.framework.file.remote_transfer import check_key, check_name
from moxing.framework.file.running import CopyOptions, run_tasks
from moxing.framework.file.target_tree import TargetTree


@dataclass
class CopyPlan:
    """Files to copy, and what has to be made before.

    Example:
      >>> plan = CopyPlan()
      >>> plan.add_file('/data/a', '/copy/a', 3)
      >>> plan.length
      3
    """

    tasks: list[CopyTask] = field(default_factory=list)
    _preparations: list[Callable[[], None]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Bytes to copy."""
        return sum(task.length for task in self.tasks)

    def add_file(self, src: str, dst: str, length: int) -> None:
        """Takes up one file, with the name of its copy."""
        target = find_place(dst, "dst_url")
        if target is None:
            # As always in `mox.file`, a link stays a link, and what it leads to is replaced.
            directory = os.path.dirname(os.path.realpath(local_path(dst, "dst_url")))
            self._preparations.append(lambda: os.makedirs(directory, exist_ok=True))
        elif "/" not in target.path:
            raise is_a_directory("dst_url", dst, "give the name of the copy")
        self._append(CopyTask(src, dst, length))

    def add(self, src: str, dst: str, entries: Iterable[RemoteEntry], below: str = "", is_tree: bool = True) -> None:
        """Takes up entries of the directory `src`, to be copied into the directory `dst`, or into `below` in it.

        Args:
          src: The directory.
          dst: The directory to copy into; nothing is written outside of it.
          entries: What is in `src`; the one without a name is `src` itself.
          below: A directory in `dst`.
          is_tree: Whether nothing may be written into `src`, since it is copied as a whole.

        Raises:
          ValueError: A name or a link would lead out of `dst`, or into `src`.
          MoxFileNameDuplicateException: A file has the name of a directory, or the other way round.
        """
        source, target = find_place(src, "src_url"), find_place(dst, "dst_url")
        named = [(entry, "/".join(filter(None, (below, entry.relative)))) for entry in entries]
        if target is not None:
            if source is not None:
                for entry, _ in named:
                    check_key(src, entry.relative)
            self._add_remote(src, target, named)
            return
        # Everything is checked before the first file is written: names, links, files and directories of one name.
        guarded = local_path(src, "src_url") if source is None and is_tree else None
        tree = TargetTree(local_path(dst, "dst_url"), guarded)
        for entry, relative in named:
            if source is not None:
                check_name(src, relative)
            if entry.is_directory:
                tree.add_directory(relative)
            else:
                self._add_task(src, entry, tree.add_file(relative))
        self._preparations.append(tree.make_directories)

    def _add_remote(self, src: str, target: Place, named: list[tuple[RemoteEntry, str]]) -> None:
        found = target.backend.stat(target.path.rstrip("/"))
        if found is not None and not found.is_directory and not target.backend.is_directory(target.path):
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a file has the name of a directory", target.url)
        directories = [relative for entry, relative in named if entry.is_directory]
        if not target.backend.has_real_directories:
            # Directories with something in them are there by that alone.
            parents = {os.path.dirname(relative) for _, relative in named}
            directories = [relative for relative in directories if relative not in parents]
        elif named:
            self._preparations.append(lambda: target.backend.make_directory(target.path))
        for relative in directories:
            path = target.child(relative).path
            self._preparations.append(lambda path=path: target.backend.make_directory(path))  # type: ignore[misc]
        for entry, relative in named:
            if not entry.is_directory:
                self._add_task(src, entry, target.child(relative).url)

    def _add_task(self, src: str, entry: RemoteEntry, target: str) -> None:
        url = join(src, entry.relative)
        if find_place(src, "src_url") is None and not os.path.exists(url):
            raise not_exists("src_url", url, "a link to nothing")
        self._append(CopyTask(url, target, entry.length, entry.version or None))

    def _append(self, task: CopyTask) -> None:
        source, target = find_place(task.source, "src_url"), find_place(task.target, "dst_url")
        is_same = False
        if source is None and target is None:
            is_same = os.path.exists(task.target) and os.path.samefile(task.source, task.target)
        elif source is not None and target is not None:
            # The paths first: for them nobody has to find out how the stores are reached.
            is_same = source.path == target.path and source.is_inside(target)
        if is_same:
            raise ValueError(f"dst_url={task.target!r}: expected another file than src_url={task.source!r}.")
        self.tasks.append(task)

    def show(self, word: str) -> None:
        """Prints what is copied where."""
        for task in self.tasks:
            show(f"{word} {task.source} to {task.target}")

    def carry_out(self, threads: int) -> str:
        """Copies everything, with a bar on a terminal; returns how much that was, in words."""
        started = time.monotonic()
        for prepare in self._preparations:
            prepare()
        # Between disks it is not Python that takes the time: threads are enough.
        is_remote = any(find_place(url, "url") for task in self.tasks[:1] for url in task[:2])
        run_tasks(self.tasks, CopyOptions(threads, is_processing=is_remote))
        seconds = max(time.monotonic() - started, 1e-3)
        amount = f"{files(len(self.tasks))}, {human_size(self.length)}"
        if not self.tasks or not sys.stdout.isatty():
            # The time is for people; a file with the output is the same for the same work.
            return amount
        return f"{amount} in {seconds:.1f} s, {human_size(int(self.length / seconds))}/s"


def check_apart(src: str, dst: str, both_ways: bool = False) -> None:
    """Refuses to copy a directory into itself; with `both_ways` also into one that it lies in.

    Example:
      >>> check_apart('/data', '/data/copy')
      Traceback (most recent call last):
      ...
      ValueError: dst_url='/data/copy': expected a directory outside src_url='/data'.
    """
    source, target = find_place(src, "src_url"), find_place(dst, "dst_url")
    if source is None and target is None:
        inner, outer = os.path.realpath(local_path(dst, "dst_url")), os.path.realpath(local_path(src, "src_url"))
        dst_in_src, src_in_dst = is_inside(inner, outer), is_inside(outer, inner)
    elif source is not None and target is not None:
        dst_in_src, src_in_dst = target.is_inside(source), source.is_inside(target)
    else:
        return
    if dst_in_src:
        raise ValueError(f"dst_url={dst!r}: expected a directory outside src_url={src!r}.")
    if both_ways and src_in_dst:
        raise ValueError(f"dst_url={dst!r}: expected a directory that src_url={src!r} does not lie in.")
