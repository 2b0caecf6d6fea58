"""Runs the code cells of a notebook in one namespace, as a script, and stores what they print in it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import sys
import traceback
from collections.abc import Iterator
from typing import Any, TextIO

from moxing.framework.file.atomic_write import check_target, replace_file
from moxing.tf1.era import python2
from moxing.tf1.user import magics


class NotebookError(ValueError):
    """The file is not a notebook that can be run."""


def is_notebook(path: str) -> bool:
    """Returns True if a path is called as notebooks are.

    Example:
      >>> is_notebook('train.ipynb'), is_notebook('train.py')
      (True, False)
    """
    return path.endswith(".ipynb")


def load(path: str) -> dict[str, Any]:
    """Returns the content of a notebook.

    Raises:
      NotebookError: it is not a notebook of version 4.
    """
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except ValueError as error:
            raise NotebookError(f"{path} is not a notebook: {error}") from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version != 4 or not isinstance(content.get("cells"), list):
        raise NotebookError(
            f"{path} has the notebook format {version}, expected 4. Convert it: jupyter nbconvert --to notebook {path}"
        )
    return content


def code_cells(content: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yields the code cells: the number of the cell, the cell, and its source.

    Example:
      >>> list(code_cells({'cells': [{'cell_type': 'code', 'source': ['a' + chr(10), 'b']}]}))[0][2]
      'a\\nb'
    """
    for number, cell in enumerate(content["cells"], 1):
        if cell.get("cell_type") == "code":
            source = cell.get("source", "")
            yield number, cell, "".join(source) if isinstance(source, list) else str(source)


def as_script(path: str) -> str:
    """Returns the code of a notebook as one Python file, with a comment in front of every cell."""
    parts = []
    for number, _, source in code_cells(load(path)):
        try:
            code = magics.to_python(source)
        except SyntaxError:
            # The check reports what is not Python.
            code = source
        parts.append(f"# cell {number}\n{code}\n")
    return "".join(parts)


def run(path: str, names: dict[str, Any]) -> None:
    """Executes the code cells and writes their output into the notebook, also if one of them fails.

    Args:
      path: the notebook.
      names: the namespace of the cells.
    """
    check_target(path, "notebook")
    content = load(path)
    names.setdefault(magics.SHELL, magics.run_shell)
    names.setdefault("display", _display)
    try:
        for count, (number, cell, source) in enumerate(code_cells(content), 1):
            cell["execution_count"] = count
            cell["outputs"] = []
            _run_cell(f"{path}, cell {number}", source, names, cell)
    finally:
        data = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        replace_file(path, "notebook", lambda stream: stream.write(data.encode("utf-8", "replace")))


def _display(*values: Any) -> None:
    for value in values:
        print(value if isinstance(value, str) else repr(value))


def _run_cell(name: str, source: str, names: dict[str, Any], cell: dict[str, Any]) -> None:
    outputs: list[dict[str, Any]] = cell["outputs"]
    try:
        with _recorded(outputs):
            value = _execute(name, source, names)
    except BaseException as error:
        output = {"output_type": "error", "ename": type(error).__name__, "evalue": str(error)}
        outputs.append({**output, "traceback": traceback.format_exception_only(error)})
        raise
    if value is not None:
        print(repr(value))
        output = {"output_type": "execute_result", "execution_count": cell["execution_count"]}
        outputs.append({**output, "data": {"text/plain": repr(value)}, "metadata": {}})


def _execute(name: str, source: str, names: dict[str, Any]) -> Any:
    """Executes a cell and returns the value of its last line, if that is an expression."""
    code = magics.to_python(source)
    # Tracebacks, and TensorFlow's autograph, read the source here.
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        # Not ast.parse, whose frame would appear in the traceback; without the `from __future__ import` of this file.
        tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        advice = python2.explain(error)
        if advice is not None:
            # The converter reads no notebooks.
            error.add_note(advice.partition("\n")[0] + " Change the cell to Python 3.")
        raise
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, name, "exec", dont_inherit=True), names)
    if not isinstance(last, ast.Expr):
        return None
    value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), names)
    # As in Jupyter, `f();` shows nothing.
    return None if code.rstrip().endswith(";") else value


class _Tee(io.TextIOBase):
    """Writes to a stream, and records what was written as an output of the cell."""

    def __init__(self, stream: TextIO, name: str, outputs: list[dict[str, Any]]) -> None:
        self._stream, self._name, self._outputs = stream, name, outputs

    def write(self, text: str) -> int:
        last = self._outputs[-1] if self._outputs else {}
        if last.get("name") == self._name:
            last["text"] += text
        elif text:
            self._outputs.append({"output_type": "stream", "name": self._name, "text": text})
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._stream.fileno()


@contextlib.contextmanager
def _recorded(outputs: list[dict[str, Any]]) -> Iterator[None]:
    with (
        contextlib.redirect_stdout(_Tee(sys.stdout, "stdout", outputs)),
        contextlib.redirect_stderr(_Tee(sys.stderr, "stderr", outputs)),
    ):
        yield
