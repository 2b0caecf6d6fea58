"""The model as tf.estimator takes it."""

import tensorflow as tf


def make_estimator(model, model_dir, params=None, config=None):
    """Returns the Estimator.

    Args:
      model: a `Model`.
      model_dir: the directory of its checkpoints.
      params: what the training needs, see `_train_op` and `_initialize`; None: to evaluate and export only.
      config: a `tf.estimator.RunConfig`.
    """
    params = {"model": model, **(params or {})}
    return tf.estimator.Estimator(model_fn, model_dir=model_dir, config=config, params=params)


def model_fn(features, labels, mode, params):
    model = params["model"]
    logits = model.predict(features["image"], training=mode == tf.estimator.ModeKeys.TRAIN)
    predictions = model.postprocess(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=outputs)
    loss = model.loss(logits, labels)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "accuracy": tf.metrics.accuracy(labels, predictions["class"]),
            "photos": _count(labels),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    tf.summary.scalar("accuracy", model.accuracy(logits, labels))
    _initialize(params)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=_train_op(loss, params))


def _initialize(params):
    """Begins with the weights of --checkpoint_path, unless the training is resumed."""
    if params["restored"]:
        tf.train.init_from_checkpoint(params["checkpoint_path"], {name: name for name in params["restored"]})


def _train_op(loss, params):
    step = tf.train.get_global_step()
    rate = tf.train.exponential_decay(
        params["learning_rate"], step, params["decay_steps"], params["decay_rate"], staircase=True
    )
    tf.summary.scalar("learning_rate", rate)
    optimizer = tf.train.MomentumOptimizer(rate, momentum=0.9)
    trained = [variable for variable in tf.trainable_variables() if variable.op.name in params["trained"]]
    gradients = optimizer.compute_gradients(loss, trained)
    for gradient, variable in gradients:
        if gradient is not None:
            tf.summary.histogram(f"gradients/{variable.op.name}", gradient)
    # The averages of batch normalisation.
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.apply_gradients(gradients, global_step=step)


def _count(labels):
    total = tf.get_local_variable("photos", shape=[], dtype=tf.int64, initializer=tf.zeros_initializer())
    return total, tf.assign_add(total, tf.shape(labels, out_type=tf.int64)[0])
