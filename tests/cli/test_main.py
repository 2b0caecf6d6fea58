"""The `moxing` command: help, versions, wrong commands."""

import subprocess
import sys
import textwrap

from helpers.launcher import moxing


def test_help_names_the_commands_and_imports_no_tensorflow(tmp_path):
    code = """
    import sys
    from moxing.cli.main import main
    try:
        main(['--help'])
    finally:
        assert not {'tensorflow', 'tf_keras', 'numpy'} & set(sys.modules)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for command in ("run", "enable", "disable", "version"):
        assert command in result.stdout
    assert "--legacy" in moxing("run", "--help", cwd=tmp_path).stdout


def test_wrong_commands_are_errors(tmp_path):
    for arguments in (["walk"], [], ["run"], ["run", "--nonsense", "a.py"]):
        result = moxing(*arguments, cwd=tmp_path)
        assert result.returncode == 2, arguments
        assert "usage" in result.stderr
        assert result.stdout == ""


def test_version(tmp_path):
    result = moxing("version", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("moxing-tensorflow ")
    assert "\ntensorflow 2." in result.stdout


def test_a_reader_that_has_gone(tmp_path):
    """`moxing version | head -1`: no traceback."""
    command = [sys.executable, "-m", "moxing", "version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
