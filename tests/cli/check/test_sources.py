"""Which files are read, and how they are parsed."""

import ast
import json

import pytest

from moxing.cli.check import sources


def write(folder, name, content="import os\n"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_files_of_a_directory(tmp_path):
    wanted = [write(tmp_path, name) for name in ("a.py", "b/c.py")]
    for name in (".git/x.py", "venv/x.py", "mine/pyvenv.cfg", "mine/lib/x.py", "__pycache__/x.py", "b/data.txt"):
        write(tmp_path, name)
    assert sources.find(str(tmp_path)) == wanted
    assert sources.find(wanted[0]) == [wanted[0]]


def test_nothing_to_read(tmp_path):
    with pytest.raises(ValueError, match="there is no Python file in this directory"):
        sources.find(str(tmp_path))
    with pytest.raises(ValueError, match="expected a Python file, a notebook or a directory"):
        sources.find(write(tmp_path, "README.md"))
    with pytest.raises(FileNotFoundError):
        sources.find(str(tmp_path / "none.py"))


def test_encodings_and_line_ends(tmp_path):
    path = write(tmp_path, "a.py", "# -*- coding: latin-1 -*-\r\nx = 'é'\r\n".encode("latin-1"))
    source = sources.read(path, "a.py")
    assert source.text == "# -*- coding: latin-1 -*-\nx = 'é'\n"
    assert source.error is None and source.tree.body[0].lineno == 2


@pytest.mark.parametrize("content", [b"x = '\xff'\n", b"\x00", b"# coding: no-such-code\n", b"import ("])
def test_damaged_files_are_errors_of_the_file(tmp_path, content):
    source = sources.read(write(tmp_path, "a.py", content), "a.py")
    assert isinstance(source.error, SyntaxError)


def test_nothing_is_executed(tmp_path):
    source = sources.read(write(tmp_path, "a.py", f"open({str(tmp_path / 'ran')!r}, 'w')"), "a.py")
    assert isinstance(source.tree, ast.Module)
    assert not (tmp_path / "ran").exists()


def test_notebooks(tmp_path):
    cells = [{"cell_type": "code", "source": "%matplotlib inline\nimport os"}]
    path = write(tmp_path, "a.ipynb", json.dumps({"nbformat": 4, "cells": cells}))
    assert sources.find(str(tmp_path)) == [path]
    source = sources.read(path, "a.ipynb")
    assert source.error is None and source.tree.body[1].lineno == 3
    damaged = sources.read(write(tmp_path, "b.ipynb", "{"), "b.ipynb")
    assert "is not a notebook" in str(damaged.error)
