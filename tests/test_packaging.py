"""What the build and the release rely on: one version, the same Python versions everywhere, complete packages."""

import fnmatch
import re
import tomllib
from pathlib import Path

from moxing._version import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCE = ROOT / "src" / "moxing"
#: Python files that are data: `packages.find` leaves them out.
TEMPLATES = SOURCE / "cli" / "new" / "templates"


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [version for version in versions if version != "Unreleased"][0] == __version__


def test_python_versions_agree():
    lowest, highest = map(int, re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["project"]["requires-python"]).groups())
    versions = [f"3.{minor}" for minor in range(lowest, highest)]
    prefix = "Programming Language :: Python :: 3."
    classifiers = [name for name in PROJECT["project"]["classifiers"] if name.startswith(prefix)]
    assert classifiers == [f"Programming Language :: Python :: {version}" for version in versions]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    matrix = re.search(r"^  test:.*?python: \[([^]]*)\]", workflow, flags=re.DOTALL | re.MULTILINE)[1]
    assert re.findall(r"[\d.]+", matrix) == versions


def test_the_wheel_has_every_data_file():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["moxing"]
    files = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and (path.suffix not in (".py", ".pyc") or TEMPLATES in path.parents)
        if "__pycache__" not in path.parts
    ]
    assert "py.typed" in files
    assert "cli/new/templates/classifier/mox/train.py" in files
    assert [name for name in files if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_the_source_distribution_can_be_tested():
    named = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split("global-exclude")[0]
    names = {word for line in named.splitlines() if line.startswith(("graft", "include")) for word in line.split()[1:]}
    assert {"Makefile", "conftest.py", "constraints.txt", "docs", "examples", "tests", ".ci"} <= names
    assert [name for name in names if not (ROOT / name).exists()] == []
