"""copy and copy_parallel, with hostile names and hostile trees."""

import contextlib
import inspect
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import moxing as mox
from moxing.framework.file import transfer
from moxing.framework.file.target_tree import TargetTree

NAMES = ["a.txt", "sub/b c.txt", "sub/深/数据.txt", "sub/🚀.bin", "foo", "foo-bar", "-rf", "#x", "%41", "back\\slash"]


@pytest.fixture
def src(tmp_path):
    folder = tmp_path / "src"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "empty").mkdir()
    return folder


def contents(folder):
    names = mox.file.list_directory(folder, recursive=True, skip_dir=True)
    return {name: mox.file.read(os.path.join(folder, name)) for name in names}


def test_copy_one_file(tmp_path, src):
    mox.file.copy(str(src / "sub/b c.txt"), str(tmp_path / "new" / "dir" / "b"))
    assert (tmp_path / "new" / "dir" / "b").read_text() == "sub/b c.txt"
    mox.file.copy(src_url=src / "foo", dst_url=tmp_path / "new" / "dir" / "b", client_id="x")
    assert (tmp_path / "new" / "dir" / "b").read_text() == "foo"
    assert os.listdir(tmp_path / "new" / "dir") == ["b"]


def test_copy_to_a_bare_name(src, monkeypatch):
    monkeypatch.chdir(src)
    mox.file.copy("foo", "copy")
    assert (src / "copy").read_text() == "foo"


def test_copy_onto_itself_changes_nothing(src):
    (src / "link").symlink_to("foo")
    for target in ("foo", "link"):
        mox.file.copy(src / "foo", src / target)
    assert (src / "link").is_symlink()
    assert (src / "foo").read_text() == "foo"


def test_copy_errors_name_the_argument(tmp_path, src):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        mox.file.copy(src / "none", tmp_path / "x")
    with pytest.raises(IsADirectoryError, match="src_url.*copy_parallel"):
        mox.file.copy(src, tmp_path / "x")
    for target in (src, str(tmp_path / "x") + "/"):
        with pytest.raises(IsADirectoryError, match="dst_url"):
            mox.file.copy(src / "foo", target)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="src_url is not a regular file"):
        mox.file.copy(tmp_path / "pipe", tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_contents_land_directly_in_the_target(tmp_path, src, slash):
    mox.file.copy_parallel(f"{src}{slash}", f"{tmp_path}/new/dst{slash}")
    assert contents(tmp_path / "new" / "dst") == {name: name for name in NAMES}
    assert (tmp_path / "new" / "dst" / "empty").is_dir()


def test_the_signature_is_the_documented_one():
    parameters = inspect.signature(mox.file.copy_parallel).parameters
    assert {name: value.default for name, value in parameters.items() if value.default is not value.empty} == {
        "file_list": None,
        "threads": 16,
        "is_processing": True,
        "use_queue": True,
    }


@pytest.mark.parametrize("threads", [1, 3, 64])
@pytest.mark.parametrize("is_processing", [True, False])
def test_any_number_of_threads(tmp_path, src, threads, is_processing):
    mox.file.copy_parallel(src, tmp_path / "dst", None, threads, is_processing, use_queue=is_processing)
    assert contents(tmp_path / "dst") == contents(src)


@pytest.mark.parametrize("threads", [0, -1, 1.5, None, True, "4"])
def test_a_wrong_number_of_threads(tmp_path, src, threads):
    with pytest.raises(ValueError, match="threads="):
        mox.file.copy_parallel(src, tmp_path / "dst", threads=threads)


def test_it_merges_into_what_is_there(tmp_path, src):
    mox.file.make_dirs(tmp_path / "dst" / "sub")
    mox.file.write(tmp_path / "dst" / "foo", "old")
    mox.file.write(tmp_path / "dst" / "sub" / "own", "own")
    mox.file.copy_parallel(src, tmp_path / "dst")
    assert contents(tmp_path / "dst") == {**contents(src), "sub/own": "own"}


def test_a_single_file_is_copied_as_by_copy(tmp_path, src):
    mox.file.copy_parallel(src / "foo", tmp_path / "wine.data")
    assert (tmp_path / "wine.data").read_text() == "foo"
    with pytest.raises(ValueError, match="file_list"):
        mox.file.copy_parallel(src / "foo", tmp_path / "x", file_list=["a"])
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        mox.file.copy_parallel(src / "none", tmp_path / "x")


def test_file_list(tmp_path, src):
    mox.file.copy_parallel(src, tmp_path / "dst", file_list=("sub/🚀.bin", "./foo", "sub/../a.txt"))
    assert set(contents(tmp_path / "dst")) == {"sub/🚀.bin", "foo", "a.txt"}
    mox.file.copy_parallel(src, tmp_path / "all", file_list=mox.file.list_directory(src))
    assert contents(tmp_path / "all") == contents(src)
    mox.file.copy_parallel(src, tmp_path / "dot", file_list=["."])
    assert contents(tmp_path / "dot") == contents(src)
    mox.file.copy_parallel(src, tmp_path / "none", file_list=[])
    assert os.listdir(tmp_path / "none") == []
    mox.file.copy_parallel(src, tmp_path / "generated", file_list=(name for name in ["foo", "foo"]))
    assert os.listdir(tmp_path / "generated") == ["foo"]


HOSTILE = ["../outside", "sub/../../outside", "..", "/etc/hostname", "sub/../..", "../src-twin/x", "./../src/foo"]


@pytest.mark.parametrize("entry", HOSTILE)
def test_file_list_cannot_leave_the_target(tmp_path, src, entry):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "src-twin").mkdir()
    (tmp_path / "src-twin" / "x").write_text("kept")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="file_list entry") as caught:
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=["foo", entry])
    assert repr(entry) in str(caught.value)
    assert contents(tmp_path) == before
    assert not (tmp_path / "dst").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(["..", ".", "", "sub", "dst", "src", "foo", "out", "/"]), min_size=1, max_size=6))
