"""Cost of gradient accumulation and of evaluation inside training: interleaved rounds, medians.

    python benchmarks/control.py [--rounds 7] [--only accumulation|evaluation] [--json FILE]

* Accumulation: time per step of `mox.run` with plain gradient descent and with `batch_gradients` over 8 steps. A round
  runs each of them in its own process.
* Evaluation: ResNet-18 on 640 images of 64 x 64, three times inside a training (`LogEvaluationMetricHook`) and three
  times alone (`mox.run` in mode EVAL, without graph building and session start). All in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from report import surroundings
from step_overhead import PEERS, interleaved, table

#: Steps of a round, by model.
MODELS = {"softmax": 5000, "dense": 1000, "convolution": 40}


def evaluations(rounds: int) -> tuple[dict[str, list[float]], int]:
    """Return the seconds per evaluation inside training and alone, by round, and how many models a training builds."""
    done = subprocess.run(
        [sys.executable, str(PEERS / "mox_evaluation.py"), f"--steps={rounds}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    lines = [line[1:] for line in done.stdout.splitlines() if line.startswith("@")]
    pairs = [[float(word) for word in line.split()] for line in lines[:-1]]
    return {"alone": [alone for _, alone in pairs], "inside": [inside for inside, _ in pairs]}, int(lines[-1][1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["accumulation", "evaluation"])
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()
    where = surroundings(f"rounds {arguments.rounds}")
    print("\n".join(f"{name}: {value}" for name, value in where.items()))
    results: dict[str, object] = {**where}
    if arguments.only in (None, "accumulation"):
        for model, steps in MODELS.items():
            peers = {"plain steps": ["mox.py", model], "accumulating": ["mox.py", model, "accumulate"]}
            results[model] = times = interleaved(peers, arguments.rounds, steps)
            print(f"\nAccumulation, {model}, µs a step\n" + table(times, 1e6, "plain steps"), flush=True)
    if arguments.only in (None, "evaluation"):
        results["evaluation"], built = evaluations(arguments.rounds)
        print("\nEvaluation, ms\n" + table(results["evaluation"], 1e3, "alone"))
        print(f"models built in a training: {built}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
