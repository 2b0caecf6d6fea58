"""`moxing demo`: trains, evaluates, exports and serves real handwritten digits, in under a minute."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MISSING = (
    "moxing demo: error: scikit-learn, which contains the digits, is not installed. "
    "Install it: pip install 'moxing-tensorflow[demo]'"
)


def add_commands(commands: Any) -> None:
    """Adds the sub-command to the parser of `moxing`."""
    demo = commands.add_parser("demo", help="train, evaluate, export and serve real handwritten digits")
    demo.add_argument(
        "--dir", default="demo_output", help="directory for the results; every run creates a subdirectory (%(default)s)"
    )
    demo.set_defaults(function=_demo)


def next_run_directory(parent: Path) -> Path:
    """Creates and returns the first free directory `run_1`, `run_2` ... in `parent`.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as parent:
      ...   [next_run_directory(Path(parent)).name for _ in range(2)]
      ['run_1', 'run_2']
    """
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        directory = parent / f"run_{number}"
        try:
            directory.mkdir()
            return directory
        except FileExistsError:
            number += 1


def run_program(command: Sequence[str], quiet_errors: bool = False) -> int:
    """Runs a program and returns its exit code. The program handles Ctrl-C itself: it saves and ends.

    Args:
      command: the program and its arguments.
      quiet_errors: whether to show its standard error only if it fails.

    Example:
      >>> run_program([sys.executable, '-c', 'raise SystemExit(3)'])
      3
    """
    sys.stdout.flush()
    process = subprocess.Popen(command, stderr=subprocess.PIPE if quiet_errors else None)
    while True:
        try:
            _, errors = process.communicate()
            break
        except KeyboardInterrupt:
            continue
    if errors and process.returncode:
        os.write(2, errors)
    # After a signal: the exit code that a shell reports.
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _demo(arguments: argparse.Namespace) -> int:
    if importlib.util.find_spec("sklearn") is None:
        print(_MISSING, file=sys.stderr)
        return 2
    try:
        directory = next_run_directory(Path(arguments.dir))
    except OSError as error:
        print(f"moxing demo: error: cannot write to --dir={arguments.dir}: {error.strerror}.", file=sys.stderr)
        return 2
    return _show(directory)


def _show(directory: Path) -> int:
    from rich.console import Console

    started = time.monotonic()
    programs = Path(__file__).parent.parent / "demo"
    console = Console(highlight=False)

    def heading(text: str, command: str) -> None:
        console.print(f"\n[bold cyan]{text}[/]\n[dim]$ {command}[/]", soft_wrap=True)

    console.print(
        "[bold]MoXing demo[/]: 1,797 real handwritten digits through input_fn, model_fn and mox.run.\n"
        f"The script, written as in 2018: {programs / 'digits.py'}",
        soft_wrap=True,
    )
    heading(
        "1. Train on four digits out of five, evaluate on the fifth, export",
        f"moxing run digits.py --train_url={directory}",
    )
    code = run_program([sys.executable, "-m", "moxing", "run", str(programs / "digits.py"), f"--train_url={directory}"])
    if code:
        return code
    result = json.loads((directory / "result.json").read_text())
    held_out = directory / "held_out.npz"
    heading("2. Load the export in a new process and predict", f"python predict.py {result['export_path']} {held_out}")
    code = run_program(
        [sys.executable, str(programs / "predict.py"), result["export_path"], str(held_out)], quiet_errors=True
    )
    if code:
        return code
    console.print(
        f"\n[bold green]Accuracy on {result['samples']} held-out digits: {result['accuracy']:.1%}[/]"
        f" (everything took {time.monotonic() - started:.0f} s)\n\n"
        "Where to look next:\n"
        f"  checkpoints     {directory}\n"
        f"  exported model  {result['export_path']}\n"
        f"  curves          tensorboard --logdir {directory}\n"
        "                  (TensorBoard is a package of its own: pip install tensorboard)",
        soft_wrap=True,
    )
    return 0
