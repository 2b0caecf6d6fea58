"""Throughput from image files to batches, compared with other pipelines: one run, interleaved rounds, medians.

    python benchmarks/input_pipeline.py [--rounds 5] [--images 4096] [--data DIR] [--only WORD ...] [--json FILE]
    python benchmarks/input_pipeline.py --cache | --memory | --resume | --costs

2,048 JPEG files of about 500 x 375 from real photos, VGG's training augmentation (short side to 256..512, crop of 224,
flip, mean), batches of 64 in float32, files in the page cache. In every round each program runs once, alone on the
machine, in its own process: it warms up, then times its images.

* default: decoding and augmenting JPEG, compared with hand-written tf.data, Pillow processes and PyTorch's DataLoader;
* `--cache`: the second epoch with `cache_dir`, compared with hand-written tf.data over decoded files;
* `--memory`: resident memory after each of 20 epochs;
* `--resume`: seconds to the first batch of a training that resumes at step 100 and at step 100,000;
* `--costs`: decoding and resizing alone.

CPU time includes all processes of a program. On a shared machine it varies less than images per second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEERS = Path(__file__).parent / "input_peers"

FROM_FILES = {
    "tf.data by hand, textbook": ["tf_data.py", "textbook", "jpeg"],
    "tf.data by hand, fused": ["tf_data.py", "fused", "jpeg"],
    "Pillow in processes, textbook": ["pil_processes.py", "textbook"],
    "Pillow in processes, fused": ["pil_processes.py", "fused"],
    "PyTorch DataLoader, textbook": ["torch_loader.py", "textbook"],
    "PyTorch DataLoader, fused": ["torch_loader.py", "fused"],
    "mox, raw folder": ["mox_folder.py", "raw"],
    "mox, raw folder, AsyncRawGenerator": ["mox_folder.py", "async"],
    "mox, TFRecord": ["mox_folder.py", "tfrecord"],
}
FROM_CACHE = {
    "tf.data by hand over decoded files, textbook": ["tf_data.py", "textbook", "decoded"],
    "tf.data by hand over decoded files, fused": ["tf_data.py", "fused", "decoded"],
    "mox, cache_dir": ["mox_folder.py", "cache"],
}
MEMORY = {
    "tf.data by hand, fused": ["tf_data.py", "fused", "jpeg", "memory"],
    "mox, raw folder": ["mox_folder.py", "raw", "memory"],
    "mox, cache_dir": ["mox_folder.py", "cache", "memory"],
    "mox, TFRecord": ["mox_folder.py", "tfrecord", "memory"],
}
RESUME = {
    "raw folder, step 100": ["mox_resume.py", "raw", "100"],
    "raw folder, step 100,000": ["mox_resume.py", "raw", "100000"],
    "TFRecord, step 100": ["mox_resume.py", "tfrecord", "100"],
    "TFRecord, step 100,000": ["mox_resume.py", "tfrecord", "100000"],
}


def lines_of(command: list[str], data: Path, images: int) -> list[str] | None:
    """Run one program once and return its output; None if a package that it needs is not installed."""
    script, *words = command
    done = subprocess.run(
        [sys.executable, str(PEERS / script), *words, f"--data={data}", f"--images={images}"],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return [line[1:] for line in done.stdout.splitlines() if line.startswith("@")]


def interleaved(peers: dict[str, list[str]], rounds: int, data: Path, images: int) -> dict[str, list[list[float]]]:
    """Return images per second and CPU milliseconds per image of every program, by round."""
    figures: dict[str, list[list[float]]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, command in peers.items():
            lines = lines_of(command, data, images)
            if lines is not None:
                figures[name].append([float(word) for word in lines[0].split()])
                # Print at once: a run takes minutes, and a later program may fail.
                print(f"{name}: {lines[0]}", file=sys.stderr, flush=True)
    return {name: values for name, values in figures.items() if values}


def table(figures: dict[str, list[list[float]]], units: tuple[str, str] = ("images/s", "CPU ms/image")) -> str:
    """Return a Markdown table of medians and ranges; ratios are relative to the first program."""
    lines = [f"| | {units[0]} | range | ratio | {units[1]} | range | ratio |", "|---|---:|---:|---:|---:|---:|---:|"]
    first_rate, first_cost = (statistics.median(column) for column in zip(*next(iter(figures.values())), strict=True))
    for name, values in figures.items():
        rates, costs = zip(*values, strict=True)
        rate, cost = statistics.median(rates), statistics.median(costs)
        lines.append(
            f"| {name} | {rate:.4g} | {min(rates):.4g} – {max(rates):.4g} | {rate / first_rate:.2f} "
            f"| {cost:.2f} | {min(costs):.2f} – {max(costs):.2f} | {cost / first_cost:.2f} |"
        )
    return "\n".join(lines)


def chosen(peers: dict[str, list[str]], words: list[str] | None) -> dict[str, list[str]]:
    """Return the programs whose name contains one of `words`; all if `words` is empty."""
    found = {name: command for name, command in peers.items() if not words or any(word in name for word in words)}
    if not found:
        raise SystemExit(f"--only {' '.join(words or [])}: no such peer. There are: {', '.join(peers)}")
    return found


def memory(peers: dict[str, list[str]], data: Path) -> dict[str, list[float]]:
    """Return the resident megabytes after each epoch, of every program."""
    sizes = {}
    for name, command in peers.items():
        lines = lines_of(command, data, 0)
        if lines is not None:
            sizes[name] = [float(word) for word in lines[0].split()]
            print(f"{name}: {' '.join(f'{size:.0f}' for size in sizes[name])}", flush=True)
    return sizes


def costs(data: Path) -> dict[str, float]:
    """Return the CPU milliseconds of decoding and resizing."""
    parts = dict(line.split("|") for line in lines_of(["costs.py"], data, 0) or [])
    print("| | CPU ms/image |\n|---|---:|\n" + "\n".join(f"| {name} | {value} |" for name, value in parts.items()))
    return {name: float(value) for name, value in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=4096, help="images timed in a round, whole batches of 64")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "moxing_input_images")
    parser.add_argument("--only", nargs="+", help="only peers with one of these words in their name")
    parser.add_argument("--json", help="also write all figures to this file")
    modes = parser.add_mutually_exclusive_group()
    for mode in ("cache", "memory", "resume", "costs"):
        modes.add_argument(f"--{mode}", action="store_true")
    arguments = parser.parse_args()
    if arguments.images < 64 or arguments.images % 64:
        raise SystemExit(f"--images {arguments.images}: it must be a multiple of 64, the batch size")
    subprocess.run([sys.executable, str(PEERS / "images.py"), str(arguments.data)], check=True)
    results: dict[str, object] = {"machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"}
    if arguments.memory:
        print("Resident MB after each epoch")
        results["memory"] = memory(chosen(MEMORY, arguments.only), arguments.data)
    elif arguments.resume:
        results["resume"] = interleaved(chosen(RESUME, arguments.only), arguments.rounds, arguments.data, 64)
        print(table(results["resume"], ("seconds", "CPU seconds")))
    elif arguments.costs:
        results["costs"] = costs(arguments.data)
    else:
        name, peers = ("cache", FROM_CACHE) if arguments.cache else ("files", FROM_FILES)
        results[name] = interleaved(chosen(peers, arguments.only), arguments.rounds, arguments.data, arguments.images)
        print(table(results[name]))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
