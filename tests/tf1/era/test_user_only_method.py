"""Methods that only user modules see."""

import builtins

import pytest

from moxing.tf1.era.user_only_method import USER_MARK, UserOnlyMethod


class Table:
    append = UserOnlyMethod("Table.append", lambda self, row: ["table", row], "concat")


@pytest.fixture
def user_code():
    """Evaluates an expression as a user module does."""
    own = {**vars(builtins), USER_MARK: True}
    return lambda expression: eval(expression, {"__builtins__": own, "Table": Table})


def test_user_code_finds_the_method(user_code):
    assert user_code("Table().append(1)") == ["table", 1]
    assert user_code("Table.append(None, 2)") == ["table", 2]
    assert user_code("hasattr(Table(), 'append')") is True


def test_other_code_does_not():
    with pytest.raises(AttributeError, match="'Table' object has no attribute 'append'"):
        _ = Table().append
    assert not hasattr(Table, "append")
