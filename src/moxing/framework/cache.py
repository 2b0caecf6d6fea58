"""`mox.cache()`, which scripts for object stores call."""

from __future__ import annotations


def cache() -> None:
    """Does nothing; kept for scripts that call it.

    It asked MoXing to write checkpoints and summaries for an object store through the local disk. `mox.run` always does
    so if `log_dir` is a url: it works on the local disk and uploads in the background.

    Example:
      >>> import moxing as mox
      >>> mox.cache()
    """
