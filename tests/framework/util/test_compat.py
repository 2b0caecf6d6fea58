"""moxing.framework.util.compat."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moxing.framework.util import compat


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_there_and_back(text):
    data = text.encode()
    assert compat.as_bytes(text) == compat.as_bytes(data) == compat.as_bytes(bytearray(data)) == data
    assert compat.as_text(data) == compat.as_text(bytearray(data)) == compat.as_str(text) == compat.as_str(data) == text


def test_another_encoding():
    assert compat.as_bytes("模", "gbk") == "模".encode("gbk")
    assert compat.as_str("模".encode("gbk"), encoding="gbk") == "模"


@pytest.mark.parametrize("function", [compat.as_str, compat.as_text, compat.as_bytes])
@pytest.mark.parametrize("wrong", [None, 1, ["a"]])
def test_anything_else_is_refused(function, wrong):
    with pytest.raises(TypeError, match="bytes_or_text=.*expected str or bytes"):
        function(wrong)
