"""What a user module gets for a name."""

import sys

import pytest

from moxing.tf1.user import resolver
from moxing.tf1.user.resolver import Origin, resolve


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("tf.train.AdamOptimizer", "TensorFlow"),
        ("tf.float32", "TensorFlow"),
        ("tf.estimator.Estimator", "tensorflow-estimator"),
        ("tf.contrib.layers.xavier_initializer", "tf-slim"),
        ("tf.contrib.data.map_and_batch", "MoXing"),
        ("tf.gfile.GFile", "MoXing"),
        ("tf.layers.Dense", "tf-keras"),
        ("tensorflow.compat.v1.nn", "TensorFlow"),
    ],
)
def test_providers(name, provider):
    found = resolve(name)
    assert (found.provider, found.problem, found.refused) == (provider, "", False)


def test_attributes_of_classes_are_judged_and_those_of_objects_are_not():
    assert resolve("tf.estimator.ModeKeys.TRAIN").value == "train"
    assert resolve("tf.estimator.ModeKeys.TRIAN").problem
    flags = resolve("tf.app.flags.FLAGS.batch_size.real")
    assert (flags.name, flags.problem) == ("tensorflow.app.flags.FLAGS", "")


def test_errors_are_those_of_the_facade():
    assert resolve("tf.placeholdr").problem.endswith("Did you mean placeholder or sparse_placeholder?")
    assert resolve(Origin("tensorflow.nn", "rellu")).problem.startswith(
        "cannot import name 'rellu' from 'tensorflow.nn'"
    )
    assert "No module named" in resolve(Origin("tensorflow.python.no_such_module")).problem


def test_refused_at_the_call():
    found = resolve("tf.contrib.quantize.create_training_graph")
    assert found.refused and "tf.lite.TFLiteConverter" in found.problem
    assert not resolve("tf.contrib.quantize").problem


def annotated(graph) -> "NoReturn":  # noqa: F821
    raises(graph)


def raises(graph):
    raise NotImplementedError("Use something else.")


def generates(graph):
    yield NotImplementedError("a value")


class Refusing:
    def __init__(self, graph, more=None):
        raise NotImplementedError("Use something else.")


class Meta(type):
    def __call__(cls, *args):
        raise NotImplementedError("Use something else.")


class WithMeta(metaclass=Meta):
    pass


@pytest.mark.parametrize(
    ("value", "function"),
    [(annotated, annotated), (raises, raises), (Refusing, Refusing.__init__), (WithMeta, Meta.__call__)],
    ids=["annotated", "raises", "class", "metaclass"],
)
def test_all_ways_to_refuse(value, function, monkeypatch):
    # Only what MoXing defines is called.
    assert resolver._refusal(value) == ""
    monkeypatch.setattr(function, "__module__", "moxing.tf1.contrib.old")
    assert resolver._refusal(value) == "Use something else."


def test_what_does_not_refuse(monkeypatch):
    monkeypatch.setattr(generates, "__module__", "moxing.tf1.contrib.old")
    assert resolver._refusal(generates) == resolver._refusal(len) == resolver._refusal(Origin) == ""
    assert not resolve("tf.app.run").refused


def test_old_names_of_libraries():
    assert resolve(Origin("numpy", "", ("bool",))).provider == "MoXing"
    assert resolve(Origin("numpy", "", ("no_such_name",))).problem
    assert resolve(Origin("Queue", "", ("Queue",))).problem == ""


def test_names_are_never_code():
    sys.modules.pop("wave", None)
    assert "is not the name of a module" in resolve(Origin("os; import wave")).problem
    assert "wave" not in sys.modules


def test_modules_of_the_facade():
    assert resolver.is_served_here("tf_slim.nets") and not resolver.is_served_here("tensorflow_hub")
