"""Single uploads: what Ctrl-C leaves behind."""

from __future__ import annotations

import signal
import threading

import pytest
from uploaded import wait_for

import moxing.tensorflow as mox
from moxing.framework.file.urls import find_remote
from moxing.tensorflow.executor.store.uploads import Uploader


def test_ctrl_c_ends_an_upload_after_the_requests_under_way(proxy, s3_folder, tmp_path):
    """40 parts, of which each takes seconds: those that were not begun stay away, and nothing is left on the store."""
    size = 40 << 23
    proxy.limit_uploads(2 << 20)
    with open(tmp_path / "large", "wb") as stream:
        stream.truncate(size)
    proxy.fail("slow_upload", times=float("inf"))
    uploader = Uploader(find_remote(s3_folder, "url"))

    def interrupt():
        wait_for(lambda: any("partNumber" in target for _, target in proxy.requests))
        proxy.fail("", times=0)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        uploader.for_each(["large"], lambda name: uploader.send(str(tmp_path / "large"), name))
    assert uploader.is_cancelled
    assert len({target for _, target in proxy.requests if "partNumber" in target}) < 10
    assert proxy.requests[-1][0] == "DELETE"
    assert not mox.file.exists(s3_folder + "/large")
