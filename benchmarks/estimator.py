"""tf.estimator on MoXing compared with TensorFlow 2.15 and with Keras 3: one run, interleaved rounds, medians.

    python -m venv OLD && OLD/bin/pip install tensorflow==2.15.1
    python benchmarks/estimator.py --old_python OLD/bin/python [--keras_python PYTHON] [--programs A,B] [--peers A,B]
                                   [--rounds 5] [--json FILE]

In every round each program runs once, alone on the machine, in its own process, on two cores. oneDNN is on for all.
The data are random, read from a file of CIFAR-10's format and kept in memory.

* softmax: softmax regression on images of MNIST size, batch 100, gradient descent;
* resnet20: ResNet-20 on images of CIFAR-10 size, batch 32, momentum;
* bert_tiny: a classifier on BERT with 2 layers of 128 units, 64 tokens, batch 32, Adam.

2.15 and MoXing run the same file, `estimator_peers/estimator_train.py`, with an Estimator's defaults: it writes
checkpoints, summaries and log lines. Keras `fit` computes the same model and writes nothing. Measured are the seconds
per step after the warm-up, the seconds from the call of `train` or `fit` to the end of the first step, and the peak
memory of the process. The CPU times of all threads still mean something on a busy machine. `--keras_python` is by
default this interpreter, whose TensorFlow brings Keras 3.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from children import quiet_environment
from report import chosen, surroundings

FOLDER = Path(__file__).parent / "estimator_peers"
sys.path.insert(0, str(FOLDER))

import common  # noqa: E402

THREADS = 2
#: Trained parameters. A program that differs computes another model.
PARAMETERS = {"softmax": 7_850, "resnet20": 272_474, "bert_tiny": 4_328_578}
#: Steps of the warm-up and of the measurement, multiples of the steps between two log lines.
STEPS = {"softmax": (1000, 5000), "resnet20": (10, 40), "bert_tiny": (10, 60)}
TITLES = {"old": "Estimator, TensorFlow 2.15", "keras": "Keras 3 fit", "mox": "Estimator, MoXing"}


class Measure(NamedTuple):
    """What is measured: title, unit in seconds or MB, digits, and the highest good ratio to 2.15 by program."""

    title: str
    unit: float
    digits: int
    targets: dict[str, float]


MEASURES = {
    "step": Measure("time per step, ms", 1e3, 3, {"softmax": 0.6, "resnet20": 0.9, "bert_tiny": 0.9}),
    "first": Measure("call to first step, s", 1, 2, dict.fromkeys(PARAMETERS, 0.5)),
    "memory": Measure("peak memory, MB", 1, 0, dict.fromkeys(PARAMETERS, 1.1)),
    "step_cpu": Measure("CPU time per step, ms", 1e3, 3, {}),
    "first_cpu": Measure("CPU time, call to first step, s", 1, 2, {}),
}


def command(peer: str, options: argparse.Namespace) -> list[str]:
    """Return the words that start a program of a peer."""
    if peer == "keras":
        return [options.keras_python, str(FOLDER / "keras_train.py")]
    python = [options.old_python] if peer == "old" else [sys.executable, "-m", "moxing", "run"]
    return [*python, str(FOLDER / "estimator_train.py")]


def versions(option: str, python: str, expected: dict[str, str]) -> str:
    """Return the versions of packages that an interpreter has, which must begin as expected."""
    code = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]))"
    try:
        done = subprocess.run([python, "-c", code, *expected], capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"{option} {python}: {error.strerror}. Give the path of a Python interpreter") from None
    found = dict(zip(expected, done.stdout.split(), strict=False))
    for package, version in expected.items():
        if not found.get(package, "").startswith(version):
            raise SystemExit(f"{option} {python}: {package} {found.get(package)} is installed, {version} is needed")
    return ", ".join(f"{package} {version}" for package, version in found.items())


def measured(peer: str, words: list[str]) -> dict[str, float]:
    """Run a program once and return its figures."""
    environment = quiet_environment(THREADS)
    # Set by a MoXing of the calling process; it means another Keras to the others.
    environment.pop("TF_USE_LEGACY_KERAS", None)
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    line = next(line[1:] for line in done.stdout.splitlines() if line.startswith("@"))
    # Print at once: a run takes minutes, and a later program may fail.
    print(f"{peer} {words[-4]}: {line}", file=sys.stderr, flush=True)
    return json.loads(line)


def interleaved(programs: list[str], peers: list[str], options: argparse.Namespace) -> dict[str, dict]:
    """Return the figures by program, peer and measure, one for each round."""
    figures: dict[str, dict[str, dict[str, list[float]]]] = {
        program: {peer: {measure: [] for measure in MEASURES} for peer in peers} for program in programs
    }
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            common.write_records(program, f"{folder}/{program}")
        for _ in range(options.rounds):
            for program in programs:
                for peer in peers:
                    words = [program, f"{folder}/{program}", *map(str, STEPS[program])]
                    found = measured(peer, [*command(peer, options), *words])
                    if found["parameters"] != PARAMETERS[program]:
                        raise SystemExit(f"{TITLES[peer]}: {program} has {found['parameters']:,} parameters")
                    for measure in MEASURES:
                        figures[program][peer][measure].append(found[measure])
    return figures


def table(found: dict[str, dict[str, list[float]]], measure: str, program: str) -> str:
    """Return a Markdown table of medians, ranges and the ratio of MoXing to each peer."""
    _, unit, digits, targets = MEASURES[measure]
    medians = {peer: statistics.median(values[measure]) for peer, values in found.items()}
    lines = ["| | median | range | MoXing to it | at most |", "|---|---:|---:|---:|---:|"]
    for peer, values in found.items():
        low, high = min(values[measure]) * unit, max(values[measure]) * unit
        ratio = f"{medians['mox'] / medians[peer]:.2f}" if "mox" in medians else ""
        target = f"{targets[program]:.1f}" if peer == "old" and program in targets else ""
        lines.append(
            f"| {TITLES[peer]} | {medians[peer] * unit:.{digits}f} | {low:.{digits}f} – {high:.{digits}f} "
            f"| {ratio} | {target} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old_python", help="an interpreter with TensorFlow 2.15; needed for the peer `old`")
    parser.add_argument("--keras_python", default=sys.executable, help="an interpreter with Keras 3 and TensorFlow")
    parser.add_argument("--programs", default=",".join(PARAMETERS), help="comma-separated; default: %(default)s")
    parser.add_argument("--peers", default=",".join(TITLES), help="comma-separated; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write all figures to this file")
    options = parser.parse_args()
    if options.rounds < 1:
        raise SystemExit(f"--rounds {options.rounds}: it must be at least 1")
    programs = chosen("--programs", options.programs, list(PARAMETERS))
    peers = chosen("--peers", options.peers, list(TITLES))
    if "old" in peers and not options.old_python:
        raise SystemExit("--old_python is missing. Give an interpreter with TensorFlow 2.15, or --peers keras,mox")
    if hasattr(os, "sched_setaffinity"):
        # The programs inherit this, and TensorFlow starts as many threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    results: dict[str, object] = dict(surroundings(f"threads {THREADS}, rounds {options.rounds}, steps {STEPS}"))
    if "old" in peers:
        results["old"] = versions("--old_python", options.old_python, {"tensorflow": "2.15"})
    if "keras" in peers:
        results["keras"] = versions("--keras_python", options.keras_python, {"keras": "3.", "tensorflow": "2."})
    print("\n".join(f"{name}: {value}" for name, value in results.items()), flush=True)
    results["figures"] = figures = interleaved(programs, peers, options)
    for program, found in figures.items():
        for measure, (title, *_) in MEASURES.items():
            print(f"\n{program}, {title}\n" + table(found, measure, program), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
