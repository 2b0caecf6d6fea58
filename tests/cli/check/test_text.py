"""The report on the terminal."""

from moxing.cli.check import text
from moxing.cli.check.findings import MISSING, OPTIONAL, SERVED, FileReport, Finding, Report

GONE = "tf.contrib.crf is not available; use something. tf.contrib has: data, slim"
A = FileReport(
    "a.py",
    (
        Finding("name", SERVED, "tf.nn.relu", (1,), provider="TensorFlow"),
        Finding("name", SERVED, "tf.layers.dense", (2,), provider="tf-keras"),
        Finding("name", MISSING, "tf.contrib.crf.a", (3, 9), GONE),
        Finding("import", OPTIONAL, "horovod", (4,), "horovod is not installed"),
    ),
)
B = FileReport("b.py", (Finding("name", MISSING, "tf.contrib.crf.b", (5,), f"No module named 'x': {GONE}"),))
C = FileReport("c.py", ())


def test_a_directory(capsys):
    text.print_report(Report("project", (A, B, C)))
    assert (
        capsys.readouterr().out
        == """\
project: 50 %, 2 of 4 names are served in 3 files

  file  share  names  missing
  b.py    0 %      1        1
  a.py   66 %      3        1
  1 file more: 100 %

Missing:
  tf.contrib.crf is not available; use something
    tf.contrib.crf.a: a.py:3,9
    tf.contrib.crf.b: b.py:5

Served by:
  TensorFlow 1
  tf-keras 1: tf.layers.dense

Not counted, since the program does without: 1 (--verbose lists them)
"""
    )


def test_packages_come_last_and_long_lists_are_cut(capsys):
    lost = Finding("package", MISSING, "gym", (1,), "gym is not installed: pip install gym")
    gone = Finding("name", MISSING, "tf.gone", (2,), "it is gone")
    report = Report("p", tuple(FileReport(f"{number}.py", (lost, gone)) for number in range(11)))
    text.print_report(report)
    out = capsys.readouterr().out
    assert "    tf.gone: 0.py:2, 1.py:2, 2.py:2, 3.py:2, 4.py:2, 5.py:2, 6.py:2, 7.py:2 and 3 files more\n" in out
    assert out.index("Missing:") < out.index("Not installed:\n  gym is not installed: pip install gym (0.py:1, ")
    text.print_report(report, verbose=True)
    assert "9.py:2, 10.py:2\n" in capsys.readouterr().out


def test_verbose(capsys):
    text.print_report(Report("project", (A, C)), verbose=True)
    out = capsys.readouterr().out
    assert "  c.py  100 %      0        0\n" in out
    assert "    horovod: a.py:4\n" in out and "TensorFlow 1: tf.nn.relu" in out
