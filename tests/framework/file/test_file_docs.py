"""Every Python block of the user guide runs, and the two languages show the same code."""

import re
from pathlib import Path

import pytest

import moxing as mox
from moxing.framework.file.s3.clients import get_client

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "file.md", DOCS / "zh-CN" / "file.md"]


def blocks(page, kind="python"):
    """The examples of a page; those that need a store are of the kind `python store`."""
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found
    namespace = {}
    for code in found:
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_examples_for_stores_run(page, tmp_path, monkeypatch, store, s3_folder, own_settings):
    monkeypatch.chdir(tmp_path)
    get_client("s3").create_bucket("my-bucket")
    keys = store.environment
    for name, variable in {"MY_AK": "ACCESS_KEY_ID", "MY_SK": "SECRET_ACCESS_KEY", "MY_SERVER": "S3_ENDPOINT"}.items():
        monkeypatch.setenv(name, keys[variable])
        monkeypatch.delenv(variable)
    found = blocks(page, "python store")
    assert len(found) == 3
    namespace = {}
    for code in found:
        exec(compile(code, str(page), "exec"), namespace)
    mox.file.remove("s3://my-bucket/notes", recursive=True)


@pytest.mark.parametrize("kind", ["python", "python store"])
def test_both_languages_show_the_same_code(kind):
    english, chinese = ([re.sub(r"\s*#.*", "", code) for code in blocks(page, kind)] for page in PAGES)
    assert english == chinese
