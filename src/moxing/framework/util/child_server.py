"""The main function of a child process that serves its parent through pipes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO


def serve_parent(serve: Callable[[BinaryIO, BinaryIO], None]) -> None:
    """Serves the parent process until it closes the pipe or is gone.

    Args:
      serve: `(requests, responses)`; reads standard input and writes standard output until the input ends.
    """
    # The parent handles an interrupt from the keyboard, and may still need this process for a while.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        # The parent is gone. Exit without flushing, which would raise again.
        os._exit(0)
