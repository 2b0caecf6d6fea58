"""Time of a training step compared with other frameworks: one run, interleaved rounds, medians.

    python benchmarks/step_overhead.py [--rounds 7] [--steps 5000] [--json FILE]

In every round each program runs once, alone on the machine, in its own process: it warms up, then times its steps.
Three measurements:

* short steps: softmax regression on images of MNIST size, batch 100, from memory (µs per step);
* long steps (a convolutional network): what the framework adds;
* start-up (process start to the end of the first step) and peak memory, compared with a bare script.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEERS = Path(__file__).parent / "peers"

SHORT = {
    "bare session.run loop": ["bare.py", "softmax"],
    "Keras fit": ["keras_fit.py", "1"],
    "Keras fit, 50 steps per execution": ["keras_fit.py", "50"],
    "PyTorch loop": ["torch_loop.py"],
    "mox.run": ["mox.py", "softmax"],
}
LONG = {
    "bare session.run loop": ["bare.py", "convolution"],
    "mox.run": ["mox.py", "convolution"],
}


def seconds_per_step(command: list[str], steps: int) -> float | None:
    """Run one program once; return None if a package that it needs is not installed."""
    script, *words = command
    done = subprocess.run(
        [sys.executable, str(PEERS / script), *words, f"--steps={steps}"],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if "ModuleNotFoundError" in done.stderr:
        return None
    done.check_returncode()
    return float(next(line[1:] for line in done.stdout.splitlines() if line.startswith("@")))


def interleaved(peers: dict[str, list[str]], rounds: int, steps: int) -> dict[str, list[float]]:
    """Return the seconds per step of every program, by round."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, command in peers.items():
            seconds = seconds_per_step(command, steps)
            if seconds is not None:
                times[name].append(seconds)
    return {name: values for name, values in times.items() if values}


def start_up(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds from process start to the first step, and peak memory in MB after 200 steps."""
    commands = {
        "bare script": [sys.executable, str(PEERS / "bare.py"), "softmax", "--once"],
        "moxing run": [sys.executable, "-m", "moxing", "run", str(PEERS / "mox_script.py")],
    }
    results: dict[str, dict[str, list[float]]] = {name: {"start": [], "memory": []} for name in commands}
    for round_ in range(rounds + 1):
        for name, command in commands.items():
            began = time.time()
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            first_step, memory = next(line[1:].split() for line in output.splitlines() if line.startswith("@"))
            if round_:
                results[name]["start"].append(float(first_step) - began)
                results[name]["memory"].append(float(memory))
    return results


def table(times: dict[str, list[float]], unit: float, base: str) -> str:
    """Return a Markdown table of medians, ranges and ratios to `base`."""
    lines = ["| | median | range | ratio |", "|---|---:|---:|---:|"]
    reference = statistics.median(times[base])
    for name, values in times.items():
        middle = statistics.median(values)
        spread = f"{min(values) * unit:.0f} – {max(values) * unit:.0f}"
        lines.append(f"| {name} | {middle * unit:.0f} | {spread} | {middle / reference:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--only", choices=["steps", "long", "start"])
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()
    results: dict[str, object] = {"machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"}
    if arguments.only in (None, "steps"):
        results["steps"] = interleaved(SHORT, arguments.rounds, arguments.steps)
        print("Short steps, µs a step\n" + table(results["steps"], 1e6, "bare session.run loop"), flush=True)
    if arguments.only in (None, "long"):
        results["long"] = interleaved(LONG, arguments.rounds, 40)
        print("\nLong steps, ms per step\n" + table(results["long"], 1e3, "bare session.run loop"), flush=True)
    if arguments.only in (None, "start"):
        results["start"] = start_up(max(3, arguments.rounds // 2))
        for what, unit, title in (("start", 1e3, "Start-up, ms"), ("memory", 1, "Peak memory, MB")):
            chosen = {name: values[what] for name, values in results["start"].items()}
            print(f"\n{title}\n" + table(chosen, unit, "bare script"), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
