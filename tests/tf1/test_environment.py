"""Importing TensorFlow quietly: what is dropped from standard error, and what is not."""

import os
import subprocess
import sys
import textwrap

NOISE = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1794777271.671663    3588 cudart_stub.cc:31] Could not find cuda drivers on your machine.\n"
    b"2026-01-01 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.\n"
    b"To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow.\n"
)


def run(body):
    code = f"""
import os, sys
from moxing.tf1 import environment
NOISE = {NOISE!r}
{textwrap.dedent(body)}
"""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=settings)


def test_only_the_start_up_lines_are_dropped():
    result = run("""
        with environment.without_start_up_lines():
            os.write(2, NOISE)
            print('mine', file=sys.stderr)
            os.write(2, b'E0000 00:00:1.1 2 file.cc:3] a true error\\n')
        os.write(2, b'after\\n')
    """)
    assert result.stderr == b"mine\nE0000 00:00:1.1 2 file.cc:3] a true error\nafter\n"


def test_everything_is_shown_when_the_import_fails():
    result = run("""
        with environment.without_start_up_lines():
            os.write(2, NOISE)
            raise ImportError('the reason')
    """)
    assert result.stderr.startswith(NOISE) and b"the reason" in result.stderr


def test_a_process_without_standard_error():
    result = run("""
        os.close(2)
        with environment.without_start_up_lines():
            pass
        print('done')
    """)
    assert result.stdout == b"done\n"


def test_import_tensorflow_is_quiet():
    result = run("""
        tensorflow = environment.import_tensorflow()
        assert environment.import_tensorflow() is tensorflow
        graph = tensorflow.Graph()
        with tensorflow.compat.v1.Session(graph=graph):
            print(tensorflow.__name__)
    """)
    assert result.stdout == b"tensorflow\n", result.stderr
    assert result.stderr == b""
