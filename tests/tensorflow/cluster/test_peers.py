"""Deaths, silences and goodbyes of real processes and ports, as the watch sees them."""

from __future__ import annotations

import errno
import queue
import signal
import socket
import threading
import time

import pytest

from moxing.tensorflow.cluster import peers
from moxing.tensorflow.cluster.peers import PeerWatch, Target, WatchTiming

#: Faster than in life, so that a test takes a second.
FAST = {"every": 0.05, "timeout": 0.3, "silence": 1.5}


@pytest.fixture
def watch():
    """Starts watches that end with the test; `lost` holds what they tell."""
    started = []

    def start(addresses, has_left=None, reached=(), on_lost=None, **timings):
        lost = queue.Queue()
        left = {} if has_left is None else {"has_left": has_left}
        on_lost = on_lost or (lambda name, why: lost.put((name, why)))
        watch = PeerWatch(addresses, on_lost, **left, timing=WatchTiming(**{**FAST, **timings}))
        started.append(watch)
        watch.start(reached)
        return lost

    yield start
    for watch in started:
        watch.stop()


def nothing_in(lost, seconds):
    with pytest.raises(queue.Empty):
        print(lost.get(timeout=seconds))


def test_kill_9_is_noticed(listening_process, watch):
    lost = watch({"ps 0": listening_process.address})
    nothing_in(lost, 0.4)
    listening_process.send_signal(signal.SIGKILL)
    name, why = lost.get(timeout=30)
    assert name == "ps 0"
    assert why == f"its port {listening_process.address} refuses connections: the process has died"


@pytest.mark.slow
def test_kill_9_is_noticed_at_the_speed_of_life(listening_process, watch):
    lost = watch({"ps 0": listening_process.address}, every=0.5, timeout=2.0, silence=25.0)
    nothing_in(lost, 1.2)
    listening_process.kill()
    before = time.monotonic()
    lost.get(timeout=30)
    assert time.monotonic() - before > 1.0  # four probes: one refusal may be a busy moment


def test_a_stopped_process_is_not_dead(listening_process, watch):
    lost = watch({"ps 0": listening_process.address})
    nothing_in(lost, 0.2)
    listening_process.send_signal(signal.SIGSTOP)
    nothing_in(lost, 1.0)
    listening_process.send_signal(signal.SIGCONT)


def test_one_refusal_less_than_a_death(closed_address, watch, monkeypatch):
    answers = iter([*["open"] * 2, *["refused"] * 3, "open", *["refused"] * 3, "open"])
    monkeypatch.setattr(Target, "probe", lambda self, timeout: peers.Answer(next(answers, "open")))
    nothing_in(watch({"ps 0": closed_address}), 1.0)
    assert next(answers, None) is None


def test_a_peer_that_said_goodbye_is_not_lost(listening_process, watch):
    asked = []
    lost = watch({"ps 0": listening_process.address}, has_left=lambda name: asked.append(name) or True)
    nothing_in(lost, 0.3)
    assert asked == []
    listening_process.kill()
    nothing_in(lost, 0.8)
    assert asked == ["ps 0"]  # and it is watched no longer


def test_a_peer_that_was_never_there_is_not_lost(closed_address, watch):
    nothing_in(watch({"ps 0": closed_address}), 0.8)


def test_unless_it_was_reached_before_the_watch(closed_address, watch):
    assert watch({"ps 0": closed_address}, reached=["ps 0"]).get(timeout=30)[0] == "ps 0"


def test_a_silent_peer_is_lost_after_a_while(silent_server, watch):
    address = "127.0.0.1:%d" % silent_server.getsockname()[1]
    before = time.monotonic()
    name, why = watch({"worker 1": address}, reached=["worker 1"]).get(timeout=30)
    assert time.monotonic() - before > 1.2
    assert why.startswith(f"{address} has not answered for ")
    assert "no answer" in why


def test_a_silence_that_ends_is_no_loss(silent_server, watch):
    lost = watch({"worker 1": "127.0.0.1:%d" % silent_server.getsockname()[1]}, reached=["worker 1"])
    nothing_in(lost, 0.8)
    silent_server.listen(1024)  # the link is up again: what waits in the queue no longer fills it
    nothing_in(lost, 1.5)


def test_a_silent_peer_does_not_hold_up_the_others(silent_server, listening_process, watch):
    addresses = {f"worker {n}": "127.0.0.1:%d" % silent_server.getsockname()[1] for n in range(5)}
    lost = watch({**addresses, "ps 0": listening_process.address}, reached=addresses, timeout=5.0, silence=60.0)
    nothing_in(lost, 0.5)
    listening_process.kill()
    assert lost.get(timeout=1.5)[0] == "ps 0"


def test_only_the_first_loss_is_told(closed_address, watch):
    names = ["ps 0", "ps 1", "worker 1"]
    lost = watch(dict.fromkeys(names, closed_address), reached=names)
    assert lost.get(timeout=2)[0] in names
    nothing_in(lost, 0.6)


def test_after_stop_nothing_is_told(listening_process):
    lost = queue.Queue()
    watch = PeerWatch({"ps 0": listening_process.address}, lambda *loss: lost.put(loss), timing=WatchTiming(**FAST))
    watch.start()
    time.sleep(0.3)
    watch.stop()
    listening_process.kill()
    nothing_in(lost, 0.6)
    with pytest.raises(RuntimeError, match="create a new PeerWatch"):
        watch.start()


