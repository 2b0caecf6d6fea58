"""Checks a script or a directory: reads every file, judges what it uses, and puts the findings together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moxing.cli.check import modules, names, python2, signs, sources, symbols
from moxing.cli.check.findings import MISSING, OPTIONAL, SERVED, FileReport, Finding, Report
from moxing.cli.check.names import Guard, ModuleUses, Use
from moxing.cli.check.symbols import Verdict
from moxing.tf1.user import resolver


@dataclass(frozen=True)
class _File:
    source: sources.Source
    uses: ModuleUses


def check(path: str, progress: Callable[[int, int], None] | None = None) -> Report:
    """Returns the report about the program at `path`. Its code is read, never executed.

    Args:
      path: a script or a directory.
      progress: called after every file with the number of files done and of all files.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...   with open(os.path.join(folder, 'train.py'), 'w') as file:
      ...     _ = file.write('import tensorflow as tf; tf.nn.relu(1); tf.no_such_name')
      ...   report = check(folder)
      >>> round(report.share, 2), [one.name for one in report.files[0].missing]
      (0.67, ['tf.no_such_name'])
    """
    paths = sources.find(path)
    root = sources.root_of(path)
    start = path if os.path.isdir(path) else os.path.dirname(path) or "."
    files = []
    for one in paths:
        source = sources.read(one, os.path.relpath(one, start))
        files.append(_File(source, ModuleUses() if source.tree is None else names.uses_of(source.tree)))
    program = modules.Program.of(root, paths)
    # A program imports its modules before it uses names: what one file imports, another may use.
    for file in files:
        for use in file.uses.uses:
            if use.kind == "import":
                symbols.judge(use, file.source.path, program)
    written = set().union(*(file.uses.written for file in files))
    defined = set().union(*(file.uses.methods for file in files))
    reports = []
    for number, file in enumerate(files, 1):
        found = [*_syntax(file.source), *_names(file, program, written), *signs.find(file.uses, defined, root)]
        reports.append(FileReport(file.source.name, _merged(found), file.source.text))
        if progress is not None:
            progress(number, len(files))
    return Report(path, tuple(reports))


def _syntax(source: sources.Source) -> Iterable[Finding]:
    error = source.error
    if error is None:
        return
    notes = " ".join(getattr(error, "__notes__", ()))
    if source.path.endswith(".ipynb"):
        # The converter reads no notebooks.
        notes = notes and notes.partition("\n")[0] + " Change the cell to Python 3."
    text = notes.replace(source.path, source.name) or f"{error.msg}: Python 3 cannot parse it."
    if source.tree is None:
        text += " Its names were not checked."
        if python2.refactoring_tool() is None:
            text += " (pip install fissix makes that possible.)"
    yield Finding(
        "syntax", MISSING, "Python 2" if notes else "syntax error", (error.lineno or 1,), " ".join(text.split())
    )


def _names(file: _File, program: modules.Program, written: set[str]) -> Iterable[Finding]:
    verdicts: list[tuple[Use, Verdict]] = []
    for use in file.uses.uses:
        verdict = symbols.judge(use, file.source.path, program, written)
        # What Python itself has would only hide the share of what is in question.
        if verdict is not None and (verdict.problem or verdict.provider != resolver.PYTHON):
            verdicts.append((use, verdict))
    # The `try` bodies that fail here: their `except` branches run.
    failing = {guard for use, verdict in verdicts if verdict.problem for guard in use.guards}
    for use, verdict in verdicts:
        kind = "call" if verdict.is_call else "package" if verdict.is_package else use.kind
        status = SERVED
        if verdict.problem:
            status = OPTIONAL if _is_optional(use, failing) else MISSING
        yield Finding(kind, status, verdict.name, (use.line,), verdict.problem, verdict.provider)


def _is_optional(use: Use, failing: set[Guard]) -> bool:
    """Returns True if the program does without what is missing: it is tried, or it is in a branch that does not run."""
    return any(guard.instead_of is None or guard.instead_of not in failing for guard in use.guards)


def _merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns one finding for all uses of a name in a file, in the order of their first lines."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.status, one.name, one.message), []).append(one)
    merged = []
    for group in groups.values():
        lines = tuple(sorted({line for one in group for line in one.lines}))
        first = group[0]
        merged.append(Finding(first.kind, first.status, first.name, lines, first.message, first.provider))
    return tuple(sorted(merged, key=lambda one: (one.lines[0], one.name)))
