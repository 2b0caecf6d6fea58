"""What `cp` and `sync` do with a copy plan: check it, show it, run it."""

from __future__ import annotations

import os
import sys
import time

from moxing.cli.output import file_count, human_size, show
from moxing.framework.file.copying.plan import CopyPlan, CopyTask
from moxing.framework.file.copying.run_plan import CopyOptions, run_plan
from moxing.framework.file.urls import RemotePath, url_of
from moxing.framework.util.terminal import is_terminal


def check_files_differ(plan: CopyPlan) -> None:
    """Raises ValueError if a file would be copied onto itself."""
    for task in plan.tasks:
        if _is_same_file(task):
            raise ValueError(
                f"dst_url={url_of(task.target)!r}: expected another file than src_url={url_of(task.source)!r}."
            )


def _is_same_file(task: CopyTask) -> bool:
    source, target = task.source, task.target
    if isinstance(source, str) and isinstance(target, str):
        return os.path.exists(target) and os.path.samefile(source, target)
    if isinstance(source, RemotePath) and isinstance(target, RemotePath):
        # Compare the paths first: comparing the stores may take a lookup of their credentials.
        return source.path == target.path and source.is_inside(target)
    return False


def show_plan(plan: CopyPlan, verb: str) -> None:
    """Prints source and target of each file."""
    for task in plan.tasks:
        show(f"{verb} {url_of(task.source)} to {url_of(task.target)}")


def run_copies(plan: CopyPlan, threads: int) -> str:
    """Runs a plan, with a progress bar on a terminal; returns a summary such as '2 files, 10 B'."""
    started = time.monotonic()
    run_plan(plan, CopyOptions(threads))
    seconds = max(time.monotonic() - started, 1e-3)
    amount = f"{file_count(len(plan.tasks))}, {human_size(plan.length)}"
    if not plan.tasks or not is_terminal(sys.stdout):
        # The time is for people. Output to a file is the same for the same work.
        return amount
    return f"{amount} in {seconds:.1f} s, {human_size(int(plan.length / seconds))}/s"
