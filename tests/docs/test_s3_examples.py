"""The examples of `s3.md`, against a real store, in the facade that `moxing run` gives a script."""

import re
from pathlib import Path

import pytest

import moxing as mox
from helpers.launcher import warm_moxing
from moxing.framework.file.s3.clients import get_client

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "s3.md", DOCS / "zh-CN" / "s3.md"]


def blocks(page):
    return re.findall(r"^```python store\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=["English", "Chinese"])
def test_the_examples_run(page, tmp_path, s3_folder):
    # Each run of the page has a bucket of its own: the version of its export is taken afterwards.
    bucket = "docs-" + s3_folder.rpartition("/")[2]
    get_client("s3").create_bucket(bucket)
    code = "\n".join(blocks(page)).replace("my-bucket", bucket)
    (tmp_path / "page.py").write_text(code)
    done = warm_moxing("run", "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout.replace(bucket, "my-bucket")
    assert "s3://my-bucket/sums/log/model.ckpt-200 s3://my-bucket/sums/log/model\n" in said
    assert "['predict_object', 'serving_default']" in said
    assert "['log', 'note.txt']" in said
    assert "s3://my-bucket/sums/none.txt" in said
    # The page shows what is printed.
    shown = re.search(r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)[1]
    lines = [line for line in shown.splitlines() if "s3://" in line]
    assert len(lines) == 4
    output = (done.stderr + done.stdout).replace(bucket, "my-bucket")
    assert [line for line in lines if line not in output] == []
    mox.file.remove(f"s3://{bucket}/sums", recursive=True)


def test_both_languages_show_the_same_code():
    english, chinese = ([re.sub(r"\s*#.*", "", code) for code in blocks(page)] for page in PAGES)
    assert english == chinese
    assert len(english) == 3
