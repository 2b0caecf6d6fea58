"""A cluster on one machine compared with other frameworks, and several towers with one: interleaved rounds, medians.

    python benchmarks/scaling.py [--what cluster,towers] [--models A,B] [--peers one,ps,async,collective,tf,torch]
                                 [--nets A,B] [--rounds 5] [--steps 40] [--threads 1] [--json FILE]

In every round each program runs once, in its own processes, alone on the machine. They communicate over 127.0.0.1,
which is faster than any network. Everything runs on the CPU, in float32, with plain SGD.

cluster: one process, and two workers that train one model together.

* dense: three dense layers with 25.1 million parameters, batch 4 per worker: a light step, 100 MB of gradients;
* mobilenet_v1_025: 0.5 million parameters in 83 tensors, images of 96 x 96, batch 8 per worker.

Every process has one intra-op and one inter-op thread (`--threads`), PyTorch one in total; the threads that TensorFlow,
gRPC and gloo use for communication come on top. There are two cores, so with a ps three processes share them.

A step is one batch on every worker. A worker warms up, then runs its steps; its rate is steps divided by time, and the
figure is the mean of the two workers. For MoXing the times come from its own log lines, every ten steps, and include
logging and reading the samples with tf.data; the other programs have one batch in memory.
`MultiWorkerMirroredStrategy` runs ten steps per call of a tf.function and packs gradients into 8 MB; in trials, one
step per call, Keras' `fit` and its default packing were slower. With ps async every worker runs on its own, and the
slower one is measured over fewer steps. The dense model runs --steps, the small network five times as many.

MB on the wire: the bytes that the loopback interface received during the timed steps, divided by steps and workers. A
message counts once, with all headers; traffic between worker and ps counts for the worker. Other traffic on the
loopback interface counts too: the row of one process shows how much that is.

towers: `--num_gpus=N`, N towers on N logical devices of one CPU, compared with one tower and an N times larger batch.
TensorFlow chooses the number of threads. LeNet (28 x 28, batch 32) runs five times --steps, ResNet-20 (32 x 32, batch
32) --steps, a softmax regression (784 features, batch 100) fifty times --steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from children import end, quiet_environment, wait_for
from report import chosen, installed, surroundings

FOLDER = Path(__file__).parent / "scaling_peers"
WORKERS = 2
SECONDS_OF_A_ROUND = 900

sys.path.insert(0, str(FOLDER))
from common import TOGETHER, bytes_on_wire  # noqa: E402


class Model(NamedTuple):
    """A model for the cluster: name, batch size, factor of `--steps`, number of parameters."""

    name: str
    batch: int
    times: int
    parameters: int


class Net(NamedTuple):
    """A model for the towers: name, batch size of a tower, factor of `--steps`."""

    name: str
    batch: int
    times: int


class Process(NamedTuple):
    """A process of a program: script, arguments after the task, environment, whether it prints figures."""

    script: str
    words: list[str] = []
    settings: dict[str, str] = {}
    measures: bool = True


class Peer(NamedTuple):
    """A program: name in the tables, required package, and a function from (free ports, threads) to its processes."""

    title: str
    package: str
    processes: Callable[[list[int], int], list[Process]]


class Figures(NamedTuple):
    """Measurements of a program in every round: steps per second, bytes on the wire per step and worker."""

    rates: list[float]
    sent: list[float]


MODELS = {
    "dense": Model("dense", batch=4, times=1, parameters=25_076_712),
    "mobilenet_v1_025": Model("mobilenet_v1_025", batch=8, times=5, parameters=470_072),
}
NETS = {
    "lenet": Net("lenet", batch=32, times=5),
    "resnet_v1_20": Net("resnet_v1_20", batch=32, times=1),
    "softmax": Net("softmax", batch=100, times=50),
}
TOWERS = (2, 4)


# --- the programs -----------------------------------------------------------------------------------------------------


def _flags_of_threads(threads: int) -> list[str]:
    return [f"--num_inter_threads={threads}", f"--num_intra_threads={threads}"]


def _ours(servers: int, *flags: str) -> Callable[[list[int], int], list[Process]]:
    """Return the processes of a MoXing cluster, each with the command line of the manual."""

    def processes(ports: list[int], threads: int) -> list[Process]:
        hosts = [f"127.0.0.1:{port}" for port in ports]
        workers, ps = hosts[:WORKERS], hosts[WORKERS : WORKERS + servers]
        cluster = [f"--worker_hosts={','.join(workers)}", f"--ps_hosts={','.join(ps)}"]

        def process(job: str, index: int) -> Process:
            who = [f"--job_name={job}", f"--task_index={index}"]
            return Process("mox_job.py", [*who, *cluster, *_flags_of_threads(threads), *flags], {}, job == "worker")

        everyone = [("worker", index) for index in range(WORKERS)] + [("ps", index) for index in range(servers)]
        return [process(job, index) for job, index in everyone]

    return processes


def _alone(ports: list[int], threads: int) -> list[Process]:
    return [Process("mox_job.py", _flags_of_threads(threads))]


def _multi_worker_strategy(ports: list[int], threads: int) -> list[Process]:
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports[:WORKERS]]}
    roles = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in range(WORKERS)]
    return [Process("tf_strategy.py", settings={"TF_CONFIG": json.dumps(role)}) for role in roles]


def _ddp(ports: list[int], threads: int) -> list[Process]:
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports[0]),
        "WORLD_SIZE": str(WORKERS),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    return [Process("torch_ddp.py", settings={**common, "RANK": str(index)}) for index in range(WORKERS)]


PEERS = {
    "one": Peer("mox.run, 1 process", "moxing", _alone),
    "ps": Peer("mox.run, ps sync", "moxing", _ours(1)),
    "async": Peer("mox.run, ps async", "moxing", _ours(1, "--sync_replicas=False")),
    "tf": Peer("MultiWorkerMirroredStrategy", "tf_keras", _multi_worker_strategy),
    "torch": Peer("PyTorch DDP, gloo", "torch", _ddp),
    "collective": Peer("mox.run, collective", "moxing", _ours(0, "--variable_update=collective")),
}


# --- running them -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Return free ports."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    yield ports


def reported(title: str, processes: list[Process], task: list[object], threads: int) -> list[list[float]]:
    """Run one program once; return steps, seconds, bytes and parameters of every worker."""
    settings = quiet_environment(threads)
    words = [str(word) for word in task]
    with contextlib.ExitStack() as stack:
        running = []
        for process in processes:
            # Files, not pipes: nothing reads the output while the processes run.
            output, errors = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            command = [sys.executable, str(FOLDER / process.script), *words, *process.words]
            child = subprocess.Popen(command, stdout=output, stderr=errors, env={**settings, **process.settings})
            stack.callback(end, child)
            running.append((process, child, output, errors))
        failed = wait_for([child for _, child, _, _ in running], SECONDS_OF_A_ROUND)
        found = []
        for process, child, output, errors in running:
            output.seek(0)
            line = next((line[1:] for line in output if line.startswith("@")), None)
            if child is failed or (process.measures and line is None and failed is None):
                errors.seek(0)
                code = child.poll()
                raise SystemExit(f"{title}: {process.script} ended with {code}:\n{errors.read()[-3000:]}")
            if process.measures and line is not None:
                found.append([float(word) for word in line.split()])
    # Print at once: a run takes minutes, and a later program may fail.
    told = "; ".join(f"{steps:.0f} steps in {seconds:.2f} s, {sent / 1e6:.1f} MB" for steps, seconds, sent, _ in found)
    print(f"{title}, {' '.join(words)}: {told}", file=sys.stderr, flush=True)
    return found


def cluster_figures(models: list[str], peers: list[str], options: argparse.Namespace) -> dict[str, dict[str, Figures]]:
    """Measure the cluster; return figures by model and program."""
    figures: dict[str, dict[str, Figures]] = {name: {peer: Figures([], []) for peer in peers} for name in models}
    for _ in range(options.rounds):
        for model in (MODELS[name] for name in models):
            task = [model.name, model.batch, TOGETHER * model.times, options.steps * model.times]
            for name in peers:
                peer = PEERS[name]
                with free_ports(WORKERS + 1) as ports:
                    found = reported(peer.title, peer.processes(ports, options.threads), task, options.threads)
                for *_, parameters in found:
                    if parameters != model.parameters:
                        raise SystemExit(f"{peer.title}: {model.name} has {parameters:,.0f} parameters in it")
                rates = [steps / seconds for steps, seconds, _, _ in found]
                # Bytes as counted by the first worker, divided by the steps of all workers until then.
                _, seconds, sent, _ = found[0]
                figures[model.name][name].rates.append(statistics.mean(rates))
                figures[model.name][name].sent.append(sent / seconds / sum(rates))
    return figures


def tower_figures(nets: list[str], options: argparse.Namespace) -> dict[str, dict[int, dict[str, list[float]]]]:
    """Return seconds per step, by network and number of towers: of the towers, and of one tower with all batches."""
    figures: dict[str, dict[int, dict[str, list[float]]]] = {
        net: {count: {"towers": [], "one": []} for count in TOWERS} for net in nets
    }
    for _ in range(options.rounds):
        for net in (NETS[name] for name in nets):
            for count in TOWERS:
                for kind, batch, towers in (("one", net.batch * count, 1), ("towers", net.batch, count)):
                    task = [net.name, batch, TOGETHER * net.times, options.steps * net.times]
                    process = Process("mox_job.py", [f"--num_gpus={towers}"])
                    ((steps, seconds, _, _),) = reported(f"towers: {towers}", [process], task, 0)
                    figures[net.name][count][kind].append(seconds / steps)
    return figures


# --- tables -----------------------------------------------------------------------------------------------------------


def cluster_table(figures: dict[str, Figures]) -> str:
    """A Markdown table of medians and spread."""
    lines = ["| | steps/s | range | MB on the wire per step and worker |", "|---|---:|---:|---:|"]
    for name, (rates, sent) in figures.items():
        spread = f"{min(rates):.3g} – {max(rates):.3g}"
        wire = f"{statistics.median(sent) / 1e6:.4g}"
        lines.append(f"| {PEERS[name].title} | {statistics.median(rates):.3g} | {spread} | {wire} |")
    return "\n".join(lines)


def verdict(figures: dict[str, Figures]) -> str:
    """Return the ratios of the collective mode, computed by round: a disturbance affects all programs of a round."""
    lines = []
    peers = [name for name in ("tf", "torch") if name in figures]
    if "collective" in figures and peers:
        fastest = max(peers, key=lambda name: statistics.median(figures[name].rates))
        lines.append(_ratio(figures, fastest, "1.00"))
    if "collective" in figures and "ps" in figures:
        lines.append(_ratio(figures, "ps", "1.50"))
    return "\n".join(lines)


def _ratio(figures: dict[str, Figures], other: str, wanted: str) -> str:
    rounds = zip(figures["collective"].rates, figures[other].rates, strict=True)
    ratios = [ours / theirs for ours, theirs in rounds]
    spread = f"{min(ratios):.2f} – {max(ratios):.2f}"
    return f"collective / {PEERS[other].title}: {statistics.median(ratios):.2f} ({spread}), wanted: at least {wanted}"


def tower_table(figures: dict[str, dict[int, dict[str, list[float]]]]) -> str:
    """A Markdown table of medians and spread."""
    lines = [
        "| | towers | ms per step | range | one tower, all batches | range | ratio | range |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for net, by_count in figures.items():
        for count, times in by_count.items():
            cells = []
            for kind in ("towers", "one"):
                taken = [seconds * 1e3 for seconds in times[kind]]
                cells += [f"{statistics.median(taken):.3g}", f"{min(taken):.3g} – {max(taken):.3g}"]
            ratios = [ours / one for ours, one in zip(times["towers"], times["one"], strict=True)]
            cells += [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} – {max(ratios):.2f}"]
            lines.append(f"| {net} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def loopback() -> str:
    """Return a note about other traffic on the interface whose bytes are counted."""
    before = bytes_on_wire()
    time.sleep(1)
    talk = bytes_on_wire() - before
    return f"{talk:,} bytes/s" + (" - others talk, the bytes mean little" if talk > 100_000 else "")


# --- the command line -------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", default="cluster,towers", help="comma-separated; default: %(default)s")
    parser.add_argument("--models", default=",".join(MODELS), help="of clusters, comma-separated; default: %(default)s")
    parser.add_argument("--peers", default=",".join(PEERS), help="of clusters, comma-separated; default: %(default)s")
    parser.add_argument("--nets", default=",".join(NETS), help="of towers, comma-separated; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="timed steps of the dense model, in tens")
    parser.add_argument("--threads", type=int, default=1, help="of every process of a cluster")
    parser.add_argument("--json", help="also write all figures to this file")
    options = parser.parse_args()
    for name in ("rounds", "steps", "threads"):
        if getattr(options, name) < 1:
            raise SystemExit(f"--{name} {getattr(options, name)}: it must be at least 1")
    if options.steps % TOGETHER:
        raise SystemExit(f"--steps {options.steps}: steps are done and logged in tens, it must be a multiple of them")
    what = chosen("--what", options.what, ["cluster", "towers"])
    models = chosen("--models", options.models, list(MODELS))
    nets = chosen("--nets", options.nets, list(NETS))
    peers = installed(chosen("--peers", options.peers, list(PEERS)), PEERS)
    settings = f"workers {WORKERS}, threads {options.threads}, rounds {options.rounds}, steps {options.steps}"
    results: dict[str, object] = {**surroundings(settings), "loopback before": loopback()}
    print("\n".join(f"{name}: {value}" for name, value in results.items()), flush=True)
    if "cluster" in what and peers:
        figures = cluster_figures(models, peers, options)
        results["cluster"] = {
            model: {PEERS[name].title: found._asdict() for name, found in by_peer.items()}
            for model, by_peer in figures.items()
        }
        for model, by_peer in figures.items():
            print(f"\n{model}, {MODELS[model].parameters / 1e6:.1f} M parameters, batch {MODELS[model].batch}")
            print(cluster_table(by_peer) + "\n\n" + verdict(by_peer), flush=True)
    if "towers" in what:
        times = tower_figures(nets, options)
        results["towers"] = times
        print("\nTowers on one CPU, wanted: a ratio of at most 1.05 for networks\n" + tower_table(times), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
