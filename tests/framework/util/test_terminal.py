"""Whether there is a terminal."""

import io
import os
import sys

import moxing as mox
from moxing.framework.util.terminal import has_terminal, is_terminal


class OnlyWrite:
    """What programs put in the place of `sys.stderr`."""

    def write(self, text):
        pass

    def flush(self):
        pass


def test_terminals_and_others():
    closed = io.StringIO()
    closed.close()
    assert [is_terminal(stream) for stream in (None, OnlyWrite(), closed, io.StringIO())] == [False] * 4
    master, slave = os.openpty()
    with open(slave, "w") as terminal, open(master, "rb", 0):
        assert is_terminal(terminal)


def test_copy_without_a_usable_stderr(tmp_path, monkeypatch):
    """Above the number of files that gets a progress bar."""
    (tmp_path / "from").mkdir()
    for number in range(200):
        (tmp_path / "from" / str(number)).touch()
    monkeypatch.setattr(sys, "stderr", OnlyWrite())
    mox.file.copy_parallel(str(tmp_path / "from"), str(tmp_path / "to"))
    assert not has_terminal()
    assert len(os.listdir(tmp_path / "to")) == 200
