"""`moxing enable` and `moxing disable`: use the launcher for plain `python script.py` in one Python environment.

`enable` writes a `.pth` file, which Python executes when it starts. Its one line searches the text of the main script,
and imports `autorun` only if it contains both moxing and tensorflow.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from pathlib import Path
from typing import Any

FILE_NAME = "moxing-autorun.pth"

# The format allows one line. It imports only what Python has imported already, and on any error (moxing is not
# installed any more, the script cannot be read) Python starts as usual.
_STATEMENTS = r"""
try:
    if sys.argv[0][-3:] == '.py':
        with open(sys.argv[0], 'rb') as f: t = f.read()
        if b'moxing' in t and b'tensorflow' in t:
            from moxing.cli import autorun
            autorun.start(sys.argv[0], t)
except Exception: pass
"""
LINE = f"import sys; exec({_STATEMENTS.strip()!r}, {{'sys': sys}})\n"


def add_commands(commands: Any) -> None:
    """Adds the two sub-commands to the parser of `moxing`."""
    on = commands.add_parser("enable", help="let plain `python script.py` run MoXing scripts in this environment")
    on.set_defaults(function=_enable)
    off = commands.add_parser("disable", help="undo `moxing enable`")
    off.set_defaults(function=_disable)


def enable(directory: Path) -> str:
    """Writes the `.pth` file to `directory` and returns the message to print.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as directory:
      ...   print(enable(Path(directory)).split(':')[0])
      ...   print(disable(Path(directory)).split(':')[0])
      Enabled
      Disabled
    """
    path = directory / FILE_NAME
    already = path.is_file() and path.read_text() == LINE
    if not already:
        path.write_text(LINE)
    state = "Already enabled" if already else "Enabled"
    return (
        f"{state}: with {sys.executable}, `python script.py` runs a script that imports moxing.tensorflow as "
        f"`moxing run script.py` does.\nThe file is {path}; `moxing disable` removes it."
    )


def disable(directory: Path) -> str:
    """Removes the `.pth` file from `directory` and returns the message to print."""
    path = directory / FILE_NAME
    if not path.exists():
        return f"Not enabled: there is no {path}."
    path.unlink()
    return f"Disabled: removed {path}."


def _enable(arguments: argparse.Namespace) -> int:
    return _act(enable)


def _disable(arguments: argparse.Namespace) -> int:
    return _act(disable)


def _act(action: Any) -> int:
    directory = Path(sysconfig.get_path("purelib"))
    try:
        print(action(directory))
    except OSError as error:
        print(
            f"moxing: error: cannot write to {directory}: {error.strerror}. Use a virtual environment of your own, or "
            "`moxing run script.py`, which needs no permission.",
            file=sys.stderr,
        )
        return 2
    return 0
