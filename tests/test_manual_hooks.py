"""The manual's programs with an evaluation inside training (4.5.2, 4.5.3), on real photos."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from helpers.launcher import output_of

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds" / "scripts"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not SCRIPTS.is_dir(), reason=f"the manual's programs are not at {SCRIPTS}"),
]


def lines_of(name: str, tmp_path: Path, real_data: Path) -> list[str]:
    """The log lines of a program; its folders are ours, and its images small, for the test's sake."""
    for split, (first, last) in {"train": (0, 4), "eval": (4, 6)}.items():
        for flower in ("daisy", "roses", "tulips"):
            target = tmp_path / split / flower
            target.mkdir(parents=True)
            for photo in sorted((real_data / "flowers" / flower).glob("*.jpg"))[first:last]:
                shutil.copy(photo, target)
    text = (SCRIPTS / f"{name}.py").read_text()
    for old, new, count in (("/export1/flowers/raw/split", str(tmp_path), 2), ("=224", "=32", 2)):
        assert text.count(old) == count, old
        text = text.replace(old, new)
    script = tmp_path / f"{name}.py"
    script.write_text(text)
    return [line.removeprefix("INFO:tensorflow:") for line in output_of(script).splitlines()]


@pytest.mark.slow
def test_validation_metrics(tmp_path, real_data):
    lines = lines_of("manual_4_5_2_validation_metrics", tmp_path, real_data)
    pattern = r"\[VALIDATION METRICS\] step: (\d+) loss: \d+\.\d{3} accuracy: [01]\.\d{3}"
    found = [re.fullmatch(pattern, line) for line in lines if line.startswith("[VALIDATION")]
    assert [match and int(match[1]) for match in found] == [31, 63, 95]
    steps = [line.split("(")[0] for line in lines if line.startswith("step: ")]
    assert steps == [*(f"step: {step}" for step in range(0, 100, 10)), "step: 99"]


@pytest.mark.slow
def test_early_stopping(tmp_path, real_data):
    lines = lines_of("manual_4_5_3_early_stopping", tmp_path, real_data)
    found = [re.fullmatch(r"\[EarlyStopping\] step: (\d+) accuracy: ([01]\.\d{3})", line) for line in lines]
    steps, values = zip(*[(int(match[1]), float(match[2])) for match in found if match], strict=True)
    assert steps == tuple(range(19, 20 * len(steps), 20))
    # The documented run has four lines, of the same value. The rule is what counts: three without a gain end it.
    best, waited = values[0], [0]
    for value in values[1:]:
        gain = value - best > 0.01
        best = value if gain else best
        waited.append(0 if gain else waited[-1] + 1)
    assert waited[-1] == 3
    assert max(waited[:-1]) < 3
