"""The class names of a run."""

from __future__ import annotations

from moxing.tensorflow.datasets.class_names import ClassNames, current_class_names, open_class_names


def test_class_names_that_disagree_are_reported(caplog):
    classes = ClassNames()
    classes.add({0: "cat"})
    classes.add({0: "cat"})
    assert not caplog.records
    classes.add({0: "dog"})
    assert classes.names == {0: "cat"}
    assert "number their classes differently" in caplog.text


def test_the_class_names_of_a_run():
    assert current_class_names() is not current_class_names()
    with open_class_names() as classes:
        assert current_class_names() is classes
    assert current_class_names() is not classes
