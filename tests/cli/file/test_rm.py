"""`moxing file rm`."""

import io
import os

import pytest
from stored_tree import FILES

import moxing as mox


def test_rm_says_what_it_removed(root, run):
    assert run("rm", f"{root}/a.txt", f"{root}/*.jpg") == [
        f"removed {root}/a.txt",
        f"removed {root}/b.jpg",
        "removed 2 files, 8 B",
    ]
    assert mox.file.list_directory(root) == ["sub", "sub-twin"]
    assert run("rm", "-r", f"{root}/sub/") == [
        f"removed {root}/sub/c.txt",
        f"removed {root}/sub/deep/d.txt",
        f"removed {root}/sub/",
        "removed 2 files, 1.5 kB",
    ]
    assert mox.file.list_directory(root, recursive=True, skip_dir=True) == ["sub-twin/e.txt"]


def test_rm_needs_recursive_for_a_directory(root, run):
    error = run("rm", f"{root}/a.txt", f"{root}/sub", code=2)
    assert error == (f"moxing file rm: error: {root}/sub: PATH is a directory, --recursive removes it with its content")
    assert run("rm", f"{root}/a.txt", f"{root}/none", code=2).endswith("no such file or directory")
    assert sorted(mox.file.list_directory(root, recursive=True, skip_dir=True)) == sorted(FILES)


def test_rm_of_directories_in_each_other(root, run):
    lines = run("rm", "-r", f"{root}/sub/**", f"{root}/sub/deep", f"{root}/sub-twin")
    assert lines[-1] == "removed 3 files, 1.5 kB"
    assert sorted(mox.file.list_directory(root, recursive=True)) == ["a.txt", "b.jpg"]


def test_rm_dry_run_removes_nothing(root, run):
    assert run("rm", "--dry-run", "-r", f"{root}/sub*")[-1] == "would remove 3 files, 1.5 kB"
    assert sorted(mox.file.list_directory(root, recursive=True, skip_dir=True)) == sorted(FILES)


def test_rm_follows_no_links(run, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").write_text("x")
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "go" / "broken").symlink_to("nowhere")
    (tmp_path / "alone").symlink_to(tmp_path / "kept")
    assert run("rm", f"{tmp_path}/alone", f"{tmp_path}/go/brok*")[-1].startswith("removed 2 files")
    lines = run("rm", "-r", f"{tmp_path}/go")
    assert lines[:2] == [f"removed {tmp_path}/go/link", f"removed {tmp_path}/go/"]
    assert (tmp_path / "kept" / "x").read_text() == "x"
    assert os.listdir(tmp_path) == ["kept"]


def test_rm_refuses_what_nobody_removes_on_purpose(run, tmp_path, monkeypatch, s3_folder):
    """Before the first deletion, as GNU rm."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "x").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "data")
    mox.file.write(f"{s3_folder}/x", "x")
    bucket = s3_folder[: s3_folder.index("/", 5)]
    for path in (
        ".",
        "./",
        "..",
        f"{home}/data/..",
        f"{home}/data/.",
        "/",
        str(home),
        str(tmp_path),
        bucket,
        f"{bucket}/",
    ):
        with pytest.raises(ValueError, match="Nothing was removed"):
            mox.file.remove(path, recursive=True)
        assert "Nothing was removed" in run("rm", "-r", "x", path, code=2)
        assert (home / "data" / "x").read_text() == "x"
    for path in ("/", str(home), "..", str(tmp_path)):
        assert "expected a directory other than" in run("sync", "--delete", s3_folder, path, code=2)
    assert mox.file.exists(f"{s3_folder}/x")
    mox.file.remove(str(home / "data"), recursive=True)
    assert os.listdir(home) == []


def test_rm_of_a_link_to_itself(run, tmp_path):
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "self").symlink_to("self")
    assert run("rm", "-r", f"{tmp_path}/go")[-1].startswith("removed 1 file")
    assert os.listdir(tmp_path) == []


def test_rm_asks(run, tmp_path, monkeypatch, capfd):
    (tmp_path / "a").touch()
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    assert "remove 1 file, 0 B, in" in run("rm", "-i", f"{tmp_path}/a", code=2)
    assert (tmp_path / "a").exists()


def test_rm_of_a_key_that_is_a_directory_too(run, s3_folder):
    mox.file.write(f"{s3_folder}/both/x", "x")
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("rm", f"{s3_folder}/both") == [f"removed {s3_folder}/both", "removed 1 file, 1 B"]
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("ls", f"{s3_folder}/both") == [f"{s3_folder}/both"]
    assert run("ls", f"{s3_folder}/both/") == [f"{s3_folder}/both/x"]
    assert run("rm", "-r", f"{s3_folder}/both")[-1] == "removed 2 files, 2 B"
    assert not mox.file.exists(s3_folder)
