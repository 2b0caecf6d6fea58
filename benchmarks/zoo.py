"""Training and inference of zoo networks compared with other frameworks: one run, interleaved rounds, medians.

    python benchmarks/zoo.py [--nets A,B] [--peers mox,torch,keras] [--what train,inference,build]
                             [--rounds 3] [--steps 2] [--batch 16] [--json FILE]

On the CPU: two cores, two threads, oneDNN on in TensorFlow, float32. One batch of random images of the published size
stays in memory; there is no input pipeline. In every round each program runs once, alone on the machine, in its own
process: it warms up with one step, then times its steps. A run takes about a quarter of an hour.

* train: batch normalisation as in training, softmax loss of 1000 classes, SGD with momentum, no weight decay;
* inference: from images to logits;
* build: time to build MoXing's forward graph in training mode, without imports.

The networks are the same in all frameworks, as their numbers of parameters and multiply-adds show, with one exception:
Keras' ResNet50 has its strides in other places and biases before batch normalization, 3.86 G multiply-adds instead of
3.48 G. Compare GMAC/s there: images/s times the multiply-adds of the forward pass. Inception has no auxiliary head in
any framework, Keras' MobileNet and Inception have no dropout. The PyTorch networks are part of this benchmark and have
the zoo's layers.

The machine must be idle: PyTorch's threads wait for each other in every layer, so it loses most on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from report import chosen, installed, surroundings

FOLDER = Path(__file__).parent / "zoo_peers"
THREADS = 2

#: Trained parameters with 1000 classes. A program that differs by more than 1% computes another network.
PARAMETERS = {"resnet_v1_50": 25_557_032, "mobilenet_v2": 3_504_872, "inception_v3": 23_817_352}
BUILT = ("resnet_v1_50", "nasnet_large")


class Peer(NamedTuple):
    """A program: name in the tables, script, required package."""

    title: str
    script: str
    package: str


PEERS = {
    "keras": Peer("tf_keras.applications", "keras_net.py", "tf_keras"),
    "torch": Peer("PyTorch eager, channels_last", "torch_net.py", "torch"),
    "mox": Peer("mox zoo", "mox_net.py", "moxing"),
}


class Figures(NamedTuple):
    """Results of a program for a network: images per second in every round, trained parameters, multiply-adds."""

    rates: list[float]
    parameters: int
    multiply_adds: int


def reported(script: str, words: list[str], batch: int, steps: int) -> list[str]:
    """Run one program once and return what it prints."""
    numbers = [f"--batch={batch}", f"--steps={steps}", f"--threads={THREADS}"]
    settings = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "OMP_NUM_THREADS": str(THREADS),
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *words, *numbers],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
    )
    if done.returncode:
        raise SystemExit(f"{script} {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    line = next(line[1:] for line in done.stdout.splitlines() if line.startswith("@"))
    # Print at once: a run takes minutes, and a later program may fail.
    print(f"{script} {' '.join(words)}: {line}", file=sys.stderr, flush=True)
    return line.split()


def interleaved(what: str, nets: list[str], peers: list[str], options: argparse.Namespace) -> dict[str, dict]:
    """Return the figures of every program, by network and title."""
    # An inference step is about a third of the work, so run more of them.
    steps = options.steps * (1 if what == "train" else 2)
    figures: dict[str, dict[str, Figures]] = {net: {} for net in nets}
    for _ in range(options.rounds):
        for net in nets:
            for peer in (PEERS[name] for name in peers):
                rate, *counts = reported(peer.script, [net, what], options.batch, steps)
                parameters, multiply_adds = map(int, counts)
                if abs(parameters / PARAMETERS[net] - 1) > 0.01:
                    raise SystemExit(f"{peer.title}: {net} has {parameters:,} parameters, not {PARAMETERS[net]:,}")
                found = figures[net].setdefault(peer.title, Figures([], parameters, multiply_adds))
                found.rates.append(float(rate))
    return figures


def build_times(options: argparse.Namespace) -> dict[str, dict[str, list]]:
    """Return the seconds by round, and the number of operations of the graphs."""
    times: dict[str, dict[str, list]] = {net: {"seconds": [], "operations": []} for net in BUILT}
    for _ in range(options.rounds):
        for net in BUILT:
            seconds, operations = reported("mox_build.py", [net], options.batch, 1)
            times[net]["seconds"].append(float(seconds))
            times[net]["operations"] = [int(operations)]
    return times


def table(figures: dict[str, Figures]) -> str:
    """Return a Markdown table of medians and ranges; ratios are relative to the first program."""
    lines = [
        "| | images/s | range | ratio | G multiply-adds | GMAC/s | ratio | M parameters |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    first = next(iter(figures.values()))
    first_rate = statistics.median(first.rates)
    for title, (rates, parameters, multiply_adds) in figures.items():
        rate = statistics.median(rates)
        ratio, work = rate / first_rate, rate * multiply_adds / 1e9
        lines.append(
            f"| {title} | {rate:.4g} | {min(rates):.4g} – {max(rates):.4g} | {ratio:.2f} | {multiply_adds / 1e9:.2f} "
            f"| {work:.4g} | {ratio * multiply_adds / first.multiply_adds:.2f} | {parameters / 1e6:.2f} |"
        )
    return "\n".join(lines)


def build_table(times: dict[str, dict[str, list]]) -> str:
    """A Markdown table of medians and spread."""
    lines = ["| | seconds | range | operations |", "|---|---:|---:|---:|"]
    for net, found in times.items():
        seconds = found["seconds"]
        spread = f"{min(seconds):.2f} – {max(seconds):.2f}"
        lines.append(f"| {net} | {statistics.median(seconds):.2f} | {spread} | {found['operations'][0]:,} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(PARAMETERS), help="comma-separated; default: %(default)s")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated; default: %(default)s")
    parser.add_argument("--what", default="train,inference,build", help="comma-separated; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="training steps timed in a round; inference does twice")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--json", help="also write all figures to this file")
    options = parser.parse_args()
    for name in ("rounds", "steps", "batch"):
        if getattr(options, name) < 1:
            raise SystemExit(f"--{name} {getattr(options, name)}: it must be at least 1")
    nets = chosen("--nets", options.nets, list(PARAMETERS))
    peers = installed(chosen("--peers", options.peers, list(PEERS)), PEERS)
    what = chosen("--what", options.what, ["train", "inference", "build"])
    if hasattr(os, "sched_setaffinity"):
        # The programs inherit this. TensorFlow gets two inter-op and two intra-op threads, PyTorch two in total, so
        # that both use two cores.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    settings = f"batch {options.batch}, threads {THREADS}, rounds {options.rounds}, steps {options.steps}"
    results: dict[str, object] = dict(surroundings(settings))
    print("\n".join(f"{name}: {value}" for name, value in results.items()), flush=True)
    for kind in (word for word in what if word != "build" and peers):
        figures = interleaved(kind, nets, peers, options)
        results[kind] = {
            net: {title: found._asdict() for title, found in by_title.items()} for net, by_title in figures.items()
        }
        for net, by_title in figures.items():
            print(f"\n{net}, {kind}\n" + table(by_title), flush=True)
    if "build" in what:
        times = build_times(options)
        results["build"] = times
        print("\nGraph of a network of ours, seconds to build\n" + build_table(times), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
