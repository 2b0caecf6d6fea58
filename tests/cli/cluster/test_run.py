"""`moxing run --workers N --ps M`: real jobs of small scripts that import no TensorFlow."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from helpers.launcher import moxing
from moxing.cli.cluster import isolation
from moxing.cli.cluster.run import Plan, make_log_directory
from moxing.framework.util.interfaces import open_interfaces

REASON = isolation.why_not()


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return path


def own_lines(text):
    """All but the warning of open ports, which depends on the machine."""
    return [line for line in text.splitlines() if line.startswith("moxing run: ") and "warning" not in line]


#: Reads its role, listens on its address as a server would, and waits until all others do.
MEETS_ALL = """
import argparse, socket, sys, time
parser = argparse.ArgumentParser()
for name in ('ps_hosts', 'worker_hosts', 'job_name', 'variable_update'):
    parser.add_argument('--' + name, default='')
parser.add_argument('--task_index', type=int)
parser.add_argument('--lr', type=float)
args = parser.parse_args()
hosts = {job: [h for h in getattr(args, job + '_hosts').split(',') if h] for job in ('ps', 'worker')}
host, port = hosts[args.job_name][args.task_index].split(':')
server = socket.create_server((host, int(port)))
for address in hosts['ps'] + hosts['worker']:
    host, port = address.split(':')
    for attempt in range(500):
        try:
            socket.create_connection((host, int(port))).close()
            break
        except OSError:
            time.sleep(0.05)
    else:
        sys.exit('cannot reach ' + address)
