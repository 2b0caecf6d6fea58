"""The settings of every session, from the flags."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS


def session_config() -> tf.ConfigProto:
    """The session's settings, from the flags.

    Example:
      >>> session_config().allow_soft_placement
      True
    """
    config = tf.ConfigProto(
        allow_soft_placement=True,
        inter_op_parallelism_threads=FLAGS.get("num_inter_threads"),
        intra_op_parallelism_threads=FLAGS.get("num_intra_threads"),
    )
    config.gpu_options.allow_growth = True
    return config
