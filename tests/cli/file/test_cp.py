"""`moxing file cp` between a disk and a real store, in all four directions."""

import os
from functools import partial

import pytest
from trees import WAYS, contents, put, run_file, source_and_target

import moxing as mox
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.remote.object_store import ObjectStore

FILES = {"a.txt": "hello", "sub/b c.txt": "bc", "sub/深/🚀.bin": "r", "foo": "f", "foo-bar/x": "x"}


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def places(request, tmp_path):
    return source_and_target(request, tmp_path, FILES)


@pytest.fixture
def run(capfd):
    return partial(run_file, capfd, "cp")


@pytest.mark.parametrize("source_slash", ["", "/"])
@pytest.mark.parametrize("target_slash", ["", "/"])
def test_a_directory_and_slashes(places, run, source_slash, target_slash):
    """What is in the source is then in the target: with and without slashes, the first time and the second."""
    src, dst = places
    for _ in range(2):
        assert run("-r", src + source_slash, dst + target_slash) == ["copied 5 files, 10 B"]
        assert contents(dst) == FILES


def test_one_file(places, run):
    src, dst = places
    assert run(f"{src}/a.txt", f"{dst}/new/name.txt") == ["copied 1 file, 5 B"]
    run(f"{src}/a.txt", f"{dst}/new")
    run(f"{src}/foo", f"{dst}/")
    assert contents(dst) == {"new/name.txt": "hello", "new/a.txt": "hello", "foo": "f"}
    put(src, {"a.txt": "changed"})
    run("-v", f"{src}/a.txt", f"{dst}/new/name.txt")
    assert mox.file.read(f"{dst}/new/name.txt") == "changed"


def test_several_sources_and_patterns(places, run):
    src, dst = places
    run(f"{src}/a.txt", f"{src}/foo", dst)
    assert contents(dst) == {"a.txt": "hello", "foo": "f"}
    # A pattern copies under the names that it matches, however many those are.
    run("-r", f"{src}/su*", f"{dst}/one")
    assert contents(f"{dst}/one") == {"sub/b c.txt": "bc", "sub/深/🚀.bin": "r"}
    run("-r", f"{src}/*", f"{dst}/all")
    assert contents(f"{dst}/all") == FILES
    run(f"{src}/**/*.txt", f"{dst}/flat/")
    assert contents(f"{dst}/flat") == {"a.txt": "hello", "b c.txt": "bc"}


def test_sources_of_one_name_are_refused(places, run):
    src, dst = places
    put(src, {"sub/a.txt": "other"})
    error = run(f"{src}/**/a.txt", dst, code=2)
    assert f"SRC='{src}/sub/a.txt': expected sources of different names, '{src}/a.txt' has the same." in error
    assert not mox.file.exists(dst)


def test_errors_before_anything_is_copied(places, run):
    src, dst = places
    assert run(f"{src}/a.txt", f"{src}/sub", dst, code=2) == (
        f"moxing file cp: error: {src}/sub: SRC is a directory, --recursive copies it with its content"
    )
    assert f"SRC='{src}/none': no such file or directory" in run(f"{src}/none", dst, code=2)
    assert f"SRC='{src}/*.none': nothing matches this pattern" in run(f"{src}/*.none", dst, code=2)
    put(dst, {"file": "x"})
    several = run(f"{src}/a.txt", f"{src}/foo", f"{dst}/file", code=2)
    assert f"{dst}/file: DST is not a directory, several sources need a directory" in several
    assert "DST" in run("-r", src, f"{dst}/file", code=2)
    assert contents(dst) == {"file": "x"}


def test_into_itself(places, run):
    src, _ = places
    assert f"DST='{src}/sub/x': expected a directory outside SRC='{src}'" in run("-r", src, f"{src}/sub/x", code=2)
    run(f"{src}/a.txt", f"{src}/sub")
    for words in ((f"{src}/a.txt", f"{src}/a.txt"), (f"{src}/a.txt", src), (f"{src}/foo", f"{src}/*.txt", src)):
        assert ": expected another file than SRC=" in run(*words, code=2)
    assert contents(src) == FILES | {"sub/a.txt": "hello"}


def test_empty_directories_come_along(places, run):
    src, dst = places
    mox.file.make_dirs(f"{src}/empty/below")
    run("-r", src, dst)
    assert mox.file.is_directory(f"{dst}/empty/below")
    run("-r", f"{src}/empt*", f"{dst}/more")
    assert mox.file.is_directory(f"{dst}/more/empty/below")


