"""An interrupted conversion is resumed, another one is refused."""

import os

import pytest
from tool_images import (
    Stop,
    encoded,
    interrupt,
    many,
    names_in,
    pixels,
    write_files,
)

from moxing.tensorflow.datasets.tools import conversion
from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles
from moxing.tensorflow.datasets.tools.image_records import store_image


def test_complete_files_are_not_written_again(tmp_path, monkeypatch):
    many(tmp_path / "src")
    dst = tmp_path / "dst"
    interrupt(monkeypatch, 35)
    with pytest.raises(Stop):
        convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=4), threads=1)
    assert len(names_in(dst)) == 2
    (dst / ".mox-0123.tmp").write_bytes(b"left by a kill")
    # A file that lost its end is written again.
    os.truncate(dst / "train-00001-of-00004", 100)
    converted = []
    monkeypatch.setattr(conversion, "store_image", lambda *arguments: converted.append(1) or store_image(*arguments))
    done = convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=4))
    assert (done.resumed, len(converted), done.records) == (1, 45, {"train": 60})
    assert not (dst / ".mox-0123.tmp").exists()
    again = convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=4))
    assert (again.resumed, len(converted)) == (4, 45)
    assert (again.records, again.kept) == (done.records, done.kept)


def test_another_order_is_refused_unless_overwrite(tmp_path, monkeypatch):
    many(tmp_path / "src")
    dst = tmp_path / "dst"
    interrupt(monkeypatch, 35)
    with pytest.raises(Stop):
        convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=4), threads=1)
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match=r"interrupted conversion, with another number of shards \(see .moxing_convert.json"
    ):
        convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=2))
    write_files(tmp_path / "src", {"a/new.png": encoded(pixels(), "PNG")})
    with pytest.raises(ValueError, match="with other images.*overwrite=True"):
        convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=4))
    assert len(names_in(dst)) == 2
    convert_image_folder(tmp_path / "src", dst, records=RecordFiles(shards=2), overwrite=True)
    assert names_in(dst) == ["train-00000-of-00002", "train-00001-of-00002"]
    with pytest.raises(ValueError, match="finished conversion, with another number of shards, another prefix "):
        convert_image_folder(tmp_path / "src", dst, records=RecordFiles(prefix="p"))
    convert_image_folder(tmp_path / "src", dst, records=RecordFiles(prefix="p"), overwrite=True)
    assert names_in(dst) == ["p_train_00000-of-00001.tfrecord"]


def test_records_of_somebody_else_are_not_mixed_with_ours(tmp_path):
    many(tmp_path / "src", 6)
    write_files(tmp_path / "dst", {"train-00000-of-00009": b"theirs", "other": b"kept"})
    with pytest.raises(ValueError, match="has records already, train-00000-of-00009"):
        convert_image_folder(tmp_path / "src", tmp_path / "dst")
    convert_image_folder(tmp_path / "src", tmp_path / "dst", overwrite=True)
    assert names_in(tmp_path / "dst") == ["train-00000-of-00001"]
    assert (tmp_path / "dst" / "other").read_bytes() == b"kept"


def test_an_image_that_changed_is_noticed(tmp_path):
    many(tmp_path / "src", 6)
    convert_image_folder(tmp_path / "src", tmp_path / "dst")
    write_files(tmp_path / "src", {"a/000.png": encoded(pixels(size=(50, 50)), "PNG")})
    with pytest.raises(ValueError, match="other images"):
        convert_image_folder(tmp_path / "src", tmp_path / "dst")