def test_no_path_made_of_dots_gets_out(tmp_path, parts):
    source, target = tmp_path / "box" / "src", tmp_path / "box" / "dst"
    for folder in (source / "sub", source / "dst", source / "src", source / "out"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "foo").write_text("x")
    outside = {name for name in mox.file.list_directory(tmp_path, recursive=True) if not name.startswith("box/dst")}
    with contextlib.suppress(ValueError, FileNotFoundError):
        mox.file.copy_parallel(source, target, file_list=["/".join(parts)])
    after = {name for name in mox.file.list_directory(tmp_path, recursive=True) if not name.startswith("box/dst")}
    assert after == outside


@pytest.mark.parametrize("relative", ["..", "../x", "a/../../x", "a/..", "/etc/x"])
def test_a_tree_takes_up_nothing_outside_of_it(tmp_path, relative):
    """Whoever plans a copy: the last place where a path is looked at."""
    tree = TargetTree(str(tmp_path / "dst"))
    for add in (tree.add_file, tree.add_directory):
        with pytest.raises(ValueError, match="leads out of it"):
            add(relative)
    tree.make_directories()
    assert os.listdir(tmp_path) == ["dst"]


@pytest.mark.parametrize("wrong", ["foo", b"foo", 5])
def test_a_file_list_is_a_list(tmp_path, src, wrong):
    with pytest.raises(TypeError):
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=wrong)


def test_a_missing_entry_is_noticed_before_anything_is_copied(tmp_path, src):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="file_list.*none"):
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=["foo", "none"])
    assert not (tmp_path / "dst").exists()


def test_links_in_the_target_are_not_followed_out_of_it(tmp_path, src):
    outside = tmp_path / "dst-outside"
    outside.mkdir()
    (outside / "secret").write_text("kept")
    (tmp_path / "dst").mkdir()
    (tmp_path / "dst" / "sub").symlink_to(outside)
    with pytest.raises(ValueError, match="link that leads out"):
        mox.file.copy_parallel(src, tmp_path / "dst")
    (tmp_path / "dst" / "sub").unlink()
    (tmp_path / "dst" / "foo").symlink_to(outside / "secret")
    for names in (None, ["foo"]):
        with pytest.raises(ValueError, match="link that leads out"):
            mox.file.copy_parallel(src, tmp_path / "dst", file_list=names)
    assert contents(outside) == {"secret": "kept"}
    assert os.listdir(tmp_path / "dst") == ["foo"]


def test_the_target_itself_may_be_a_link(tmp_path, src):
    (tmp_path / "disk").mkdir()
    (tmp_path / "dst").symlink_to("disk")
    mox.file.copy_parallel(src, tmp_path / "dst")
    assert contents(tmp_path / "disk") == contents(src)


