"""`moxing file ls`, `cat`, `du` and `rm` on a disk and on a real store: output, exit codes, errors."""

import subprocess
import sys

import pytest

import moxing as mox
from moxing.cli import main


def test_it_starts_without_tensorflow():
    code = (
        "import sys\nfrom moxing.cli.main import main\nmain(['file', 'ls', '/'])\n"
        "print({'tensorflow', 'numpy', 'urllib3'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


def test_wrong_arguments(run, capfd):
    for words, message in (
        (["file"], "required: COMMAND"),
        (["file", "ls"], "required: PATH"),
        (["file", "cp", "a"], "required: DST"),
        (["file", "cp", "a", "b", "--threads", "0"], "'0': expected a positive integer"),
        (["file", "du", "--depth", "x", "a"], "'x': expected 0 or a positive integer"),
    ):
        with pytest.raises(SystemExit) as ended:
            main.main(words)
        assert ended.value.code == 2
        assert message in capfd.readouterr().err
    assert "PATH='s3://': expected s3://bucket or s3://bucket/key" in run("ls", "s3://", code=2)
    assert "PATH='nosuch://host/x'" in run("ls", "nosuch://host/x", code=2)


def test_wrong_keys_are_one_line(run, s3_folder, monkeypatch):
    monkeypatch.setenv("SECRET_ACCESS_KEY", "wrong-secret")
    error = run("ls", s3_folder, code=2)
    assert "403" in error
    assert "the keys came from the environment variables ACCESS_KEY_ID and SECRET_ACCESS_KEY" in error
    assert "wrong-secret" not in error


def test_a_store_that_is_not_there_is_one_line(run, s3_folder, monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "http://127.0.0.1:9")
    mox.file.set_auth(retry=0)
    assert "NoConnection: cannot connect (127.0.0.1:9)" in run("ls", s3_folder, code=2)


def test_a_wrong_address_in_the_environment(run, monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "nonsense://")
    assert "error: environment variable S3_ENDPOINT='nonsense://': expected a host" in run("ls", "s3://b", code=2)


def test_an_unknown_option_shows_the_usage_of_the_command(capfd):
    with pytest.raises(SystemExit) as ended:
        main.main(["file", "ls", "--summarize", "s3://b"])
    error = capfd.readouterr().err
    assert ended.value.code == 2
    assert error.startswith("usage: moxing file ls")
    assert error.endswith("moxing file ls: error: unrecognized arguments: --summarize\n")