@pytest.mark.parametrize("target", ["disk", "store"])
def test_sources_made_of_dots_have_their_real_names(run, tmp_path, monkeypatch, request, target):
    """Nothing is written beside the target, as `to/../a` would be."""
    put(str(tmp_path), {"from/a": "a", "from/sub/s": "s", "from/sub/deep/d": "d", "other/o": "o"})
    root = str(tmp_path / "out") if target == "disk" else request.getfixturevalue("s3_folder")
    monkeypatch.chdir(tmp_path / "from" / "sub")
    run("-r", "..", "../../other", f"{root}/to")
    assert contents(root) == {"to/from/a": "a", "to/from/sub/s": "s", "to/from/sub/deep/d": "d", "to/other/o": "o"}
    run("-r", ".", "deep/../../../other", f"{root}/more")
    assert contents(f"{root}/more") == {"sub/s": "s", "sub/deep/d": "d", "other/o": "o"}
    assert "expected sources of different names" in run("-r", "..", "../../from", f"{root}/twice", code=2)


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "..", "/etc/x", "a//b", "./x", "a\0b"])
def test_hostile_keys_stay_inside(run, s3_folder, tmp_path, monkeypatch, key):
    put(s3_folder, {"good": "g"})
    tree = ObjectStore.tree
    monkeypatch.setattr(ObjectStore, "tree", lambda store, path: [*tree(store, path), FileEntry(key, False, 4)])
    error = run("-r", s3_folder, tmp_path / "new", code=2)
    assert "cannot be a path below DST" in error
    assert os.listdir(tmp_path) == []


def test_two_slashes_are_one(run, s3_folder, tmp_path):
    put(s3_folder, {"a/g": "g"})
    run(f"{s3_folder}/a//g", f"{tmp_path}/got//")
    run("-r", f"{s3_folder}//a//", f"{s3_folder}//b")
    assert contents(str(tmp_path / "got")) == {"g": "g"}
    assert contents(s3_folder) == {"a/g": "g", "b/g": "g"}


def test_a_key_that_no_url_can_name_is_not_copied(run, s3_folder, monkeypatch):
    put(s3_folder, {"a/g": "g"})
    tree = ObjectStore.tree
    monkeypatch.setattr(ObjectStore, "tree", lambda store, path: [*tree(store, path), FileEntry("x//g", False, 1)])
    assert "'x//g' in it has an empty part" in run("-r", f"{s3_folder}/a", f"{s3_folder}/b", code=2)
    assert not mox.file.exists(f"{s3_folder}/b")


def test_links_in_the_target_lead_nowhere(places, run, tmp_path):
    src, dst = places
    if "://" in dst:
        pytest.skip("a store has no links")
    outside = tmp_path / "outside"
    outside.mkdir()
    os.makedirs(dst)
    os.symlink(outside, f"{dst}/sub")
    assert "is a link that leads out of it" in run("-r", src, dst, code=2)
    assert "is a link that leads out of it" in run("-r", f"{src}/su*", dst, code=2)
    assert os.listdir(outside) == []


def test_a_key_that_is_both(run, s3_folder, tmp_path):
    put(s3_folder, {"both/x": "x"})
    put(s3_folder, {"both": "b"})
    error = run("-r", s3_folder, tmp_path / "new", code=2)
    assert "DST" in error
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_many_files_and_a_large_one(run, s3_folder, tmp_path):
    put(str(tmp_path / "many"), {f"{number % 7}/{number}": f"{number}" * 50 for number in range(600)})
    large = os.urandom(1 << 20) * 20
    (tmp_path / "many" / "large").write_bytes(large)
    run("-r", tmp_path / "many", f"{s3_folder}/many", "--threads", 8)
    assert run("-r", f"{s3_folder}/many", tmp_path / "back")[0].startswith("copied 601 files, 21.")
    assert (tmp_path / "back" / "large").read_bytes() == large
    assert contents(str(tmp_path / "back" / "3")) == contents(str(tmp_path / "many" / "3"))


def test_a_broken_link_is_named(run, tmp_path, s3_folder):
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "link").symlink_to("nowhere")
    assert "SRC=" in (error := run("-r", tmp_path / "from", f"{s3_folder}/x", code=2))
    assert "a link to nothing" in error
