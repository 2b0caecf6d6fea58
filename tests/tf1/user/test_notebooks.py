"""Notebooks run as scripts, and keep what they printed."""

import json

import pytest

from helpers.launcher import warm_moxing
from moxing.tf1.user import notebooks


def cell(source, kind="code"):
    more = {"execution_count": None, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}]}
    return {"cell_type": kind, "metadata": {}, "source": source, **(more if kind == "code" else {})}


def write(folder, *cells, version=4):
    path = folder / "model.ipynb"
    path.write_text(
        json.dumps({"nbformat": version, "nbformat_minor": 2, "metadata": {"k": "é"}, "cells": list(cells)})
    )
    return path


def test_a_notebook(tmp_path):
    path = write(
        tmp_path,
        cell("# Title", "markdown"),
        cell(["%matplotlib inline\n", "import sys\n", "import tensorflow as tf\n", "slim = tf.contrib.slim"]),
        cell("x = tf.placeholder(tf.float32, [3, 2])\nprint(slim.flatten(x).shape)\nx.shape[0].value + len(sys.argv)"),
        cell("def f() -> no_such_name: pass"),
        cell("print('never')"),
    )
    done = warm_moxing("run", path.name, "--flag", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "(3, 2)\n5\n"
    # The frames are the notebook's, with its source.
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "')
    assert 'model.ipynb, cell 4", line 1' in done.stderr and "    def f() -> no_such_name: pass\n" in done.stderr
    assert "moxing" not in done.stderr.replace(str(tmp_path), "")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["metadata"] == {"k": "é"} and content["cells"][0] == cell("# Title", "markdown")
    first, second, third, fourth = content["cells"][1:]
    assert (first["outputs"], first["execution_count"]) == ([], 1)
    assert second["outputs"] == [
        {"output_type": "stream", "name": "stdout", "text": "(3, 2)\n"},
        {"output_type": "execute_result", "execution_count": 2, "data": {"text/plain": "5"}, "metadata": {}},
    ]
    assert third["outputs"][0]["ename"] == "NameError"
    assert fourth["outputs"][0]["text"] == "old" and fourth["execution_count"] is None


def test_all_kinds_of_output(tmp_path, capsys):
    path = write(
        tmp_path, cell("import sys\nprint(1); print(2, file=sys.stderr); print(3)"), cell("display('a', [4])\n5;")
    )
    notebooks.run(str(path), {})
    first, second = (one["outputs"] for one in json.loads(path.read_text())["cells"])
    assert [(one["name"], one["text"]) for one in first] == [("stdout", "1\n"), ("stderr", "2\n"), ("stdout", "3\n")]
    assert [one["text"] for one in second] == ["a\n[4]\n"]
    assert capsys.readouterr().out == "1\n3\na\n[4]\n"


def test_python_2_in_a_cell(tmp_path):
    with pytest.raises(SyntaxError) as error:
        notebooks.run(str(write(tmp_path, cell("print 'loss'"))), {})
    (note,) = error.value.__notes__
    assert note.endswith("model.ipynb, cell 1, line 1 is Python 2 (the print statement). Change the cell to Python 3.")


def test_what_is_no_notebook(tmp_path):
    old = warm_moxing("run", write(tmp_path, version=3).name, cwd=tmp_path)
    assert old.returncode == 2 and "has the notebook format 3, expected 4. Convert it: jupyter nbconvert" in old.stderr
    (tmp_path / "model.ipynb").write_text("{")
    with pytest.raises(notebooks.NotebookError, match="is not a notebook"):
        notebooks.load(str(tmp_path / "model.ipynb"))


def test_as_script(tmp_path):
    path = write(tmp_path, cell("text", "markdown"), cell("!ls\nx = 1"), cell("%no_such_magic"))
    assert notebooks.as_script(str(path)) == (
        "# cell 2\n__moxing_shell__('ls', globals());\nx = 1\n# cell 3\n%no_such_magic\n"
    )
