"""The supervisor of a job: real processes, little timeouts."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from moxing.cli.cluster.launcher import Timeouts, free_ports

#: Runs a job whose processes are the scripts on its command line: `name=script`.
DRIVER = """
import sys
from pathlib import Path
from moxing.cli.cluster.launcher import Timeouts, Supervisor
commands = {}
for word in sys.argv[3:]:
    name, _, script = word.partition('=')
    commands[name] = [sys.executable, '-c', script]
timeouts = Timeouts(*map(float, sys.argv[2].split(',')))
supervisor = Supervisor(lambda: commands, Path('.'), int(sys.argv[1]), timeouts)
sys.exit(supervisor.run())
"""
SLEEP = "import time; time.sleep(60)"
#: Says that it is up, and does not hear SIGTERM and Ctrl-C.
DEAF = """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: print('heard', signal.Signals(number).name))
print('up')
end = time.time() + 60
while time.time() < end:
    time.sleep(0.1)
"""


def command(processes, restarts=0, timeouts="20,20,20,0.2"):
    scripts = [f"{name}={textwrap.dedent(script)}" for name, script in processes.items()]
    return [sys.executable, "-c", DRIVER, str(restarts), timeouts, *scripts]


def run(cwd, processes, **kwargs):
    return subprocess.run(
        command(processes, **kwargs), cwd=cwd, capture_output=True, encoding="utf-8", errors="replace", timeout=60
    )


class Background:
    """A running job, whose lines of standard output are read one by one."""

    def __init__(self, cwd, processes, **kwargs):
        self.popen = subprocess.Popen(
            command(processes, **kwargs),
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # That lines come when they are printed is the launcher's work.
            env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
            # Ignored signals are inherited, from a nohup for instance, and the launcher leaves those alone.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def wait_for(self, *wanted):
        missing = set(wanted)
        while missing:
            line = self.popen.stdout.readline()
            if not line:
                pytest.fail(f"no {missing}: {self.popen.communicate()}")
            missing.discard(line.strip())

    def end(self):
        output, errors = self.popen.communicate(timeout=40)
        return self.popen.returncode, output, errors


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_ports_are_free_and_different():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    for port in ports[:5]:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_the_timeouts_of_the_documentation():
    assert Timeouts() == Timeouts(stop=30, failure=10, farewell=20, notice=5)


def test_a_job_that_ends_well(tmp_path):
    result = run(
        tmp_path, {"worker 0": "print('a')", "worker 1": "import sys; print('b', file=sys.stderr)", "ps 0": "pass"}
    )
    assert (result.returncode, result.stdout, result.stderr) == (
        0,
        "worker 0 | a\n",
        "worker 1 | b\nmoxing run: all 3 processes ended well, without a restart; logs: ./\n",
    )


def test_an_evaluator_may_take_longer_than_the_work(tmp_path):
    """The ps has 0.1 s to end after the work, which begins when the evaluator has ended."""
    evaluator = "import time; time.sleep(1); print('evaluated')"
    result = run(tmp_path, {"worker 0": "pass", "evaluator 0": evaluator, "ps 0": SLEEP}, timeouts="20,20,0.1,0.2")
    assert (result.returncode, result.stdout) == (0, "evaluator 0 | evaluated\n")


def test_an_evaluator_that_dies_after_the_work_is_started_again(tmp_path):
    evaluator = """
    import os, signal
    if not os.path.exists('first'):
        open('first', 'w').close()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    result = run(tmp_path, {"worker 0": "pass", "evaluator 0": evaluator}, restarts=1)
    assert result.returncode == 0, result.stderr
    assert "evaluator 0 was killed by SIGKILL; restart 1 of 1 of the whole job" in result.stderr


def test_lines_of_busy_processes_are_whole(tmp_path):
    script = """
    import os
    for number in range(2000):
        for part in (b'line', b' %d ' % number, b'x' * 50, b'\\n'):
            os.write(1, part)
    """
    result = run(tmp_path, {f"worker {index}": script for index in range(3)})
    for index in range(3):
        lines = [line for line in result.stdout.splitlines() if line.startswith(f"worker {index} | ")]
        assert lines == [f"worker {index} | line {number} {'x' * 50}" for number in range(2000)]
    assert len(result.stdout.splitlines()) == 6000


