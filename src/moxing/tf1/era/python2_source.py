"""Converts Python 2 source to Python 3 in memory, for `moxing run --py2`.

fissix, the maintained fork of lib2to3, converts the syntax. Only fixers that keep the number of lines are used, so that
the line numbers of the converted code are those of the file and tracebacks show the lines as the user wrote them. The
division of two whole numbers is a matter of types, which only the running program knows: `python2_division` does it.
"""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from types import CodeType
from typing import Any

from moxing.tf1.era import python2_division

#: Fixers of fissix. The others add lines, or serve names that the builtins and views of user modules have.
_FIXERS = (
    "apply dict except exec exitfunc filter funcattrs getcwdu has_key input isinstance itertools long map "
    "metaclass methodattrs ne next nonzero numliterals operator paren print raise renames repr sorted standarderror "
    "sys_exc throw tuple_params types xrange xreadlines zip"
)

_INSTALL = "pip install 'moxing-tensorflow[py2]'"

_enabled = False


class ConverterMissing(ImportError):
    """fissix, which converts Python 2, is not installed."""


def enable(value: bool = True) -> None:
    """Converts the source of user modules from now on.

    Args:
      value: False switches it off again.

    Raises:
      ConverterMissing: fissix is not installed.
    """
    global _enabled
    if value:
        _tool()
    _enabled = value


def enabled() -> bool:
    """Returns True if the source of user modules is converted.

    Example:
      >>> enabled()
      False
    """
    return _enabled


def compile_python2(source: bytes, path: str) -> CodeType:
    """Converts and compiles the source of a file of Python 2.

    A file that fissix cannot parse may be Python 3, and is then compiled as it is.

    Args:
      source: what is in the file.
      path: its path.

    Raises:
      SyntaxError: it is neither Python 2 nor Python 3.
    """
    text = _decode(source)
    try:
        tree = _parse(_convert(text, path), path)
    except SyntaxError as error:
        try:
            return compile(text, path, "exec", dont_inherit=True)
        except SyntaxError:
            raise error from None
    return compile(python2_division.rewrite(tree), path, "exec", dont_inherit=True)


def _decode(source: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding, errors="surrogateescape").read()


def _convert(text: str, path: str) -> str:
    from fissix.pgen2.parse import ParseError
    from fissix.pgen2.tokenize import TokenError

    # The parser wants a line end at the end of the file.
    whole = text if text.endswith("\n") else text + "\n"
    try:
        return str(_tool().refactor_string(whole, path))
    except ParseError as error:
        row, column = error.context[1]
        line = whole.splitlines()[row - 1] if row <= whole.count("\n") else ""
        raise SyntaxError(f"neither Python 2 nor Python 3: {error.msg}", (path, row, column + 1, line)) from None
    except (TokenError, IndentationError) as error:
        raise SyntaxError(f"neither Python 2 nor Python 3: {error}", (path, 1, 1, "")) from None


def _parse(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except TabError:
        # Python 2 read a tab as up to the next multiple of 8.
        lines = text.split("\n")
        return ast.parse("\n".join(_untabified(line) for line in lines), path)


def _untabified(line: str) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(8) + rest


@functools.cache
def _tool() -> Any:
    try:
        from fissix.refactor import RefactoringTool
    except ImportError:
        raise ConverterMissing(f"--py2 converts Python 2 with fissix, which is not installed: {_INSTALL}") from None
    return RefactoringTool([f"fissix.fixes.fix_{name}" for name in _FIXERS.split()])
