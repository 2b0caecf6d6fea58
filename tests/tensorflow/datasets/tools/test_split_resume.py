"""Splits that are replaced, interrupted and resumed."""

import itertools
import json
import os
import signal
import time

import pytest
from split_folders import MARKER, SPEC, assignment, count_copies, failing, hidden, put, tree

from helpers.warm import Program, WarmProcess
from moxing.tensorflow.datasets.tools import split as split_module
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset as split


def test_overwrite_replaces(tmp_path, src):
    put(tmp_path, "dst/train/a/old.jpg", "dst/train/gone/old.jpg", "dst/other/keep.jpg")
    assert split(SPEC, src, tmp_path / "dst", overwrite=True) == {"train": 64, "eval": 8}
    files = tree(tmp_path / "dst")
    assert "other/keep.jpg" in files and len(files) == 73
    assert hidden(tmp_path / "dst") == {MARKER}
    split({"train": 0.5, "test": 0.5}, src, tmp_path / "dst", overwrite=True)
    assert assignment(tmp_path / "dst")["c/1"] in ("train", "test")


def test_a_split_of_an_earlier_specification_is_warned_of(tmp_path, src, monkeypatch):
    lines = []
    split(SPEC, src, tmp_path / "dst")
    monkeypatch.setattr(split_module.tf.logging, "warning", lambda text, *args: lines.append(text % args))
    split({"train": 0.5, "test": 0.5}, src, tmp_path / "dst", overwrite=True)
    (line,) = lines
    assert f"{str(tmp_path / 'dst/eval')!r} is from an earlier split" in line


def test_overwrite_that_fails_while_copying_keeps_the_old(tmp_path, src, monkeypatch):
    put(tmp_path, "dst/train/a/old.jpg")
    failing(monkeypatch, after=30)
    with pytest.raises(OSError, match="disk is full"):
        split(SPEC, src, tmp_path / "dst", overwrite=True)
    monkeypatch.undo()
    assert (tmp_path / "dst/train/a/old.jpg").exists()
    assert not (tmp_path / "dst/eval").exists()
    copied = count_copies(monkeypatch)
    split(SPEC, src, tmp_path / "dst", overwrite=True)
    assert len(copied) < 72
    assert set(assignment(tmp_path / "dst")) == tree(src)
    assert hidden(tmp_path / "dst") == {MARKER}


@pytest.mark.parametrize("calls", range(5))
def test_overwrite_killed_while_swapping(tmp_path, src, monkeypatch, calls):
    """After any number of renames: all splits are old, and the next call finishes."""
    put(tmp_path, "dst/train/a/old.jpg", "dst/eval/a/old.jpg")
    rename, counter = os.rename, itertools.count()

    def killed(source, target):
        if next(counter) >= calls:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", killed)
    monkeypatch.setattr(split_module, "_undo_half_swap", lambda dst: None)  # a kill leaves no time for it
    with pytest.raises(KeyboardInterrupt):
        split(SPEC, src, tmp_path / "dst", overwrite=True)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has files in"):
        split(SPEC, src, tmp_path / "dst")
    assert {name for name in tree(tmp_path / "dst") if not name.startswith(".")} == {
        "train/a/old.jpg",
        "eval/a/old.jpg",
    }
    split(SPEC, src, tmp_path / "dst", overwrite=True)
    assert set(assignment(tmp_path / "dst")) == tree(src)
    assert hidden(tmp_path / "dst") == {MARKER}


def test_a_swap_that_fails_is_undone_at_once(tmp_path, src, monkeypatch):
    put(tmp_path, "dst/train/a/old.jpg", "dst/eval/a/old.jpg")
    rename = os.rename

    def busy(source, target):
        if source.endswith("dst/train"):
            raise OSError("busy")
        rename(source, target)

    monkeypatch.setattr(os, "rename", busy)
    with pytest.raises(OSError, match="busy"):
        split(SPEC, src, tmp_path / "dst", overwrite=True)
    files = {name for name in tree(tmp_path / "dst") if not name.startswith(".")}
    assert files == {"train/a/old.jpg", "eval/a/old.jpg"}


