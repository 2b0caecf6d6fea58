"""Requests: connections, TLS, timeouts, retries."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

import fault_proxy
import pytest
from urllib3.util import connection

import moxing as mox
from moxing.framework.file.auth import Settings, restore_settings
from moxing.framework.file.s3 import http as s3_http


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_a_store_that_nobody_answers_for(own_settings):
    mox.file.set_auth("a", "b", "http://127.0.0.1:1", retry=1, retry_wait=0)
    with pytest.raises(
        mox.file.MoxFileRespException, match=r"NoConnection: cannot connect \(127.0.0.1:1\), after 2"
    ) as caught:
        mox.file.exists("s3://bucket/a")
    assert caught.value.resp.status == 0


def test_a_host_that_nobody_knows(own_settings, monkeypatch):
    def resolve(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    mox.file.set_auth("a", "b", "http://store.example.com", retry=0)
    with pytest.raises(mox.file.MoxFileRespException, match=r"the host name cannot be resolved \(store.example.com\)"):
        mox.file.exists("s3://bucket/a")


def test_https_where_plain_http_is_spoken(s3_folder, store):
    mox.file.set_auth(server=f"127.0.0.1:{store.port}", retry=0)
    with pytest.raises(mox.file.MoxFileRespException, match="not speak https there.*http:// before.*S3_USE_HTTPS=0"):
        mox.file.exists(s3_folder)


def test_connections_are_kept_or_not(proxy, s3_folder):
    mox.file.write(f"{s3_folder}/a", "x")
    for keep in (True, False):
        mox.file.set_auth(long_conn_mode=keep)
        before = proxy.connections
        for _ in range(5):
            mox.file.read(f"{s3_folder}/a")
            mox.file.exists(f"{s3_folder}/none")
        assert (proxy.connections - before <= 1) is keep


@pytest.fixture
def tls_proxy(store, s3_folder, tmp_path):
    """The store behind TLS, with a certificate that nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with fault_proxy.FaultProxy(store.port, context) as running:
        yield running


def test_https(tls_proxy, s3_folder, tmp_path):
    mox.file.set_auth(server=tls_proxy.endpoint, retry=2, retry_wait=0.01)
    with pytest.raises(mox.file.MoxFileRespException, match="certificate.*ssl_verify"):
        mox.file.write(f"{s3_folder}/a", "x")
    assert tls_proxy.requests == []
    mox.file.set_auth(ssl_verify=False)
    mox.file.write(f"{s3_folder}/a", "x")
    assert mox.file.read(f"{s3_folder}/a") == "x"
    assert tls_proxy.headers[0]["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert tls_proxy.headers[0]["content-md5"]
    (tmp_path / "large").write_bytes(bytes(20 << 20))
    tls_proxy.fail("damage_upload", 1)
    mox.file.copy(tmp_path / "large", f"{s3_folder}/large")
    tls_proxy.fail("truncate", 1)
    mox.file.copy(f"{s3_folder}/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == bytes(20 << 20)
    mox.file.remove(s3_folder, recursive=True)
    assert not mox.file.exists(s3_folder)


def test_waits_grow_and_are_bounded(proxy, s3_folder, monkeypatch):
    waits = []
    monkeypatch.setattr(s3_http.time, "sleep", waits.append)
    mox.file.set_auth(retry=9, retry_wait=1)
    proxy.fail("503", float("inf"))
    with pytest.raises(mox.file.MoxFileRespException, match="after 10 attempts"):
        mox.file.write(f"{s3_folder}/a", "x")
    assert len(waits) == 9
    for number, seconds in enumerate(waits):
        longest = min(2**number, 20)
        assert longest / 2 <= seconds <= longest
    mox.file.set_auth(retry=0)
    proxy.requests.clear()
    with pytest.raises(mox.file.MoxFileRespException):
        mox.file.write(f"{s3_folder}/a", "x")
    assert len(proxy.requests) == 1


def test_many_threads_share_a_client(s3_folder):
    mox.file.write(f"{s3_folder}/a", "x" * 5000)
    wrong = []

    def work():
        for _ in range(10):
            if mox.file.read(f"{s3_folder}/a") != "x" * 5000:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(20)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert time.monotonic() - started < 30


@pytest.fixture
def narrow(proxy, monkeypatch):
    """A line on which little lies between the two ends, so that a body is sent as slowly as it is taken."""
    original = connection.create_connection

    def connect(*args, **options):
        made = original(*args, **options)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
        return made

    monkeypatch.setattr(connection, "create_connection", connect)
    return proxy


@pytest.mark.parametrize("is_new", [True, False])
def test_a_body_that_takes_longer_than_the_time_limit(narrow, s3_folder, is_new):
    """The limit is for an answer or for a piece of the body, not for all of it."""
    body = os.urandom(2 << 20)
    mox.file.set_auth(retry=0, client_timeout=1)
    narrow.limit_uploads(1_000_000)
    if not is_new:
        mox.file.write(f"{s3_folder}/a", "x")
    narrow.fail("slow_upload", 1, lambda method, target: method == "PUT")
    mox.file.write(f"{s3_folder}/a", body, binary=True)
    assert narrow.unused == 0
    mox.file.set_auth(client_timeout=20)
    assert mox.file.read(f"{s3_folder}/a", binary=True) == body


def test_a_body_has_as_much_time_as_an_answer(narrow, s3_folder, monkeypatch):
    """More than the time of a connect, for which another limit stands."""
    monkeypatch.setattr(s3_http, "_MAX_CONNECT_TIMEOUT", 0.2)
    mox.file.set_auth(retry=0)
    narrow.limit_uploads(100_000)
    narrow.fail("slow_upload", 1)
    mox.file.write(f"{s3_folder}/a", os.urandom(200_000), binary=True)


def test_an_upload_of_which_nothing_is_taken(narrow, s3_folder):
    mox.file.set_auth(retry=0, client_timeout=0.3)
    narrow.limit_uploads(10)
    narrow.fail("slow_upload", 1)
    started = time.monotonic()
    with pytest.raises(mox.file.MoxFileRespException, match="PUT"):
        mox.file.write(f"{s3_folder}/a", os.urandom(2 << 20), binary=True)
    assert time.monotonic() - started < 10
