"""Evaluations inside the training of a cluster: every sample once, and decisions that all workers share."""

from __future__ import annotations

import re
import signal

import numpy as np
import pytest
from evaluating_job import EVALUATED, LEARNING_RATE, OTHERS, SAMPLES
from jobs import PROGRAMS, alone, finished, job, saved_steps, weights
from linear_job import data

SCRIPT = PROGRAMS / "evaluating_job.py"

#: Four steps of 14 samples: two workers with 7 each, or one with all of them.
EPOCH = SAMPLES // 14

LAYOUTS = {
    "ps": (1, 2, []),
    "collective": (0, 2, []),
    "dgc": (0, 2, ["--variable_update=distributed_replicated_dgc"]),
}


def layouts(fast: str):
    """All layouts as (ps, workers, flags); those other than `fast` are slow tests."""
    return [
        pytest.param(*layout, id=name, marks=[] if name == fast else pytest.mark.slow)
        for name, layout in LAYOUTS.items()
    ]


def evaluating(log_dir=None, hook="LogEvaluationMetricHook", workers=2, steps=12, **arguments):
    other = {name: arguments.pop(name) for name in ("seconds", "go", "batches", "two_sets") if name in arguments}
    path = None if log_dir is None else str(log_dir)
    return {"hook": hook, "arguments": arguments, "batch_size": 14 // workers, "steps": steps, "log_dir": path, **other}


def lines(process, prefix=r"\[VALIDATION METRICS\]"):
    """What the hook printed, by step: its fields."""
    found = re.findall(rf"{prefix} step: (\d+) number: (\S+) loss: (\S+)", process.log)
    return {int(step): (float(number), float(loss)) for step, number, loss in found}


def trained(steps):
    """Weights and bias after so many steps, by NumPy."""
    features, labels = (part.astype(np.float64) for part in data(SAMPLES))
    weights, bias = np.zeros(3), 0.0
    for step in range(steps):
        rows = slice(step % EPOCH * 14, step % EPOCH * 14 + 14)
        error = features[rows] @ weights + bias - labels[rows]
        weights = weights - LEARNING_RATE * 2 * features[rows].T @ error / 14
        bias -= LEARNING_RATE * 2 * error.mean()
    return weights, bias


def loss_of(weights, bias, samples):
    features, labels = data(samples)
    return float(((features @ weights + bias - labels) ** 2).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "batches"),
    [
        pytest.param("ps", None, id="samples-ps"),
        pytest.param("dgc", None, id="samples-dgc"),
        pytest.param("collective", 5, id="ready batches-collective"),
        pytest.param("collective", None, id="samples-collective", marks=pytest.mark.slow),
        pytest.param("ps", 5, id="ready batches-ps", marks=pytest.mark.slow),
        pytest.param("dgc", 5, id="ready batches-dgc", marks=pytest.mark.slow),
    ],
)
def test_all_workers_see_the_mean_of_all_samples(tmp_path, layout, batches):
    """20 of 23 samples, shared by two workers; the set of nine others is evaluated every second epoch."""
    ps, workers, flags = LAYOUTS[layout]
    told = evaluating(samples_in_eval=20, two_sets=True, batches=batches)
    done = finished(tmp_path, workers, ps, flags, told, SCRIPT)
    for worker in range(workers):
        own, others = lines(done[f"worker {worker}"]), lines(done[f"worker {worker}"], r"\[OTHERS\]")
        assert sorted(own) == [3, 7, 11]
        assert sorted(others) == [7]
        for step, (number, loss) in own.items():
            assert number == pytest.approx(19 / 2, abs=6e-4)
            if not flags:  # compressed gradients come later
                assert loss == pytest.approx(loss_of(*trained(step + 1), 20), abs=6e-4)
        assert others[7][0] == pytest.approx((OTHERS - 1) / 2, abs=6e-4)
    assert done["worker 0"].result == done["worker 1"].result == {"global_step": 12}