def test_a_target_with_dots_behind_a_link_is_where_the_system_says(tmp_path, src):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/er")
    mox.file.copy_parallel(src, tmp_path / "link" / ".." / "dst")
    assert contents(tmp_path / "deep" / "dst") == contents(src)


@pytest.mark.parametrize("target", ["src", "src/", "src/new", "src/sub", "link", "link/new", "sub/../src/x"])
def test_a_directory_is_not_copied_into_itself(tmp_path, src, target):
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "sub").mkdir()
    before = contents(src)
    with pytest.raises(ValueError, match="into itself"):
        mox.file.copy_parallel(src, f"{tmp_path}/{target}")
    assert contents(src) == before


def test_prefix_twins_are_strangers(tmp_path, src):
    mox.file.copy_parallel(src, str(src) + "-copy")
    assert contents(str(src) + "-copy") == contents(src)
    mox.file.copy_parallel(str(src) + "-copy", tmp_path / "sr")
    assert contents(tmp_path / "sr") == contents(src)


def test_the_source_may_lie_in_the_target_unless_it_would_be_overwritten(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_text("x")
    mox.file.copy_parallel(tmp_path / "a" / "b", tmp_path / "a")
    assert contents(tmp_path / "a") == {"x": "x", "b/x": "x"}
    (tmp_path / "a" / "b" / "b").mkdir()
    (tmp_path / "a" / "b" / "b" / "x").write_text("inner")
    with pytest.raises(ValueError, match="would be written into src_url"):
        mox.file.copy_parallel(tmp_path / "a" / "b", tmp_path / "a")
    assert (tmp_path / "a" / "b" / "x").read_text() == "x"


def test_a_file_and_a_directory_of_one_name(tmp_path, src):
    (tmp_path / "dst" / "foo").mkdir(parents=True)
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="foo") as caught:
        mox.file.copy_parallel(src, tmp_path / "dst")
    assert isinstance(caught.value, FileExistsError)
    os.rmdir(tmp_path / "dst" / "foo")
    (tmp_path / "dst" / "sub").write_text("")
    for names in (None, ["sub/深/数据.txt"]):
        with pytest.raises(mox.file.MoxFileNameDuplicateException, match="sub"):
            mox.file.copy_parallel(src, tmp_path / "dst", file_list=names)
    assert os.listdir(tmp_path / "dst") == ["sub"]
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="dst_url"):
        mox.file.copy_parallel(src, tmp_path / "dst" / "sub")


def test_links_in_the_source_are_copied_as_what_they_point_to(tmp_path, src):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("x")
    (src / "linked").symlink_to(tmp_path / "elsewhere")
    mox.file.copy_parallel(src, tmp_path / "dst")
    assert not (tmp_path / "dst" / "linked").is_symlink()
    assert (tmp_path / "dst" / "linked" / "x").read_text() == "x"


def test_links_that_cannot_be_copied(tmp_path, src):
    (src / "loop").symlink_to(src)
    with pytest.raises(OSError, match="link to a directory above"):
        mox.file.copy_parallel(src, tmp_path / "dst")
    (src / "loop").unlink()
    (src / "broken").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="broken"):
        mox.file.copy_parallel(src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_a_pipe_does_not_block_the_copy(tmp_path, src):
    os.mkfifo(src / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        mox.file.copy_parallel(src, tmp_path / "dst")


def test_names_that_are_no_utf_8(tmp_path, src):
    raw = os.fsencode(src) + b"/\xff\xfe"
    with open(raw, "w") as f:
        f.write("raw")
    mox.file.copy_parallel(src, tmp_path / "dst")
    with open(os.fsencode(tmp_path) + b"/dst/\xff\xfe") as f:
        assert f.read() == "raw"
    assert mox.file.read(raw) == "raw"


def test_the_first_failure_stops_the_rest(tmp_path, src, monkeypatch):
    original = transfer.copy_local

    def fail(source, target):
        if source.endswith("a.txt"):
            raise OSError(28, "No space left on device", target)
        original(source, target)

    monkeypatch.setattr(transfer, "copy_local", fail)
    with pytest.raises(OSError, match="No space"):
        mox.file.copy_parallel(src, tmp_path / "dst", threads=1)
    assert len(contents(tmp_path / "dst")) < len(NAMES)
