"""The builtins of Python 2, and advice for its syntax, which Python 3 cannot parse."""

from __future__ import annotations

import functools
import importlib
import logging
import re
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from moxing.tf1.era import python2_source
from moxing.tf1.era.module_view import note_once, real_module


def _reload(module: ModuleType) -> ModuleType:
    # `reload(sys)` gave access to `sys.setdefaultencoding`; reloading it here would change nothing.
    if module.__name__ != "sys":
        importlib.reload(real_module(module))
    return module


def _execfile(path: str, globals: dict[str, Any] | None = None, locals: dict[str, Any] | None = None) -> None:
    caller = sys._getframe(1)
    if globals is None:
        globals, locals = caller.f_globals, caller.f_locals
    globals.setdefault("__builtins__", caller.f_globals["__builtins__"])
    with open(path, "rb") as file:
        source = file.read()
    code = python2_source.compile_python2(source, path) if python2_source.enabled() else compile(source, path, "exec")
    exec(code, globals, globals if locals is None else locals)


def _cmp(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


#: The builtins that Python 3 dropped or renamed.
BUILTINS: dict[str, Any] = {
    "xrange": range,
    "unicode": str,
    "basestring": str,
    "long": int,
    "unichr": chr,
    "raw_input": input,
    "file": open,
    "reduce": functools.reduce,
    "intern": sys.intern,
    "cmp": _cmp,
    "reload": _reload,
    "execfile": _execfile,
}


def note_builtins(code: CodeType) -> None:
    """Logs which builtins of Python 2 the code uses, if debug lines are shown.

    Example:
      >>> note_builtins(compile('xrange(3)', 'train.py', 'exec'))
    """
    if not logging.getLogger("moxing").isEnabledFor(logging.DEBUG):
        return
    for name in BUILTINS.keys() & set(code.co_names):
        note_once(name, BUILTINS[name].__name__.lstrip("_"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            note_builtins(constant)


def _line_has(pattern: str) -> Callable[[SyntaxError], bool]:
    return lambda error: re.search(pattern, error.text or "") is not None


def _says(*words: str) -> Callable[[SyntaxError], bool]:
    return lambda error: all(word in (error.msg or "") for word in words)


#: What a syntax error shows, and what it meant in Python 2. The first match counts.
_SIGNS: tuple[tuple[Callable[[SyntaxError], bool], str], ...] = (
    (lambda error: isinstance(error, TabError), "tabs and spaces mixed in the indentation"),
    (_says("Missing parentheses in call to 'print'"), "the print statement"),
    (_says("Missing parentheses in call to 'exec'"), "the exec statement"),
    (_line_has(r"^\s*print\b\s*(?![\s(=.,)\]])"), "the print statement"),
    (_line_has(r"^\s*print\s*>>"), "the print statement"),
    (_line_has(r"^\s*except\s+[\w.()\s,]+?,\s*\w+\s*:"), "`except Error, name:`"),
    (_line_has(r"^\s*raise\s+[\w.]+\s*,"), "`raise Error, text`"),
    (_says("leading zeros in decimal integer"), "an octal number such as 0777"),
    (_line_has(r"\b\d+[lL]\b"), "a long number such as 10L"),
    (_line_has(r"`[^`]+`"), "backticks in place of repr()"),
    (_line_has(r"<>"), "`<>` in place of `!=`"),
    (_line_has(r"\b[uU][rR]['\"]"), "a ur'' string"),
)


def explain(error: SyntaxError) -> str | None:
    """Returns what is Python 2 about a syntax error and how to convert the file; None if it is not Python 2.

    Example:
      >>> try:
      ...   compile('print 1', 'train.py', 'exec')
      ... except SyntaxError as error:
      ...   print(explain(error).splitlines()[0])
      train.py, line 1 is Python 2 (the print statement).
    """
    sign = next((text for fits, text in _SIGNS if fits(error)), None)
    if sign is None:
        return None
    file = error.filename or "FILE"
    run = "Run it as Python 2, without changing it: moxing run --py2 SCRIPT"
    if isinstance(error, TabError):
        remedy = f"Or replace every tab by spaces up to the next multiple of 8, as Python 2 read it: expand -t 8 {file}"
    elif sys.version_info < (3, 13):
        remedy = f"Or convert it in place (a copy is kept as {file}.bak): {sys.executable} -m lib2to3 -w {file}"
    else:
        remedy = f"Or convert it with the `2to3 -w {file}` of a Python up to 3.12; Python 3.13 no longer has it."
    return f"{file}, line {error.lineno} is Python 2 ({sign}).\n{run}\n{remedy}"
