import errno
import threading
import time

import pytest

import moxing as mox
from moxing.framework.file import waiting
from moxing.framework.file.errors import MoxFileReadException
from moxing.framework.file.s3.responses import StoreResponse
from moxing.framework.file.waiting import cancel_when, retry_while_unavailable
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.datasets.stored.objects import StoredObject, read_object


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(waiting, "_PAUSE", 0.05)


def failure(status=0, code="NoConnection"):
    return MoxFileReadException(StoreResponse(status, code, ""), errno.EIO, "GET: away", "s3://bucket/a")


def test_data_of_a_store_that_comes_back_is_read(proxy, s3_folder, caplog):
    FLAGS.set("data_patience", 60)
    mox.file.write(s3_folder + "/a", "content")
    proxy.fail("reset", times=float("inf"))
    threading.Timer(1, lambda: proxy.fail("", times=0)).start()
    assert read_object(StoredObject(s3_folder + "/a", 7, ""))[0] == b"content"
    lines = [record.getMessage() for record in caplog.records if "Waiting for data" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("Waiting for data, up to 60 seconds (--data_patience): ")
    assert "The store is available again." in caplog.messages


def test_patience_ends():
    FLAGS.set("data_patience", 0.3)
    started = time.monotonic()

    def read():
        raise failure()

    with pytest.raises(MoxFileReadException):
        retry_while_unavailable(read)
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("error", [failure(403, "AccessDenied"), failure(0, "Damaged"), FileNotFoundError(2, "gone")])
def test_what_does_not_pass_is_an_error_at_once(error):
    FLAGS.set("data_patience", 60)
    calls = []

    def read():
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        retry_while_unavailable(read)
    assert len(calls) == 1


def test_it_ends_when_nobody_wants_the_data_any_more(monkeypatch):
    monkeypatch.setattr(waiting, "_cancellations", [])
    FLAGS.set("data_patience", 60)
    over = threading.Event()

    def read():
        threading.Timer(0.2, over.set).start()
        raise failure()

    cancel_when(over.is_set)
    with pytest.raises(MoxFileReadException):
        retry_while_unavailable(read)


def test_the_flag_is_checked():
    FLAGS.set("data_patience", -1)
    with pytest.raises(FlagError, match="--data_patience=-1.0: expected a number of seconds from 0"):
        retry_while_unavailable(lambda: (_ for _ in ()).throw(failure()))
