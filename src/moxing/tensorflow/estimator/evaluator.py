"""The evaluator of an Estimator's job: it evaluates every new checkpoint, and has to notice when no more will come."""

from __future__ import annotations

import json
import threading
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster.peers import PeerWatch
from moxing.tensorflow.cluster.server import is_supervised


class ChiefWatch:
    """Watches the chief from the evaluator, which is no member of the cluster.

    When the chief has ended, the evaluator stops waiting and looks for a new checkpoint at once. By itself it ends at a
    checkpoint of step `max_steps`. A training may end before; under `moxing run --workers` the end of the chief is
    then the end of the evaluator too, after a last evaluation. Elsewhere a chief may have died and start again.

    Args:
      tf_config: the text of TF_CONFIG.

    Example:
      >>> watch = ChiefWatch('{"cluster": {"chief": ["127.0.0.1:2222"]}, "task": {"type": "evaluator", "index": 0}}')
      >>> watch.before_eval(), watch.after_eval(None)
      (True, True)
    """

    def __init__(self, tf_config: str) -> None:
        self._address = _chief_address(tf_config)
        self._has_ended = threading.Event()
        self._is_last = False
        self._may_end = False
        self._watch()

    def before_eval(self) -> bool:
        """Decides whether this is the last evaluation: no checkpoint can come after it."""
        self._is_last = self._may_end
        return True

    def after_eval(self, eval_result: Any) -> bool:
        """Whether to go on."""
        return not self._is_last

    def sleep(self, seconds: float) -> None:
        """Waits, but not longer than the chief lives."""
        if self._has_ended.wait(seconds):
            self._has_ended.clear()

    def _watch(self) -> None:
        if self._address is not None:
            PeerWatch({"chief": self._address}, self._on_end).start()

    def _on_end(self, name: str, why: str) -> None:
        if is_supervised():
            self._may_end = True
        else:
            tf.logging.warning(
                "The training has ended or was lost: the chief's port %s is closed. The evaluator evaluates the newest "
                "checkpoint. If that is not of the last step, it waits until the training is started again.",
                self._address,
            )
            self._watch()
        self._has_ended.set()


def _chief_address(tf_config: str) -> str | None:
    cluster = json.loads(tf_config or "{}").get("cluster", {})
    hosts = cluster.get("chief") or cluster.get("master") or []
    return hosts[0] if hosts else None
