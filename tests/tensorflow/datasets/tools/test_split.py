"""Splitting an image folder: deterministic, stratified, resumable, and nothing lost."""

import io
import os
import shutil
import sys

import pytest
from split_folders import SPEC, assignment, put, tree

from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata
from moxing.tensorflow.datasets.tools import split as split_module
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset as split


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
        ({"train": 0.9, "eval": 0.2}, r"sums to 1\.1.*with a sum of at most 1"),
        ({"train": 90, "eval": 10}, "sums to 100"),
        ({"train": 1.0, "eval": 0}, r"split_spec\['eval'\]=0: expected a positive fraction"),
        ({"train": -0.5}, "expected a positive fraction"),
        ({"train": float("nan")}, "expected a positive fraction"),
        ({"train": "0.5"}, "expected a positive fraction"),
        ({"train": True}, "expected a positive fraction"),
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
    with pytest.raises(ValueError, match="^src_dir='.*' has no images, it is empty. Expected src_dir/<class>"):
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
        with pytest.raises(ValueError, match="the split 'src' would overwrite the source"):
            split({"src": 0.5}, src, tmp_path, overwrite)
    put(tmp_path, "file")
    with pytest.raises(ValueError, match="dst_dir='.*file' is a file"):
        split(SPEC, src, tmp_path / "file")
    with pytest.raises(ValueError, match="dst_dir='s3://bucket/x': expected a local directory"):
        split(SPEC, src, "s3://bucket/x")


def test_a_source_linked_into_the_old_splits_is_not_replaced(tmp_path, src):
    put(tmp_path, "dst/train/d/1.jpg", "dst/train/d/2.jpg")
    (src / "d").symlink_to(tmp_path / "dst/train/d")
    with pytest.raises(ValueError, match="would overwrite the source"):
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


# --- going on --------------------------------------------------------------------------------------------------------