def test_the_watch_can_be_stopped_from_on_lost_and_its_threads_end(closed_address):
    done = threading.Event()
    names = [f"worker {number}" for number in range(3)]

    def on_lost(name, why):
        watch.stop()
        done.set()

    watch = PeerWatch(dict.fromkeys(names, closed_address), on_lost, timing=WatchTiming(**FAST))
    watch.start(names)
    assert done.wait(2)
    for thread in watch._threads:
        thread.join(1)
        assert thread.daemon and not thread.is_alive()


def test_what_is_under_way_is_waited_for(closed_address):
    begun, ended = threading.Event(), []

    def on_lost(name, why):
        begun.set()
        time.sleep(0.5)
        ended.append(name)

    watch = PeerWatch({"ps 0": closed_address}, on_lost, timing=WatchTiming(**FAST))
    watch.start(reached=["ps 0"])
    assert begun.wait(5)
    watch.join(0.05)
    assert not ended
    watch.join(5)
    assert ended == ["ps 0"]


def test_callbacks_that_fail_stay_in_the_watch(closed_address, watch, caplog):
    def fail(*_):
        raise KeyError("gone")

    told = threading.Event()
    lost = watch({"ps 0": closed_address}, has_left=fail, reached=["ps 0"])
    assert lost.get(timeout=2)[0] == "ps 0"  # a goodbye that cannot be read counts as not sent
    watch({"ps 1": closed_address}, reached=["ps 1"], on_lost=lambda *_: told.set() or fail())
    assert told.wait(2)
    time.sleep(0.1)
    assert "ps 1 is lost" in caplog.text


def test_many_peers_are_asked_less_often():
    def nobody(*_):
        raise AssertionError

    few, many = ({f"worker {n}": f"127.0.0.1:{n + 1}" for n in range(count)} for count in (10, 1000))
    assert PeerWatch(few, nobody)._interval == 0.5
    assert PeerWatch(many, nobody)._interval == 5.0  # four refusals still fit into 30 s


# --- one probe -------------------------------------------------------------------------------------------------------


def test_ipv6():
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with server:
        address = f"[::1]:{server.getsockname()[1]}"
        assert Target(address).probe().state == "open"
    assert Target(address).probe().state == "refused"


def test_a_name_with_two_addresses_needs_one_that_answers(monkeypatch):
    with socket.create_server(("127.0.0.2", 0)) as server:
        port = server.getsockname()[1]
        names(monkeypatch, {"both": ["127.0.0.1", "127.0.0.2"]})
        assert Target(f"both:{port}").probe().state == "open"
    assert Target(f"both:{port}").probe().state == "refused"


def names(monkeypatch, hosts):
    """A name server of the test's own: host names to addresses; a name that is missing does not resolve."""
    real = socket.getaddrinfo

    def lookup(host, port, *args, flags=0, **kwargs):
        if flags or host not in hosts:
            return real(host, port, *args, flags=flags | socket.AI_NUMERICHOST, **kwargs)
        return [entry for address in hosts[host] for entry in real(address, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def test_a_name_that_moves_is_followed(monkeypatch):
    hosts = {"peer": ["127.0.0.1"]}
    names(monkeypatch, hosts)
    with socket.create_server(("127.0.0.2", 0)) as server:
        target = Target(f"peer:{server.getsockname()[1]}")
        assert target.probe().state == "refused"
        hosts["peer"] = ["127.0.0.2"]
        assert target.probe().state == "open"
        del hosts["peer"]  # the name server is away: the last place counts
        assert target.probe().state == "open"


def test_a_name_server_that_hangs_costs_no_more_than_the_timeout(monkeypatch):
    names(monkeypatch, {"peer": ["127.0.0.1"]})
    quick, answering = socket.getaddrinfo, threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        known, unknown = (Target(f"peer:{server.getsockname()[1]}") for _ in range(2))
        assert known.probe().state == "open"

        answered = []

        def slow(host, port, *args, **kwargs):
            answering.wait(120)
            answered.append(host)
            return quick(host, port, *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", slow)
        assert known.probe(0.2).state == "open"
        assert unknown.probe(0.2).state == "unresolved"
        assert not answered  # neither probe has waited for the name server
        answering.set()
        assert unknown.probe(5).state == "open"


def test_a_name_that_does_not_resolve(monkeypatch):
    names(monkeypatch, {})
    answer = Target("nowhere:2222").probe()
    assert answer.state == "unresolved"
    assert answer.detail.startswith("the name nowhere does not resolve (")


@pytest.mark.parametrize(
    ("codes", "state"),
    [
        ([errno.ECONNREFUSED], "refused"),
        ([errno.ENETUNREACH, errno.ECONNREFUSED], "refused"),  # no IPv6 here; IPv4 has answered
        ([errno.ECONNREFUSED, errno.ETIMEDOUT], "silent"),
        ([errno.ENETUNREACH], "silent"),
        ([errno.EHOSTUNREACH, errno.ECONNREFUSED], "silent"),
        ([errno.EMFILE], "unknown"),  # our own file descriptors have run out
    ],
)
def test_verdicts(codes, state):
    assert peers._answer(codes).state == state


def test_a_connection_to_itself_is_none():
    """The kernel may choose the wanted port as our own: then nobody else is there."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.connect(own.getsockname())
        assert peers._is_self_connection(own)


def test_probes_leave_no_socket_open(listening_process, closed_address):
    for address in (listening_process.address, closed_address):
        assert Target(address).probe().state in ("open", "refused")
    # pytest turns the ResourceWarning of a socket that was left open into an error
