"""Which image goes into which file of records."""

import pytest
from tool_images import many, records, value

from moxing.tensorflow.datasets.tools import conversion_plan
from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset


def test_files_are_mixed_equal_in_size_and_the_same_every_time(tmp_path):
    many(tmp_path / "src")
    names = [f"train-0000{i}-of-00004" for i in range(4)]
    assert convert_image_folder(tmp_path / "src", tmp_path / "one", records=RecordFiles(shards=4)).shards == {
        "train": names
    }
    convert_image_folder(tmp_path / "src", tmp_path / "two", records=RecordFiles(shards=4), threads=1)
    for name in names:
        content = records(tmp_path / "one", name)
        assert len(content) == 15
        assert {value(features, "image/class/text") for features in content} == {b"a", b"b", b"c"}
        order = [value(features, "image/class/label") for features in content]
        assert order != sorted(order)
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_splits_are_those_of_the_split_command(tmp_path):
    many(tmp_path / "src")
    spec = {"train": 0.8, "eval": 0.1}
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", spec, records=RecordFiles(prefix="p"))
    assert done.records == split_image_classification_dataset(spec, tmp_path / "src", tmp_path / "split")
    for split in spec:
        converted = {value(features, "image/filename").decode() for features in records(tmp_path / "dst", f"p_{split}_00000-of-00001.tfrecord")}  # fmt: skip  # noqa: E501
        assert converted == {path.name for path in (tmp_path / "split" / split).rglob("*.png")}


def test_the_default_number_of_files_follows_the_size(tmp_path, monkeypatch):
    many(tmp_path / "src")
    total = sum(path.stat().st_size for path in (tmp_path / "src").rglob("*.png"))
    monkeypatch.setattr(conversion_plan, "_SHARD_BYTES", total // 3)
    assert len(convert_image_folder(tmp_path / "src", tmp_path / "dst").shards["train"]) == 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"shards": 0}, "shards=0"),
        ({"resize_short_side": -1}, "resize_short_side=-1"),
        ({"prefix": "a/b"}, "prefix='a/b'"),
    ],
)
def test_wrong_files_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RecordFiles(**arguments)
