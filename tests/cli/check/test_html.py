"""The page: valid, escaped, complete in itself."""

import re
from html.parser import HTMLParser

from moxing.cli.check import html
from moxing.cli.check.findings import MISSING, SERVED, FileReport, Finding, Report

SOURCE = "import tensorflow as tf\nx = '<script>alert(1)</script>' + \"&amp;\"\n\x0ctf.lost"
FILES = (
    FileReport(
        "<b>&'\".py",
        (
            Finding("name", SERVED, "tf", (1,), provider='Tensor"Flow'),
            Finding("name", MISSING, "tf.lost", (3,), "use <i>this</i>\nor that"),
        ),
        SOURCE,
    ),
    FileReport("empty.py", (), ""),
)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_the_page():
    page = html.page(Report("<project>", FILES))
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert "script" not in reader.tags and reader.tags.count("i") == 4
    # Nothing is loaded, and links lead to the page itself.
    assert [value for name, value in reader.attributes if name in ("src", "href")] == ["#f0", "#f1"]
    assert "url(" not in page and "@import" not in page and "http" not in page
    assert "prefers-color-scheme: dark" in page and "color-scheme: light dark" in page
    for shown in ("<script>alert(1)</script>", '"&amp;"', "<b>&'\".py", "use <i>this</i>\nor that", "<project>"):
        assert shown in reader.text
    assert ("title", 'tf: Tensor"Flow') in reader.attributes
    # The third line is the marked one.
    assert re.search(r'<span class="missing"><i>3</i>', page)
    assert "50 %: 1 of 2 names are served." in reader.text
