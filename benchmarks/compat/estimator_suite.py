"""Run tensorflow-estimator's own tests on the installed package, repaired and with MoXing's step loop.

    git clone https://github.com/tensorflow/estimator CHECKOUT && git -C CHECKOUT checkout v2.15.0
    python benchmarks/compat/estimator_suite.py CHECKOUT [--jobs 2] [--only PATTERN] [--logs DIRECTORY] [--loop off]

Every test file, except those under tpu/, runs in its own process with the behavior of TensorFlow that scripts have
under `moxing run`: that of TensorFlow 1, but resource variables and control flow v2, of which the loop is built. A test
that runs both eagerly and in a graph counts once, and passes if both do.

`estimator_suite_expected.json` maps the tests that fail to the reason. The exit code is 1 if another test fails, or if
one of them passes.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "estimator_suite_expected.json"
TESTS = Path("tensorflow_estimator", "python", "estimator")
SECONDS = 900

#: A later one decides about a test that has several.
OUTCOMES = ("skipped", "passed", "failed", "error")
#: The part of a name that is different in every run, and the mode of a part of a test.
UNSTABLE = re.compile(r"0x[0-9a-f]+")
PART = re.compile(r" \[(eager|graph)_mode\]$")
#: The name of the test that stands for a whole file.
PROCESS = "process"


@dataclass
class FileResult:
    """The outcome of every test of a file, by id, and what the process wrote."""

    name: str
    outcomes: dict[str, str]
    output: str


def test_files(checkout: Path, pattern: str) -> list[str]:
    """Return the paths of the test files that match, relative to the package."""
    folder = checkout / TESTS
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))
    return sorted(
        name
        for name in names
        if re.search(r"_test(_\w+)?\.py$", name)
        if not name.startswith("tpu/") and fnmatch.fnmatch(name, f"*{pattern}*")
    )


def run_file(checkout: Path, name: str, loop: str) -> FileResult:
    """Run one test file; a process that dies or takes too long is an error of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, str(HERE / "estimator_test_file.py"), str(checkout), str(checkout / TESTS / name)]
        log = Path(folder, "log")
        with log.open("wb") as output:
            child = subprocess.Popen(
                [*command, str(report), "--loop", loop],
                cwd=checkout,
                env={**os.environ, "TMPDIR": folder, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                child.wait(SECONDS)
            except subprocess.TimeoutExpired:
                # A training catches SIGTERM.
                child.kill()
                child.wait()
        outcomes = read_report(report, name) or {f"{name}::{PROCESS}": "error"}
        return FileResult(name, outcomes, log.read_text(errors="replace"))


def read_report(report: Path, file: str) -> dict[str, str]:
    """Return the outcomes of an XML report, by test id; nothing if it is not complete."""
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return {}
    outcomes: dict[str, str] = {}
    for case in cases:
        # Every test class inherits this one from TensorFlow, which skips it.
        if case.get("name") == "test_session":
            continue
        owner = case.get("classname", "").removeprefix("__main__.")
        test = f"{file}::{owner}.{UNSTABLE.sub('0x', PART.sub('', case.get('name', '')))}"
        outcome = outcome_of(case)
        outcomes[test] = max(outcomes.get(test, outcome), outcome, key=OUTCOMES.index)
    return outcomes


def outcome_of(case: ElementTree.Element) -> str:
    if case.find("error") is not None:
        return "error"
    if case.find("failure") is not None:
        return "failed"
    return "skipped" if case.get("status") == "notrun" else "passed"


def surprises(outcomes: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Return what differs from the table, one line each."""
    lines = []
    for test, outcome in sorted(outcomes.items()):
        if outcome in ("failed", "error") and test not in expected:
            lines.append(f"NOT EXPECTED  {outcome}  {test}")
        elif outcome == "passed" and test in expected:
            lines.append(f"NOW PASSES    {test}")
    return lines


def unknown_ids(outcomes: Iterable[str], expected: dict[str, str]) -> list[str]:
    """Return the entries of the table that are no test."""
    return [f"NO SUCH TEST  {test}" for test in sorted(set(expected) - set(outcomes))]


def describe(outcomes: dict[str, str]) -> str:
    counts = Counter(outcomes.values())
    return "  ".join(f"{counts[outcome]:5} {outcome}" for outcome in ("passed", "failed", "error", "skipped"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="tensorflow-estimator's repository at v2.15.0")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only files whose path contains this glob")
    parser.add_argument("--jobs", type=int, default=1, help="test files at the same time")
    parser.add_argument("--loop", choices=["on", "off"], default="on", help="off: the repaired package alone")
    parser.add_argument("--logs", type=Path, help="write what the files wrote into this directory")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    checkout = options.checkout.resolve()
    files = test_files(checkout, options.only)
    if not files:
        raise SystemExit(f"{options.checkout}: no test file that matches {options.only!r} in {TESTS}")
    expected: dict[str, str] = json.loads(EXPECTED.read_text())
    outcomes: dict[str, str] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda name: run_file(checkout, name, options.loop), files):
            outcomes |= result.outcomes
            print(f"{describe(result.outcomes)}  {result.name}", flush=True)
            if options.logs:
                options.logs.mkdir(parents=True, exist_ok=True)
                (options.logs / f"{result.name.replace('/', '.')}.log").write_text(result.output)
    print(f"{describe(outcomes)}  in total")
    lines = surprises(outcomes, expected)
    if not options.only:
        lines += unknown_ids(outcomes, expected)
    print("\n".join(lines) or "All failures are expected, and all that are expected failed.")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
