"""Runs a MoXing script with the launcher when Python starts, after `moxing enable`.

Python imports this module at its start, for scripts that contain moxing and tensorflow. It must stay small.
"""

from __future__ import annotations

import ast
import os
import sys

# Holds the process id, which `exec` does not change. A child process has another one and is checked again.
_GUARD = "MOXING_AUTORUN"


def start(script: str, source: bytes) -> None:
    """Replaces this process with `python -m moxing run script ...` if the script imports moxing.tensorflow.

    Example:
      >>> start('train.py', b'import json')
    """
    if os.environ.get(_GUARD) == str(os.getpid()) or not imports_trainer(source):
        return
    os.environ[_GUARD] = str(os.getpid())
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    os.execv(sys.executable, [sys.executable, *options, "-m", "moxing", "run", *sys.argv])


def imports_trainer(source: bytes) -> bool:
    """Returns True if a script imports `moxing.tensorflow`, in any form and anywhere.

    Example:
      >>> imports_trainer(b'import moxing.tensorflow as mox')
      True
      >>> imports_trainer(b'# import moxing.tensorflow as mox')
      False
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Probably Python 2: search the lines, so that the launcher can say how to convert the script.
        return any(_is_import_line(line.split()) for line in source.splitlines())
    return any(_is_trainer_import(node) for node in ast.walk(tree))


def _is_trainer_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_is_trainer(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return any(_is_trainer(name) for name in (node.module, *names))
    return False


def _is_trainer(name: str) -> bool:
    return name == "moxing.tensorflow" or name.startswith("moxing.tensorflow.")


def _is_import_line(words: list[bytes]) -> bool:
    return words[:1] in ([b"import"], [b"from"]) and _is_trainer(b".".join(words[1:2]).decode("utf-8", "replace"))
