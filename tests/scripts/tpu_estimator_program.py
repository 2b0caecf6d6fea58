# A sentence classifier as programs of 2018 and 2019 wrote them: TPUEstimator, TFRecord files, an optimizer of its own.
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import collections
import os
import random
import re

import tensorflow as tf

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Where the model goes.")
flags.DEFINE_string("init_checkpoint", None, "A checkpoint to start from.")
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate.")
flags.DEFINE_bool("do_predict", False, "Predict.")
flags.DEFINE_bool("do_export", False, "Export.")
flags.DEFINE_integer("num_train_steps", 100, "Steps.")
flags.DEFINE_integer("save_checkpoints_steps", 50, "Steps between checkpoints.")
flags.DEFINE_integer("iterations_per_loop", 1000, "Steps per call on a TPU.")
flags.DEFINE_bool("use_tpu", False, "Train on a TPU.")
flags.DEFINE_string("tpu_name", None, "The TPU.")
flags.DEFINE_float("slow", 0.0, "Seconds that every batch takes.")

LENGTH = 8
WORDS = 30


def write_records(path, count, seed):
    """The label of a sentence is whether word 5 is in it."""
    chance = random.Random(seed)
    writer = tf.python_io.TFRecordWriter(path)
    for number in range(count):
        ids = [chance.randrange(6, WORDS) for _ in range(LENGTH)]
        if number % 2:
            ids[chance.randrange(LENGTH)] = 5
        features = collections.OrderedDict()
        for name, values in (("ids", ids), ("label", [number % 2])):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    writer.close()


