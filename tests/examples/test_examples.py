"""Every program in `examples/` runs with the command of its docstring, and does what the docstring says."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import tensorflow as tf

from helpers.launcher import moxing, warm_moxing

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def docstring_of(script):
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))


def command_of(script):
    """The first indented `moxing run` line of the script's docstring."""
    return re.search(r"^    (moxing run .*)$", docstring_of(script), flags=re.MULTILINE)[1]


def run(name, cwd, start=warm_moxing):
    """Run an example with its documented command; return its standard output, and all of its output."""
    command = command_of(EXAMPLES / name).replace("examples/", f"{EXAMPLES}/")
    done = start(*shlex.split(command)[1:], cwd=cwd)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout, done.stdout + done.stderr


def losses(log, pattern=r"step: \d+\(.*\tloss: ([\d.]+)"):
    return [float(value) for value in re.findall(pattern, log)]


def test_train_line(tmp_path):
    printed, log = run("train_line.py", tmp_path, start=moxing)  # Started as a user does.
    values = losses(log)
    assert values[-1] < values[0] / 100
    slope, intercept = map(float, re.search(r"y = (\S+) x \+ (\S+)", printed).groups())
    assert slope == pytest.approx(3, abs=0.1)
    assert intercept == pytest.approx(2, abs=0.1)
    assert tf.train.latest_checkpoint(str(tmp_path / "line_log")).endswith("model.ckpt-300")


@pytest.mark.slow
def test_classify_folder(tmp_path):
    (tmp_path / "shapes").mkdir()  # Empty: the program draws its images.
    printed, log = run("classify_folder.py", tmp_path)
    values = losses(log)
    assert values[-1] < values[0]
    count, accuracy = re.search(r"accuracy on (\d+) new images: ([\d.]+)", printed).groups()
    assert count == "30"
    assert float(accuracy) > 0.6  # Chance is 0.33.
    assert "exported model: shapes_log/1\n" in printed
    assert (tmp_path / "shapes_log" / "labels.txt").read_text().split() == [
        "0:",
        "circle",
        "1:",
        "square",
        "2:",
        "triangle",
    ]
    exported = tf.saved_model.load(str(tmp_path / "shapes_log" / "1"))
    assert set(exported.signatures["serving_default"].structured_outputs) == {"class", "probabilities"}


def test_evaluate_inside_training(tmp_path):
    printed, log = run("evaluate_inside_training.py", tmp_path)
    step, bound = map(int, re.search(r"stopped at step (\d+) of at most (\d+)", printed).groups())
    assert step < bound == 10000
    evaluations = losses(log, r"\[EarlyStopping\] step: \d+ loss: ([\d.]+)")
    assert len(evaluations) == step // 25 >= 4
    assert min(evaluations) < evaluations[-1]
    assert tf.train.latest_checkpoint(str(tmp_path / "early_log" / "best"))
    again, log = run("evaluate_inside_training.py", tmp_path)
    assert again == printed and losses(log) == []


@pytest.mark.slow
def test_two_workers(tmp_path):
    _, log = run("two_workers.py", tmp_path)
    assert "worker 0 of 2: step 60\n" in log
    assert "worker 1 of 2: step 60\n" in log
    values = losses(log)
    assert values[-1] < values[0] / 10
    assert tf.train.latest_checkpoint(str(tmp_path / "workers_log")).endswith("model.ckpt-60")
    assert list((tmp_path / "moxing_cluster_logs").rglob("*.log"))


def test_every_command_of_two_workers_has_its_own_log_directory():
    directories = re.findall(
        r"^    moxing run .*--train_url=(\w+)$", docstring_of(EXAMPLES / "two_workers.py"), re.MULTILINE
    )
    assert len(directories) == len(set(directories)) == 3


@pytest.mark.slow
def test_tfrecord(tmp_path):
    printed, log = run("tfrecord.py", tmp_path)
    values = losses(log)
    assert values[-1] < values[0] / 10
    assert "trained on 4000 samples: 400 records, 10 epochs\n" in printed
    assert float(re.search(r"mean squared error of 400 records: ([\d.]+)", printed)[1]) < 0.05
    assert len(list((tmp_path / "houses").glob("*.tfrecord"))) == 2
    assert (tmp_path / "houses" / ".moxing_index").exists()
    run("tfrecord.py", tmp_path)
    assert tf.train.latest_checkpoint(str(tmp_path / "houses_log")).endswith("model.ckpt-400")


def test_slim_2017(tmp_path):
    printed, _ = run("slim_2017.py", tmp_path)
    values = losses(printed, r"step \d+, loss = ([\d.]+)")
    assert values[-1] < values[0] / 10
    assert "saved slim_log/model.ckpt-100\n" in printed
    assert tf.train.latest_checkpoint(str(tmp_path / "slim_log")).endswith("model.ckpt-100")
    assert list((tmp_path / "slim_log").glob("events.out.tfevents.*"))


def test_every_example_has_a_test():
    assert [f"test_{script.stem}" for script in SCRIPTS if f"test_{script.stem}" not in globals()] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_readme_lists_every_example(script):
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert f"[`{script.name}`]({script.name})" in text
    assert f"\n{command_of(script)}\n" in text
