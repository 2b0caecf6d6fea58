"""`moxing file sync` between a disk and a real store: what it copies, what it leaves, what it removes."""

import os
from functools import partial

import fault_proxy
import pytest
from trees import WAYS, contents, put, run_file, source_and_target

import moxing as mox
from moxing.cli import main
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.remote.object_store import ObjectStore
from moxing.framework.file.s3.clients import get_client

FILES = {"a.txt": "hello", "sub/b.txt": "bc", "sub/deep/c": "c", "data": "d", "data-twin/x": "x"}


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def places(request, tmp_path):
    return source_and_target(request, tmp_path, FILES)


@pytest.fixture
def run(capfd):
    return partial(run_file, capfd, "sync")


@pytest.mark.parametrize("slashes", [("", ""), ("/", ""), ("", "/"), ("//", "/")])
def test_twice_is_once(places, run, slashes):
    """The second time nothing is copied, even at once, and slashes change nothing."""
    src, dst = (place + slash for place, slash in zip(places, slashes, strict=True))
    assert run(src, dst) == ["copied 5 files, 10 B; 0 files up to date"]
    assert contents(places[1]) == FILES
    assert run(src, dst) == ["copied 0 files, 0 B; 5 files up to date"]
    assert run("--checksum", src, dst) == ["copied 0 files, 0 B; 5 files up to date"]
    if "://" in dst:
        # No object marks a directory that has something in it.
        prefix = places[1].removeprefix("s3://tests/")
        pages = get_client("s3").list_pages("tests", f"{prefix}/")
        keys = [item.key.removeprefix(f"{prefix}/") for page in pages for item in page.objects]
        assert sorted(keys) == sorted(FILES)


def test_empty_directories_come_and_go(places, run):
    src, dst = places
    mox.file.make_dirs(f"{src}/empty/below")
    for _ in range(2):
        run(src, dst)
        assert mox.file.is_directory(f"{dst}/empty/below")
    mox.file.remove(f"{src}/empty", recursive=True)
    run("--delete", src, dst)
    assert not mox.file.exists(f"{dst}/empty")


def test_what_has_changed_is_copied(places, run):
    src, dst = places
    run(src, dst)
    put(src, {"a.txt": "longer than before", "new/file": "n"})
    lines = run("-v", src, dst)
    assert sorted(lines[:2]) == [
        f"copied {src}/a.txt to {dst}/a.txt",
        f"copied {src}/new/file to {dst}/new/file",
    ]
    assert lines[2] == "copied 2 files, 19 B; 4 files up to date"
    assert contents(dst) == FILES | {"a.txt": "longer than before", "new/file": "n"}


def test_delete_only_with_the_flag(places, run):
    src, dst = places
    put(dst, {"old": "o", "sub/old": "o", "gone/deep/old": "o"})
    mox.file.make_dirs(f"{dst}/empty")
    run(src, dst)
    assert contents(dst) == FILES | {"old": "o", "sub/old": "o", "gone/deep/old": "o"}
    lines = run("--delete", "--dry-run", src, dst)
    assert sorted(lines) == sorted(
        f"would remove {dst}/{name}" for name in ("old", "sub/old", "gone/deep/old", "gone/deep/", "gone/", "empty/")
    )
    assert len(contents(dst)) == 8
    assert run("--delete", src, dst) == ["copied 0 files, 0 B; 5 files up to date; removed 3 files, 3 B"]
    assert contents(dst) == FILES
    assert mox.file.list_directory(dst) == ["a.txt", "data", "data-twin", "sub"]


def test_delete_stays_in_the_target(places, run, tmp_path):
    """Neighbours with the same beginning, and what links lead to, are not the target's."""
    src, dst = places
    put(f"{dst}-twin", {"kept": "k"})
    put(os.path.dirname(dst), {"beside": "b"})
    put(dst, {"old": "o"})
    outside = tmp_path / "outside"
    put(str(outside), {"kept": "k", "sub/kept": "k"})
    if "://" not in dst:
        os.symlink(outside, f"{dst}/link")
        os.symlink(outside / "kept", f"{dst}/file-link")
    run("--delete", src, dst)
    assert contents(dst) == FILES
    assert contents(f"{dst}-twin") == {"kept": "k"}
    assert mox.file.read(f"{os.path.dirname(dst)}/beside") == "b"
    assert contents(str(outside)) == {"kept": "k", "sub/kept": "k"}


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "..", "./x", "a//b"])
def test_delete_of_hostile_keys(run, s3_folder, tmp_path, monkeypatch, key):
    """A server may take `to/../outside` for `outside`: such a key is not asked to be removed."""
    put(s3_folder, {"outside": "o", "to/old": "x"})
    put(str(tmp_path), {"a": "a"})
    tree = ObjectStore.tree
    monkeypatch.setattr(ObjectStore, "tree", lambda store, path: [*tree(store, path), FileEntry(key, False, 4)])
    error = run("--delete", tmp_path, f"{s3_folder}/to", code=2)
    assert f"DST='{s3_folder}/to': the key '{key}' in it" in error
    monkeypatch.setattr(ObjectStore, "tree", tree)
    assert mox.file.list_directory(s3_folder, True, skip_dir=True) == ["outside", "to/old"]


