"""`moxing run script.py --its --flags`: runs a TensorFlow 1 script unchanged."""

from __future__ import annotations

import argparse
import difflib
import itertools
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from moxing.cli.cluster import run as run_cluster
from moxing.framework.flags import FlagError, ScriptFlagError

_DESCRIPTION = (
    "Runs a TensorFlow 1 script unchanged: `moxing run train.py --its --flags` for `python train.py ...`. "
    "SCRIPT may be a notebook: train.ipynb."
)
#: Sources of a script that are searched for a flag.
_MOST_SOURCES = 200
_WITH_VALUE = ("--legacy", "-m", *run_cluster.WITH_VALUE)


def main(words: Sequence[str]) -> int:
    """Runs the sub-command and returns the exit code of the script.

    Args:
      words: the options of `moxing run`, the script (or `-m` and a module), and the arguments of the script.

    Example:
      >>> main(['no_such_script.py', '--its', '--flags'])
      2
    """
    options, rest = _split(words)
    parser = _parser()
    arguments = parser.parse_args(options)
    if arguments.module is None and not rest:
        parser.error("give the script to run: moxing run [options] SCRIPT [its arguments]")
    is_module = arguments.module is not None
    target = arguments.module if is_module else rest[0]
    flags = rest if is_module else rest[1:]
    _warn_about_late_options(target, is_module, flags)
    problem = run_cluster.wrong_options(arguments, flags)
    if problem is not None:
        parser.error(problem)
    if arguments.workers is not None and target.endswith(".ipynb"):
        parser.error(f"--workers={arguments.workers} runs scripts and modules; {target} is a notebook")
    if arguments.workers is not None:
        if not is_module and not os.path.exists(target):
            return run_cluster.error(f"there is no script {target!r} in {os.getcwd()}")
        return run_cluster.run(arguments, _process_arguments(arguments, target), flags)
    if arguments.verbose:
        _show_debug_lines()

    from moxing.tf1.user import launcher
    from moxing.tf1.user.child_processes import Launch

    launch = Launch(target, is_module, arguments.legacy, arguments.py2, arguments.ref_variables)
    with _plain_usage_errors(target.endswith(".ipynb")) as usage_errors:
        try:
            code = launcher.run(launch, flags)
        except (launcher.LaunchError, launcher.ConverterMissing) as error:
            return run_cluster.error(str(error))
    return 2 if usage_errors else code


@contextmanager
def _plain_usage_errors(is_notebook: bool = False) -> Iterator[list[FlagError]]:
    """Prints errors of the command line without a traceback inside the block.

    It sets `sys.excepthook`, through which the launcher reports errors, so that other hooks are called too.

    Args:
      is_notebook: whether tracebacks show lines of cells, which Python's own hook does not find: it looks for files.

    Yields:
      The errors that were reported.
    """
    errors: list[FlagError] = []
    original = sys.excepthook
    shown = traceback.print_exception if is_notebook and original is sys.__excepthook__ else original

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, FlagError) and not isinstance(error, ScriptFlagError):
            errors.append(error)
            print(f"moxing run: error: {error}", file=sys.stderr)
        else:
            shown(kind, error, trace)

    sys.excepthook = report
    try:
        yield errors
    finally:
        if sys.excepthook is report:
            sys.excepthook = original


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the options of `moxing run`, which come before the script, and the script with its arguments."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        if word == "--":
            return list(words[:position]), list(words[position + 1 :])
        position += 2 if word in _WITH_VALUE else 1
        if word == "-m":
            break
    return list(words[:position]), list(words[position:])


def _process_arguments(arguments: argparse.Namespace, target: str) -> list[str]:
    """Returns the arguments of `moxing run` for one process of a cluster, without the flags of the script."""
    words = [f"--{name}" for name in ("verbose", "py2", "ref_variables") if getattr(arguments, name)]
    for package in arguments.legacy:
        words += ["--legacy", package]
    if arguments.module is not None:
        return [*words, "-m", target]
    return [*words, "--", target] if target.startswith("-") else [*words, target]


class _Parser(argparse.ArgumentParser):
    """Names the option that is probably meant."""

    def error(self, message: str) -> NoReturn:
        start, _, unknown = message.partition("unrecognized arguments: ")
        options = [option for option in self._option_string_actions if option.startswith("--")]
        near = difflib.get_close_matches(unknown.partition("=")[0].split(" ")[0], options, n=1) if not start else []
        super().error(f"{message}. Did you mean {near[0]}?" if near else message)


def _warn_about_late_options(target: str, is_module: bool, flags: Sequence[str]) -> None:
    """Warns about options of a cluster after the script, which belong to the script, if it has no such flag."""
    end = flags.index("--") if "--" in flags else len(flags)
    given = {word.partition("=")[0]: word for word in flags[:end]}
    late = [name for name in run_cluster.OPTIONS if name in given]
    if not late or is_module or not os.path.isfile(target):
        return
    paths = itertools.islice(Path(target).resolve().parent.rglob("*.py"), _MOST_SOURCES)
    sources = [path.read_text(errors="replace") for path in (Path(target), *paths)]
    for name in late:
        if not any(re.search(rf"\b{name[2:]}\b", source) for source in sources):
            print(
                f"moxing run: warning: {given[name]} comes after the script, which has no such flag, and is ignored. "
                f"Options of moxing run come before the script: moxing run {name} ... {target}",
                file=sys.stderr,
            )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="moxing run",
        description=_DESCRIPTION,
        usage="moxing run [-h] [-v] [--py2] [--ref_variables] [--legacy PKG] "
        "[--workers N [--ps N [--evaluator]] [--max_restarts N] [--cluster_logs DIR] [--isolate]]\n"
        "                  (SCRIPT | -m MODULE) [arguments of the script]",
        # `_split` must know the options before argparse parses them, so abbreviations are not allowed.
        allow_abbrev=False,
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument(
        "--legacy",
        metavar="PKG",
        action="append",
        default=[],
        help="an installed package that is also written for TensorFlow 1; may be repeated",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show which names of older versions are used")
    parser.add_argument("--py2", action="store_true", help="the script is Python 2: convert it in memory")
    parser.add_argument(
        "--ref_variables",
        action="store_true",
        help="variables and control flow as in TensorFlow 1, for scripts that train in a session of their own",
    )
    run_cluster.add_options(parser)
    return parser


def _show_debug_lines() -> None:
    log = logging.getLogger("moxing")
    log.setLevel(logging.DEBUG)
    log.addHandler(logging.StreamHandler())
    # `import moxing.tensorflow` adds a handler to the root logger, which would print every line twice.
    log.propagate = False