print('met', len(hosts['ps']), len(hosts['worker']), args.lr, args.variable_update or 'default')
time.sleep(1)  # the others are still coming
"""


@pytest.mark.parametrize(
    ("words", "names"),
    [(("--workers", "2", "--ps", "2"), ("worker 0", "worker 1", "ps 0", "ps 1")), (("--workers=1",), ("worker 0",))],
)
def test_every_process_has_its_role_and_a_free_port(tmp_path, words, names):
    write(tmp_path / "train.py", MEETS_ALL)
    result = moxing("run", *words, "--cluster_logs", "logs", "train.py", "--lr", "0.5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    workers, ps = sum("worker" in name for name in names), sum("ps" in name for name in names)
    met = f"met {ps} {workers} 0.5 default"
    assert sorted(result.stdout.splitlines()) == sorted(f"{name} | {met}" for name in names)
    for name in names:
        assert (tmp_path / "logs" / f"{name.replace(' ', '-')}.log").read_text() == f"{met}\n"
    assert len(list((tmp_path / "logs").iterdir())) == len(names)
    what = "2 workers and 2 ps" if ps else "1 worker"
    processes = f"all {len(names)} processes" if len(names) > 1 else "the process"
    assert [line for line in result.stderr.splitlines() if "warning" not in line] == [
        f"moxing run: {what} on this machine; logs: logs/",
        f"moxing run: {processes} ended well, without a restart; logs: logs/",
    ]
    assert result.stderr.count("add --isolate") == (1 if open_interfaces() and len(names) > 1 else 0)


def test_the_logs_have_a_directory_of_their_own_for_every_job(tmp_path):
    write(tmp_path / "train.py", "import sys; print('out'); print('err', file=sys.stderr)")
    for _ in range(2):
        result = moxing("run", "--workers", "1", "train.py", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        first, last = own_lines(result.stderr)
        path = re.search(r"logs: (moxing_cluster_logs/\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d(-\d)?/)$", first)[1]
        assert last.endswith(f"logs: {path}")
        assert sorted((tmp_path / path / "worker-0.log").read_text().split()) == ["err", "out"]
    assert len(list((tmp_path / "moxing_cluster_logs").iterdir())) == 2


def test_two_jobs_of_one_second_have_two_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len({make_log_directory(None) for _ in range(3)}) == 3


def test_without_ps_the_workers_update_collectively():
    for flags, expected in [
        ((), ["--variable_update=collective"]),
        (("--variable_update", "replicated"), ["--variable_update"]),
        (("--variable_update=replicated",), ["--variable_update=replicated"]),
    ]:
        for words in Plan(2, 0, ("train.py",), flags).commands().values():
            assert [word for word in words if word.startswith("--variable_update")] == expected
            assert not any(word.startswith("--ps_hosts") for word in words)
    for plan in (Plan(2, 1, ("train.py",)), Plan(1, 0, ("train.py",))):
        assert not any("variable_update" in word for words in plan.commands().values() for word in words)


def test_the_evaluator_knows_the_others():
    plan = Plan(2, 1, ("train.py",), evaluator=True)
    commands = plan.commands()
    assert list(commands) == ["ps 0", "worker 0", "worker 1", "evaluator 0"]
    assert commands["evaluator 0"][-2:] == ["--job_name=evaluator", "--task_index=0"]
    assert commands["evaluator 0"][:-2] == commands["ps 0"][:-2]
    assert (Plan(1, 0, ()).description, Plan(2, 1, ()).description) == ("1 worker", "2 workers and 1 ps")


def test_tf_config_of_the_launcher_is_not_that_of_its_processes(tmp_path):
    write(tmp_path / "train.py", "import os; print(os.environ.get('TF_CONFIG'))")
    result = moxing("run", "--workers=1", "train.py", cwd=tmp_path, env={**os.environ, "TF_CONFIG": "{}"})
    assert result.stdout == "worker 0 | None\n", result.stderr


def test_every_start_has_new_ports():
    plan = Plan(2, 1, ("train.py",))
    hosts = set()
    for _ in range(3):
        lines = {tuple(word for word in words if "_hosts=" in word) for words in plan.commands().values()}
        assert len(lines) == 1, "all processes know the same hosts"
        hosts |= lines
    assert len(hosts) == 3


def test_a_module_with_options_and_words_that_are_no_flags(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    write(package / "__init__.py", "")
    write(package / "train.py", "import sys\nprint(__name__, xrange(1), sys.argv[1:-1], sys.argv[-1])")
    result = moxing("run", "--workers=1", "--legacy", "x", "-m", "package.train", "a", "--", "b", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(
        r"worker 0 \| __main__ range\(0, 1\) \['a', '--worker_hosts=127.0.0.1:\d+', '--job_name=worker', "
        r"'--task_index=0', '--'\] b\n",
        result.stdout,
    )
    write(tmp_path / "-train.py", "print('dash')")
    assert moxing("run", "--workers=1", "--", "-train.py", cwd=tmp_path).stdout == "worker 0 | dash\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--workers", "0", "a.py"], "--workers 0: expected 1 or more"),
        (["--workers", "two", "a.py"], "argument --workers: invalid int value: 'two'"),
        (["--workers=2", "--ps", "-1", "a.py"], "--ps -1: expected 0 or more"),
        (["--workers=2", "--max_restarts=-1", "a.py"], "--max_restarts -1: expected 0 or more"),
        (["--ps", "1", "a.py"], "--ps 1: give --workers too"),
        (["--max_restarts", "0", "a.py"], "--max_restarts 0: give --workers too"),
        (["--cluster_logs", "x", "a.py"], "--cluster_logs x: give --workers too"),
        (["--isolate", "a.py"], "--isolate: give --workers too"),
        (["--evaluator", "a.py"], "--evaluator: it is a process of a job of tf.estimator.train_and_evaluate"),
        (["--workers=2", "--evaluator", "a.py"], "--evaluator without --ps: "),
        (["--workers=2", "--ps=0", "--evaluator", "a.py"], "give --workers and --ps too"),
        (["--workers=2", "a.py", "--ps_hosts=h:1"], "--ps_hosts among the script's flags"),
        (["--workers=2", "a.py", "x", "--worker_hosts", "h:1"], "--worker_hosts among the script's flags"),
        (["--workers=2", "a.py", "-job_name=ps"], "--job_name among the script's flags"),
        (["--workers=2", "-m", "json", "--task_index", "1"], "--task_index among the script's flags"),
        (["--workers=2", "a.py", "--controller_host=h:1"], "--controller_host among the script's flags"),
        (["--worker", "2", "a.py"], "unrecognized arguments: --worker"),
        (["--workers=2", "no_such.py"], "there is no script 'no_such.py' in "),
        (
            ["--workers=2", "--cluster_logs", "a.py/logs", "a.py"],
            "--cluster_logs a.py/logs: cannot write the logs",
        ),
        (["--workers", "2"], "give the script to run"),
    ],
)
def test_wrong_options_are_named(tmp_path, words, error):
    write(tmp_path / "a.py", "open('ran', 'w')")
    result = moxing("run", *words, cwd=tmp_path)
    assert result.returncode == 2
    assert error in result.stderr
    assert os.listdir(tmp_path) == ["a.py"]


def test_the_launcher_imports_no_tensorflow(tmp_path):
    write(tmp_path / "train.py", "print('done')")
    code = """
    import sys
    from moxing.cli.main import main
    assert main(['run', '--workers', '2', 'train.py']) == 0
    assert not {'tensorflow', 'numpy', 'moxing.tensorflow'} & set(sys.modules)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["worker 0 | done", "worker 1 | done"]


