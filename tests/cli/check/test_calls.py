"""Arguments of calls against signatures."""

import functools
import inspect

import pytest

from moxing.cli.check import calls
from moxing.tf1.user import resolver


def function(images, size=3, *, name=None):
    return images, size, name


@pytest.mark.parametrize(
    ("names", "count", "problem"),
    [
        ([], 2, ""),
        (["name", "size"], 1, ""),
        (["sizes"], 1, "it has no argument 'sizes'. Did you mean size? It has: images, size, name"),
        ([], 3, "3 positional arguments are given, it takes at most 2: images, size"),
    ],
)
def test_wrong_arguments(names, count, problem):
    assert calls.wrong_arguments(names, count, inspect.signature(function)) == problem


def test_any_arguments_are_accepted_where_the_function_takes_them():
    def anything(*args, **kwargs):
        return args, kwargs

    assert calls.wrong_arguments(["a", "b"], 9, inspect.signature(anything)) == ""


def test_signatures_of_tensorflow_are_seen_through_its_decorators():
    reduce_sum = calls.parameters(resolver.resolve("tf.reduce_sum").value)
    assert calls.wrong_arguments(["reduction_indices", "keep_dims"], 1, reduce_sum) == ""
    assert "no argument 'keepdim'" in calls.wrong_arguments(["keepdim"], 1, reduce_sum)
    conv2d = calls.parameters(resolver.resolve("tf.contrib.slim.conv2d").value)
    assert calls.wrong_arguments(["normalizer_fn", "scope"], 3, conv2d) == ""
    assert "no argument 'kernel'" in calls.wrong_arguments(["kernel"], 1, conv2d)


def test_what_renames_its_arguments_is_not_judged():
    # Flags accept flag_name= of TensorFlow 1.4 and name= of absl.
    assert calls.parameters(resolver.resolve("tf.flags.DEFINE_string").value) is None
    assert calls.parameters(functools.partial(function, 1)) is None
