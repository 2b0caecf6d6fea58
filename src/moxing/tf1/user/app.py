"""`tf.app` as TensorFlow 1 had it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from moxing.framework import flags as moxing_flags
from moxing.tf1.user import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls `main` with the remaining arguments and exits with its result.

    Args:
      main: called with a list of the program name and the arguments that are not flags. Default: `main` of the script.
      argv: the command line to parse, starting with the program name. Default: that of the process.

    Example:
      >>> import contextlib
      >>> with contextlib.suppress(SystemExit):
      ...   run(lambda argv: print(argv[1:]), ['train.py', '--nobody_defined_this=1'])
      ['--nobody_defined_this=1']
    """
    line = list(sys.argv if argv is None else argv)
    rest = flags.FLAGS.parse_process_arguments() if argv is None else flags.FLAGS.parse_arguments(line[1:])
    if argv is None:
        moxing_flags.FLAGS.warn_unknown([*flags.FLAGS, "h", "help"])
    if main is None:
        main = sys.modules["__main__"].main
    sys.exit(main([line[0], *rest]))
