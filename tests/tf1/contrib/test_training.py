"""Training loops of TensorFlow 1 other than Estimators, as scripts under `moxing run` use them."""

from __future__ import annotations

import pytest

from helpers import launcher

#: A line through points; every loop must find its slope, 3.
MODEL = """
import os
import sys
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)
slim = tf.contrib.slim
folder = os.path.abspath(sys.argv[1])
X = np.random.RandomState(0).rand(64, 1).astype(np.float32)


def loss_of(x):
    slope = slim.model_variable('slope', [], initializer=tf.zeros_initializer())
    tf.losses.mean_squared_error(3 * x, slope * x)
    return tf.losses.get_total_loss()


def batches():
    data = tf.data.Dataset.from_tensor_slices(X).repeat().batch(16)
    return data.make_one_shot_iterator().get_next()


def trained():
    return float(tf.train.load_variable(folder, 'slope')), int(tf.train.load_variable(folder, 'global_step'))
"""

CONTRIB_TRAINING = (
    MODEL
    + """
hparams = tf.contrib.training.HParams(rate=0.1, steps=60).parse('rate=0.5')
tf.train.get_or_create_global_step()
train_op = tf.contrib.training.create_train_op(
    loss_of(batches()), tf.train.GradientDescentOptimizer(hparams.rate),
    transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(3))
last = tf.contrib.training.train(
    train_op, folder, hooks=[tf.train.StopAtStepHook(num_steps=hparams.steps)], save_summaries_steps=20)
assert last < 0.01, last
slope, step = trained()
assert step == 60 and abs(slope - 3) < 0.1, (slope, step)

with tf.Graph().as_default():
    mean, update = tf.metrics.mean(loss_of(tf.constant(X)))
    evaluations = tf.contrib.training.get_or_create_eval_step()
    assert evaluations is tf.contrib.training.get_or_create_eval_step()
    checkpoint = tf.contrib.training.wait_for_new_checkpoint(folder, timeout=5)
    values = tf.contrib.training.evaluate_once(
        checkpoint, eval_ops=update, final_ops={'loss': mean, 'rounds': evaluations},
        hooks=[tf.contrib.training.StopAfterNEvalsHook(2),
               tf.contrib.training.SummaryAtEndHook(os.path.join(folder, 'eval'), summary_op=tf.summary.merge(
                   [tf.summary.scalar('mean', mean)]))])
    print('ONCE', values['loss'] < 0.01, values['rounds'])

with tf.Graph().as_default():
    tf.train.get_or_create_global_step()
    mean, update = tf.metrics.mean(loss_of(tf.constant(X)))
    values = tf.contrib.training.evaluate_repeatedly(
        folder, eval_ops=update, final_ops={'loss': mean}, eval_interval_secs=0, max_number_of_evaluations=1,
        hooks=[tf.contrib.training.StopAfterNEvalsHook(1)])
    print('REPEATEDLY', values['loss'] < 0.01)
"""
)

SLIM = (
    MODEL
    + """
train_op = slim.learning.create_train_op(
    loss_of(batches()), tf.train.MomentumOptimizer(0.1, 0.9), clip_gradient_norm=4.0)
last = slim.learning.train(train_op, folder, number_of_steps=80, log_every_n_steps=40, save_summaries_secs=1)
assert last < 0.01, last
slope, step = trained()
assert abs(slope - 3) < 0.1 and step >= 79, (slope, step)

with tf.Graph().as_default():
    tf.train.get_or_create_global_step()
    names_to_values, names_to_updates = slim.metrics.aggregate_metric_map(
        {'loss': slim.metrics.streaming_mean(loss_of(tf.constant(X)))})
    final = slim.evaluation.evaluation_loop(
        '', folder, os.path.join(folder, 'eval'), num_evals=2, eval_op=list(names_to_updates.values()),
        final_op=names_to_values['loss'], eval_interval_secs=0, max_number_of_evaluations=1)
    print('LOOP', final < 0.01)
"""
)

