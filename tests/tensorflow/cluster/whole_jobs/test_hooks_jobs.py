"""Helper hooks in jobs of two workers: what is summarised is of the mean of both, and the chief alone writes it."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from jobs import PROGRAMS, finished


def scalars(directory):
    """By tag and step; there is one file, the chief's."""
    (path,) = directory.glob("events*")
    found: dict[str, dict[int, float]] = {}
    for event in tf.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ps", [0, 1], ids=["collective", "ps"])
def test_norm_and_rate_are_those_of_the_step(ps, tmp_path):
    done = finished(tmp_path, 2, ps, [f"--log_directory={tmp_path / 'log'}"], script=PROGRAMS / "hooks_job.py")
    for worker in range(2):
        assert done[f"worker {worker}"].result == {"ends": [["end", 7]]}
    found = scalars(tmp_path / "log")
    # Both together take the samples in their order: 8 in a step, whose mean is 3.5, 11.5 and so on.
    assert found["gradient_norm"] == {step: 8.0 * step + 3.5 for step in (0, 2, 4, 6)}
    assert found["learning_rate"] == {step: (step + 1) / 64 for step in (0, 3, 6)}
    assert sorted(found["samples_per_sec"]) == [2, 4, 6]
    # The evaluations are of the samples of both workers. w falls, and so every evaluation is the best.
    curves = scalars(tmp_path / "log" / "eval")
    assert curves["number"] == dict.fromkeys((1, 3, 5), 4.5)
    assert [path.name for path in (tmp_path / "log" / "best").glob("*.index")] == ["model.ckpt-6.index"]
    best = tf.train.load_checkpoint(str(tmp_path / "log" / "best"))
    assert float(best.get_tensor("w")) == pytest.approx(curves["w"][5])
