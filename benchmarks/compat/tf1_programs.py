"""Run public TensorFlow 1 programs, unchanged, under `moxing run` and report what became of each.

    python benchmarks/compat/tf1_programs.py CHECKOUTS [--only NAME] [--jobs 1] [--timeout 60] [--json F] [--markdown F]

CHECKOUTS has one directory per repository, named OWNER+NAME, at the commit that `programs.toml` names. Each program
runs in a copy of its repository, with toy data in the format that it reads. The exit code is 1 if a program did not do
what `programs.toml` expects of it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import tf1_report
import tf1_toy_data

LIST = Path(__file__).with_name("programs.toml")
#: A number that a program prints for its loss, in the ways that programs of the time did.
LOSS = re.compile(
    r"(?i)\b(?:\w*loss\w*|\w*cost\w*|mse|error|l[xz]|perplexity)\b[^\d\n\-]{0,20}(-?\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)"
)
#: Reinforcement learning prints rewards instead.
LOSS_OR_REWARD = re.compile(LOSS.pattern.replace("perplexity", r"perplexity|\w*rewards?|\w*score"))
#: Losses that a program must have printed to count as training when it is stopped.
ENOUGH = 4


@dataclass(frozen=True)
class Program:
    """One command of one repository.

    Attributes:
      repository: owner and name.
      directory: where the command runs, relative to the repository.
      command: the script and its arguments, or `notebook.ipynb`.
      options: options of `moxing run`.
      data: toy data to write first, as `kind:path`.
      path: PYTHONPATH, relative to the repository.
      before: commands that prepare the data, run in the same way.
      fails: why it cannot run; empty if it should.
      falls: whether the loss must fall. The losses of adversarial networks need not.
      home: the home directory, relative to the repository; empty for that of the user.
    """

    repository: str
    directory: str
    command: str
    options: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    fails: str = ""
    falls: bool = True
    home: str = ""

    @property
    def name(self) -> str:
        return f"{self.repository}: {Path(self.directory, self.command).as_posix()}"


@dataclass(frozen=True)
class Result:
    """What became of a program.

    Attributes:
      repository: owner and name.
      command: with its directory.
      outcome: "ended", "trained" (was training when it was stopped), "unclear" (was running when it was stopped,
        without an error, and had printed too few losses, or losses that did not fall yet) or "failed".
      seconds: how long it ran.
      cause: the last error line of a failed program, or what was seen of a stopped one.
      expected: whether this is what the list expects.
    """

    repository: str
    command: str
    outcome: str
    seconds: float
    cause: str
    expected: bool


def read_list(path: Path = LIST) -> list[Program]:
    """Returns the programs of the list.

    Example:
      >>> len({program.repository for program in read_list()}) >= 40
      True
    """
    with path.open("rb") as file:
        groups = tomllib.load(file)["group"]
    return list(_programs(groups))


def _programs(groups: list[dict]) -> Iterator[Program]:  # type: ignore[type-arg]
    for group in groups:
        shared = {key: tuple(group.get(key, ())) for key in ("options", "data", "path", "before")}
        for command in group["commands"]:
            yield Program(
                group["repository"],
                group.get("directory", "."),
                command,
                fails=group.get("fails", {}).get(command, ""),
                falls=group.get("falls", True),
                home=group.get("home", ""),
                **shared,
            )


def run(program: Program, checkouts: Path, timeout: float, logs: Path) -> Result:
    """Runs a program in a copy of its repository until it ends or the time is over."""
    source = checkouts / program.repository.replace("/", "+")
    if not source.is_dir():
        return Result(program.repository, program.command, "failed", 0.0, f"{source} is missing", False)
    with tempfile.TemporaryDirectory(prefix="tf1_program_") as temporary:
        copy = Path(temporary) / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
        folder = copy / program.directory
        outside = [folder / path for _, _, path in (entry.partition(":") for entry in program.data)]
        outside = [path for path in outside if copy not in path.parents and not path.exists()]
        for entry in program.data:
            kind, _, path = entry.partition(":")
            tf1_toy_data.write(kind, folder / path)
        log = logs / (re.sub(r"[^\w.-]+", "_", program.name)[-120:] + ".log")
        started = time.monotonic()
        for command in program.before:
            _start_and_wait(program, command, copy, folder, log, timeout)
        code = _start_and_wait(program, program.command, copy, folder, log, timeout)
        seconds = time.monotonic() - started
        for path in outside:
            shutil.rmtree(path, ignore_errors=True)
    text = log.read_text(errors="replace")
    outcome, cause = judge(code, text, program.falls)
    expected = (outcome == "failed") == bool(program.fails)
    command = Path(program.directory, program.command).as_posix()
    return Result(program.repository, command, outcome, round(seconds, 1), cause, expected)


def judge(code: int | None, text: str, falls: bool = True) -> tuple[str, str]:
    """Returns the outcome and its cause. `code` is None if the program was stopped.

    Example:
      >>> judge(0, "done")
      ('ended', '')
      >>> judge(None, "loss: 4.0\\nloss: 3.0\\nloss: 2.0\\nloss: 1.0\\n")
      ('trained', 'loss 3.5 to 1.5')
      >>> judge(None, "loss: 4.0\\n")
      ('unclear', '1 losses printed, no error')
      >>> judge(1, "Traceback\\nValueError: no\\n")
      ('failed', 'ValueError: no')
    """
    if code == 0:
        return "ended", ""
    if code is not None:
        return "failed", error_line(text) or f"exit code {code}"
    losses = [float(found) for found in (LOSS if falls else LOSS_OR_REWARD).findall(text)]
    if len(losses) < ENOUGH:
        return "unclear", f"{len(losses)} losses printed, no error"
    half = len(losses) // 2
    first, last = sum(losses[:half]) / half, sum(losses[-half:]) / half
    seen = f"loss {first:.4g} to {last:.4g}"
    if last != last or abs(last) == float("inf"):
        return "failed", seen
    return ("trained" if last < first or not falls else "unclear"), seen


def error_line(text: str) -> str:
    """Returns the last line of a log that names an error.

    Example:
      >>> error_line("step 1\\nValueError: no\\n  at line 3\\n")
      'ValueError: no'
    """
    pattern = r"^(?:[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*|moxing: .*|.*: error: .*)$"
    lines = re.findall(pattern, text, re.MULTILINE)
    errors = [line for line in lines if not re.match(r"[\w.]*Warning", line)]
    return errors[-1].strip()[:300] if errors else ""


def _start_and_wait(program: Program, command: str, root: Path, folder: Path, log: Path, timeout: float) -> int | None:
    words = shlex.split(command)
    if words[0].endswith(".ipynb"):
        words[0] = tf1_toy_data.notebook_to_script(folder / words[0])
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
    if program.home:
        environment["HOME"] = str(root / program.home)
    own = [str((root / entry).resolve()) for entry in program.path]
    environment["PYTHONPATH"] = os.pathsep.join([*own, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    line = [sys.executable, "-m", "moxing", "run", *program.options, *words]
    with log.open("ab") as output:
        process = subprocess.Popen(
            line, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Its children too: programs start processes that read their data.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", action="append", help="a part of the name; may be repeated")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds, after which a program is stopped")
    parser.add_argument("--logs", type=Path, help="a directory for the output of the programs")
    parser.add_argument("--json", type=Path, help="write the results here; results of other programs in it stay")
    parser.add_argument("--resume", action="store_true", help="skip programs whose results are in the file of --json")
    parser.add_argument("--markdown", type=Path, action="append", default=[], help="a page whose table is replaced")
    arguments = parser.parse_args()
    programs = [one for one in read_list() if not arguments.only or any(part in one.name for part in arguments.only)]
    if arguments.resume and arguments.json is not None and arguments.json.exists():
        known = {f"{one['repository']}: {one['command']}" for one in json.loads(arguments.json.read_text())}
        programs = [one for one in programs if one.name not in known]
    with tempfile.TemporaryDirectory(prefix="tf1_logs_") as temporary:
        logs = (arguments.logs or Path(temporary)).resolve()
        logs.mkdir(parents=True, exist_ok=True)
        results = []
        # Stopped by a signal it stops the program that it runs, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        one_run = functools.partial(run, checkouts=arguments.checkouts.resolve(), timeout=arguments.timeout, logs=logs)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for result in (map if arguments.jobs == 1 else pool.map)(one_run, programs):
                results.append(result)
                mark = " " if result.expected else "!"
                print(f"{mark} {result.outcome:7} {result.seconds:5.1f} s  {result.repository}: {result.command}"
                      f"  {result.cause[:150]}", flush=True)  # fmt: skip
                if arguments.json is not None:
                    tf1_report.merge_json(arguments.json, [asdict(result)])
    print(tf1_report.summary([asdict(result) for result in results]))
    every = json.loads(arguments.json.read_text()) if arguments.json else [asdict(result) for result in results]
    for page in arguments.markdown:
        tf1_report.replace_table(page, every)
    return 0 if all(result.expected for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