def test_the_options_are_in_the_help(tmp_path):
    text = moxing("run", "--help", cwd=tmp_path).stdout
    for option in ("--workers N", "--ps N", "--max_restarts N", "--cluster_logs DIR", "--isolate"):
        assert text.count(option) == 2, option


#: Counts its lives in files; the first one is long.
LIVES = """
import os, sys, time
job, index = [word.split('=')[1] for word in sys.argv[-2:]]
life = 1
while os.path.exists('%s-%s-%d' % (job, index, life)):
    life += 1
with open('%s-%s-%d' % (job, index, life), 'w') as file:
    file.write(' '.join(word for word in sys.argv if '_hosts=' in word))
print('life', life, 'pid', os.getpid())
time.sleep(60 if life == 1 else 0.2)
"""


def test_kill_9_restarts_the_job_with_new_ports(tmp_path):
    write(tmp_path / "train.py", LIVES)
    words = ["--workers", "2", "--ps", "1", "--cluster_logs", "logs", "train.py"]
    job = subprocess.Popen(
        [sys.executable, "-m", "moxing", "run", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = {}
    while len(pids) < 3:
        name, text = job.stdout.readline().strip().split(" | ")
        pids[name] = int(text.removeprefix("life 1 pid "))
    os.kill(pids["worker 1"], signal.SIGKILL)
    output, errors = job.communicate(timeout=60)
    assert job.returncode == 0, errors
    assert own_lines(errors)[1:] == [
        "moxing run: worker 1 was killed by SIGKILL; restart 1 of 3 of the whole job",
        "moxing run: all 3 processes ended well, after 1 restart; logs: logs/",
    ]
    assert sorted(line.split(" pid")[0] for line in output.splitlines()) == [
        f"{name} | life 2" for name in ("ps 0", "worker 0", "worker 1")
    ]
    hosts = {life: (tmp_path / f"worker-0-{life}").read_text() for life in (1, 2)}
    assert hosts[1] != hosts[2]
    assert not (tmp_path / "worker-0-3").exists()
    log = (tmp_path / "logs" / "worker-1.log").read_text()
    assert re.fullmatch(r"life 1 pid \d+\n--- start 2 ---\nlife 2 pid \d+\n", log)


def test_restarts_come_to_an_end(tmp_path):
    write(tmp_path / "train.py", "import sys; sys.exit(int(sys.argv[-1][-1]) * 7)")
    result = moxing("run", "--workers", "2", "--max_restarts", "1", "--cluster_logs", "logs", "train.py", cwd=tmp_path)
    assert result.returncode == 7
    assert own_lines(result.stderr)[1:] == [
        "moxing run: worker 1 ended with exit code 7; restart 1 of 1 of the whole job",
        "moxing run: worker 1 ended with exit code 7; no restart is left of --max_restarts=1; "
        "its log is logs/worker-1.log",
    ]


@pytest.mark.parametrize(
    ("error", "code", "starts"), [("FlagError", 2, 1), ("RoleError", 2, 1), ("ScriptFlagError", 1, 2)]
)
def test_a_wrong_flag_is_not_restarted(tmp_path, error, code, starts):
    """A script's own mistake is, as any other of its errors."""
    write(
        tmp_path / "train.py",
        f"""
        from moxing.framework import flags
        class RoleError(flags.FlagError): pass
        class FlagError(flags.FlagError): pass
        ScriptFlagError = flags.ScriptFlagError
        print('start')
        raise {error}("--sync_replicas='maybe': expected True or False.")
        """,
    )
    result = moxing("run", "--workers", "1", "--max_restarts", "1", "train.py", cwd=tmp_path)
    assert result.returncode == code
    assert result.stdout == "worker 0 | start\n" * starts
    message = "moxing run: error: --sync_replicas='maybe': expected True or False."
    assert (f"worker 0 | {message}\n" in result.stderr) is (code == 2)
    assert ("Traceback" in result.stderr) is (code == 1)
    assert ("the job is not restarted" in result.stderr) is (code == 2)


def test_ctrl_c_ends_all(tmp_path):
    write(
        tmp_path / "train.py",
        """
        import sys, time
        print('up')
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            print('saved')
            raise
        """,
    )
    job = subprocess.Popen(
        [sys.executable, "-m", "moxing", "run", "--workers", "2", "--ps", "1", "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert sorted(job.stdout.readline() for _ in range(3)) == ["ps 0 | up\n", "worker 0 | up\n", "worker 1 | up\n"]
    time.sleep(0.1)
    os.kill(job.pid, signal.SIGINT)
    output, errors = job.communicate(timeout=30)
    assert job.returncode == 130
    assert sorted(output.splitlines()) == ["ps 0 | saved", "worker 0 | saved", "worker 1 | saved"]
    assert "worker 0 | KeyboardInterrupt" in errors
    assert len(own_lines(errors)) == 2 and "SIGINT: the workers have 30 s" in own_lines(errors)[1]


@pytest.mark.skipif(REASON is not None, reason=f"no private network here: {REASON}")
def test_an_isolated_cluster_talks_to_itself_only(tmp_path):
    write(
        tmp_path / "train.py",
        """
        import os, socket, sys
        sys.argv, outside = sys.argv[:1] + sys.argv[2:], int(sys.argv[1])
        try:
            socket.create_connection(('127.0.0.1', outside), timeout=5)
            print('outside')
        except OSError:
            print('alone', [name for _, name in socket.if_nameindex()])
        """
        + textwrap.indent(MEETS_ALL, " " * 8),
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        result = moxing("run", "--workers", "2", "--ps", "1", "--isolate", "train.py", port, "--lr=1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [
        f"{name} | {text}"
        for name in ("ps 0", "worker 0", "worker 1")
        for text in ("alone ['lo']", "met 1 2 1.0 default")
    ]
    assert "on this machine, in a private network" in result.stderr and "warning" not in result.stderr


def test_a_refused_isolation_gives_the_reason(tmp_path):
    write(tmp_path / "train.py", "open('ran', 'w')")
    code = """
    import sys
    from moxing.cli import main
    from moxing.cli.cluster import isolation
    isolation.why_not = lambda: 'the kernel says no'
    sys.exit(main.main(['run', '--workers', '2', '--isolate', 'train.py']))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stderr) == (2, "moxing run: error: --isolate: the kernel says no.\n")
    assert os.listdir(tmp_path) == ["train.py"]
