"""`mox.cache()` of scripts that were written for object stores."""

from __future__ import annotations


def cache() -> None:
    """Asks for checkpoints and summaries that are addressed to an object store to go through the local disk.

    `mox.run` does so by itself for every `log_dir` that is a url: it works on the local disk and uploads in the
    background. So there is nothing left to switch on, and scripts that call this go on working.

    Example:
      >>> import moxing as mox
      >>> mox.cache()
    """