def test_logs_are_the_bytes_as_they_were(tmp_path):
    script = "import os; os.write(1, b'10%\\r20%\\r\\xff\\r\\nno end'); os.write(2, b'!')"
    run(tmp_path, {"worker 0": script})
    assert sorted((tmp_path / "worker-0.log").read_bytes()) == sorted(b"10%\r20%\r\xff\r\nno end!")
    run(tmp_path, {"worker 0": "print('again')"})
    assert (tmp_path / "worker-0.log").read_bytes().endswith(b"--- start 1 ---\nagain\n")


def test_the_others_are_ended_and_the_first_decides(tmp_path):
    """The exit codes of those that were told to end do not count."""
    late = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(99)); print('up', flush=True);"
    scripts = {
        "worker 0": late + "open('up', 'w').close(); time.sleep(60)",
        "worker 1": "import os, sys, time\nwhile not os.path.exists('up'): time.sleep(0.02)\nsys.exit(4)",
        "ps 0": SLEEP,
    }
    start = time.monotonic()
    result = run(tmp_path, scripts)
    assert result.returncode == 4
    assert time.monotonic() - start < 15
    assert result.stderr == (
        "moxing run: worker 1 ended with exit code 4; no restart is left of --max_restarts=0; its log is worker-1.log\n"
    )


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL;"),
        ("os.abort()", 134, "was killed by SIGABRT;"),
        ("raise ValueError('inside')", 1, "ended with exit code 1;"),
        ("os.kill(os.getpid(), 40)", 168, "was killed by signal 40;"),
    ],
)
def test_how_a_process_ended(tmp_path, end, code, words):
    result = run(tmp_path, {"ps 0": f"import os; {end}", "worker 0": SLEEP})
    assert result.returncode == code
    assert f"moxing run: ps 0 {words}" in result.stderr


def test_a_death_restarts_the_whole_job(tmp_path):
    counted = """
    import os, time
    open('{name}.%d' % time.monotonic_ns(), 'w').close()
    time.sleep(0.1)
    if '{name}' == 'dies' and len([f for f in os.listdir('.') if f.startswith('dies')]) < 3:
        os.kill(os.getpid(), 9)
    if '{name}' == 'waits':
        while len([f for f in os.listdir('.') if f.startswith('dies')]) < 3: time.sleep(0.02)
    """
    scripts = {"worker 0": counted.format(name="waits"), "worker 1": counted.format(name="dies")}
    result = run(tmp_path, scripts, restarts=3)
    assert result.returncode == 0, result.stderr
    assert result.stderr == (
        "moxing run: worker 1 was killed by SIGKILL; restart 1 of 3 of the whole job\n"
        "moxing run: worker 1 was killed by SIGKILL; restart 2 of 3 of the whole job\n"
        "moxing run: all 2 processes ended well, after 2 restarts; logs: ./\n"
    )
    assert len([name for name in os.listdir(tmp_path) if name.startswith("waits")]) == 3
    for name in ("worker-0.log", "worker-1.log"):
        assert (tmp_path / name).read_text() == "--- start 2 ---\n--- start 3 ---\n"


