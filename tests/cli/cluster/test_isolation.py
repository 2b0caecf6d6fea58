"""A network of its own, tried in processes that do not come back."""

import os
import socket
import subprocess
import sys
import tempfile
import textwrap

import pytest

from moxing.cli.cluster import isolation

REASON = isolation.why_not()
isolated = pytest.mark.skipif(REASON is not None, reason=f"no private network here: {REASON}")


def python(code, *arguments, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, timeout=60, **kwargs
    )


INSIDE = """
    import os, socket, sys
    from moxing.cli.cluster.isolation import enter_private_network, interfaces
    before = os.getuid(), os.getgid()
    enter_private_network()
    assert (os.getuid(), os.getgid()) == before
    assert interfaces() == ['lo'], interfaces()
    for address in sys.argv[1:]:
        host, port = address.rsplit(':', 1)
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            print('reached', address)
        except OSError as error:
            print('refused')
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(20)
        child = os.fork()
        if not child:
            socket.create_connection(server.getsockname()).sendall(b'hello')
            os._exit(0)
        print(server.accept()[0].recv(5).decode())
        assert os.waitpid(child, 0)[1] == 0
    open('written', 'w').close()
"""


@isolated
def test_inside_there_is_only_the_own_loopback(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        address = f"127.0.0.1:{outside.getsockname()[1]}"
        result = python(INSIDE, address, "192.0.2.1:80", cwd=tmp_path)
        assert result.stdout.split() == ["refused", "refused", "hello"], result.stderr
        # The listener itself is well.
        socket.create_connection(outside.getsockname()).close()
    assert (tmp_path / "written").stat().st_uid == os.getuid()


@isolated
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_an_ordinary_user_keeps_name_and_files():
    # Modules are imported before: Python may stand where only root can read.
    start = """
import ctypes, encodings.idna, fcntl, os, moxing.cli.cluster.isolation
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: /proc/self is the new user's, as in a process that he has started
"""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        result = python(start + textwrap.dedent(INSIDE), cwd=directory)
        if "IsolationError" in result.stderr:
            pytest.skip(result.stderr.splitlines()[-1])
        assert result.stdout.split() == ["hello"], result.stderr
        assert os.stat(os.path.join(directory, "written")).st_uid == 65534


def test_asking_leaves_this_process_where_it_is():
    before = isolation.interfaces()
    assert isolation.why_not() == REASON
    assert isolation.interfaces() == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp and rlimits of Linux")
def test_a_refusal_gives_its_reason():
    """The kernel's refusal is real: more threads than one may not leave their user namespace."""
    code = """
    import os, threading
    from moxing.cli.cluster import isolation
    if os.geteuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(isolation._attempt())
    """
    result = python(code)
    assert result.stdout.startswith("the kernel refuses a network namespace ("), result.stderr


def test_other_systems_have_no_namespaces(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(isolation.IsolationError, match="exist only on Linux; this is darwin"):
        isolation.enter_private_network()
