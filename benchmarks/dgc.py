"""Gradient compression on a slow network: two workers on two emulated hosts with a limited link between them.

    python benchmarks/dgc.py [--mbit 100] [--sparsity 0.999] [--steps 100] [--dense_steps 5] [--threads 1] [--json FILE]

The hosts are network namespaces, connected by a pair of virtual interfaces; tc (a token bucket at both ends) limits the
rate to --mbit. Needs root, `ip` and `tc`. Both workers train the dense model of `scaling.py`, 25.1 million parameters,
batch 4 per worker, SGD with momentum, once with `collective` and once with `distributed_replicated_dgc`,
which drops a fraction of --sparsity of the values. The rate of a worker is steps divided by time, from its log lines,
after an equal number of warm-up steps.

MB on the wire: the bytes that the first worker's interface sent from start to end of the processes, divided by the
steps. The initial broadcast of the chief's variables is subtracted: 100 MB, or 200 MB with the momentum variables,
which the compressed run does not have.

ms of compressing: 25 million gradients in one variable, momentum 0.9, in this process, pinned to one core; median of
ten.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from children import end, quiet_environment, wait_for
from report import surroundings

JOB = Path(__file__).parent / "dgc_job.py"
ADDRESSES = ("192.168.214.1", "192.168.214.2")
PORT = 34567
PARAMETERS = 25_076_712
SECONDS = 900


# --- the network ------------------------------------------------------------------------------------------------------


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def hosts(mbit: int) -> Iterator[list[str]]:
    """Create two network namespaces and a link of that rate between them."""
    names = [f"moxing-dgc-{os.getpid()}-{index}" for index in range(2)]
    cables = [f"md{os.getpid() % 10**7}-{index}" for index in range(2)]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
        # Created inside the namespace: the machine's own network never sees it.
        _run(
            "ip", "-n", names[0], "link", "add", cables[0], "type", "veth", "peer", "name", cables[1], "netns", names[1]
        )  # fmt: skip
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", cable)
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "link", "set", cable, "up")
            limit = ["rate", f"{mbit}mbit", "burst", "128kb", "latency", "50ms"]
            _run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", cable, "root", "tbf", *limit)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def sent(host: str) -> int:
    """Return the bytes that a host has sent over the link."""
    (link,) = (link for link in json.loads(_run("ip", "-n", host, "-s", "-j", "link")) if link["ifname"] != "lo")
    return int(link["stats64"]["tx"]["bytes"])


# --- measurement ------------------------------------------------------------------------------------------------------


def trained(names: list[str], steps: int, threads: int, copies: int, flags: list[str]) -> dict[str, float]:
    """Return steps per second of both workers, and megabytes per step of the first, without the initial broadcast."""
    workers = ",".join(f"{address}:{PORT}" for address in ADDRESSES)
    environment = quiet_environment(threads)
    before = sent(names[0])
    with contextlib.ExitStack() as stack:
        running = []
        for index, name in enumerate(names):
            output = stack.enter_context(tempfile.TemporaryFile("w+"))
            words = [f"--worker_hosts={workers}", "--job_name=worker", f"--task_index={index}", *flags]
            words += [f"--num_inter_threads={threads + 1}", f"--num_intra_threads={threads}"]
            command = ["ip", "netns", "exec", name, sys.executable, str(JOB), str(steps), *words]
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
            stack.callback(end, child)
            running.append((child, output))
        wait_for([child for child, _ in running], SECONDS)
        rates = []
        for child, output in running:
            output.seek(0)
            text = output.read()
            found = re.search(r"^@(\S+)$", text, re.MULTILINE)
            if child.poll() != 0 or found is None:
                raise SystemExit(f"{' '.join(flags)}: a worker ended with {child.poll()}:\n{text[-3000:]}")
            rates.append(float(found.group(1)))
    on_wire = sent(names[0]) - before - 4 * PARAMETERS * copies
    return {"rate": statistics.mean(rates), "megabytes": on_wire / (2 * steps + 1) / 1e6}


def compressing(sparsity: float) -> tuple[float, float]:
    """Return the milliseconds, and the fraction of the dense bytes that is sent."""
    from moxing.tensorflow.optimizer.wrappers.compression import Compressor

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    size = 25_000_000
    worker = Compressor(size, np.dtype(np.float32), momentum=0.9)
    random = np.random.default_rng(0)
    gradient = random.standard_normal(size, np.float32)
    times, sent_bytes = [], []
    for _ in range(12):
        gradient = np.roll(gradient, 12_345)
        started = time.perf_counter()
        places, values = worker.select(gradient, sparsity)
        times.append((time.perf_counter() - started) * 1e3)
        sent_bytes.append(places.nbytes + values.nbytes)
    # Warm up: the first calls allocate memory.
    return statistics.median(times[2:]), statistics.median(sent_bytes[2:]) / gradient.nbytes


# --- the command line -------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mbit", type=int, default=100)
    parser.add_argument("--sparsity", type=float, default=0.999)
    parser.add_argument("--steps", type=int, default=100, help="timed steps of compression")
    parser.add_argument("--dense_steps", type=int, default=5, help="timed steps of collective")
    parser.add_argument("--threads", type=int, default=1, help="of every worker")
    parser.add_argument("--json", help="also write all figures to this file")
    options = parser.parse_args()
    for name in ("mbit", "steps", "dense_steps", "threads"):
        if getattr(options, name) < 1:
            raise SystemExit(f"--{name} {getattr(options, name)}: it must be at least 1")
    settings = ", ".join(f"{name} {value}" for name, value in vars(options).items() if name != "json")
    results: dict[str, object] = dict(surroundings(settings))
    print("\n".join(f"{name}: {value}" for name, value in results.items()), flush=True)
    dgc = ["--variable_update=distributed_replicated_dgc", f"--dgc_sparsity_strategy={options.sparsity}"]
    with hosts(options.mbit) as names:
        dense = trained(names, options.dense_steps, options.threads, 2, ["--variable_update=collective"])
        few = trained(names, options.steps, options.threads, 1, dgc)
    milliseconds, part = compressing(options.sparsity)
    results |= {"collective": dense, "dgc": few, "compressing ms": milliseconds, "compressed part": part}
    print("\n| | steps/s | MB on the wire per step and worker |\n|---|---:|---:|")
    for title, found in (("collective", dense), ("distributed_replicated_dgc", few)):
        print(f"| {title} | {found['rate']:.3g} | {found['megabytes']:.4g} |")
    print(f"\ndgc / collective: {few['rate'] / dense['rate']:.1f}, wanted: at least 10")
    print(f"bytes of the dense gradients: {part:.2%}, wanted: under 0.5 %")
    print(f"compressing 25 M parameters: {milliseconds:.0f} ms, wanted: at most 300 ms")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