def test_a_failed_split_goes_on(tmp_path, src, monkeypatch):
    failing(monkeypatch, after=30)
    with pytest.raises(OSError, match="disk is full"):
        split(SPEC, src, tmp_path / "dst")
    monkeypatch.undo()
    there = tree(tmp_path / "dst")
    assert len(there) == 30
    copied = count_copies(monkeypatch)
    assert split(SPEC, src, tmp_path / "dst") == {"train": 64, "eval": 8}
    assert len(copied) == 42
    assert set(assignment(tmp_path / "dst")) == tree(src)
    assert json.loads((tmp_path / "dst" / MARKER).read_text())["finished"] is True


def test_a_file_that_a_crash_left_empty_is_copied_again(tmp_path, src):
    split(SPEC, src, tmp_path / "dst")
    marker = tmp_path / "dst" / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"finished": False}))
    victim = tmp_path / "dst" / next(iter(sorted(tree(tmp_path / "dst"))))
    content = victim.read_bytes()
    victim.write_bytes(b"")
    put(victim.parent, ".mox-split-0123.tmp")
    split(SPEC, src, tmp_path / "dst")
    assert victim.read_bytes() == content
    assert not list((tmp_path / "dst").rglob("*.tmp"))


@pytest.mark.parametrize(
    ("change", "cause"),
    [("files", "other files in src_dir"), ("spec", "another split_spec"), ("src", "another src_dir")],
)
def test_an_interrupted_split_goes_on_only_as_it_began(tmp_path, src, monkeypatch, change, cause):
    failing(monkeypatch, after=30)
    with pytest.raises(OSError, match="disk is full"):
        split(SPEC, src, tmp_path / "dst")
    monkeypatch.undo()
    before, spec, source = tree(tmp_path / "dst"), SPEC, src
    if change == "files":
        put(src, "a/new.jpg")
    elif change == "spec":
        spec = {"train": 0.8, "eval": 0.2}
    else:
        source = tmp_path / "moved"
        src.rename(source)
    with pytest.raises(ValueError, match=f"from an interrupted split with .*{cause}.*overwrite=True starts over"):
        split(spec, source, tmp_path / "dst")
    assert tree(tmp_path / "dst") == before
    split(spec, source, tmp_path / "dst", overwrite=True)
    assert set(assignment(tmp_path / "dst")) == tree(source)


KILLED = """
import shutil, sys, time
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset as split

copy2 = shutil.copy2
def slow(source, target):
    copy2(source, target)
    time.sleep(0.05)
shutil.copy2 = slow
split({"train": 0.9, "eval": 0.1}, sys.argv[1], sys.argv[2])
"""


def test_a_killed_process_leaves_whole_files_and_the_next_goes_on(tmp_path, monkeypatch):
    src, dst = tmp_path / "src", tmp_path / "dst"
    names = [f"{label}/{index}.jpg" for label in "ab" for index in range(1000)]
    put(src, *names)
    child = WarmProcess(Program("code", KILLED, (str(src), str(dst))))
    try:
        deadline = time.monotonic() + 120
        while not dst.is_dir() or len(tree(dst)) < 100:
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(ValueError, match="another process is writing splits there right now"):
            split(SPEC, src, dst)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    there = {name for name in tree(dst) if not name.endswith(".tmp")}
    assert 0 < len(there) < 2000
    for name in there:
        assert (dst / name).read_bytes() == name.partition("/")[2].encode()
    copied = count_copies(monkeypatch)
    assert split(SPEC, src, dst) == {"train": 1800, "eval": 200}
    assert len(copied) == 2000 - len(there)
    assert set(assignment(dst)) == set(names)
