"""The README and the guide: every Python block runs, both languages show the same code.

`file.md` has tests of its own, beside those of `mox.file`.
"""

import inspect
import json
import re
from pathlib import Path

import pytest

import moxing.tensorflow as mox
from helpers.launcher import warm_moxing
from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel import choice

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
CHINESE = [page for page in PAGES if "zh-CN" in str(page.relative_to(ROOT))]
#: Pages that are there in English only, with the reason.
ENGLISH_ONLY = ["architecture.md", "releasing.md"]


def english(page):
    """The English page of a Chinese one."""
    return ROOT / "README.md" if page.parent == ROOT else DOCS / page.name


def blocks(page):
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def with_python(pages):
    return [str(page) for page in pages if page.name != "file.md" and any(kind == "python" for kind, _ in blocks(page))]


# The Chinese pages have the same code, as another test checks.
@pytest.mark.slow
@pytest.mark.parametrize("language", ["English", pytest.param("Chinese", marks=pytest.mark.slow)])
def test_the_examples_run(language, tmp_path):
    """One process for all pages of a language, in the facade that `moxing run` gives a script."""
    pages = with_python(CHINESE if language == "Chinese" else [page for page in PAGES if page not in CHINESE])
    assert len(pages) >= 7
    outcome = tmp_path / "outcome.json"
    script = Path(__file__).with_name("run_pages.py")
    result = warm_moxing("run", script, outcome, *pages, cwd=tmp_path, timeout=280)
    assert result.returncode == 0, result.stderr[-3000:]
    errors = {page: error for page, error in json.loads(outcome.read_text()).items() if error}
    assert not errors, "\n".join(errors.values())


def test_every_page_is_there_in_both_languages():
    names = {page.name for page in PAGES if page not in CHINESE and page.parent == DOCS} - set(ENGLISH_ONLY)
    assert names == {page.name for page in CHINESE if page.parent != ROOT}


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.name)
def test_both_languages_show_the_same_code(page):
    def code(path):
        return [(kind, re.sub(r"\s*#.*", "", text)) for kind, text in blocks(path) if kind in ("python", "shell")]

    assert code(page) == code(english(page))


@pytest.mark.parametrize("page", [DOCS / "index.md", DOCS / "zh-CN" / "index.md"], ids=["English", "Chinese"])
def test_the_index_lists_every_page(page):
    text = page.read_text(encoding="utf-8")
    for other in page.parent.glob("*.md"):
        assert other.name == "index.md" or f"({other.name})" in text, f"{other.name} is not in the index"


def table(page):
    """The flags of a page: their names, types and defaults as the table has them, and whether they work."""
    rows = re.findall(r"^\| `--(\w+)` \| (\w+) \| `([^`]*)` \| .* \| (\S+) \|$", page.read_text("utf-8"), re.MULTILINE)
    return {name: (kind, default, works) for name, kind, default, works in rows}


@pytest.mark.parametrize(("page", "yes"), [(DOCS / "flags.md", "yes"), (DOCS / "zh-CN" / "flags.md", "是")])
def test_the_table_of_flags_is_complete(page, yes):
    rows = table(page)
    assert list(rows) == FLAGS.names()
    for flag in FLAGS.flags:
        kind, default, works = rows[flag.name]
        assert (kind, default) == (flag.kind.__name__, repr(flag.default)), flag.name
        if flag.name in choice.UNAVAILABLE_FLAGS:
            assert works != yes, f"--{flag.name} is refused by this version"


@pytest.mark.parametrize("page", [DOCS / "run.md", DOCS / "zh-CN" / "run.md"], ids=["English", "Chinese"])
def test_every_argument_of_run_is_described(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert set(inspect.signature(mox.run).parameters) <= set(named)
