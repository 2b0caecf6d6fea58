"""HParams: types, text, JSON and dicts."""

from __future__ import annotations

import json

import pytest

from moxing.tf1.contrib.training import HParams


def sample() -> HParams:
    return HParams(steps=10, rate=0.5, name="net", deep=True, units=[64, 32], extra=None)


def test_parameters_are_attributes_in_order() -> None:
    hparams = sample()
    assert hparams.steps == 10
    assert list(hparams.values()) == ["steps", "rate", "name", "deep", "units", "extra"]
    assert "rate" in hparams
    assert "absent" not in hparams
    assert repr(HParams(b=1, a="x")) == "HParams(b=1, a='x')"
    assert str(HParams(b=1, a="x")) == "[('a', 'x'), ('b', 1)]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps=3", {"steps": 3}),
        ("rate=1", {"rate": 1.0}),
        ("rate=1e-3,steps=-2", {"rate": 0.001, "steps": -2}),
        ("name=a b/c.d-e", {"name": "a b/c.d-e"}),
        ("name=", {"name": ""}),
        ("name=a=b", {"name": "a=b"}),
        ("deep=false", {"deep": False}),
        ("deep=1", {"deep": True}),
        ("units=[1,2,3]", {"units": [1, 2, 3]}),
        ("units=[ 1 , 2 ], rate = 2", {"units": [1, 2], "rate": 2.0}),
        ("units=[]", {"units": []}),
        ("units[1]=5", {"units": [64, 5]}),
        ("units[0]=5,units[1]=6", {"units": [5, 6]}),
        ("", {}),
    ],
)
def test_parse(text: str, expected: dict[str, object]) -> None:
    hparams = sample()
    assert hparams.parse(text) is hparams
    assert hparams.values() == {**sample().values(), **expected}
    assert isinstance(hparams.rate, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("absent=1", "no hyper-parameter 'absent'; expected one of: steps, rate"),
        ("steps=1.5", "'steps' must be of type int, got '1.5'"),
        ("steps=[1,2]", "'steps' must be a single value"),
        ("units=1", "'units' must be a list"),
        ("units[2]=1", "has 2 items"),
        ("steps[0]=1", "is not a list"),
        ("deep=maybe", "must be of type bool, got 'maybe'"),
        ("steps=1,steps=2", "assigned twice"),
        ("units[0]=1,units[0]=2", "assigned twice"),
        ("steps", "cannot parse hyper-parameters at 'steps'"),
        ("units=[1,2", "cannot parse"),
        ("units[0]=[1]", "cannot be a list"),
    ],
)
def test_parse_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        sample().parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", 1.5), ("steps", True), ("steps", "1"), ("rate", "0.1"), ("name", 1), ("deep", 1), ("units", [1, 0.5])],
)
def test_values_of_another_type_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"hyper-parameter '{name}' must be of type"):
        sample().set_hparam(name, value)


def test_set_add_and_delete() -> None:
    hparams = sample()
    hparams.set_hparam("rate", 2)
    assert hparams.rate == 2.0
    hparams.set_hparam("extra", "anything")
    hparams.add_hparam("new", (1, 2))
    assert hparams.new == [1, 2]
    hparams.del_hparam("new")
    assert "new" not in hparams
    assert not hasattr(hparams, "new")
    hparams.del_hparam("new")
    with pytest.raises(KeyError, match="no hyper-parameter 'new'"):
        hparams.set_hparam("new", 1)


@pytest.mark.parametrize("name", ["steps", "parse", "values"])
def test_a_name_that_is_taken_cannot_be_added(name: str) -> None:
    with pytest.raises(ValueError, match="the name is taken"):
        sample().add_hparam(name, 1)


def test_an_empty_list_has_no_type() -> None:
    with pytest.raises(ValueError, match="empty list"):
        HParams(units=[])


def test_json_and_dict_round_trip() -> None:
    hparams = sample().override_from_dict({"steps": 7, "units": [1]})
    again = sample().parse_json(hparams.to_json())
    assert again.values() == hparams.values()
    assert json.loads(HParams(f=len, a=1).to_json()) == {"a": 1}


def test_get_checks_the_type_of_the_default() -> None:
    hparams = sample()
    assert hparams.get("steps", 5) == 10
    assert hparams.get("absent", 5) == 5
    with pytest.raises(ValueError, match="must be of type int"):
        hparams.get("steps", "five")
    with pytest.raises(ValueError, match="does not have the type"):
        hparams.get("units", 5)
