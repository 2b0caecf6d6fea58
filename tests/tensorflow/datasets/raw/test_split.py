"""Splitting an image folder: deterministic, stratified, resumable, and nothing lost."""

import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from moxing.tensorflow.datasets.raw import split as split_module
from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata
from moxing.tensorflow.datasets.raw.split import split_image_classification_dataset as split

SPEC = {"train": 0.9, "eval": 0.1}
MARKER = ".moxing_split.json"


def put(root, *names):
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(os.fsencode(name))


def tree(root):
    return {
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root)
        for name in names
        if name != "labels.txt" and name != MARKER
    }


def assignment(root):
    """Split by file."""
    return {name.partition("/")[2]: name.partition("/")[0] for name in tree(root)}


@pytest.fixture
def src(tmp_path):
    root = tmp_path / "src"
    put(root, *(f"a/{i}.jpg" for i in range(50)), *(f"b/sub/{i} 深.png" for i in range(20)), "c/1", "c/2.JPG")
    return root


def test_every_file_goes_somewhere_by_its_fraction(tmp_path, src):
    assert split(SPEC, src, tmp_path / "dst") == {"train": 45 + 18 + 1, "eval": 5 + 2 + 1}
    found = assignment(tmp_path / "dst")
    assert set(found) == tree(src)
    for name in ("a", "b", "c"):
        assert {found[file] for file in found if file.startswith(name)} == {"train", "eval"}
    for file, where in found.items():
        copy, original = tmp_path / "dst" / where / file, src / file
        assert copy.read_bytes() == original.read_bytes()
        assert copy.stat().st_mtime == original.stat().st_mtime
    for name in SPEC:
        metadata = ImageClassificationRawMetadata(tmp_path / "dst" / name)
        assert metadata.labels_list == ["a", "b", "c"]
        assert (tmp_path / "dst" / name / "labels.txt").read_text() == "0: a\n1: b\n2: c\n"


def test_labels_txt_goes_to_every_split(tmp_path, src):
    (src / "labels.txt").write_bytes(b"0:c\r\n1:b\r\n2:a\r\n")
    split(SPEC, str(src), str(tmp_path / "dst"))
    for name in SPEC:
        assert (tmp_path / "dst" / name / "labels.txt").read_bytes() == b"0:c\r\n1:b\r\n2:a\r\n"


def test_the_same_split_everywhere(tmp_path, src):
    split(SPEC, src, tmp_path / "one")
    shutil.copytree(src, tmp_path / "elsewhere")
    split(dict(reversed(SPEC.items())), tmp_path / "elsewhere", tmp_path / "two")
    assert assignment(tmp_path / "one") == assignment(tmp_path / "two")
    evaluated = sorted(name for name, where in assignment(tmp_path / "one").items() if where == "eval")
    # Fixed by the names alone. Another list would put images into training that models were evaluated with.
    assert evaluated == [
        "a/2.jpg",
        "a/32.jpg",
        "a/47.jpg",
        "a/6.jpg",
        "a/7.jpg",
        "b/sub/19 深.png",
        "b/sub/6 深.png",
        "c/2.JPG",
    ]


def test_a_file_more_moves_few_others(tmp_path, src):
    split(SPEC, src, tmp_path / "before")
    before = assignment(tmp_path / "before")
    for index in range(10):
        put(src, f"a/new_{index}.jpg")
    split(SPEC, src, tmp_path / "after")
    after = assignment(tmp_path / "after")
    moved = [name for name in before if before[name] != after[name]]
    assert len(moved) <= 2
    assert all(name.startswith("a/") for name in moved)


@pytest.mark.parametrize("size", range(3, 40))
def test_counts(size):
    specs = [(0.8, 0.1, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.98, 0.01, 0.01), (0.7, 0.29, 0.01)]
    for fractions in specs:
        spec = dict(zip("xyz", fractions, strict=True))
        counts = split_module._counts(size, spec)
        assert sum(counts.values()) == size
        assert min(counts.values()) >= 1
        if size * min(fractions) >= 1:
            assert all(abs(counts[name] - size * spec[name]) < 1 for name in spec)
    assert split_module._counts(size, {"x": 1.0}) == {"x": size}
    part = split_module._counts(size, {"x": 0.5, "y": 0.01})
    assert part["y"] == 1 and abs(sum(part.values()) - size * 0.51) <= 1


