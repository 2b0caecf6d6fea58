"""Parses Python 2: its syntax is converted in memory, line by line, and then parsed as Python 3."""

from __future__ import annotations

import ast
import functools
import importlib
import logging
import warnings
from typing import Any

#: Packages with the parser of 2to3: that of Python up to 3.12, and its successor on PyPI.
_PACKAGES = ("lib2to3", "fissix")

#: The conversions of syntax. Those of names stay out: user modules have the names of Python 2.
_FIXERS = (
    "print",
    "except",
    "raise",
    "throw",
    "exec",
    "ne",
    "repr",
    "numliterals",
    "tuple_params",
    "paren",
    "funcattrs",
)


def parse(text: str) -> ast.Module | None:
    """Returns the syntax tree of a Python 2 file, or None if it cannot be parsed or nothing is installed that can.

    Example:
      >>> tree = parse("print 'loss', loss")
      >>> tree is None or tree.body[0].value.func.id
      'print'
    """
    source = text.expandtabs(8).rstrip() + "\n"
    for candidate in (source, _converted(source)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(candidate)
        except (SyntaxError, ValueError):
            continue
    return None


def _converted(source: str) -> str:
    tool = refactoring_tool()
    if tool is None:
        return source
    logging.getLogger("RefactoringTool").setLevel(logging.ERROR)
    try:
        return str(tool.refactor_string(source, "file"))
    except Exception:  # each package has its own error classes
        return source


@functools.lru_cache(maxsize=1)
def refactoring_tool() -> Any:
    """Returns the converter, or None if neither Python nor an installed package has one.

    Example:
      >>> refactoring_tool() is refactoring_tool()
      True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in _PACKAGES:
            try:
                refactor = importlib.import_module(f"{package}.refactor")
            except ImportError:
                continue
            return refactor.RefactoringTool([f"{package}.fixes.fix_{name}" for name in _FIXERS])
    return None
