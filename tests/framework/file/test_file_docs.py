"""Every Python block of the user guide runs, and the two languages show the same code."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "file.md", DOCS / "zh-CN" / "file.md"]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found
    namespace = {}
    for code in found:
        exec(compile(code, str(page), "exec"), namespace)


def test_both_languages_show_the_same_code():
    english, chinese = ([re.sub(r"\s*#.*", "", code) for code in blocks(page)] for page in PAGES)
    assert english == chinese
