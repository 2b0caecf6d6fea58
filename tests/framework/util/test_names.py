"""Names that a caller gives: how the nearest are found, and what an unknown one is told."""

from __future__ import annotations

from enum import Enum, StrEnum

import pytest

import moxing.tensorflow as mox
from moxing.framework.util.names import known_mode, known_name, nearest
from moxing.tensorflow.network_registry import NetworkKeys

NETWORKS = [key.value for key in NetworkKeys]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("resnet50", "resnet_v1_50"),
        ("ResNet-50", "resnet_v1_50"),
        ("resnet_v1_5O", "resnet_v1_50"),
        ("resnetv2101", "resnet_v2_101"),
        ("vgg16", "vgg_16"),
        ("vgg-19-bn", "vgg_19_bn"),
        ("inception_v33", "inception_v3"),
        ("inceptionv3", "inception_v3"),
        ("mobilenet_v2_1.4", "mobilenet_v2_140"),
        ("alexnet", "alexnet_v2"),
        ("le_net", "lenet"),
        ("qqq", None),
        ("", None),
        ("___", None),
    ],
)
def test_nearest(text, first):
    found = nearest(text, NETWORKS)
    assert found[:1] == ([first] if first else [])
    assert len(found) <= 3


@pytest.mark.parametrize(("text", "count"), [("xception", 3), ("pnasnet", 2), ("mobilenet_v1_1.0_224", 3)])
def test_a_family_is_answered_with_its_members(text, count):
    assert [name.startswith(text[:12]) for name in nearest(text, NETWORKS)[:count]] == [True] * count


def test_nearest_keeps_to_what_there_is():
    assert nearest("a", []) == []
    assert nearest("vgg_1", ["vgg_16", "vgg_19", "vgg_a", "vgg_11"], most=2) == ["vgg_16", "vgg_19"]
    assert nearest("vgg", ["lenet"]) == []


class Keys(StrEnum):
    LENET = "lenet"


class Other(Enum):
    LENET = "lenet"


@pytest.mark.parametrize("given", ["lenet", "LeNet", "LENET", Keys.LENET, Other.LENET])
def test_known(given):
    assert known_name("f", "name", given, ["vgg_16", "lenet"]) == "lenet"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lenett", "f(name='lenett'): no such network; did you mean 'lenet'?"),
        ("vgg", "f(name='vgg'): no such network; did you mean 'vgg_16' or 'vgg_19'?"),
        ("qqq", "f(name='qqq'): no such network; expected one of lenet, vgg_16, vgg_19."),
        (None, "f(name=None): no such network; expected one of lenet, vgg_16, vgg_19."),
        (16, "f(name=16): no such network; expected one of lenet, vgg_16, vgg_19."),
        ("", "f(name=''): no such network; expected one of lenet, vgg_16, vgg_19."),
        (["lenet"], "f(name=['lenet']): no such network; did you mean 'lenet'?"),
    ],
)
def test_unknown(given, message):
    with pytest.raises(ValueError) as error:
        known_name("f", "name", given, ["lenet", "vgg_16", "vgg_19"])
    assert str(error.value) == message


def test_unknown_on_a_command_line():
    with pytest.raises(ValueError, match=r"^NAME='vgg16': no such network; did you mean 'vgg_16'\?$"):
        known_name("", "NAME", "vgg16", ["lenet", "vgg_16"])


def test_advice_ends_the_message():
    with pytest.raises(ValueError, match=r"^f\(name='vgg16'\): no such network; did you mean 'vgg_16'\? Add it\.$"):
        known_name("f", "name", "vgg16", ["lenet", "vgg_16"], "Add it.")


@pytest.mark.parametrize("mode", mox.ModeKeys)
def test_modes(mode):
    assert known_mode("f", mode) == mode.name
    assert known_mode("f", mode.name) == known_mode("f", mode.name.lower()) == mode.name
    assert type(known_mode("f", mode)) is str


@pytest.mark.parametrize("mode", [None, "", "infer", "TRAINING", True, 0, ["TRAIN"]])
def test_unknown_modes(mode):
    with pytest.raises(ValueError) as error:
        known_mode("get_model_fn", mode)
    assert (
        str(error.value)
        == f"get_model_fn(run_mode={mode!r}): expected one of mox.ModeKeys: TRAIN, EVAL, PREDICT, EXPORT."
    )
