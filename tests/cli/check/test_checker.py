"""Whole programs: what the check says is what happens."""

import json
from pathlib import Path

import pytest

from helpers.launcher import warm_moxing
from moxing.cli.check import checker, python2
from moxing.tf1.user import resolver

#: Import statements and names of TensorFlow 1, those that public programs use most.
SYMBOLS = Path(__file__).with_name("symbols.txt").read_text().splitlines()

#: Executes every line of a file, each for itself, and writes the errors.
PROBE = """
import json
import tensorflow as tf

errors = {}
for number, line in enumerate(open('program.py').read().splitlines(), 1):
    try:
        exec(line)
    except Exception as error:
        errors[number] = type(error).__name__
json.dump(errors, open('errors.json', 'w'))
"""


def resolved(line):
    _, module, _, item = line.split() if line.startswith("from ") else ("", line.removeprefix("import "), "", "")
    return resolver.resolve(resolver.Origin(module, item) if item else module)


def test_the_verdicts_are_what_happens(tmp_path):
    lines = ["import tensorflow as tf", *SYMBOLS]
    (tmp_path / "program.py").write_text("\n".join(lines) + "\n")
    (tmp_path / "probe.py").write_text(PROBE)
    done = warm_moxing("run", "probe.py", cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    failed = {int(number) for number in json.loads((tmp_path / "errors.json").read_text())}
    (report,) = checker.check(str(tmp_path / "program.py")).files
    missing = {line for one in report.missing for line in one.lines}
    refused = {line for line in missing - failed if resolved(lines[line - 1]).refused}
    wrong = (missing - refused) ^ failed
    assert not wrong, [(line, lines[line - 1], line in missing) for line in sorted(wrong)]
    assert len(lines) > 500 and 5 < len(failed) < len(lines) // 2
    # Every line has a verdict.
    assert {line for one in report.findings for line in one.lines} == set(range(1, len(lines) + 1))


def write(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.py").write_text(content)
    return str(folder)


def test_a_program_of_several_files(tmp_path):
    path = write(
        tmp_path,
        model="""
import tensorflow as tf
import helpers, horovod_that_is_not_here
from helpers import layer
slim = tf.contrib.slim
try:
    import not_installed_at_all
except ImportError:
    not_installed_at_all = None
try:
    from tensorflow import no_such_name
except ImportError:
    from tensorflow import no_such_name_either
if tf.__version__ < '1.0':
    tf.no_such_name
tf.patched()
FLAGS = tf.app.flags.FLAGS
slim.conv2d(FLAGS.images, 3, 3).no_such_method()
tf.nn.relu(1, nome='a')
""",
        helpers="import tensorflow as tf\ntf.patched = layer = print\n",
    )
    report = checker.check(path)
    helpers, model = report.files
    assert [one.name for one in helpers.findings] == ["tensorflow"] and helpers.share == 1
    assert [(one.kind, one.name, one.lines) for one in model.missing] == [
        ("package", "horovod_that_is_not_here", (3,)),
        ("import", "tf.no_such_name_either", (13,)),
        ("call", "tf.nn.relu", (19,)),
    ]
    optional = {one.name for one in model.findings if one.status == "optional"}
    assert optional == {"not_installed_at_all", "tf.no_such_name"}
    served = {one.name for one in model.findings if one.status == "served"}
    assert {"tf.contrib.slim.conv2d", "tf.app.flags.FLAGS", "tensorflow"} <= served


def test_python_2(tmp_path):
    path = write(tmp_path, old="import tensorflow as tf\nprint 'loss'\ntf.no_such_name\n")
    (file,) = checker.check(path).files
    syntax = file.missing[0]
    assert (syntax.kind, syntax.name, syntax.lines) == ("syntax", "Python 2", (2,))
    assert syntax.message.startswith("old.py, line 2 is Python 2 (the print statement). Run it as Python 2")
    if python2.refactoring_tool() is not None:
        assert [one.name for one in file.missing[1:]] == ["tf.no_such_name"]


def test_a_file_that_cannot_be_parsed(tmp_path):
    (file,) = checker.check(write(tmp_path, broken="import (\n")).files
    assert file.share == 0
    assert file.missing[0].name == "syntax error" and file.missing[0].message.endswith("Its names were not checked.")


def test_what_is_served_later_needs_no_change_here(monkeypatch):
    """The check asks the facade: a name that it begins to serve is served here too."""
    import moxing.tf1.contrib.util as part

    resolver._resolve.cache_clear()
    assert resolver.resolve("tf.contrib.util.brand_new").problem
    monkeypatch.setattr(part, "brand_new", len, raising=False)
    resolver._resolve.cache_clear()
    assert not resolver.resolve("tf.contrib.util.brand_new").problem
    resolver._resolve.cache_clear()


@pytest.mark.parametrize("name", ["no_such", "empty"])
def test_nothing_to_check(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises((FileNotFoundError, ValueError)):
        checker.check(str(tmp_path / name))
