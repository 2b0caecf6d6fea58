"""The progress bar."""

import contextlib
import os
import pty
import subprocess
import sys


def test_a_bar_on_a_terminal(large, tmp_path):
    """Both ways, one file and a directory; without a terminal there is none."""
    code = (
        "import moxing as mox, os\n"
        f"mox.file.copy({large!r}, 'one')\n"
        f"mox.file.copy_parallel({os.path.dirname(large)!r}, 'all')\n"
        f"mox.file.copy_parallel('all', {os.path.dirname(large) + '-up'!r})\n"
    )
    command = [sys.executable, "-c", code]
    quiet = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert (quiet.stdout, quiet.stderr) == (b"", b"")
    owner, terminal = pty.openpty()
    child = subprocess.Popen(command, cwd=tmp_path, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(owner, 65536):
            shown += chunk
    os.close(owner)
    assert child.wait() == 0
    assert shown.count(b"Copying") >= 3
    assert b"22.0" in shown
