"""The step of a run, built once in the run's graph: input, model, training operation, summaries."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoint import Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.inputs import Inputs, build_inputs
from moxing.tensorflow.executor.ledger import Ledger
from moxing.tensorflow.executor.model import Model, build_model
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.parallel import SingleDevice
from moxing.tf1.data_seeds import data_seeds
from moxing.tf1.surgery import run_after


@dataclass
class Step:
    """Everything that one step is made of.

    Attributes:
      inputs: the batch and its source.
      model: what `model_fn` returned.
      operation: run it and the step is done, the ledger included.
      ledger: the step's numbers.
      global_step: the counter of training steps.
      finite: false when a loss is NaN or infinite; None outside TRAIN.
      summary: all summaries merged, or None.
    """

    inputs: Inputs
    model: Model
    operation: tf.Operation
    ledger: Ledger
    global_step: tf.Variable
    finite: tf.Tensor | None
    summary: tf.Tensor | None


def build_step(config: RunConfig, position: Position, seed: int) -> Step:
    """Builds the step of `config` in the current graph.

    Args:
      config: the run.
      position: where in the data to begin.
      seed: decides the order of shuffled data, unless the script does.
    """
    global_step = tf.train.get_or_create_global_step()
    with data_seeds(seed):
        inputs = build_inputs(config, config.mode, position, with_probe=config.export)
    strategy = SingleDevice()
    with tf.device(strategy.device):
        model = build_model(config, config.mode, inputs.for_model())
    training = config.mode is ModeKeys.TRAIN
    arrived = inputs.arrived()
    with tf.name_scope("moxing"):
        ledger = Ledger(model.log_info, inputs.batch_length(), arrived, with_means=config.mode is ModeKeys.EVAL)
    done = [ledger.update]
    if training:
        run_after(model.updates, arrived)
        # What is logged is of before the update. And without a batch there is no step, also where a loss does not
        # look at it.
        before = [*(value.op for value in model.log_info.values()), *model.updates, *arrived]
        done.append(strategy.train_op(model.losses, model.var_scopes, config.optimizer_fns, before, global_step))
    return Step(
        inputs=inputs,
        model=model,
        operation=tf.group(*done, name="moxing/step"),
        ledger=ledger,
        global_step=global_step,
        finite=_all_finite(model.losses) if training else None,
        summary=_summary(model) if training and config.summary_every and config.log_dir else None,
    )


def _all_finite(losses: list[tf.Tensor]) -> tf.Tensor:
    with tf.name_scope("moxing/finite"):
        checks = [tf.math.is_finite(loss) for loss in losses if loss.dtype.is_floating]
        return checks[0] if len(checks) == 1 else tf.reduce_all(tf.stack([tf.constant(True), *checks]))


def _summary(model: Model) -> tf.Tensor | None:
    """Merges the user's summaries and the scalars of log_info; a tag that the user writes himself stays his."""
    written = [_scalar_tag(summary.op) for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    with tf.name_scope("moxing/summary"):
        for name, value in model.log_info.items():
            if name not in written:
                # tf.summary.scalar would make the tag from a name that is still free in the graph.
                scalar = tf.raw_ops.ScalarSummary(tags=name, values=tf.cast(value, tf.float32))
                tf.add_to_collection(tf.GraphKeys.SUMMARIES, scalar)
        return tf.summary.merge_all()


def _scalar_tag(summary: tf.Operation) -> str | None:
    """The tag of a scalar summary, where the graph tells it."""
    tag = tf.get_static_value(summary.inputs[0]) if summary.type == "ScalarSummary" else None
    return None if tag is None else str(tag.item(), "utf-8")
