"""What a training step costs beside the alternatives: one run, interleaved rounds, medians.

    python benchmarks/step_overhead.py [--rounds 7] [--steps 2000] [--json FILE]

Three measurements, each peer in a process of its own that works only while it is its turn:

* steps: MNIST-sized softmax regression at batch 100 from memory (µs a step);
* a long step (a convolution network, over 100 ms): what the framework adds;
* start-up (process start to the first step done) and peak memory, against a bare script.
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


class Peer:
    """A process that runs n steps whenever it is told to and says how long they took."""

    def __init__(self, name: str, script: str, *arguments: str) -> None:
        self.name = name
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(PEERS / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.ready = self._read() == "ready"

    def _read(self) -> str:
        for line in self._process.stdout:
            if line.startswith("@"):
                return line[1:].strip()
        return ""

    def measure(self) -> float:
        """Seconds a step, over one round."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def interleaved(peers: list[Peer], rounds: int) -> dict[str, list[float]]:
    """Seconds a step of every peer, round by round; the first round warms up and is dropped."""
    times: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for round_ in range(rounds + 1):
        for peer in peers:
            seconds = peer.measure()
            if round_:
                times[peer.name].append(seconds)
    return times


def steps(rounds: int, count: int) -> dict[str, list[float]]:
    """Short steps: every peer on the same regression."""
    candidates = [
        ("bare session.run loop", "bare.py", "softmax"),
        ("Keras fit", "keras_fit.py", "1"),
        ("Keras fit, 50 steps per execution", "keras_fit.py", "50"),
        ("PyTorch loop", "torch_loop.py"),
        ("mox.run", "mox.py", "softmax"),
    ]
    peers = [Peer(name, script, *arguments, f"--steps={count}") for name, script, *arguments in candidates]
    try:
        return interleaved([peer for peer in peers if peer.ready], rounds)
    finally:
        for peer in peers:
            peer.close()


def long_step(rounds: int) -> dict[str, list[float]]:
    """Steps of over 100 ms."""
    peers = [
        Peer("bare session.run loop", "bare.py", "convolution", "--steps=10"),
        Peer("mox.run", "mox.py", "convolution", "--steps=10"),
    ]
    try:
        return interleaved(peers, rounds)
    finally:
        for peer in peers:
            peer.close()


def start_up(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds from process start to the first step, and peak memory in MB after 200 steps."""
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
    """A Markdown table of medians, spread and ratio to `base`."""
    lines = ["| | median | range | ratio |", "|---|---:|---:|---:|"]
    reference = statistics.median(times[base])
    for name, values in times.items():
        middle = statistics.median(values)
        spread = f"{min(values) * unit:.0f} – {max(values) * unit:.0f}"
        lines.append(f"| {name} | {middle * unit:.0f} | {spread} | {middle / reference:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", choices=["steps", "long", "start"])
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()
    results: dict[str, object] = {"machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"}
    if arguments.only in (None, "steps"):
        results["steps"] = steps(arguments.rounds, arguments.steps)
        print("Short steps, µs a step\n" + table(results["steps"], 1e6, "bare session.run loop"), flush=True)
    if arguments.only in (None, "long"):
        results["long"] = long_step(arguments.rounds)
        print("\nLong steps, ms a step\n" + table(results["long"], 1e3, "bare session.run loop"), flush=True)
    if arguments.only in (None, "start"):
        results["start"] = start_up(max(3, arguments.rounds // 2))
        for what, unit, title in (("start", 1e3, "Start-up, ms"), ("memory", 1, "Peak memory, MB")):
            chosen = {name: values[what] for name, values in results["start"].items()}
            print(f"\n{title}\n" + table(chosen, unit, "bare script"), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