#: Ends by itself a second after the death of `dies`, and says who ended it.
NOTICES = """
import os, signal, sys, time
def told(number, frame):
    print('told')
    sys.exit(1)
signal.signal(signal.SIGTERM, told)
open('{name}', 'w').close()
while not os.path.exists('dead'):
    time.sleep(0.02)
time.sleep({seconds})
print('noticed')
sys.exit(1)
"""
DIES = """
import os, time
while not (os.path.exists('a') and os.path.exists('b')):
    time.sleep(0.02)
open('dead', 'w').close()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("seconds", "says"), [(1.0, "noticed"), (30, "told")])
def test_survivors_have_time_to_notice_a_death_by_themselves(tmp_path, seconds, says):
    """Who is ended at once may take another survivor, ended just before, for the dead one."""
    scripts = {
        "ps 0": NOTICES.format(name="a", seconds=seconds),
        "worker 0": NOTICES.format(name="b", seconds=seconds),
        "worker 1": DIES,
    }
    result = run(tmp_path, scripts, timeouts="20,20,20,3")
    assert result.returncode == 137
    assert sorted(result.stdout.splitlines()) == [f"ps 0 | {says}", f"worker 0 | {says}"]


def test_a_wrong_command_line_is_not_waited_for(tmp_path):
    begun = time.monotonic()
    result = run(tmp_path, {"worker 0": "raise SystemExit(2)", "worker 1": SLEEP}, timeouts="20,20,20,30")
    assert result.returncode == 2 and time.monotonic() - begun < 20


def test_processes_know_that_they_are_supervised(tmp_path):
    result = run(tmp_path, {"worker 0": "import os; print(os.environ['MOXING_SUPERVISED'])"})
    assert result.stdout == "worker 0 | 1\n"
    assert result.stderr == "moxing run: the process ended well, without a restart; logs: ./\n"


def test_restarts_are_limited_and_a_wrong_command_line_is_not_restarted(tmp_path):
    result = run(tmp_path, {"worker 0": "import sys; print('life'); sys.exit(5)"}, restarts=2)
    assert result.returncode == 5
    assert result.stdout == "worker 0 | life\n" * 3
    assert "no restart is left of --max_restarts=2" in result.stderr
    result = run(tmp_path, {"worker 0": "import sys; print('life'); sys.exit(2)"}, restarts=2)
    assert result.returncode == 2
    assert result.stdout == "worker 0 | life\n"
    assert "a wrong command line: the job is not restarted" in result.stderr


def test_servers_end_when_the_work_is_done(tmp_path):
    """One ends by itself, one at SIGTERM, one not even then: all count as ended well."""
    scripts = {
        "ps 0": "import time; print('up'); time.sleep(0.4); print('by itself')",
        "ps 1": SLEEP,
        "ps 2": DEAF,
        "worker 0": "import time; time.sleep(0.3)",
    }
    result = run(tmp_path, scripts, timeouts="20,0.5,1,0.2")
    assert result.returncode == 0
    assert "ps 0 | by itself\n" in result.stdout
    assert "ps 2 | heard SIGTERM\n" in result.stdout
    assert result.stderr == (
        "moxing run: ps 2 did not end within 0.5 s and is killed\n"
        "moxing run: all 4 processes ended well, without a restart; logs: ./\n"
    )


def test_a_server_that_fails_after_the_work_is_not_restarted(tmp_path):
    result = run(tmp_path, {"ps 0": "import sys, time; time.sleep(1); sys.exit(6)", "worker 0": "pass"}, restarts=3)
    assert result.returncode == 6
    assert result.stderr == (
        "moxing run: ps 0 ended with exit code 6, after all workers had ended well; its log is ps-0.log\n"
    )


SAVES = """
import signal, sys, time
def save(number, frame):
    time.sleep(0.3)
    print('saved', number)
    sys.exit(128 + number)
