"""`moxing checkpoint convert`: formats, types, names, and that no half checkpoint is ever taken for a whole one."""

import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from checkpoint_files import V1, V2, W

from moxing.cli import main
from moxing.cli.checkpoint import convert as checkpoint_convert

BFLOAT16 = tf.bfloat16.as_numpy_dtype


def save(prefix, values, version=V2):
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {name: tf.Variable(value, use_resource=False) for name, value in values.items()}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(variables, write_version=version).save(session, prefix, write_meta_graph=False)


def load(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def run(*words, code=0):
    assert main.main(["checkpoint", "convert", *map(str, words)]) == code


def content(directory):
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as stream:
            found[name] = stream.read()
    return found


@pytest.mark.parametrize("version", [V1, V2])
def test_all_types_come_out_as_they_went_in(capsys, version):
    values = {
        "w": W, "double": W.astype(np.float64) / 3, "n": np.int64(2**60 + 1), "byte": np.uint8([255]),
        "flag": np.array([True]), "text": np.array([b"a\0", b"\xff"], object), "word": np.array(b"end\0\0", object),
        "none": np.zeros([0, 3], np.float32),
    }  # fmt: skip
    if version == V2:
        values |= {"half": W.astype(np.float16), "brain": W.astype(BFLOAT16), "z": np.complex64([1j])}
    save("a.ckpt", values, version)
    capsys.readouterr()
    run("a.ckpt", "new/b.ckpt")
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"new/b.ckpt: {len(values)} variables, 2 files, ") and "V2 format" in out
    assert sorted(os.listdir("new")) == ["b.ckpt.data-00000-of-00001", "b.ckpt.index"]
    found = load("new/b.ckpt")
    assert set(found) == set(values)
    for name, value in values.items():
        expected = np.asarray(value)
        got = np.asarray(found[name], dtype=object if isinstance(found[name], bytes) else None)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
        assert got.tolist() == expected.tolist(), name


@pytest.mark.parametrize(("dtype", "numpy"), [("float16", np.float16), ("bfloat16", BFLOAT16), ("float32", np.float32)])
def test_only_floating_point_variables_change_their_type(capsys, dtype, numpy):
    values = {"w": W / 3, "double": W.astype(np.float64) / 3, "half": W.astype(np.float16), "global_step": np.int64(7)}
    save("a.ckpt", {**values, "bad": np.float32([np.nan, np.inf, -np.inf])})
    run("a.ckpt", "b.ckpt", "--dtype", dtype)
    found = load("b.ckpt")
    assert {name: value.dtype for name, value in found.items() if name != "global_step"} == dict.fromkeys(
        ["w", "double", "half", "bad"], np.dtype(numpy)
    )
    assert found["global_step"].dtype == np.int64 and found["global_step"] == 7
    for name in ("w", "double", "half"):
        np.testing.assert_array_equal(found[name], values[name].astype(numpy))
    np.testing.assert_array_equal(found["bad"].astype(np.float32), np.float32([np.nan, np.inf, -np.inf]))
    changed = {"float16": 3, "bfloat16": 4, "float32": 2}[dtype]
    assert f"Converted to {dtype}: {changed} variables\n" in capsys.readouterr().out


@pytest.mark.parametrize(("dtype", "large", "most"), [("float16", 1e5, 65504.0), ("bfloat16", 3.4e38, 3.3895314e38)])
def test_values_that_do_not_fit(capsys, dtype, large, most):
    save("a.ckpt", {"fits": W, "wide": np.float32([1, -large, large, np.inf, np.nan])})
    run("a.ckpt", "new/b.ckpt", "--dtype", dtype, code=2)
    err = capsys.readouterr().err
    assert (
        f"--dtype={dtype}: 2 values of wide do not fit: the largest is {large:g}, the maximum of {dtype} is {most:g}."
        in err
    )
    assert not os.path.exists("new")
    run("a.ckpt", "new/b.ckpt", "--dtype", dtype, "--clip")
    assert "Clipped: 2 values of 1 variables, most in wide\n" in capsys.readouterr().out
    np.testing.assert_allclose(load("new/b.ckpt")["wide"].astype(np.float64), [1, -most, most, np.inf, np.nan], 1e-6)
    run("a.ckpt", "new/c.ckpt", "--dtype", dtype, "--exclude", "wide")
    assert set(load("new/c.ckpt")) == {"fits"}


