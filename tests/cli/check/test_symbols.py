"""Verdicts about names: what serves them, or why they are missing."""

import pytest

from moxing.cli.check import symbols
from moxing.cli.check.modules import Program
from moxing.cli.check.names import Call, Use
from moxing.tf1.user.resolver import Origin

NONE = Program((), frozenset())


def judge(name, item="", kind="name", call=None, attributes=(), **more):
    use = Use(kind, 1, (Origin(name, item, tuple(attributes)),), call)
    return symbols.judge(use, "/no/such/train.py", NONE, **more)


@pytest.mark.parametrize(
    ("origin", "name", "provider"),
    [
        (("tensorflow", "", ("nn", "relu")), "tf.nn.relu", "TensorFlow"),
        (("tensorflow.compat.v1", "", ("layers", "dense")), "tf.layers.dense", "tf-keras"),
        (("tensorflow.contrib", "slim", ("conv2d",)), "tf.contrib.slim.conv2d", "tf-slim"),
        (("tensorflow", "", ("app", "flags", "FLAGS", "batch_size")), "tf.app.flags.FLAGS", "MoXing"),
        (("numpy", "", ("int",)), "numpy.int", "MoXing"),
        (("numpy", "", ("zeros",)), "numpy.zeros", "NumPy"),
        (("cPickle", "", ("dump",)), "cPickle.dump", "MoXing"),
    ],
)
def test_served(origin, name, provider):
    verdict = judge(*origin[:2], attributes=origin[2])
    assert (verdict.name, verdict.problem, verdict.provider) == (name, "", provider)


def test_missing_with_advice():
    lost = judge("tensorflow", attributes=["contrib", "tensor_forest", "x"])
    assert lost.name == "tf.contrib.tensor_forest.x"
    assert "tensorflow-decision-forests" in lost.problem
    refused = judge("tensorflow.contrib.quantize", "create_training_graph", kind="import")
    assert "tf.lite.TFLiteConverter" in refused.problem
    assert judge("sklearn.cross_validation", "train_test_split", kind="import").problem == ""


def test_a_wrong_call():
    verdict = judge("tensorflow", attributes=["nn", "relu"], call=Call(1, ("nome",), True))
    assert verdict.is_call and verdict.problem.startswith(
        "the call fails: it has no argument 'nome'. Did you mean name?"
    )
    assert not judge("tensorflow", attributes=["nn", "relu"], call=Call(1, ("nome",), False)).problem


def test_what_is_not_judged():
    assert judge("no_such_module_", attributes=["x"]) is None
    assert judge("this", attributes=["x"]) is None
    # The program sets the name itself.
    assert judge("tensorflow", attributes=["mine", "x"], written={"tensorflow.mine"}) is None


def test_one_of_several_origins_suffices():
    origins = (Origin("tensorflow", "no_such_name"), Origin("tensorflow", "nn"))
    assert not symbols.judge(Use("import", 1, origins), "train.py", NONE).problem