def test_less_than_everything(tmp_path, src):
    assert split({"train": 0.5, "eval": 0.1}, src, tmp_path / "dst") == {"train": 25 + 10 + 1, "eval": 5 + 2 + 1}
    assert len(tree(tmp_path / "dst")) == 44


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "split_spec={}: expected fractions by split"),
        ([("train", 1)], "expected fractions by split"),
        ({"train": 0.9, "eval": 0.2}, r"adds up to 1\.1.*1 together at most"),
        ({"train": 90, "eval": 10}, "adds up to 100"),
        ({"train": 1.0, "eval": 0}, r"split_spec\['eval'\]=0: expected a fraction above 0"),
        ({"train": -0.5}, "expected a fraction above 0"),
        ({"train": float("nan")}, "expected a fraction above 0"),
        ({"train": "0.5"}, "expected a fraction above 0"),
        ({"train": True}, "expected a fraction above 0"),
        ({"../train": 0.5}, "expected the name of a folder"),
        ({"..": 0.5}, "expected the name of a folder"),
        ({"": 0.5}, "expected the name of a folder"),
        ({3: 0.5}, "expected the name of a folder"),
    ],
)
def test_wrong_fractions(tmp_path, src, spec, message):
    with pytest.raises(ValueError, match=message):
        split(spec, src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_rounding_errors_in_the_sum_are_no_errors(tmp_path, src):
    spec = {str(i): 0.1 for i in range(2)} | {"rest": 0.8 + 1e-9}
    shutil.rmtree(src / "c")
    assert sum(split(spec, src, tmp_path / "dst").values()) == 70


def test_classes_that_are_too_small(tmp_path, src):
    put(src, "d/1.jpg")
    with pytest.raises(ValueError, match=r"fewer files than the 3 splits in split_spec: 'c' \(2\), 'd' \(1\)\."):
        split({"train": 0.8, "eval": 0.1, "test": 0.1}, src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_a_source_that_is_no_image_folder(tmp_path):
    (tmp_path / "src").mkdir()
    with pytest.raises(
        ValueError, match="^src_dir='.*' has no images, there is nothing in it. Expected src_dir/<class>"
    ):
        split(SPEC, tmp_path / "src", tmp_path / "dst")
    with pytest.raises(ValueError, match="src_dir='.*none' does not exist"):
        split(SPEC, tmp_path / "none", tmp_path / "dst")


def test_wrong_places(tmp_path, src):
    with pytest.raises(ValueError, match="dst_dir='.*' lies in src_dir"):
        split(SPEC, src, src / "split")
    with pytest.raises(ValueError, match="dst_dir='.*' lies in src_dir"):
        split(SPEC, src, src, overwrite=True)
    (tmp_path / "link").symlink_to(src)
    with pytest.raises(ValueError, match="lies in src_dir"):
        split(SPEC, src, tmp_path / "link" / "split")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="the split 'src' would be written over the source"):
            split({"src": 0.5}, src, tmp_path, overwrite)
    put(tmp_path, "file")
    with pytest.raises(ValueError, match="dst_dir='.*file' is a file"):
        split(SPEC, src, tmp_path / "file")
    with pytest.raises(ValueError, match="dst_dir='s3://bucket/x': expected a local directory"):
        split(SPEC, src, "s3://bucket/x")


def test_a_source_linked_into_the_old_splits_is_not_replaced(tmp_path, src):
    put(tmp_path, "dst/train/d/1.jpg", "dst/train/d/2.jpg")
    (src / "d").symlink_to(tmp_path / "dst/train/d")
    with pytest.raises(ValueError, match="would be written over the source"):
        split(SPEC, src, tmp_path / "dst", overwrite=True)
    assert tree(tmp_path / "dst") == {"train/d/1.jpg", "train/d/2.jpg"}


def test_hostile_names_links_and_hidden_files(tmp_path):
    name = os.fsdecode(b"\xff\xe9 \xf0\x9f\x9a\x80.jpg")
    put(tmp_path, f"src/{name}/{name}", f"src/{name}/x\ny", f"src/{name}/{'n' * 250}", f"src/{name}/.hidden")
    put(tmp_path, f"src/{name}/notes.txt", "other.jpg")
    (tmp_path / "src" / name / "link.jpg").symlink_to("../../other.jpg")
    assert split({"train": 0.5, "eval": 0.5}, tmp_path / "src", tmp_path / "dst") == {"train": 2, "eval": 2}
    found = assignment(tmp_path / "dst")
    assert set(found) == {f"{name}/{file}" for file in (name, "x\ny", "n" * 250, "link.jpg")}
    copy = tmp_path / "dst" / found[f"{name}/link.jpg"] / name / "link.jpg"
    assert not copy.is_symlink() and copy.read_bytes() == b"other.jpg"


def test_existing_splits_are_not_touched(tmp_path, src):
    split(SPEC, src, tmp_path / "dst")
    before = tree(tmp_path / "dst")
    with pytest.raises(ValueError, match="has files in 'eval', 'train' already: overwrite=True replaces them"):
        split(SPEC, src, tmp_path / "dst")
    put(tmp_path, "foreign/eval/mine.txt")
    with pytest.raises(ValueError, match="foreign' has files in 'eval' already"):
        split(SPEC, src, tmp_path / "foreign")
    assert tree(tmp_path / "dst") == before
    assert tree(tmp_path / "foreign") == {"eval/mine.txt"}
    os.makedirs(tmp_path / "empty/train/a")
    assert sum(split(SPEC, src, tmp_path / "empty").values()) == 72


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_a_bar_on_a_terminal_only(tmp_path, src, monkeypatch, stream, shown):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream())
    split(SPEC, src, tmp_path / "dst")
    assert ("72/72" in sys.stderr.getvalue()) == shown


# --- overwrite -------------------------------------------------------------------------------------------------------


def hidden(root):
    return {name for name in os.listdir(root) if name.startswith(".")}


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


# --- going on --------------------------------------------------------------------------------------------------------


def failing(monkeypatch, after):
    copy2, counter = shutil.copy2, itertools.count()

    def copy(source, target):
        if next(counter) >= after:
            raise OSError("disk is full")
        copy2(source, target)

    monkeypatch.setattr(split_module, "_CHUNK", 1)
    monkeypatch.setattr(shutil, "copy2", copy)


def count_copies(monkeypatch):
    copy2, copied = shutil.copy2, []

    def copy(source, target):
        copied.append(source)
        copy2(source, target)

    monkeypatch.setattr(shutil, "copy2", copy)
    return copied


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
    with pytest.raises(ValueError, match=f"was interrupted and had .*{cause}.*overwrite=True starts anew"):
        split(spec, source, tmp_path / "dst")
    assert tree(tmp_path / "dst") == before
    split(spec, source, tmp_path / "dst", overwrite=True)
    assert set(assignment(tmp_path / "dst")) == tree(source)


KILLED = """
import shutil, sys, time
from moxing.tensorflow.datasets.raw.split import split_image_classification_dataset as split

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
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(src), str(dst)], stderr=subprocess.DEVNULL)
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