@pytest.mark.slow
@pytest.mark.parametrize(("ps", "workers", "flags"), layouts("collective"))
def test_early_stopping_comes_after_the_same_step_and_restores_the_best(tmp_path, ps, workers, flags):
    """The monitored number never changes: the first evaluation is the best, the third ends the training."""
    log_dir = tmp_path / "log"
    told = evaluating(log_dir, "EarlyStoppingHook", monitor="number", patience=2, restore_best=True, steps=1000)
    done = finished(tmp_path, workers, ps, flags, told, SCRIPT)
    for worker in range(workers):
        assert done[f"worker {worker}"].result == {"global_step": 3 * EPOCH}
        assert lines(done[f"worker {worker}"], r"\[EarlyStopping\]")[3][0] == pytest.approx((EVALUATED - 1) / 2)
    best, bias, step = weights(log_dir)
    assert step == 3 * EPOCH
    if not flags:
        expected = trained(EPOCH)
        assert best == pytest.approx(expected[0].tolist(), abs=1e-5)
        assert bias == pytest.approx(expected[1], abs=1e-5)
    again = finished(tmp_path / "again", workers, ps, flags, told, SCRIPT)
    assert again["worker 1"].result == {"global_step": 3 * EPOCH}, again.logs


@pytest.mark.slow
@pytest.mark.parametrize(("ps", "workers", "flags"), layouts("ps"))
def test_a_plateau_lowers_the_rate_of_all(tmp_path, ps, workers, flags):
    if flags:
        flags = [*flags, "--dgc_sparsity_strategy=0", "--min_size_in_kb=0"]
    told = evaluating(tmp_path / "log", "PlateauLREarlyStoppingHook", monitor="number", patience=1, decay_patience=2)
    told["steps"] = 11
    done = finished(tmp_path, workers, ps, flags, told, SCRIPT)
    for worker in range(workers):
        assert done[f"worker {worker}"].log.count("The learning rate is now 0.1 times that of the optimizer.") == 1
    one = {**told, "batch_size": 14, "log_dir": str(tmp_path / "one")}
    alone(tmp_path, one, script=SCRIPT)
    expected, bias, _ = weights(tmp_path / "one")
    assert weights(tmp_path / "log")[0] == pytest.approx(expected, abs=1e-5)
    # With its full rate it would be elsewhere.
    assert expected != pytest.approx(trained(11)[0].tolist(), abs=1e-3)


@pytest.mark.slow
def test_the_chief_decides_for_workers_that_do_not_go_in_step(tmp_path):
    log_dir = tmp_path / "log"
    told = evaluating(
        log_dir, "PlateauLREarlyStoppingHook", monitor="number", patience=1, decay_patience=1, steps=10**7,
        restore_best=True,
    )  # fmt: skip
    told["together"] = True
    done = finished(tmp_path, 2, 1, ["--sync_replicas=False"], told, SCRIPT)
    chief, other = done["worker 0"].log, done["worker 1"].log
    for log in (chief, other):
        assert log.count("The learning rate is now 0.1 times that of the optimizer.") == 1
        assert log.count("Training stops early: number is on a plateau") == 1
    assert "[PlateauLREarlyStopping] step:" in chief
    assert "[PlateauLREarlyStopping] step:" not in other
    assert "Restored the best variables from" in chief
    numbers = [number for number, _ in lines(done["worker 0"], r"\[PlateauLREarlyStopping\]").values()]
    assert numbers == pytest.approx([(EVALUATED - 1) / 2] * 3, abs=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize("ps", [0, 1], ids=["collective", "ps"])
def test_a_signal_ends_an_evaluation_on_all_workers_and_it_is_made_up_for(tmp_path, ps):
    log_dir = tmp_path / "log"
    go = tmp_path / "go"
    told = evaluating(log_dir, seconds=0.2, go=str(go))
    with job(tmp_path, 2, ps, [], told, SCRIPT) as running:
        running.wait_until(lambda: all("EVALUATING" in running[f"worker {index}"].log for index in range(2)))
        running["worker 1"].send(signal.SIGTERM)
        go.touch()
        codes = running.wait(among=["worker 0", "worker 1"])
    assert set(codes.values()) == {143}, running.logs
    assert not lines(running["worker 0"])
    assert saved_steps(log_dir) == [0, EPOCH]
    done = finished(tmp_path / "again", 2, ps, [], {**told, "seconds": 0}, SCRIPT)
    assert sorted(lines(done["worker 0"])) == sorted(lines(done["worker 1"])) == [3, 7, 11], done.logs
