"""One flag: parsing its value."""

from __future__ import annotations

import pytest

from moxing.framework.flag import NO_VALUE, Flag, FlagError


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "4", 4),
        (int, 4.0, 4),
        (float, "0.5", 0.5),
        (bool, "Yes", True),
        (bool, " off ", False),
        (str, "text", "text"),
        (int, None, None),
    ],
)
def test_values_get_the_type_of_the_flag(kind, text, value):
    parsed = Flag("name", kind, None, "help").parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("flag", "text", "message"),
    [
        (Flag("steps", int, 1, "help"), "1.5", "--steps='1.5': expected an integer"),
        (Flag("steps", int, 1, "help"), 1.5, "--steps=1.5: expected an integer"),
        (Flag("fast", bool, True, "help"), "perhaps", "--fast='perhaps': expected True or False"),
        (Flag("scale", float, 1, "help", words=("dynamic",)), "x", "--scale='x': expected a number or dynamic"),
        (Flag("scale", float, 1, "help"), NO_VALUE, "--scale needs a value: a number"),
        (Flag("threads", int, 0, "help", bounds=(0, 9)), "-5", "--threads=-5: expected an integer from 0 to 9"),
        (Flag("job", str, "", "help", ("ps", "worker")), "works", "expected one of ps, worker. Did you mean 'worker'"),
    ],
)
def test_errors_name_the_flag_and_what_is_expected(flag, text, message):
    with pytest.raises(FlagError, match=message):
        flag.parse(text)


def test_words_are_values_besides_those_of_the_type():
    assert Flag("scale", float, 1.0, "help", words=("dynamic",)).parse("dynamic") == "dynamic"
