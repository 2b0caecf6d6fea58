"""Starts the `moxing` command."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import moxing as package
from helpers import warm

#: The file that `python -m moxing` runs.
MAIN = str(Path(package.__file__).with_name("__main__.py"))

Done = subprocess.CompletedProcess[str]


def moxing(
    *words: object, cwd: str | Path | None = None, env: Mapping[str, str] | None = None, timeout: float = warm.DEADLINE
) -> Done:
    """Runs `python -m moxing` with these words in a new process."""
    command = [sys.executable, "-m", "moxing", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)


def warm_moxing(
    *words: object, cwd: str | Path | None = None, env: Mapping[str, str] | None = None, timeout: float = warm.DEADLINE
) -> Done:
    """Runs the `moxing` command with these words in a process that has TensorFlow imported."""
    program = warm.Program("moxing", MAIN, tuple(map(str, words)))
    return warm.run(program, warm.Surroundings(cwd or ".", env), timeout)


def output_of(script: str | Path, *arguments: object, cwd: str | Path | None = None) -> str:
    """What a script prints under `moxing run`; it must end well. Runs in the directory of the script by default."""
    done = warm_moxing("run", script, *arguments, cwd=cwd or Path(script).parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def enabled_python(directory: Path) -> Path:
    """The Python of a new virtual environment with the packages of this one, after `moxing enable`."""
    venv.create(directory, system_site_packages=False, with_pip=False)
    python = directory / "bin" / "python"
    site_packages = next((directory / "lib").glob("python*/site-packages"))
    here = [path for path in sys.path if path.endswith("site-packages")]
    source = Path(MAIN).parent.parent
    (site_packages / "everything.pth").write_text("\n".join([*here, str(source)]))
    subprocess.run([python, "-m", "moxing", "enable"], check=True, capture_output=True, timeout=120)
    return python
