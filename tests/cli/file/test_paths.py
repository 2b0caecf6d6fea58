"""PATH arguments: patterns, file:// URLs."""

from stored_tree import names

import moxing as mox


def test_ls_patterns(root, run):
    assert names(root, run("ls", f"{root}/*.txt", f"{root}/b.*")) == ["a.txt", "b.jpg"]
    assert names(root, run("ls", f"{root}/su*")) == ["sub/", "sub-twin/"]
    assert names(root, run("ls", f"{root}/**/*.txt")) == ["a.txt", "sub-twin/e.txt", "sub/c.txt", "sub/deep/d.txt"]
    assert names(root, run("ls", f"{root}/[ab].*", f"{root}/a.txt")) == ["a.txt", "b.jpg"]
    assert names(root, run("ls", "-r", f"{root}/sub?*")) == ["sub-twin/", "sub-twin/e.txt"]


def test_a_name_that_looks_like_a_pattern(root, run):
    mox.file.write(f"{root}/a[1]*.txt", "x")
    mox.file.write(f"{root}/a1.txt", "y")
    assert run("ls", f"{root}/a[1]*.txt") == [f"{root}/a[1]*.txt"]
    assert run("cat", f"{root}/a[1]*.txt") == ["x"]


def test_file_urls_are_local_paths(run, tmp_path):
    (tmp_path / "x").write_text("x")
    assert run("ls", f"file://{tmp_path}") == [f"{tmp_path}/x"]
    assert run("ls", f"file://{tmp_path}/*") == [f"{tmp_path}/x"]
