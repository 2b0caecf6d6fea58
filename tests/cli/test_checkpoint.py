"""`moxing checkpoint`: help and errors that all three commands share, and what `show` prints."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing as mox
from moxing.cli import main

V1, V2 = tf.train.SaverDef.V1, tf.train.SaverDef.V2
W = np.arange(6, dtype=np.float32).reshape(2, 3)


def save(prefix, values, version=V2, **saver):
    """A checkpoint as TensorFlow writes it, with the file `checkpoint`."""
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {name: tf.Variable(value, use_resource=False) for name, value in values.items()}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(variables, write_version=version, **saver).save(session, prefix, write_meta_graph=False)


def run(*words, code=0):
    assert main.main(["checkpoint", *map(str, words)]) == code


def change(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
        "Of these the optimizer's: 1 variables, 6 parameters, 24 bytes",
    ]


def test_like_leaves_variables_out(capsys):
    save("m.ckpt", {"net/w": W, "net/b": np.zeros(3, np.float32)})
    run("show", "m.ckpt", "--like", "w$")
    out = capsys.readouterr().out
    assert "net/b" not in out
    assert "Total: 1 variables (of 2; --like leaves out 1), 6 parameters, 24 bytes" in out


@pytest.mark.parametrize("ending", ["", ".index", ".data-00000-of-00001"])
def test_every_file_of_a_checkpoint_names_it(capsys, ending):
    save("log/m.ckpt", {"w": W})
    run("show", f"log/m.ckpt{ending}")
    assert capsys.readouterr().out.startswith("log/m.ckpt: V2 format")


def test_a_directory_is_its_newest_checkpoint(capsys):
    save("log/model.ckpt-9", {"w": W})
    save("log/model.ckpt-10", {"w": W})
    run("show", "log")
    run("show", "log/checkpoint")
    assert capsys.readouterr().out.count("log/model.ckpt-10: ") == 2
    # The file that names them is older than a copy of the directory.
    save("log/model.ckpt-9", {"w": W})
    run("show", "log")
    assert "log/model.ckpt-9: " in capsys.readouterr().out
    os.remove("log/checkpoint")
    run("show", "log")
    assert "log/model.ckpt-10: " in capsys.readouterr().out


def test_a_moved_directory_and_a_removed_checkpoint(capsys, directory):
    save(str(directory / "log" / "model.ckpt-1"), {"w": W})
    with open("log/checkpoint", "w") as stream:
        stream.write('model_checkpoint_path: "/gone/log/model.ckpt-2"\n')
        stream.write('all_model_checkpoint_paths: "/gone/log/model.ckpt-1"\n')
    run("show", "log")
    out, err = capsys.readouterr()
    assert out.startswith("log/model.ckpt-1: ")
    assert err == "moxing checkpoint show: warning: log/checkpoint names /gone/log/model.ckpt-2, which is not there.\n"


def test_a_lone_v1_file_in_a_directory_among_others(capsys):
    save("log/m.ckpt", {"w": W}, V1)
    os.remove("log/checkpoint")
    change("log/notes.txt", b"text")
    change("log/empty", b"")
    os.mkdir("log/folder")
    run("show", "log")
    assert capsys.readouterr().out.startswith("log/m.ckpt: V1 format")


@pytest.mark.parametrize("version", [V1, V2])
def test_paths_with_chinese_and_spaces(capsys, version):
    save("训练 日志/模型 一.ckpt", {"w": W}, version)
    run("show", "训练 日志/模型 一.ckpt")
    run("show", "训练 日志", "--values", "w")
    assert capsys.readouterr().out.count("训练 日志/模型 一.ckpt: V") == 2


def test_v1_in_several_files_and_slices(capsys):
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        with tf.device("/cpu:0"):
            tf.get_variable("a", initializer=W, use_resource=False)
        with tf.device("/cpu:1"):
            tf.get_variable(
                "sliced", [10, 4], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3),
                use_resource=False,
            )  # fmt: skip
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(sharded=True, write_version=V1)
        os.mkdir("log")
        saver.save(session, "log/m.ckpt", write_meta_graph=False)
    files = sorted(name for name in os.listdir("log") if name != "checkpoint")
    for path in ("log", "log/m.ckpt", f"log/{files[0]}"):
        run("show", path, "--values", ".")
    out = capsys.readouterr().out
    assert out.count(f"log/m.ckpt-?????-of-{len(files):05}: V1 format, {len(files)} file") == 3
    assert out.count("  sliced      1    1     1        0     yes") == 3
    if len(files) > 1:
        os.remove(f"log/{files[1]}")
        run("show", "log/m.ckpt", code=2)
        assert "incomplete: of the files log/m.ckpt-* 1 of 2 are there" in capsys.readouterr().err


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
    assert err == "moxing checkpoint show: 2 of 3 variables hold NaN or infinite numbers: bad, worse\n"
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


def test_the_place_in_the_data(capsys):
    save("log/model.ckpt-1", {"w": W})
    content = {"format": 1, "elements": 6400, "seed": 7, "samples": [128, 5]}
    with open("log/model.ckpt-1.moxing.json", "w") as stream:
        json.dump(content, stream)
    run("show", "log")
    run("show", "log/model.ckpt-1.moxing.json")
    last = "Place in the data: 6,400 elements used up, seed 7, next sample 128, 5\n"
    assert capsys.readouterr().out.count(last) == 2
    change("log/model.ckpt-1.moxing.json", b"[1]")
    run("show", "log")
    assert "Place in the data: log/model.ckpt-1.moxing.json cannot be read (" in capsys.readouterr().out


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
    assert ", global_step 3\n" in out and "Of these the optimizer's: 1 variables" in out
    assert re.search(r"^Place in the data: [36] elements used up", out, re.M), out


def damaged():
    save("log/m.ckpt", {"w": W, "v": W})
    save("one.ckpt", {"w": np.arange(999, dtype=np.float32)}, V1)
    with open("log/m.ckpt.data-00000-of-00001", "rb") as stream:
        data = stream.read()
    for name in ("cut", "flipped", "nodata", "noindex", "cutindex"):
        shutil.copytree("log", name)
    change("cut/m.ckpt.data-00000-of-00001", data[:-1])
    change("flipped/m.ckpt.data-00000-of-00001", data[:-1] + bytes([data[-1] ^ 1]))
    os.remove("nodata/m.ckpt.data-00000-of-00001")
    os.remove("noindex/m.ckpt.index")
    change("cutindex/m.ckpt.index", b"half")
    with open("one.ckpt", "rb") as stream:
        content = stream.read()
    change("cutone.ckpt", content[:-9])
    change("bad.ckpt", content[:100] + bytes([content[100] ^ 255]) + content[101:])
    change("empty", b"")
    change("weights.h5", b"\x89HDF\r\n")
    change("[1].ckpt", content)
    os.makedirs("exported/variables")
    shutil.copy("log/m.ckpt.index", "exported/variables/variables.index")
    os.mkdir("void")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "='nowhere': there is no such checkpoint. '.' holds [1].ckpt, bad.ckpt, one.ckpt."),
        ("log/m.ckpt-10", "='log/m.ckpt-10': there is no such checkpoint. 'log' holds m.ckpt."),
        ("no/such", "there is no such checkpoint. Give the directory of a training, or a prefix."),
        ("", "='': expected a path."),
        ("void", "='void': the directory holds no checkpoint."),
        ("exported", "It is a SavedModel: give 'exported/variables/variables'."),
        ("cut", "'cut/m.ckpt' is damaged: its values take 48 bytes, its data files hold 47."),
        ("nodata/m.ckpt", "incomplete: of the files nodata/m.ckpt.data-* none are there"),
        ("noindex/m.ckpt", "'noindex/m.ckpt.index' is missing"),
        ("noindex/m.ckpt.data-00000-of-00001", "'noindex/m.ckpt.index' is missing"),
        ("cutindex/m.ckpt", "'cutindex/m.ckpt.index' is no checkpoint, or it was cut off. Expected"),
        ("cutone.ckpt", "'cutone.ckpt' is no checkpoint, or it was cut off. Expected"),
        ("bad.ckpt", "'bad.ckpt' is damaged ("),
        ("empty", "'empty' is empty. Expected"),
        ("weights.h5", "'weights.h5' is no checkpoint (it is an HDF5 file, such as Keras writes)."),
        ("[1].ckpt", "contains one of * ? [ ]"),
    ],
)
def test_what_is_no_checkpoint_is_one_line_in_every_command(capsys, path, message):
    damaged()
    capsys.readouterr()
    for words, argument in ((("show", path), "PATH"), (("diff", path, "log"), "A"), (("diff", "log", path), "B"),
                            (("convert", path, "new/m.ckpt"), "SOURCE")):  # fmt: skip
        run(*words, code=2)
        out, err = capsys.readouterr()
        assert message in err and out == ""
        assert err.startswith(f"moxing checkpoint {words[0]}: error: {argument}") and err.count("\n") == 1
    assert not os.path.exists("new")


def test_damaged_values_show_when_they_are_read(capsys):
    damaged()
    capsys.readouterr()
    run("show", "flipped")
    for words in (("show", "flipped", "--values", "."), ("diff", "--values", "log", "flipped"),
                  ("convert", "flipped", "new/m.ckpt")):  # fmt: skip
        run(*words, code=2)
        err = capsys.readouterr().err
        assert re.search(r"error: 'flipped/m.ckpt' is damaged: the values of [vw] cannot be read \(.*heck", err), err
    assert not os.path.exists("new")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "m.ckpt", "--like", "nothing"), "--like='nothing' matches none of the 1 variables."),
        (("show", "m.ckpt", "--values", "nothing"), "--values='nothing' matches none of the 1 variables."),
        (("show", "m.ckpt", "--like", "("), "--like='(' is no regular expression: "),
        (("show", "m.ckpt", "--values", "*"), "--values='*' is no regular expression: "),
    ],
)
def test_expressions_that_do_not_help(capsys, words, message):
    save("m.ckpt", {"w": W})
    run(*words, code=2)
    assert f"moxing checkpoint show: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "diff", "convert"])
def test_help_has_examples_and_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  moxing checkpoint {command} " in out and "\nexit codes: 0 " in out


def test_the_command_line_stays_light():
    code = (
        "import sys\nfrom moxing.cli import main\n"
        "try: main.main(['checkpoint', 'convert', '--help'])\nexcept SystemExit: pass\n"
        "print('tensorflow' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


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


def test_a_checkpoint_on_a_store_is_shown_and_compared_by_its_url(s3_folder, capsys):
    save("log/model.ckpt-3", {"w": W})
    mox.file.copy_parallel("log", f"{s3_folder}/log")
    for path in (f"{s3_folder}/log", f"{s3_folder}/log/", f"{s3_folder}/log/model.ckpt-3"):
        run("show", path)
        assert f"{s3_folder}/log/model.ckpt-3: V2 format, 2 files" in capsys.readouterr().out
    run("diff", "log", f"{s3_folder}/log", "--values")
    assert f"{s3_folder}/log/model.ckpt-3 (V2 format)" in capsys.readouterr().out
    mox.file.remove(f"{s3_folder}/log/model.ckpt-3.data-00000-of-00001")
    run("show", f"{s3_folder}/log", code=2)
    assert f"of the files {s3_folder}/log/model.ckpt-3.data-* none are there" in capsys.readouterr().err
    run("show", f"{s3_folder}/none", code=2)
    assert "there is no such checkpoint" in capsys.readouterr().err
