"""§1.3.3 of the manual: its four command lines, as they stand but for paths and ports, are a cluster that trains."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from helpers.launcher import enabled_python
from moxing.cli.cluster.launcher import free_ports

SEEDS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds"
SCRIPTS = SEEDS / "scripts"
ROLES = ("PS-0", "PS-1", "Worker-0", "Worker-1")

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not SCRIPTS.is_dir(), reason=f"the manual's programs are not at {SCRIPTS}"),
]


def command_lines(replacements: dict[str, str]) -> dict[str, list[str]]:
    """The manual's commands by the names that it gives them; every text to be replaced must be there."""
    (manual,) = SEEDS.glob("002_*.txt")
    commands = {}
    for role in ROLES:
        text = re.search(rf"^{role}:\n```shell\n(.*?)```", manual.read_text(), re.M | re.S).group(1)
        for old, new in replacements.items():
            assert old in text, old
            text = text.replace(old, new)
        commands[role] = shlex.split(text.replace("\\\n", " "))
    return commands


@pytest.mark.slow
def test_the_four_command_lines_train_to_the_end(tmp_path, real_data):
    for name in ("train_tf_mnist.py", "eval_tf_mnist.py"):
        shutil.copy(SCRIPTS / name, tmp_path)
    log = tmp_path / "log"
    python = enabled_python(tmp_path / "env")
    ports = {f":{old}": f":{new}" for old, new in zip(range(2222, 2226), free_ports(4), strict=True)}
    paths = {"/tmp/tensorflow/mnist/input_data": str(real_data / "mnist"), "/tmp/tensorflow/mnist/output_log": str(log)}
    commands = command_lines({**paths, **ports})
    processes: dict[str, subprocess.Popen] = {}
    with contextlib.ExitStack() as files:
        try:
            for role, words in commands.items():
                assert words[0] == "python"
                output = files.enter_context((tmp_path / f"{role}.log").open("wb"))
                processes[role] = subprocess.Popen(
                    [str(python), *words[1:]], cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT
                )
            until = time.monotonic() + 240
            for process in processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
    outputs = {role: (tmp_path / f"{role}.log").read_text() for role in ROLES}
    assert {role: process.returncode for role, process in processes.items()} == dict.fromkeys(ROLES, 0), outputs
    # 2,750 batches over two workers of two towers: 687 steps of four, and one of the two that are left.
    for role in ("Worker-0", "Worker-1"):
        assert "step: 687(global step: 687)" in outputs[role], outputs[role]
        assert "step: 688(" not in outputs[role]
        assert "Traceback" not in outputs[role], outputs[role]
    reader = tf.train.load_checkpoint(str(log))
    assert set(reader.get_variable_to_shape_map()) == {"W", "b", "global_step"}
    assert reader.get_tensor("global_step") == 688
    evaluation = [python, "eval_tf_mnist.py", f"--data_url={real_data / 'mnist'}", f"--train_url={log}"]
    done = subprocess.run(evaluation, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    accuracy = float(re.search(r"\[EVAL\] .*samples: 10000\taccuracy: ([0-9.]+)", done.stdout + done.stderr).group(1))
    assert accuracy >= 0.9