signal.signal(signal.SIGINT, save)
signal.signal(signal.SIGTERM, save)
print('up')
time.sleep(60)
"""


@pytest.mark.parametrize(("sent", "passed", "code"), [("SIGINT", 2, 130), ("SIGTERM", 15, 143), ("SIGHUP", 15, 143)])
def test_a_signal_ends_the_workers_before_the_servers(tmp_path, sent, passed, code):
    job = Background(tmp_path, {"ps 0": SAVES, "worker 0": SAVES, "worker 1": SAVES}, restarts=3)
    job.wait_for("ps 0 | up", "worker 0 | up", "worker 1 | up")
    job.popen.send_signal(getattr(signal, sent))
    result, output, errors = job.end()
    assert result == code
    lines = output.splitlines()
    assert sorted(lines[:2]) == [f"worker 0 | saved {passed}", f"worker 1 | saved {passed}"]
    assert lines[2:] == [f"ps 0 | saved {passed}"]
    assert "the workers have 20 s to save and end; a second Ctrl-C kills them at once" in errors
    assert "restart" not in errors and "ended well" not in errors


def test_who_does_not_end_is_killed(tmp_path):
    job = Background(tmp_path, {"worker 0": DEAF, "worker 1": SAVES}, timeouts="1,20,20,0.2")
    job.wait_for("worker 0 | up", "worker 1 | up")
    job.popen.send_signal(signal.SIGTERM)
    code, output, errors = job.end()
    assert code == 137
    assert "worker 0 | heard SIGTERM" in output and "worker 1 | saved 15" in output
    assert "worker 0 did not end within 1 s and is killed" in errors


def test_a_second_interrupt_kills_at_once(tmp_path):
    job = Background(tmp_path, {"worker 0": DEAF, "ps 0": DEAF})
    job.wait_for("worker 0 | up", "ps 0 | up")
    start = time.monotonic()
    job.popen.send_signal(signal.SIGINT)
    job.wait_for("worker 0 | heard SIGINT")
    job.popen.send_signal(signal.SIGINT)
    assert job.end()[0] == 137
    assert time.monotonic() - start < 10


def test_an_interrupt_while_the_job_restarts(tmp_path):
    """The survivor of a death takes its time; the user does not want to see another start."""
    dies = "import os, time\nwhile not os.path.exists('up'): time.sleep(0.02)\nos.kill(os.getpid(), 9)"
    job = Background(tmp_path, {"worker 0": DEAF, "worker 1": dies}, restarts=3, timeouts="20,3,20,0.2")
    job.wait_for("worker 0 | up")
    (tmp_path / "up").touch()
    job.wait_for("worker 0 | heard SIGTERM")
    job.popen.send_signal(signal.SIGINT)
    code, output, errors = job.end()
    assert code == 137
    assert "up" not in output
    assert errors.count("restart") == 1


FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print(child.pid)
"""


def test_nothing_that_a_dead_process_started_stays(tmp_path):
    dies = FAMILY + "while not os.path.exists('ready'): time.sleep(0.02)\nos.kill(os.getpid(), 9)"
    job = Background(tmp_path, {"worker 0": dies, "worker 1": FAMILY + "time.sleep(60)"})
    pids = [int(job.popen.stdout.readline().split("|")[1]) for _ in range(2)]
    assert all(is_running(pid) for pid in pids)
    (tmp_path / "ready").touch()
    assert job.end()[0] == 137
    time.sleep(0.2)
    assert not any(is_running(pid) for pid in pids)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's signal at a parent's death")
def test_no_process_survives_the_launcher(tmp_path):
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    job = Background(tmp_path, {"worker 0": script, "worker 1": script, "ps 0": script})
    pids = [int(job.popen.stdout.readline().split("|")[1]) for _ in range(3)]
    assert all(is_running(pid) for pid in pids)
    job.popen.kill()
    job.end()
    end = time.monotonic() + 10
    while any(is_running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(is_running(pid) for pid in pids)


def test_the_job_ends_when_nobody_reads_its_output(tmp_path):
    job = Background(tmp_path, {"worker 0": "import time\nwhile True: print('x'); time.sleep(0.01)"})
    job.wait_for("worker 0 | x")
    job.popen.stdout.close()
    assert job.popen.wait(timeout=30) == 141
    assert job.popen.stderr.read() == ""
    job.popen.stderr.close()


def test_a_full_disk_does_not_end_the_job(tmp_path):
    os.symlink("/dev/full", tmp_path / "worker-0.log")
    result = run(tmp_path, {"worker 0": "print('a'); print('b')"})
    assert (result.returncode, result.stdout) == (0, "worker 0 | a\nworker 0 | b\n")
    assert result.stderr.count("warning: worker-0.log: No space left on device") == 1