def input_fn_builder(files, is_training):
    name_to_features = {
        "ids": tf.FixedLenFeature([LENGTH], tf.int64),
        "label": tf.FixedLenFeature([], tf.int64),
    }

    def decode(record):
        example = tf.parse_single_example(record, name_to_features)
        return {name: tf.to_int32(example[name]) for name in example}

    def wait(ids):
        import time

        time.sleep(FLAGS.slow)
        return ids

    def late(features):
        shape = features["ids"].shape
        features["ids"] = tf.py_func(wait, [features["ids"]], tf.int32)
        features["ids"].set_shape(shape)
        return features

    def input_fn(params):
        batch_size = params["batch_size"]
        data = tf.data.Dataset.from_tensor_slices(tf.constant(files))
        if is_training:
            data = data.repeat()
            data = data.shuffle(buffer_size=len(files))
        data = data.apply(
            tf.contrib.data.parallel_interleave(tf.data.TFRecordDataset, sloppy=is_training, cycle_length=len(files))
        )
        if is_training:
            data = data.shuffle(buffer_size=100)
        data = data.apply(
            tf.contrib.data.map_and_batch(
                decode, batch_size=batch_size, num_parallel_batches=2, drop_remainder=is_training
            )
        )
        return data.map(late) if FLAGS.slow else data

    return input_fn


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam with weight decay. Its slots are variables from get_variable; it leaves the global step alone."""

    def __init__(self, learning_rate, decay, exclude=("LayerNorm", "bias"), name="AdamWeightDecayOptimizer"):
        super(AdamWeightDecayOptimizer, self).__init__(False, name)
        self.learning_rate = learning_rate
        self.decay = decay
        self.exclude = exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            slots = []
            for slot in ("adam_m", "adam_v"):
                slots.append(
                    tf.get_variable(
                        name=param_name + "/" + slot,
                        shape=param.shape.as_list(),
                        dtype=tf.float32,
                        trainable=False,
                        initializer=tf.zeros_initializer(),
                    )
                )
            m, v = slots
            next_m = tf.multiply(0.9, m) + tf.multiply(0.1, grad)
            next_v = tf.multiply(0.999, v) + tf.multiply(0.001, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if not any(re.search(part, param_name) for part in self.exclude):
                update += self.decay * param
            next_param = param - self.learning_rate * update
            assignments.extend([param.assign(next_param), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def create_train_op(loss):
    global_step = tf.train.get_or_create_global_step()
    rate = tf.constant(value=0.01, shape=[], dtype=tf.float32)
    rate = tf.train.polynomial_decay(rate, global_step, 1000, end_learning_rate=0.0, power=1.0, cycle=False)
    warmup = tf.cast(tf.cast(global_step, tf.int32) < tf.constant(10, dtype=tf.int32), tf.float32)
    rate = (1.0 - warmup) * rate + warmup * 0.01 * tf.cast(global_step, tf.float32) / 10.0
    optimizer = AdamWeightDecayOptimizer(rate, decay=0.01)
    if FLAGS.use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=global_step)
    new_global_step = global_step + 1
    return tf.group(train_op, [global_step.assign(new_global_step)])


def create_logits(ids):
    with tf.variable_scope("encoder"):
        table = tf.get_variable("embeddings", [WORDS, 16], initializer=tf.truncated_normal_initializer(stddev=0.1))
        words = tf.gather(table, ids)
        words = tf.contrib.layers.layer_norm(
            inputs=words, begin_norm_axis=-1, begin_params_axis=-1, scope="LayerNorm"
        )
        words = tf.layers.dense(words, 16, tf.nn.relu, kernel_initializer=tf.truncated_normal_initializer(stddev=0.3))
        sentence = tf.reduce_max(words, axis=1)
    weights = tf.get_variable("output_weights", [2, 16], initializer=tf.truncated_normal_initializer(stddev=0.1))
    bias = tf.get_variable("output_bias", [2], initializer=tf.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(sentence, weights, transpose_b=True), bias)


def model_fn(features, labels, mode, params):
    logits = create_logits(features["ids"])
    variables = tf.trainable_variables()
    scaffold_fn = None
    if FLAGS.init_checkpoint:
        stored = set(name for name, _ in tf.train.list_variables(FLAGS.init_checkpoint))
        assignment_map = collections.OrderedDict()
        for variable in variables:
            name = variable.name.split(":")[0]
            if name in stored and name.startswith("encoder"):
                assignment_map[name] = name
        if FLAGS.use_tpu:

            def scaffold_fn():
                tf.train.init_from_checkpoint(FLAGS.init_checkpoint, assignment_map)
                return tf.train.Scaffold()
        else:
            tf.train.init_from_checkpoint(FLAGS.init_checkpoint, assignment_map)

    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"probabilities": tf.nn.softmax(logits, axis=-1)}
        return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions, scaffold_fn=scaffold_fn)

    one_hot = tf.one_hot(features["label"], depth=2, dtype=tf.float32)
    example_loss = -tf.reduce_sum(one_hot * tf.nn.log_softmax(logits, axis=-1), axis=-1)
    loss = tf.reduce_mean(example_loss)
    if mode == tf.estimator.ModeKeys.TRAIN:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, train_op=create_train_op(loss), scaffold_fn=scaffold_fn
        )

    def metric_fn(example_loss, label, logits):
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "eval_accuracy": tf.metrics.accuracy(label, predicted),
            "eval_loss": tf.metrics.mean(example_loss),
        }

    eval_metrics = (metric_fn, [example_loss, features["label"], logits])
    return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=eval_metrics, scaffold_fn=scaffold_fn)


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.gfile.MakeDirs(FLAGS.output_dir)
    files = [os.path.join(FLAGS.output_dir, "train-%d.tf_record" % part) for part in range(2)]
    test_file = os.path.join(FLAGS.output_dir, "test.tf_record")
    for seed, path in enumerate(files + [test_file]):
        write_records(path, 100, seed)

    resolver = None
    if FLAGS.use_tpu and FLAGS.tpu_name:
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name, zone=None, project=None)
    run_config = tf.contrib.tpu.RunConfig(
        cluster=resolver,
        master=None,
        model_dir=FLAGS.output_dir,
        tf_random_seed=3,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        keep_checkpoint_max=20,
        tpu_config=tf.contrib.tpu.TPUConfig(
            iterations_per_loop=FLAGS.iterations_per_loop,
            num_shards=8,
            per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu,
        model_fn=model_fn,
        config=run_config,
        train_batch_size=16,
        eval_batch_size=8,
        predict_batch_size=8,
    )
    if FLAGS.do_train:
        estimator.train(input_fn=input_fn_builder(files, True), max_steps=FLAGS.num_train_steps)
    if FLAGS.do_eval:
        result = estimator.evaluate(input_fn=input_fn_builder([test_file], False))
        print("EVALUATED", result["global_step"], result["eval_accuracy"])
    if FLAGS.do_predict:
        found = [row["probabilities"] for row in estimator.predict(input_fn=input_fn_builder([test_file], False))]
        right = sum(int(row[1] > 0.5) == number % 2 for number, row in enumerate(found))
        print("PREDICTED", right, "of", len(found))
    if FLAGS.do_export:

        def serving_input_fn():
            ids = tf.placeholder(tf.int32, [None, LENGTH], name="ids")
            return tf.estimator.export.build_raw_serving_input_receiver_fn({"ids": ids})()

        estimator._export_to_tpu = False  # programs of the time set this
        path = estimator.export_savedmodel(os.path.join(FLAGS.output_dir, "export"), serving_input_fn)
        predict = tf.contrib.predictor.from_saved_model(path.decode() if isinstance(path, bytes) else path)
        answer = predict({"ids": [[7, 8, 9, 5, 7, 8, 9, 7], [7, 8, 9, 7, 7, 8, 9, 7]]})["probabilities"]
        print("EXPORTED", [int(row[1] > 0.5) for row in answer])


if __name__ == "__main__":
    flags.mark_flag_as_required("output_dir")
    tf.app.run()
