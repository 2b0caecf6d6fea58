"""`moxing checkpoint show`: variables, totals and values."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from checkpoint_files import V1, V2, W, run, save


@pytest.mark.parametrize(("version", "files"), [(V1, "V1 format, 1 file"), (V2, "V2 format, 2 files")])
def test_show_lists_variables_and_totals(capsys, version, files):
    save("log/m.ckpt", {"net/w": W, "net/w/Momentum": W, "net/b": np.zeros(3), "global_step": np.int64(70)}, version)
    run("show", "log/m.ckpt")
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        f"log/m.ckpt: {files}, global_step 70",
        "  variable         shape     type  numbers",
        "  global_step         []    int64        1",
        "  net/b              [3]  float64        3",
        "  net/w           [2, 3]  float32        6",
        "  net/w/Momentum  [2, 3]  float32        6",
        "Total: 4 variables, 16 parameters, 80 bytes",
        "Optimizer: 1 variables, 6 parameters, 24 bytes",
    ]


def test_like_leaves_variables_out(capsys):
    save("m.ckpt", {"net/w": W, "net/b": np.zeros(3, np.float32)})
    run("show", "m.ckpt", "--like", "w$")
    out = capsys.readouterr().out
    assert "net/b" not in out
    assert "Total: 1 variables (of 2; --like excludes 1), 6 parameters, 24 bytes" in out


def test_values(capsys):
    values = {
        "w": np.array([1, 2, 3, 6], np.float32), "half": np.array([-1, 1], np.float16),
        "brain": np.array([0.5], tf.bfloat16.as_numpy_dtype), "n": np.int64(2**60 + 1), "text": np.array(["a"]),
        "none": np.zeros([0], np.float32), "flag": np.array([True, False]), "z": np.array([1j], np.complex64),
    }  # fmt: skip
    save("m.ckpt", values)
    run("show", "m.ckpt", "--values", ".")
    out, err = capsys.readouterr()
    assert err == ""
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
    assert rows == {
        "w": ["1", "6", "3", "1.87083", "yes"], "half": ["-1", "1", "0", "1", "yes"],
        "brain": ["0.5", "0.5", "0.5", "0", "yes"], "n": [str(2**60 + 1)] * 2 + ["1.15292e+18", "0", "yes"],
        "text": ["-"] * 5, "none": ["-"] * 4 + ["yes"], "flag": ["0", "1", "0.5", "0.5", "yes"],
        "z": ["-"] * 4 + ["yes"],
    }  # fmt: skip


def test_values_that_are_not_finite_are_exit_code_1(capsys):
    bad = np.array([np.nan, 1, np.inf, -np.inf, 3], np.float32)
    save("m.ckpt", {"good": W, "bad": bad, "worse": np.full([2], np.nan, np.float16)})
    run("show", "m.ckpt", "--values", ".", code=1)
    out, err = capsys.readouterr()
    assert re.search(r"^  bad +1 +3 +2 +1 +1 NaN, 2 infinite$", out, re.M), out
    assert re.search(r"^  worse +- +- +- +- +2 NaN$", out, re.M), out
    assert err == "moxing checkpoint show: 2 of 3 variables contain NaN or infinite values: bad, worse\n"
    run("show", "m.ckpt", "--values", "good")
    run("show", "m.ckpt", "--like", "good", "--values", ".")
    run("show", "m.ckpt")


def test_large_variables_are_taken_in_parts(capsys):
    values = np.random.default_rng(1).normal(size=(1 << 20) + 17).astype(np.float32)
    values[-1] = -99
    save("m.ckpt", {"w": values})
    run("show", "m.ckpt", "--values", "w")
    numbers = list(map(float, capsys.readouterr().out.splitlines()[-1].split()[1:5]))
    wide = values.astype(np.float64)
    np.testing.assert_allclose(numbers, [-99, wide.max(), wide.mean(), wide.std()], rtol=1e-5)


def test_the_place_in_the_data(capsys, directory):
    save("log/model.ckpt-1", {"w": W})
    content = {"format": 1, "elements": 6400, "seed": 7, "samples": [128, 5]}
    with open("log/model.ckpt-1.moxing.json", "w") as stream:
        json.dump(content, stream)
    run("show", "log")
    run("show", "log/model.ckpt-1.moxing.json")
    last = "Data position: 6,400 elements read, seed 7, next sample 128, 5\n"
    assert capsys.readouterr().out.count(last) == 2
    (directory / "log" / "model.ckpt-1.moxing.json").write_bytes(b"[1]")
    run("show", "log")
    assert "Data position: log/model.ckpt-1.moxing.json cannot be read (" in capsys.readouterr().out


def test_the_place_that_a_real_run_wrote(capsys, directory):
    import moxing.tensorflow as mox

    with tf.Graph().as_default():
        mox.run(
            input_fn=lambda mode: tf.data.Dataset.range(40).batch(2),
            model_fn=lambda inputs, mode: mox.ModelSpec(
                loss=tf.reduce_mean(tf.get_variable("w", []) * tf.cast(inputs[0], tf.float32)), log_info={}
            ),
            optimizer_fn=mox.get_optimizer_fn("momentum", learning_rate=0.1, momentum=0.9),
            run_mode=mox.ModeKeys.TRAIN,
            log_dir=str(directory / "log"),
            max_number_of_steps=3,
        )
    capsys.readouterr()
    run("show", "log")
    out = capsys.readouterr().out
    assert ", global_step 3\n" in out and "Optimizer: 1 variables" in out
    assert re.search(r"^Data position: [36] elements read", out, re.M), out


@pytest.mark.slow
@pytest.mark.realdata
def test_a_real_process_and_the_real_v1_file(real_data):
    path = str(real_data / "checkpoints" / "resnet_v1_50.ckpt")
    done = subprocess.run(
        [sys.executable, "-m", "moxing", "checkpoint", "show", path], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{path}: V1 format, 1 file"
    assert lines[-1] == "Total: 267 variables, 25,610,152 parameters, 102,440,608 bytes (102.4 MB)"
    assert len(lines) == 1 + 1 + 267 + 1
