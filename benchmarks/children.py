"""Child processes of a benchmark: their environment, waiting for them, ending them."""

from __future__ import annotations

import os
import subprocess
import time


def quiet_environment(threads: int) -> dict[str, str]:
    """Return this process's environment without proxies, cluster roles, GPUs and log lines; 0 threads: no limit."""
    left_out = ("TF_CONFIG", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    settings = {name: value for name, value in os.environ.items() if name not in left_out}
    settings |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1", "CUDA_VISIBLE_DEVICES": "-1"}
    return settings | ({"OMP_NUM_THREADS": str(threads)} if threads else {})


def wait_for(children: list[subprocess.Popen], seconds: float) -> subprocess.Popen | None:
    """Wait for all processes; return the first that failed or timed out."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        codes = [child.poll() for child in children]
        for child, code in zip(children, codes, strict=True):
            if code:
                return child
        if None not in codes:
            return None
        time.sleep(0.05)
    return next((child for child in children if child.poll() is None), None)


def end(child: subprocess.Popen) -> None:
    """End a process if it is still running."""
    if child.poll() is None:
        child.kill()
    child.wait()
