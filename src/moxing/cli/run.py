"""`moxing run script.py --its --flags`: runs a TensorFlow 1 script as it stands."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

_DESCRIPTION = "Runs a TensorFlow 1 script as it stands: `moxing run train.py --its --flags` for `python train.py ...`."
_WITH_VALUE = ("--legacy", "-m")


def main(words: Sequence[str]) -> int:
    """Runs the sub-command with the words after `moxing run` and returns the script's exit code.

    Args:
      words: options of `moxing run`, the script (or `-m` and a module), and the script's own arguments.

    Example:
      >>> main(['no_such_script.py', '--its', '--flags'])
      2
    """
    options, rest = _split(words)
    parser = _parser()
    arguments = parser.parse_args(options)
    if arguments.module is None and not rest:
        parser.error("give the script to run: moxing run [options] SCRIPT [its arguments]")
    if arguments.verbose:
        _show_debug_lines()

    from moxing.tf1 import launcher
    from moxing.tf1.processes import Launch

    is_module = arguments.module is not None
    target = arguments.module if is_module else rest[0]
    try:
        return launcher.run(Launch(target, is_module, arguments.legacy), rest if is_module else rest[1:])
    except launcher.LaunchError as error:
        print(f"moxing run: error: {error}.", file=sys.stderr)
        return 2


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own options, which stand before the script, and the rest: the script and its arguments."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        if word == "--":
            return list(words[:position]), list(words[position + 1 :])
        position += 2 if word in _WITH_VALUE else 1
        if word == "-m":
            break
    return list(words[:position]), list(words[position:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moxing run",
        description=_DESCRIPTION,
        usage="moxing run [-h] [-v] [--legacy PKG] (SCRIPT | -m MODULE) [arguments of the script]",
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument(
        "--legacy",
        metavar="PKG",
        action="append",
        default=[],
        help="an installed package that is written for TensorFlow 1 too; may be given several times",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show which names of older versions are used")
    return parser


def _show_debug_lines() -> None:
    log = logging.getLogger("moxing")
    log.setLevel(logging.DEBUG)
    log.addHandler(logging.StreamHandler())
    # The trainer gives the root logger a handler of its own: one line is enough.
    log.propagate = False
