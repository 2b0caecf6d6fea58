"""Every relative link of every Markdown page leads to a file, and to a heading of it where the link has an anchor."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for folder in (".", ".github", "docs", "examples")
    for page in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
)


def prose(page):
    """The text of a page without its code blocks, in which `](` is code and `#` a comment."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def slug(heading):
    """The anchor of a heading, as GitHub makes it: the text of links, lower case, hyphens for spaces."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page):
    """All anchors of a page; a heading that comes again is numbered."""
    found = {}
    for heading in re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE):
        name = slug(heading)
        while name in found:
            found[name] += 1
            name = f"{name}-{found[name]}"
        found[name] = 0
    return set(found)


def broken_links(page):
    """The links of a page that lead nowhere."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    return broken


def test_all_pages_are_looked_at():
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "README.zh-CN.md", "CHANGELOG.md", "docs/index.md", "docs/zh-CN/index.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n## Twice, `so`\n\n## Twice, `so`\n\n"
        "[right](#a-page) [right](page.md#twice-so) [right](page.md#twice-so-1) [out](https://example.com/x)\n"
        "[wrong](#b-page) [wrong](other.md) [wrong](page.md#twice-so-2)\n\n```text\n# Code\n[code](code.md)\n```\n"
        "[wrong](#code)\n"
    )
    assert broken_links(page) == ["#b-page", "other.md", "page.md#twice-so-2", "#code"]