#: The same with the imports of TF-Slim's newest programs.
TF_SLIM = "from tensorflow.contrib import quantize as contrib_quantize\n" + SLIM.replace(
    "import tensorflow as tf", "import tensorflow.compat.v1 as tf\nimport tf_slim"
).replace("tf.contrib.slim", "tf_slim")

SUPERVISOR = (
    MODEL
    + """
step = tf.train.create_global_step()
loss = loss_of(batches())
train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
tf.summary.scalar('loss', loss)
for last in (20, 60):
    supervisor = tf.train.Supervisor(logdir=folder, global_step=step, save_model_secs=0, save_summaries_secs=0)
    with supervisor.managed_session() as session:
        print('STARTS AT', session.run(step))
        while not supervisor.should_stop() and session.run(step) < last:
            session.run(train_op)
        supervisor.saver.save(session, supervisor.save_path, global_step=step)
        supervisor.summary_computed(session, session.run(supervisor.summary_op))
slope, reached = trained()
assert reached == 60 and abs(slope - 3) < 0.1, (slope, reached)
print([name for name in sorted(os.listdir(folder)) if name.endswith('.index')])
"""
)

QUEUES = """
import os
import sys
import tensorflow as tf

folder = sys.argv[1]
names = []
os.makedirs(folder)
for number in range(3):
    names.append(os.path.join(folder, 'part-%d.tfrecord' % number))
    with tf.python_io.TFRecordWriter(names[-1]) as writer:
        for value in range(10):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number * 10 + value]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={'n': feature})).SerializeToString())

files = tf.train.string_input_producer(tf.train.match_filenames_once(folder + '/part-*'), num_epochs=2, shuffle=True)
_, record = tf.TFRecordReader().read(files)
number = tf.parse_single_example(record, {'n': tf.FixedLenFeature([], tf.int64)})['n']
plain = tf.train.batch([number], batch_size=8, num_threads=2, capacity=32, allow_smaller_final_batch=True)
shuffled = tf.train.shuffle_batch([plain], 4, capacity=100, min_after_dequeue=10, enqueue_many=True,
                                  allow_smaller_final_batch=True)
found = []
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
    try:
        while not coordinator.should_stop():
            found.extend(session.run(shuffled).tolist())
    except tf.errors.OutOfRangeError:
        print('END OF DATA')
    finally:
        coordinator.request_stop()
    coordinator.join(threads)
assert sorted(found) == sorted(2 * list(range(30))), sorted(found)

a, b = tf.train.slice_input_producer([tf.range(6), tf.range(6) * 10], num_epochs=1, shuffle=False)
bucket = tf.train.limit_epochs(tf.constant(1), num_epochs=1)
with tf.train.MonitoredSession() as session:
    rows = []
    while not session.should_stop():
        rows.append(tuple(int(value) for value in session.run((a, b))))
assert rows == [(n, n * 10) for n in range(6)], rows
print('ALL READ')
"""


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        pytest.param(CONTRIB_TRAINING, ["ONCE True 2", "REPEATEDLY True"], id="contrib.training"),
        pytest.param(SLIM, ["LOOP True", "Finished evaluation"], id="slim"),
        pytest.param(TF_SLIM, ["LOOP True", "Finished evaluation"], id="tf_slim"),
        pytest.param(
            SUPERVISOR,
            ["STARTS AT 0", "STARTS AT 20", "['model.ckpt-20.index', 'model.ckpt-60.index']"],
            id="Supervisor",
        ),
        pytest.param(QUEUES, ["END OF DATA", "ALL READ"], id="queues"),
    ],
)
def test_the_loops_of_that_time_run(tmp_path, program, lines):
    script = tmp_path / "train.py"
    script.write_text(program)
    output = launcher.output_of(script, tmp_path / "log")
    assert [line for line in lines if line not in output] == []
