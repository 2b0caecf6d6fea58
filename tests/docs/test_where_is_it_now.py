"""The tables of where-is-it-now.md against the modules that user code gets."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from moxing.tf1.contrib import _advice, _finder
from moxing.tf1.user import facade

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENGLISH, CHINESE = DOCS / "where-is-it-now.md", DOCS / "zh-CN" / "where-is-it-now.md"
PACKAGES = {
    "tensorflow": "TensorFlow",
    "tensorflow_estimator": "tensorflow-estimator",
    "tf_keras": "tf-keras",
    "tf_slim": "tf-slim",
    "moxing": "MoXing",
}


def rows(page):
    """The cells of all rows that begin with a name in code."""
    lines = re.findall(r"^\| (`.*) \|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


SERVED = {name.strip("`"): package for name, package, _ in (row for row in rows(ENGLISH) if len(row) == 3)}
OTHERS = {name.strip("`"): note for name, note in (row for row in rows(ENGLISH) if len(row) == 2)}
#: Whole parts, and what is refused at the call.
PARTS = [name for name in OTHERS if name.removeprefix("tf.contrib.") in _finder.PARTS]
REFUSED_CALLS = [name for name in OTHERS if ".quantize." in name or "(" in name]
REFUSED = {name: note for name, note in OTHERS.items() if name not in {*PARTS, *REFUSED_CALLS}}


def find(name):
    """What `import` and attributes give a script for a dotted name."""
    parts = re.sub(r"^tf\.", "tensorflow.", name).split(".")
    value = facade.module(parts[0])
    for count, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            if not isinstance(value, ModuleType) or name.startswith(("tf.contrib", "tf.estimator")):
                raise
            value = facade.module(".".join(parts[:count]))
    return value


@pytest.mark.parametrize("name", SERVED)
def test_what_is_served_comes_from_where_the_page_says(name):
    value = find(name)
    module = value.__name__ if isinstance(value, ModuleType) else value.__module__
    assert SERVED[name] == PACKAGES[module.partition(".")[0]]


def test_all_parts_of_contrib_are_listed():
    assert [f"tf.contrib.{part}" for part in _finder.PARTS] == PARTS
    for part in PARTS:
        find(part)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_the_page_says(name):
    with pytest.raises(AttributeError) as error:
        find(name)
    assert REFUSED[name] in str(error.value)


def test_every_advice_is_listed():
    known = {f"tf.contrib.{name}" for name in _advice._INSTEAD if name not in _finder.PARTS}
    assert known == {name for name in REFUSED if name.startswith("tf.contrib.")}


def test_calls_are_refused():
    assert len(REFUSED_CALLS) == 3
    for name in REFUSED_CALLS[:2]:
        with pytest.raises(NotImplementedError, match=r"tf\.lite\.TFLiteConverter"):
            find(name)()
    config = find("tf.contrib.tpu.RunConfig")()
    with pytest.raises(ValueError, match="Pass use_tpu=False"):
        find("tf.contrib.tpu.TPUEstimator")(lambda features: None, config=config, use_tpu=True, train_batch_size=8)


def test_both_languages_have_the_same_rows():
    def code(page):
        return [(row[0], row[1] if len(row) == 3 else "") for row in rows(page)]

    assert len(code(ENGLISH)) > 80
    assert code(ENGLISH) == code(CHINESE)