def test_links_in_the_target_are_not_written_through(places, run, tmp_path):
    src, dst = places
    if "://" in dst:
        pytest.skip("a store has no links")
    outside = tmp_path / "outside"
    put(str(outside), {"b.txt": "xx", "kept": "k"})
    os.makedirs(dst)
    os.symlink(outside, f"{dst}/sub")
    assert "is a link that leads out of it" in run("--delete", src, dst, code=2)
    assert contents(str(outside)) == {"b.txt": "xx", "kept": "k"}


def test_a_failed_copy_removes_nothing(run, tmp_path, s3_folder):
    put(str(tmp_path / "from"), {"new": "n"})
    put(f"{s3_folder}/to", {"old": "o"})
    put(str(tmp_path / "to"), {"old": "o", "new/x": "x"})
    assert "a directory has the name of a file" in run("--delete", tmp_path / "from", tmp_path / "to", code=2)
    assert contents(str(tmp_path / "to")) == {"old": "o", "new/x": "x"}


def test_dry_run_changes_nothing(places, run):
    src, dst = places
    put(dst, {"old": "o"})
    lines = run("--dry-run", "--delete", src, dst)
    assert sorted(lines)[-1] == f"would remove {dst}/old"
    assert len(lines) == 6
    assert contents(dst) == {"old": "o"}


def test_errors_name_the_argument(places, run):
    src, dst = places
    assert f"SRC='{src}/none': no such file or directory" in run(f"{src}/none", dst, code=2)
    error = run(f"{src}/a.txt", dst, code=2)
    assert error == f"moxing file sync: error: {src}/a.txt: SRC is not a directory, `moxing file cp` copies files"
    put(dst, {"file": "x"})
    assert "DST is not a directory" in run(src, f"{dst}/file", code=2)
    for target in (src, f"{src}/", f"{src}/sub"):
        assert "expected a directory outside SRC" in run("--delete", src, target, code=2)
    assert "does not lie in" in run("--delete", f"{src}/sub", src, code=2)
    assert contents(src) == FILES


def test_the_same_store_under_two_schemes(run, s3_folder):
    put(f"{s3_folder}/from/sub", {"a": "a"})
    other = s3_folder.replace("s3://", "obs://")
    assert "does not lie in" in run("--delete", f"{s3_folder}/from/sub", f"{other}/from", code=2)
    assert contents(f"{s3_folder}/from") == {"sub/a": "a"}


def test_the_same_path_of_two_stores(run, s3_folder, store, monkeypatch):
    """A store is another one if its address is; here the other one is a way to the same."""
    with fault_proxy.FaultProxy(store.port) as other:
        monkeypatch.delenv("S3_ENDPOINT")
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("OBS_SERVER", other.endpoint)
        put(f"{s3_folder}/from", {"a": "a"})
        found = run(f"{s3_folder}/from", f"{s3_folder}/from".replace("s3://", "obs://"))
        assert found == ["copied 0 files, 0 B; 1 file up to date"]
        assert main.main(["file", "cp", f"{s3_folder}/from/a", f"{s3_folder}/from/a".replace("s3://", "obs://")]) == 0
        assert other.requests


def test_what_transfers_leave_is_not_copied(run, s3_folder, tmp_path):
    put(str(tmp_path / "from"), {".mox-0123456789abcdef.tmp": "half", ".mox-01-23.part": "half", "whole": "w"})
    run("--delete", tmp_path / "from", f"{s3_folder}/to")
    assert contents(f"{s3_folder}/to") == {"whole": "w"}


def test_an_empty_source_empties_the_target(run, tmp_path):
    (tmp_path / "from").mkdir()
    put(str(tmp_path / "to"), {"a/b": "x"})
    assert run("--delete", tmp_path / "from", tmp_path / "to")[0].endswith("removed 1 file, 1 B")
    assert os.listdir(tmp_path / "to") == []
