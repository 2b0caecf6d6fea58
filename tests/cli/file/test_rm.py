"""`moxing file rm`."""

import os

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
    assert "other than the root of the file system" in run("rm", "-r", "--dry-run", "/", code=2)


def test_rm_of_a_key_that_is_a_directory_too(run, s3_folder):
    mox.file.write(f"{s3_folder}/both/x", "x")
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("rm", f"{s3_folder}/both") == [f"removed {s3_folder}/both", "removed 1 file, 1 B"]
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("ls", f"{s3_folder}/both") == [f"{s3_folder}/both"]
    assert run("ls", f"{s3_folder}/both/") == [f"{s3_folder}/both/x"]
    assert run("rm", "-r", f"{s3_folder}/both")[-1] == "removed 2 files, 2 B"
    assert not mox.file.exists(s3_folder)
