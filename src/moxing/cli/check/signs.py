"""What a program needs besides names: compiled operations, downloads, and methods of Python 2."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator

from moxing.cli.check.findings import MISSING, NOTE, Finding
from moxing.cli.check.names import ModuleUses

#: Methods of dict that Python 3 dropped, with the number of their arguments.
_DICT_METHODS = {"iteritems": 0, "itervalues": 0, "iterkeys": 0, "viewitems": 0, "has_key": 1}
_DICT_INSTEAD = {"has_key": "`key in d`", "viewitems": "`d.items()`"}

_DOWNLOADS = re.compile(r"urlretrieve|urlopen|download|get_file|maybe_download|wget", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ftp)://[^\s'\"]+")

_REBUILD = (
    "build it again for TensorFlow 2.21: g++ -std=c++17 -shared -fPIC FILE.cc -o FILE.so "
    "$(python -c 'import tensorflow as tf; print(*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())')"
)


def find(uses: ModuleUses, defined: Collection[str], root: str) -> Iterator[Finding]:
    """Yields what the calls of a module show.

    Args:
      uses: the calls.
      defined: names of functions that the program defines.
      root: the directory of the program.

    Example:
      >>> from moxing.cli.check.names import uses_of
      >>> [one.name for one in find(uses_of(ast.parse('d.iteritems()')), set(), '.')]
      ['.iteritems()']
    """
    for call, origins in uses.calls:
        names = {str(origin) for origin in origins}
        if any(name.startswith("tensorflow.") and name.endswith("load_op_library") for name in names):
            yield _compiled(call, root)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if not origins and method not in defined and _DICT_METHODS.get(method) == len(call.args) and not call.keywords:
            instead = _DICT_INSTEAD.get(method, f"`d.{method.removeprefix('iter')}()`")
            text = f"Python 3 has no method {method} of dict: write {instead}"
            yield Finding("syntax", MISSING, f".{method}()", (call.lineno,), text)
        yield from _downloads(call)


def _downloads(call: ast.Call) -> Iterator[Finding]:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not _DOWNLOADS.search(function):
        return
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        text = argument.value if isinstance(argument, ast.Constant) else None
        if isinstance(text, str) and _URL.match(text):
            yield Finding(
                "download", NOTE, text, (call.lineno,), "downloaded while it runs; check that it still exists"
            )


def _compiled(call: ast.Call, root: str) -> Finding:
    """Judges the shared library that `tf.load_op_library` loads, by what it was linked with. It is not loaded."""
    constants = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    file = next((text for text in constants if text.endswith(".so")), "")
    line = (call.lineno,)
    if not file:
        return Finding("native", NOTE, "tf.load_op_library", line, f"loads a compiled operation; {_REBUILD}")
    path = _locate(os.path.basename(file), root)
    if path is None:
        return Finding("native", MISSING, file, line, f"the compiled operation {file} is not there; {_REBUILD}")
    with open(path, "rb") as stream:
        linked = b"libtensorflow_framework.so.2" in stream.read()
    if linked:
        return Finding(
            "native", NOTE, file, line, "a compiled operation, linked with TensorFlow 2; it is not loaded here"
        )
    text = f"the compiled operation {file} was not linked with TensorFlow 2; {_REBUILD}"
    return Finding("native", MISSING, file, line, text)


def _locate(name: str, root: str) -> str | None:
    for folder, _, names in os.walk(root):
        if name in names:
            return os.path.join(folder, name)
    return None
