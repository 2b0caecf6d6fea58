"""How a checkpoint is found and read: prefixes, files, directories, urls, damage."""

import os
import re

import pytest
import tensorflow.compat.v1 as tf
from checkpoint_files import V1, V2, W, change, damaged, run, save

import moxing as mox


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
    assert (
        err == "moxing checkpoint show: warning: log/checkpoint names /gone/log/model.ckpt-2, which does not exist.\n"
    )


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
        assert "incomplete: 1 of the 2 files log/m.ckpt-* exist" in capsys.readouterr().err


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
    assert f"none of the files {s3_folder}/log/model.ckpt-3.data-* exist" in capsys.readouterr().err
    run("show", f"{s3_folder}/none", code=2)
    assert "there is no such checkpoint" in capsys.readouterr().err
