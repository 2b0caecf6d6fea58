"""`moxing zoo`: the table, one network, and what it says to wrong arguments."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from moxing.cli.main import main
from moxing.tensorflow.network_registry import NetworkKeys


def run(*words, code=0):
    assert main(["zoo", *words]) == code


def test_the_table(capsys):
    run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["network", "parameters", "multiply-adds", "image", "checkpoint", "prefix"]
    count = len(NetworkKeys)
    rows = {line.split()[0]: line.split()[1:] for line in lines[1 : count + 1]}
    assert list(rows) == list(NetworkKeys)
    assert rows["resnet_v1_50"] == ["25.56", "M", "3.48", "G", "224x224", "resnet_v1_50"]
    assert rows["lenet"] == ["3.27", "M", "13.88", "M", "28x28", "LeNet"]
    # Its variables have no prefix.
    assert rows["nasnet_mobile"][-2:] == ["224x224", "-"]
    assert lines[count + 1].startswith(f"{count} networks") and "moxing zoo show NAME" in lines[count + 2]


def test_json(capsys):
    run("--json")
    figures = json.loads(capsys.readouterr().out)
    assert list(figures) == list(NetworkKeys)
    assert figures["lenet"] == {
        "parameters": 3_274_634,
        "multiply_adds": 13_883_904,
        "image_size": 28,
        "num_classes": 10,
        "scope": "LeNet",
    }


def test_show(capsys):
    run("show", "lenet")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "lenet: images 28x28, checkpoint prefix LeNet"
    assert lines[1].split() == ["layer", "kind", "output", "parameters", "multiply-adds"]
    assert lines[2].split() == ["conv1", "conv", "5x5", "28x28x32", "832", "627,200"]
    assert lines[-3].split() == ["fc4", "dense", "10", "10,250", "10,240"]
    assert lines[-2].split() == ["total", "3,274,634", "13,883,904"]
    assert lines[-1] == "Options for mox.get_model_fn: dropout_keep_prob=0.5"


def test_show_with_other_classes_and_size(capsys):
    run("show", "LeNet", "--image_size", "9", "--num_classes=3")
    out = capsys.readouterr().out
    assert out.startswith("lenet: images 9x9, checkpoint prefix LeNet\n")
    assert re.search(r"fc4 +dense +3 +3,075 +3,072\n", out)


@pytest.mark.slow
def test_show_as_it_trains(capsys):
    run("show", "inception_v3", "--training", "--image_size", "75", "--num_classes", "5")
    assert re.search(r"AuxLogits/Conv2d_2b_1x1 +conv 1x1 +1x1x5 ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "resnet50"], r"NAME='resnet50'\)?: no such network; did you mean 'resnet_v1_50'"),
        (["show", "mobilenet-v2"], r"NAME='mobilenet-v2'\)?: no such network; did you mean 'mobilenet_v2'"),
        (["show", "qqqq"], "no such network; expected one of alexnet_v2, "),
        (
            ["show", "lenet", "--image_size", "3"],
            "lenet was given images of height 3: its layers need at least 4 x 4 pixels",
        ),
        (["show", "vgg_16", "--image_size", "223"], "its layers need at least 224 x 224 pixels"),
        (["show", "lenet", "--image_size", "0"], "--image_size=0: expected a number from 1."),
        (["show", "lenet", "--image_size=-5"], "--image_size=-5: expected a number from 1."),
        (["show", "lenet", "--num_classes", "0"], "--num_classes=0: expected a number from 1."),
        (["--json", "show", "lenet"], "--json prints the table"),
    ],
)
def test_wrong_arguments(capsys, words, message):
    run(*words, code=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("moxing zoo") and captured.err.count("\n") == 1
    assert re.search(message, captured.err)


@pytest.mark.parametrize("words", [["show"], ["show", "lenet", "--image_size", "many"], ["list"]])
def test_arguments_that_do_not_parse(capsys, words):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    assert "usage: moxing zoo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lenet"], "unknown command 'lenet': did you mean `moxing zoo show lenet`? "),
        (["LeNet", "--training"], "unknown command 'LeNet': did you mean `moxing zoo show lenet`? "),
        (["--json", "resnet50"], "unknown command 'resnet50': did you mean `moxing zoo show resnet_v1_50`? "),
        (["qqqq"], "unknown command 'qqqq': `moxing zoo` lists all networks, "),
    ],
)
def test_a_network_without_show(capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith(f"moxing zoo: error: {message}")


@pytest.mark.parametrize("words", [["zoo"], ["zoo", "--json"], ["zoo", "--help"], ["zoo", "show", "--help"]])
def test_the_table_does_not_wait_for_tensorflow(words):
    script = (
        "import sys\n"
        "from moxing.cli.main import main\n"
        "try:\n"
        f"    code = main({words!r})\n"
        "except SystemExit as ended:\n"
        "    code = ended.code\n"
        "assert code == 0, code\n"
        "heavy = {'tensorflow', 'numpy', 'tf_keras'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "zoo" in done.stdout or "lenet" in done.stdout


@pytest.mark.slow
def test_exit_code_of_the_process():
    command = "import sys; from moxing.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "zoo", "show", "vgg16"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert done.stdout == "" and "did you mean 'vgg_16'" in done.stderr
    assert "Traceback" not in done.stderr
