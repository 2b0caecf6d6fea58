"""Makes the modules beside the tests importable; pytest's importlib mode leaves sys.path alone."""

import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

sys.path.insert(0, str(Path(__file__).parent))
# What does not hold is shown with its values, as in the tests themselves.
pytest.register_assert_rewrite("network_checks", "classified_checks")


class PlainSession(tf.Session):
    """A session that runs graphs as they are built, unless a test passes a config of its own.

    A test runs a network once: optimising its graph takes longer than running it.
    """

    def __init__(self, target: str = "", graph: tf.Graph | None = None, config: tf.ConfigProto | None = None) -> None:
        if config is None:
            config = tf.ConfigProto()
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
        super().__init__(target, graph, config)


@pytest.fixture(autouse=True)
def plain_sessions(monkeypatch):
    monkeypatch.setattr(tf, "Session", PlainSession)
