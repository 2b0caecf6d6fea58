"""The manual's pitfalls of the command line (its headings 2-1-1 to 2-4-3), in one script that meets them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.launcher import warm_moxing

SCRIPT = """
import argparse
import json

import tensorflow as tf

tf.flags.DEFINE_string(name='int_list', default='0,1,2', help=None)
tf.flags.DEFINE_string(name='given_list', default='0,1,2', help=None)
tf.flags.DEFINE_string('data_url', default='s3://xxx', help=None)
tf.flags.DEFINE_string('train_url', 'log', 'left empty by the platform')
tf.flags.DEFINE_string('not_given', 'default', '')
flags = tf.flags.FLAGS
before = {name: getattr(flags, name) for name in ('int_list', 'given_list', 'data_url', 'not_given')}

import moxing.tensorflow as mox
from module_dir import module_file

parser = argparse.ArgumentParser()
parser.add_argument('--data_url')
parser.add_argument('--given_list')
parser.add_argument('--train_url')
arguments = parser.parse_args()

result = mox.run(input_fn=lambda mode: tf.zeros([1]),
                 model_fn=lambda inputs, mode: mox.ModelSpec(loss=tf.get_variable('w', [1])[0] + inputs[0][0]),
                 optimizer_fn=mox.get_optimizer_fn('sgd', 0.1), run_mode='TRAIN', max_number_of_steps=2,
                 log_dir=flags.train_url)
print('RESULT' + json.dumps({
    'before': before,
    'integers': [int(item) for item in flags.int_list.split(',')],
    'flag_values': hasattr(tf.flags, '_FlagValues'),
    'argparse': vars(arguments),
    'num_gpus': mox.get_flag('num_gpus'),
    'module': module_file.VALUE,
    'steps': result.global_step,
    'checkpoint': result.checkpoint_path,
}))
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> dict:
    directory: Path = tmp_path_factory.mktemp("project_dir")
    (directory / "main.py").write_text(SCRIPT)
    (directory / "module_dir").mkdir()
    (directory / "module_dir" / "module_file.py").write_text("VALUE = 7\n")
    line = ["--num_gpus=1", "--data_url=", "--given_list", "3,4", "--train_url="]
    done = warm_moxing("run", directory / "main.py", *line, cwd=directory.parent)
    assert done.returncode == 0, done.stderr
    printed = next(text for text in done.stdout.splitlines() if text.startswith("RESULT"))
    return {**json.loads(printed.removeprefix("RESULT")), "stderr": done.stderr}


def test_2_1_1_flags_have_the_class_of_tensorflow_1_4(output):
    assert output["flag_values"]


def test_2_1_2_a_list_is_a_string(output):
    assert output["integers"] == [0, 1, 2]
    assert output["before"]["given_list"] == "3,4"


def test_2_2_1_a_strict_argparse_parser_does_not_see_our_flags(output):
    assert output["argparse"] == {"data_url": "", "given_list": "3,4", "train_url": ""}
    assert output["num_gpus"] == 1


def test_2_4_2_a_module_beside_the_script_is_found(output):
    assert output["module"] == 7


def test_2_4_3_an_empty_value_is_empty_and_an_empty_log_dir_counts_as_none(output):
    assert output["before"]["data_url"] == ""
    assert output["before"]["not_given"] == "default"
    assert (output["steps"], output["checkpoint"]) == (2, None)
    assert "mox.run(log_dir=''): the path is empty; using None." in output["stderr"]
