"""Nothing is written outside the target of a copy."""

import contextlib
import os

import pytest
from copied_tree import contents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import moxing as mox
from moxing.framework.file.copying.target_tree import TargetTree


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
