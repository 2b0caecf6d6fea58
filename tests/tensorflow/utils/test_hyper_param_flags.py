"""MoXing's flags at the import path of the original."""

import pytest

from moxing.framework.flags import FLAGS
from moxing.tensorflow.utils import hyper_param_flags


def test_a_flag_that_is_set_here_is_set_everywhere():
    hyper_param_flags.mox_flags.set("num_gpus", 3)
    assert FLAGS.get("num_gpus") == 3


def test_the_help_names_every_flag():
    text = hyper_param_flags.get_help()
    assert "--num_gpus" in text and "--variable_update" in text


def test_a_wrong_value_is_an_error_of_the_exported_class():
    with pytest.raises(hyper_param_flags.FlagError, match="num_gpus"):
        hyper_param_flags.mox_flags.set("num_gpus", "many")
