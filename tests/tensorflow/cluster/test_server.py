"""The server of a process: what can be wrong at its start, what processes tell each other, and how they part."""

from __future__ import annotations

import re
import socket
import sys
import threading

import pytest
import tensorflow.compat.v1 as tf
from jobs import SCRIPT, ended, job, saved_steps, start
from linear_job import Training
from servers import two_servers

import moxing.tensorflow as mox
from moxing.cli.cluster.launcher import free_ports
from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import server
from moxing.tensorflow.cluster.waiting import PeerLostError

# --- errors at the start ----------------------------------------------------------------------------------------------

WRONG = {
    "task_index": (["--worker_hosts=a:1,b:1", "--job_name=worker", "--task_index=2"], "task_index=2.*0.*1"),
    "duplicate": (["--worker_hosts=a:1,a:1", "--job_name=worker"], "a:1"),
    "no ps_hosts": (["--worker_hosts=a:1,b:1", "--job_name=ps"], "ps_hosts"),
}


@pytest.mark.parametrize(("flags", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_flags_are_errors_at_the_start(monkeypatch, flags, message):
    monkeypatch.setattr(sys, "argv", ["train.py", *flags])
    FLAGS.reset()
    with pytest.raises(ValueError, match=message):
        mox.run(
            input_fn=lambda mode: tf.constant(0.0),
            model_fn=lambda inputs, mode: mox.ModelSpec(loss=tf.get_variable("w", [])),
            optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1),
            run_mode=mox.ModeKeys.TRAIN,
            batch_size=1,
            max_number_of_steps=1,
        )


def test_a_port_in_use_names_its_user(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        flags = [f"--worker_hosts=127.0.0.1:{port},127.0.0.1:{free_ports(1)[0]}", "--job_name=worker"]
        log = ended(start(tmp_path, "worker 0", flags, environment={"JOB": Training().text()}))
    assert re.search(rf"ValueError: port {port} of worker 0 is in use on this machine: process \d+", log), log


def test_a_protocol_that_is_not_there(tmp_path):
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    flags = [f"--worker_hosts={hosts}", "--job_name=worker", "--server_protocol=grpc+verbs"]
    log = ended(start(tmp_path, "worker 0", flags, environment={"JOB": Training().text()}))
    assert "FlagError: --server_protocol=grpc+verbs: this TensorFlow has no such protocol" in log


LESS_PATIENT = """
import runpy
from moxing.tensorflow.cluster import connectivity
connectivity.WAIT_MESSAGE_AFTER = 0.5
runpy.run_path({script!r}, run_name='__main__')
"""


@pytest.mark.slow
def test_a_peer_that_never_comes(tmp_path):
    """After a while the log says who is missing and why; --session_timeout makes an end of it."""
    script = tmp_path / "train.py"
    script.write_text(LESS_PATIENT.format(script=str(SCRIPT)))
    ports = free_ports(3)
    flags = [
        f"--ps_hosts=127.0.0.1:{ports[0]}",
        f"--worker_hosts=127.0.0.1:{ports[1]},127.0.0.1:{ports[2]}",
        "--job_name=worker",
        "--session_timeout=3",
    ]
    log = ended(start(tmp_path, "worker 0", flags, script, {"JOB": Training().text()}))
    warning, error = log.split("Traceback", 1)
    assert "WARNING:tensorflow:worker 0 is waiting." in warning
    for text in (warning, error):
        for name, port in (("ps 0", ports[0]), ("worker 1", ports[2])):
            assert re.search(rf"{name}.*127\.0\.0\.1:{port}.*connection refused", text), text
    assert "--session_timeout=3: after 3 s" in error


# --- what the processes tell each other -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    with two_servers() as servers:
        yield servers


def test_the_peers_are_waited_for_once(pair):
    for one in pair:
        one.wait_for_peers()  # a script's second run


def test_a_loss_interrupts_and_is_named(pair, monkeypatch):
    chief, _ = pair
    left, interrupted = threading.Event(), []
    monkeypatch.setattr(server, "_exit_later", left.set)
    try:
        with chief.on_peer_lost(lambda: interrupted.append(True)):
            chief._on_lost("worker 1", "its port refuses connections")
        assert interrupted == [True]
        assert left.wait(10)
        for call in (chief.check, chief.wait_for_peers, lambda: chief.messages.receive("never")):
            with pytest.raises(PeerLostError, match="worker 1 was lost: its port refuses.*worker 0 ends as well"):
                call()
    finally:
        chief.loss = None


@pytest.mark.parametrize("supervised", [False, True])
def test_under_a_supervisor_there_is_no_advice(pair, monkeypatch, caplog, supervised):
    """The supervisor starts the job again, and has warned of open ports, once for all."""
    monkeypatch.setenv("MOXING_SUPERVISED", "1" if supervised else "")
    monkeypatch.setattr(server, "_exit_later", lambda: None)
    monkeypatch.setattr(server, "open_interfaces", lambda: ["192.0.2.1"])
    chief, _ = pair
    try:
        chief._on_lost("worker 1", "it died")
        assert ("Start the job again" in chief.loss) is not supervised
    finally:
        chief.loss = None
    caplog.clear()
    with caplog.at_level("WARNING", "tensorflow"):
        server._warn_about_open_port(chief.role)
    assert ("`moxing run --workers N --isolate`" in caplog.text) is not supervised


# --- a process that fails ---------------------------------------------------------------------------------------------

FAILS = """
import runpy, sys
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

real = mox.run


def run(model_fn, **arguments):
    def failing(inputs, mode):
        if mox.get_flag('task_index') == 1 and {where!r} == 'model_fn':
            raise KeyError('a bug of the script')
        spec = model_fn(inputs, mode)
        if mox.get_flag('task_index') == 1:
            spec.hooks = [Fails()]
        return spec
    return real(model_fn=failing, **arguments)


class Fails(tf.train.SessionRunHook):
    steps = 0

    def after_run(self, context, values):
        self.steps += 1
        if self.steps == 5:
            raise KeyError('a bug of the script')


mox.run = run
try:
    runpy.run_path({script!r}, run_name='__main__')
except KeyError:
    if {caught!r}:
        sys.exit(3)
    raise
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ps", "where", "caught"),
    [
        pytest.param(1, "model_fn", False, id="model_fn in sync"),
        pytest.param(0, "hook", False, id="hook in collective", marks=pytest.mark.slow),
        pytest.param(1, "hook", True, id="caught, hook in sync", marks=pytest.mark.slow),
        pytest.param(0, "model_fn", True, id="caught, model_fn in collective"),
    ],
)
def test_an_error_in_one_worker_ends_all(tmp_path, ps, where, caught):
    """Also where the script catches it and ends in good order: in the middle of a run that is no goodbye."""
    script = tmp_path / "train.py"
    linear = str(SCRIPT)
    script.write_text(FAILS.format(script=linear, where=where, caught=caught))
    training = Training(epochs=-1, log_dir=str(tmp_path / "log"))
    with job(tmp_path, 2, ps, [], training, script) as running:
        codes = running.wait(60)
    assert codes["worker 1"] == (3 if caught else 1), running.logs
    for name in codes:
        if name != "worker 1":
            assert codes[name] == 1, running.logs
            assert "worker 1 was lost" in running[name].log
    assert saved_steps(tmp_path / "log")[:1] in ([], [0])