def test_values_that_become_0_are_told(capsys):
    save("a.ckpt", {"w": np.float32([1e-9, 0, 1, -1e-9])})
    run("a.ckpt", "b.ckpt", "--dtype", "float16")
    assert "Rounded to 0: 2 values of 1 variables, most in w\n" in capsys.readouterr().out


def test_choosing_and_renaming(capsys):
    save("a.ckpt", {"net/conv1/w": W, "net/conv1/b": W[0], "net/conv1/w/Momentum": W, "head/w": -W})
    run(
        "a.ckpt", "b.ckpt", "--like", "w", "--exclude", "/Momentum$", "--rename", "^net/(.*)1/=body/\\1_1/", "w$=kernel"
    )
    found = load("b.ckpt")
    assert set(found) == {"body/conv_1/kernel", "head/kernel"}
    np.testing.assert_array_equal(found["head/kernel"], -W)
    out = capsys.readouterr().out
    assert "Excluded: 2 variables\n" in out
    assert "Renamed: 2 variables, such as head/w to head/kernel\n" in out
    # Two names change places.
    save("c.ckpt", {"a": W, "b": -W})
    run("c.ckpt", "d.ckpt", "--rename", "^a$=t", "--rename", "^b$=a", "--rename", "^t$=b")
    np.testing.assert_array_equal(load("d.ckpt")["a"], -W)


def test_a_converted_checkpoint_restores_partitioned_variables():
    with tf.Graph().as_default(), tf.Session() as session:
        part = tf.get_variable("p", [10, 4], partitioner=tf.fixed_size_partitioner(3), use_resource=False)
        session.run(tf.global_variables_initializer())
        expected = session.run(part.as_tensor())
        for name, version in (("a1.ckpt", V1), ("a2.ckpt", V2)):
            tf.train.Saver(write_version=version).save(session, f"./{name}", write_meta_graph=False)
        for name in ("a1.ckpt", "a2.ckpt"):
            run(name, f"new/{name}")
            session.run(tf.global_variables_initializer())
            tf.train.Saver().restore(session, f"new/{name}")
            np.testing.assert_array_equal(session.run(part.as_tensor()), expected)


def test_large_checkpoints_are_written_in_parts(capsys, monkeypatch):
    monkeypatch.setattr(checkpoint_convert, "_SHARD", 50)
    values = {f"w{i}": W + i for i in range(5)}
    save("a.ckpt", values)
    run("a.ckpt", "new/b.ckpt")
    assert sorted(os.listdir("new")) == [*(f"b.ckpt.data-0000{i}-of-00003" for i in range(3)), "b.ckpt.index"]
    for name, value in load("new/b.ckpt").items():
        np.testing.assert_array_equal(value, values[name])
    # Fewer files than before: those of the old one must not stay.
    run("a.ckpt", "new/b.ckpt", "--like", "w[01]", "--overwrite")
    assert sorted(os.listdir("new")) == ["b.ckpt.data-00000-of-00001", "b.ckpt.index"]


@pytest.mark.parametrize("version", [V1, V2])
def test_overwriting_and_in_place(capsys, version):
    save("log/a.ckpt", {"w": W}, version)
    capsys.readouterr()
    before = content("log")
    run("log/a.ckpt", "log/a.ckpt", "--dtype", "float16", code=2)
    assert "exists. Use --overwrite to replace it." in capsys.readouterr().err
    assert content("log") == before
    run("log/a.ckpt", "log/a.ckpt", "--dtype", "float16", "--overwrite")
    assert sorted(os.listdir("log")) == ["a.ckpt.data-00000-of-00001", "a.ckpt.index", "checkpoint"]
    np.testing.assert_array_equal(load("log/a.ckpt")["w"], W.astype(np.float16))
    assert content("log")["checkpoint"] == before["checkpoint"]


