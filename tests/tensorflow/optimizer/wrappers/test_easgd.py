"""EASGD: arguments, and what it is combined with. Its exchange is tested with the strategy, in `parallel`."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from updates import inner, wrapped

from moxing.tensorflow.optimizer.wrappers.easgd import is_elastic


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": 0}, r"easgd\(period=0\)"),
        ({"moving_rate": 0.0}, r"easgd\(moving_rate=0.0\)"),
        ({"moving_rate": 1.5}, r"easgd\(moving_rate=1.5\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        wrapped("easgd", **arguments)()


@pytest.mark.parametrize("name", ["ema", "dgc", "easgd"])
def test_wrappers_that_go_neither_around_nor_inside(name):
    with pytest.raises(ValueError, match=f"^{name} around easgd: "):
        wrapped(name, wrapped("easgd"))()
    with pytest.raises(ValueError, match=f"^{name if name != 'easgd' else 'easgd around'}.* easgd: "):
        wrapped("easgd", wrapped(name))()


def test_lookahead_goes_inside_only():
    assert wrapped("easgd", wrapped("lookahead"))().wrapped.get_name() == "Lookahead"
    with pytest.raises(ValueError, match="lookahead around easgd: .*put lookahead inside of easgd"):
        wrapped("lookahead", wrapped("easgd"))()


def test_a_function_of_a_script_is_called_in_a_graph_that_is_thrown_away():
    def optimizer_fn():
        tf.get_variable("made_by_the_script", [2])
        return wrapped("lars", wrapped("easgd"))()

    with tf.Graph().as_default() as graph:
        assert is_elastic([optimizer_fn]) and not is_elastic([inner])
        assert not is_elastic([optimizer_fn], possible=False)
        assert graph.get_operations() == []


def test_alone_it_trains_with_a_warning(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        train = wrapped("easgd", tf.train.GradientDescentOptimizer(1.0))().minimize(w)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(train)
        assert session.run(w) == 2.0
    assert any(line.startswith("easgd: ") for line in caplog.messages)
