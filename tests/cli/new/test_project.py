"""Writing a project: complete or not at all."""

from __future__ import annotations

import ast
import os
import shutil

import pytest

from moxing.cli.new import project
from moxing.cli.new.project import KINDS, TEMPLATES, free_name, template_files, write_project

STANDARD = {"argparse", "copy", "difflib", "hashlib", "io", "json", "math", "os", "pathlib", "random", "re"}
STANDARD |= {"subprocess", "sys", "typing"}
BASES = [(kind, base) for kind, bases in KINDS.items() for base in bases]


@pytest.mark.parametrize(("kind", "base"), BASES)
def test_a_project_is_complete(tmp_path, kind, base):
    files = write_project(str(tmp_path / "one"), kind, base)
    assert {"README.md", "data.py", "export.py", "model.py", "predict.py", "tests/test_project.py", "train.py"} <= set(
        files
    )
    written = {
        path.relative_to(tmp_path / "one").as_posix() for path in (tmp_path / "one").rglob("*") if path.is_file()
    }
    assert written == set(files)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_every_template_belongs_to_a_project():
    used = {path for kind, base in BASES for path in template_files(kind, base).values()}
    there = {path for path in TEMPLATES.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert used == there


@pytest.mark.parametrize(("kind", "base"), BASES)
def test_the_programs_import_the_public_api_and_their_own_modules(kind, base):
    files = template_files(kind, base)
    own = {name.removesuffix(".py") for name in files if name.endswith(".py")}
    known = own | {"PIL", "moxing", "pytest", "tensorflow"}
    for name, path in files.items():
        if not name.endswith(".py"):
            continue
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), name
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {one for one in imported if one.startswith("moxing")} <= {"moxing.tensorflow"}, name
        assert {one for one in imported if one.startswith("tensorflow")} <= {"tensorflow", "tensorflow.compat.v1"}, name
        others = {one.split(".")[0] for one in imported} - known
        assert others <= STANDARD, name


def test_an_empty_directory_is_used(tmp_path):
    (tmp_path / "one").mkdir()
    write_project(str(tmp_path / "one") + "/", "classifier", "mox")
    assert (tmp_path / "one" / "train.py").is_file()


def test_the_mode_is_that_of_any_directory(tmp_path):
    write_project(str(tmp_path / "one"), "classifier", "mox")
    (tmp_path / "other").mkdir()
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("name", ["", "  ", "/", ".", "..", "a/..", "a\0b"])
def test_no_name(tmp_path, monkeypatch, name):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    (tmp_path / "inner" / "a").mkdir()
    with pytest.raises(ValueError, match="directory="):
        write_project(name, "classifier", "mox")
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", "a"]


def test_names_that_are_no_identifiers(tmp_path):
    for name in ("my-project", "2019", "图像 分类", "-x"):
        write_project(str(tmp_path / name), "classifier", "mox")
        assert (tmp_path / name / "train.py").is_file()


def test_a_directory_with_content(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "mine.txt").write_text("kept")
    (tmp_path / "one_2").mkdir()
    with pytest.raises(ValueError, match=r"one' exists and is not empty; use another name, such as .*/one_3\."):
        write_project(str(tmp_path / "one"), "classifier", "mox")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["one", "mine.txt", "one_2"]


def test_a_file_a_missing_parent_a_long_name(tmp_path):
    (tmp_path / "file").write_text("kept")
    for name, message in (
        ("file", "is a file; use another name, such as .*/file_2"),
        ("file/one", "there is no directory '.*/file'; create it first"),
        ("no/one", "there is no directory '.*/no'; create it first"),
        ("x" * 256, "a name has at most 255 bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            write_project(str(tmp_path / name), "classifier", "mox")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_to_an_empty_directory_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_project(str(tmp_path / "link"), "classifier", "mox")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "train.py").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_parent_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written: Permission denied"):
        write_project(str(tmp_path / "one"), "classifier", "mox")


def test_an_error_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    templates = tmp_path / "templates"
    shutil.copytree(TEMPLATES, templates)
    # As if the disk failed at the last file: it cannot be read.
    (templates / "classifier" / "mox" / "train.py").unlink()
    (templates / "classifier" / "mox" / "train.py").mkdir()
    monkeypatch.setattr(project, "TEMPLATES", templates)
    (tmp_path / "work").mkdir()
    with pytest.raises(ValueError, match="one' cannot be written: Is a directory"):
        write_project(str(tmp_path / "work" / "one"), "classifier", "mox")
    assert list((tmp_path / "work").iterdir()) == []


def test_free_names(tmp_path):
    assert free_name(str(tmp_path / "a")) == str(tmp_path / "a_2")
    (tmp_path / "a_2").write_text("")
    assert free_name(str(tmp_path / "a") + "/") == str(tmp_path / "a_3")