def test_the_place_in_the_data_goes_along():
    save("log/model.ckpt-5", {"w": W})
    with open("log/model.ckpt-5.moxing.json", "w") as stream:
        json.dump({"format": 1, "elements": 5, "seed": 1}, stream)
    run("log", "new/model.ckpt-5")
    assert content("new")["model.ckpt-5.moxing.json"] == content("log")["model.ckpt-5.moxing.json"]
    # What replaces it has no place, and must not seem to have the old one's.
    save("a.ckpt", {"w": W})
    run("a.ckpt", "new/model.ckpt-5", "--overwrite")
    assert sorted(os.listdir("new")) == ["model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index"]


def test_state_makes_a_directory_for_checkpoint_path(capsys, directory):
    from moxing.tensorflow.executor.checkpoints.choose import find_checkpoint

    save("log/model.ckpt-1", {"w": W})
    run("log", "新 目录/模型.ckpt")
    assert not os.path.exists("新 目录/checkpoint")
    run("log", "新 目录/模型.ckpt", "--overwrite", "--state")
    assert "Latest checkpoint in 新 目录/checkpoint\n" in capsys.readouterr().out
    os.rename("新 目录", "moved")
    assert find_checkpoint("moved").prefix == "moved/模型.ckpt"
    # The others stay known.
    run("log", "log/other.ckpt", "--state")
    assert find_checkpoint("log").prefix == "log/other.ckpt"
    state = tf.train.get_checkpoint_state("log")
    assert list(state.all_model_checkpoint_paths) == ["log/model.ckpt-1", "log/other.ckpt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a.ckpt", "folder"), "TARGET='folder' is a directory. Expected a prefix, such as folder/model.ckpt."),
        (("a.ckpt", "new/"), "TARGET='new/' is a directory. Expected a prefix, such as new/model.ckpt."),
        (("a.ckpt", ""), "TARGET='' is a directory. Expected a prefix, such as new/model.ckpt."),
        (("a.ckpt", "new/b.ckpt.index"), "TARGET='new/b.ckpt.index' is one file of a checkpoint."),
        (("a.ckpt", "s3://bucket/b"), "TARGET='s3://bucket/b' is a url."),
        (("a.ckpt", "new/[b]"), "TARGET='new/[b]': TensorFlow cannot read a checkpoint whose path contains"),
        (("a.ckpt", "new/b", "--clip"), "--clip needs --dtype."),
        (("a.ckpt", "new/b", "--like", "x"), "--like='x' matches none of the 2 variables."),
        (("a.ckpt", "new/b", "--exclude", "x"), "--exclude='x' matches none of the 2 variables."),
        (("a.ckpt", "new/b", "--exclude", "."), "--exclude='.' excludes all variables."),
        (("a.ckpt", "new/b", "--rename", "v"), "--rename='v': expected FROM=TO, such as "),
        (("a.ckpt", "new/b", "--rename", "=v"), "--rename='=v': expected FROM=TO"),
        (("a.ckpt", "new/b", "--rename", "x=y"), "--rename='x=y': 'x' matches none of the 2 names."),
        (("a.ckpt", "new/b", "--rename", "(=y"), "--rename='(' is not a valid regular expression"),
        (("a.ckpt", "new/b", "--rename", r"v=\1"), "--rename='v=\\\\1': '\\\\1' is not a valid replacement"),
        (("a.ckpt", "new/b", "--rename", "[vw]=x"), "--rename: v and w would both be called x."),
        (("a.ckpt", "new/b", "--rename", "v="), "--rename: the new name of v is empty."),
        (("a.ckpt", "a.ckpt.index/b"), "a.ckpt.index"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(capsys, words, message):
    save("a.ckpt", {"v": W, "w": W})
    os.mkdir("folder")
    before = sorted(os.listdir("."))
    run(*words, code=2)
    out, err = capsys.readouterr()
    assert err.startswith(f"moxing checkpoint convert: error: {message}") and err.count("\n") == 1
    assert out == "" and sorted(os.listdir(".")) == before and os.listdir("folder") == []


def test_what_was_written_is_read_back(capsys, monkeypatch):
    save("a.ckpt", {"w": W})
    write = checkpoint_convert._write

    def spoiled(prefix, conversion):
        write(prefix, conversion)
        with open(f"{prefix}.data-00000-of-00001", "r+b") as stream:
            stream.write(b"\x07")

    monkeypatch.setattr(checkpoint_convert, "_write", spoiled)
    run("a.ckpt", "new/b.ckpt", code=2)
    assert "is damaged: the values of w cannot be read" in capsys.readouterr().err
    assert not os.path.exists("new")


def test_a_disk_that_takes_no_more(capsys):
    save("a.ckpt", {"w": np.zeros(100_000, np.float32)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        run("a.ckpt", "new/b.ckpt", code=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "error: TARGET: the checkpoint could not be written (" in (err := capsys.readouterr().err)
    assert "File too large" in err and not os.path.exists("new")


@pytest.mark.parametrize("failing", range(6))
def test_a_failing_rename_brings_the_old_checkpoint_back(capsys, monkeypatch, failing):
    save("log/m.ckpt", {"w": W})
    with open("log/m.ckpt.moxing.json", "w") as stream:
        stream.write("{}")
    save("a.ckpt", {"w": -W})
    before = content("log")
    replace, calls = os.replace, []

    def broken(source, target):
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(5, "Input/output error", target)
        replace(source, target)

    # Three old files move away, two new ones take their names; the sixth call does not come.
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", broken)
        run("a.ckpt", "log/m.ckpt", "--overwrite", code=2 if failing < 5 else 0)
    if failing < 5:
        assert "Input/output error" in capsys.readouterr().err
        assert content("log") == before
    else:
        np.testing.assert_array_equal(load("log/m.ckpt")["w"], -W)


def test_at_every_moment_there_is_a_whole_checkpoint_or_none(monkeypatch):
    monkeypatch.setattr(checkpoint_convert, "_SHARD", 30)
    save("a.ckpt", {"w": -W, "v": W})
    run("a.ckpt", "log/m.ckpt")
    save("b.ckpt", {"w": W, "v": -W})
    seen, replace = [], os.replace

    def watched(source, target):
        replace(source, target)
        seen.append(load("log/m.ckpt")["w"][1, 2] if os.path.exists("log/m.ckpt.index") else None)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", watched)
        run("b.ckpt", "log/m.ckpt", "--overwrite")
    assert seen == [None] * 5 + [5]


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_half_checkpoint():
    code = (
        "import os, signal\n"
        "from moxing.cli import main\n"
        "replace = os.replace\n"
        "def deadly(a, b):\n"
        "    if b == 'log/m.ckpt.index': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    replace(a, b)\n"
        "os.replace = deadly\n"
        "main.main(['checkpoint', 'convert', 'a.ckpt', 'log/m.ckpt', '--overwrite'])\n"
    )
    save("a.ckpt", {"w": -W})
    save("log/m.ckpt", {"w": W})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=240)
    assert done.returncode == -signal.SIGKILL
    assert main.main(["checkpoint", "show", "log/m.ckpt"]) == 2
    # The old one lies aside, whole.
    (aside,) = [name for name in os.listdir("log") if name.startswith(".m.ckpt.")]
    np.testing.assert_array_equal(load(f"log/{aside}/replaced/m.ckpt")["w"], W)
    run("a.ckpt", "log/m.ckpt", "--overwrite")
    np.testing.assert_array_equal(load("log/m.ckpt")["w"], -W)


@pytest.mark.slow
@pytest.mark.realdata
def test_the_real_v1_file(real_data, capsys):
    path = real_data / "checkpoints" / "resnet_v1_50.ckpt"
    # Its first batch normalisation saw variances that float16 does not reach.
    run(path, "new/half.ckpt", "--dtype", "float16", code=2)
    assert "1 values of resnet_v1_50/conv1/BatchNorm/moving_variance do not fit: the largest is 83614.7" in (
        capsys.readouterr().err
    )
    run(path, "new/model.ckpt", "--state")
    assert main.main(["checkpoint", "diff", str(path), "new", "--values"]) == 0
    assert "Values that differ at all: 0 of 267 variables" in capsys.readouterr().out
    run("new", "new/brain.ckpt", "--dtype", "bfloat16")
    assert os.path.getsize("new/brain.ckpt.data-00000-of-00001") * 2 == 102_440_608
