"""CONTRIBUTING.md names rooms, files and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Paths that stand for any other.
PLACEHOLDERS = {"src/moxing/a/b.py", "tests/a/test_b.py"}


def test_the_named_files_exist():
    named = set(re.findall(r"[` ]((?:src|tests|docs|examples|benchmarks|\.ci)/[\w./-]+)", TEXT))
    assert len(named) > 10
    assert [name for name in sorted(named - PLACEHOLDERS) if not (ROOT / name).exists()] == []


def test_the_map_shows_every_room():
    section = TEXT.partition("## Packages")[2].partition("\n## ")[0]
    rooms = set(re.findall(r"^\| `([\w/]+)` \|", section, flags=re.MULTILINE))
    source = ROOT / "src" / "moxing"
    packages = {path.parent.relative_to(source).as_posix() for path in source.glob("*/__init__.py")}
    packages |= {path.parent.relative_to(source).as_posix() for path in source.glob("tensorflow/*/__init__.py")}
    assert rooms == packages - {"tensorflow", "tensorflow/utils"}


def test_the_named_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", TEXT, flags=re.MULTILINE))
    assert {"setup", "test", "lint"} <= targets
    assert [name for name in sorted(targets) if not re.search(rf"^{name}:", makefile, flags=re.MULTILINE)] == []
