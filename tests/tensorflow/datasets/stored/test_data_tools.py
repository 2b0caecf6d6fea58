"""`moxing data inspect`, `split` and `convert` on folders of a real store."""

from __future__ import annotations

import json

import pytest
from image_folders import JUNK, write_folder

import moxing as mox
from moxing.cli.main import main


@pytest.fixture
def both(tmp_path, s3_folder):
    """The same folder on the disk and on the store."""
    write_folder(tmp_path / "images", {"cat": 12, "dog": 10})
    (tmp_path / "images" / "cat" / "junk.png").write_bytes(JUNK)
    mox.file.copy_parallel(str(tmp_path / "images"), s3_folder)
    return str(tmp_path / "images"), s3_folder


def tree(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_inspect(both, capsys, full):
    found = []
    for directory in both:
        assert main(["data", "inspect", directory, "--json", *full]) == 1
        report = json.loads(capsys.readouterr().out.replace(directory, "DIR"))
        found.append(report)
    assert found[0] == found[1] and found[1]["total"] == 23 and len(found[1]["bad"]) == 1


def test_split(both, tmp_path, capsys):
    for number, directory in enumerate(both):
        assert main(["data", "split", directory, str(tmp_path / f"split{number}")]) == 0
    assert tree(tmp_path / "split0") == tree(tmp_path / "split1")
    mox.file.write(both[1] + "/dog/new.png", "other")
    assert main(["data", "split", both[1], str(tmp_path / "split1"), "--overwrite"]) == 0
    assert sum("new.png" in name for name in tree(tmp_path / "split1")) == 1


def test_convert_and_inspect_records(both, tmp_path, capsys, s3_folder):
    for number, directory in enumerate(both):
        assert main(["data", "convert", directory, str(tmp_path / f"records{number}"), "--max-bad", "1"]) == 0
    first, second = tree(tmp_path / "records0"), tree(tmp_path / "records1")
    assert first.keys() == second.keys() and first["train-00000-of-00001"] == second["train-00000-of-00001"]
    capsys.readouterr()
    mox.file.copy_parallel(str(tmp_path / "records1"), s3_folder + "-records")
    assert main(["data", "inspect", s3_folder + "-records", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["directory"], report["total"]) == (s3_folder + "-records", 22)


def test_a_picture_of_stored_images(both, tmp_path, capsys):
    assert main(["data", "inspect", both[1], "--sheet", str(tmp_path / "sheet.png"), "--samples", "4"]) == 1
    assert (tmp_path / "sheet.png").stat().st_size > 1000


@pytest.mark.parametrize("command", ["split", "convert"])
def test_a_store_is_no_target(both, s3_folder, capsys, command):
    assert main(["data", command, both[0], s3_folder + "/target"]) == 2
    error = capsys.readouterr().err
    assert "expected a local directory; moxing file cp -r copies it to an object store" in error


def test_a_store_that_is_away(both, proxy, tmp_path, capsys):
    proxy.fail("500", 10**6, lambda method, target: target.endswith(".png"))
    assert main(["data", "convert", both[1], str(tmp_path / "records")]) != 0
    assert "InternalError" in capsys.readouterr().err
    assert not list(tmp_path.glob("records/train*"))


def test_an_object_that_went_away_is_bad(both, proxy, capsys):
    """The listing has it, and the request for it does not find it any more."""
    listed = []

    def remove_after_listing(target, body):
        if "list-type=2" in target:
            listed.append(target)
            if len(listed) == 2:
                mox.file.remove(both[1] + "/dog/015.png")
        return body

    proxy.rewrite = remove_after_listing
    assert main(["data", "inspect", both[1], "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert {bad["reason"] for bad in report["bad"]} == {
        "cannot be read: there is no such object",
        "not an image: begins with b'this is no image'",
    }
