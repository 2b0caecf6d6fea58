"""The runner of tensorflow-estimator's own tests: what it reads from reports, and what it calls a surprise."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "compat"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


suite = load("estimator_suite")
test_file = load("estimator_test_file")


def report(directory, *cases):
    path = directory / "report.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return suite.read_report(path, "a_test.py")


def case(name, inside="", status="run"):
    return f'<testcase classname="__main__.T" name="{name}" status="{status}">{inside}</testcase>'


def test_files_are_found_without_helpers_and_tpu(tmp_path):
    folder = tmp_path / suite.TESTS
    for name in ("a_test.py", "canned/v1/b_test_v1.py", "canned/b_testing_utils.py", "tpu/c_test.py", "d.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert suite.test_files(tmp_path, "") == ["a_test.py", "canned/v1/b_test_v1.py"]
    assert suite.test_files(tmp_path, "v1/b") == ["canned/v1/b_test_v1.py"]


def test_outcomes_of_a_report(tmp_path):
    cases = [
        case("test_good"),
        case("test_bad", "<failure/>"),
        case("test_broken", "<error/>"),
        case("test_other", status="notrun"),
        case("test_session", status="notrun"),
        case("test_with &lt;f at 0x7f01&gt;"),
    ]
    assert report(tmp_path, *cases) == {
        "a_test.py::T.test_good": "passed",
        "a_test.py::T.test_bad": "failed",
        "a_test.py::T.test_broken": "error",
        "a_test.py::T.test_other": "skipped",
        "a_test.py::T.test_with <f at 0x>": "passed",
    }


@pytest.mark.parametrize("order", [1, -1])
def test_a_test_in_two_modes_counts_once_and_fails_if_one_does(tmp_path, order):
    cases = [case("test_it [eager_mode]", "<failure/>"), case("test_it [graph_mode]")]
    assert report(tmp_path, *cases[::order]) == {"a_test.py::T.test_it": "failed"}


def test_an_incomplete_report_has_no_outcomes(tmp_path):
    (tmp_path / "report.xml").write_text("<testsuites><testsuite>")
    assert suite.read_report(tmp_path / "report.xml", "a_test.py") == {}
    assert suite.read_report(tmp_path / "missing.xml", "a_test.py") == {}


def test_surprises():
    outcomes = {"a": "passed", "b": "failed", "c": "error", "d": "passed", "e": "skipped"}
    lines = suite.surprises(outcomes, {"b": "why", "d": "why", "e": "why"})
    assert lines == ["NOT EXPECTED  error  c", "NOW PASSES    d"]
    assert suite.unknown_ids(outcomes, {"b": "why", "gone": "why"}) == ["NO SUCH TEST  gone"]


def test_arguments_by_the_old_name():
    def function(a, b=1, *more, c, **others):
        pass

    assert test_file.getargspec(function) == (["a", "b"], "more", "others", (1,))


def test_the_table_has_a_reason_for_every_test():
    expected = json.loads(suite.EXPECTED.read_text())
    assert all(re.fullmatch(r"[\w/]+\.py::(\w+\.\S.*|process)", test) for test in expected)
    assert all(reason.endswith(".") and len(reason.split()) > 4 for reason in expected.values())
