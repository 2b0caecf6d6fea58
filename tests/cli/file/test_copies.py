"""What `cp` and `sync` show, and files copied onto themselves."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from functools import partial

import pytest
from trees import WAYS, contents, put, run_file, source_and_target

import moxing as mox

FILES = {"a.txt": "hello", "sub/b c.txt": "bc", "sub/深/🚀.bin": "r", "foo": "f", "foo-bar/x": "x"}


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def places(request, tmp_path):
    return source_and_target(request, tmp_path, FILES)


@pytest.fixture
def run(capfd):
    return partial(run_file, capfd, "cp")


def test_a_dry_run_copies_nothing(places, run):
    src, dst = places
    lines = run("--dry-run", "-r", src, dst)
    assert f"would copy {src}/sub/b c.txt to {dst}/sub/b c.txt" in lines
    assert len(lines) == len(FILES)
    assert run("--dry-run", f"{src}/foo", f"{dst}/x/y") == [f"would copy {src}/foo to {dst}/x/y"]
    assert not mox.file.exists(dst)


def test_onto_itself_by_another_scheme(run, s3_folder):
    put(s3_folder, {"d/a": "kept"})
    other = s3_folder.replace("s3://", "obs://")
    assert ": expected another file than SRC=" in run(f"{s3_folder}/d/a", f"{other}/d/a", code=2)
    assert ": expected a directory outside SRC=" in run("-r", f"{s3_folder}/d", f"{other}/d", code=2)
    assert contents(s3_folder) == {"d/a": "kept"}


def on_terminal(*words):
    """Runs a command whose output is a terminal; returns what it wrote there."""
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "moxing", "file", *map(str, words)]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=terminal, env=environment) as child:
        os.close(terminal)
        text = b""
        # At the end of the last writer Linux answers with an error.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 65536):
                text += chunk
    os.close(ours)
    assert child.returncode == 0
    return text.decode()


@pytest.mark.slow
def test_progress_on_a_terminal(s3_folder, tmp_path):
    """There is a bar with bytes and files while it runs, and the sum at the end."""
    put(str(tmp_path / "many"), {f"{number}": "x" * 1000 for number in range(300)})
    (tmp_path / "many" / "large").write_bytes(bytes(30_000_000))
    text = on_terminal("cp", "-r", tmp_path / "many", f"{s3_folder}/many")
    assert re.search(r"Copying.*[\d,]+/301 files.*/30\.3 MB", text)
    assert "copied 301 files, 30.3 MB in " in text
    text = on_terminal("sync", "--checksum", tmp_path / "many", f"{s3_folder}/many")
    assert "Copying" not in text
    assert "copied 0 files, 0 B; 301 files up to date" in text
