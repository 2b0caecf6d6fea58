"""The examples of the guide that need a store, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf
from image_folders import write_folder
from record_writing import noise, slim_example, write

import moxing as mox

DOCS = Path(__file__).resolve().parents[4] / "docs"


def example(page: str, language: str) -> str:
    text = (DOCS / language / page).read_text(encoding="utf-8")
    (found,) = re.findall(r"^```py\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return found


@pytest.mark.parametrize("page", ["data.md", "tfrecord.md"])
def test_both_languages_show_the_same_code(page):
    assert example(page, "") == example(page, "zh-CN")


def test_images(tmp_path, s3_folder):
    write_folder(tmp_path / "flowers", {"daisy": 3, "roses": 4})
    mox.file.copy_parallel(str(tmp_path / "flowers"), s3_folder + "/flowers")
    names: dict = {}
    exec(example("data.md", "").replace("s3://my-bucket", s3_folder), names)
    with tf.Graph().as_default(), tf.Session() as session:
        image, label = session.run(names["input_fn"]("TRAIN"))
    assert image.shape == (24, 24, 3) and label in (0, 1)


def test_records(tmp_path, s3_folder, capsys):
    write(tmp_path / "records" / "train-0", [slim_example(noise(4, 4), 1)] * 5)
    mox.file.copy_parallel(str(tmp_path / "records"), s3_folder + "/records")
    exec(example("tfrecord.md", "").replace("s3://my-bucket", s3_folder), {})
    assert capsys.readouterr().out == "5\n"
