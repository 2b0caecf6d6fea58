"""The examples of the manual, and a script of its time."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from record_datasets import (
    IMAGES,
    STRINGS,
    digits,
    numbers,
    strings,
    train,
    write_digits,
    write_strings,
)
from record_writing import (
    example,
    run_seeing,
    until_end,
    write,
    write_numbers,
)

import moxing.tensorflow as mox
from helpers.launcher import warm_moxing


def plain_session(step):
    with tf.Session() as session:
        yield from until_end(lambda: step(session))


def monitored_session(step):
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession() as session:
        while not session.should_stop():
            try:
                yield step(session)
            except tf.errors.OutOfRangeError:
                return


def supervisor(step):
    tf.train.get_or_create_global_step()
    chief = tf.train.Supervisor(logdir=None)
    with chief.managed_session() as session:
        while not chief.should_stop():
            try:
                yield step(session)
            except tf.errors.OutOfRangeError:
                return


SESSIONS = [plain_session, monitored_session, supervisor]


class TestManualOutsideARun:
    @pytest.mark.parametrize("session", SESSIONS)
    def test_strings(self, tmp_path, session):
        write_strings(tmp_path)
        with tf.Graph().as_default():
            image, label = strings(tmp_path, shuffle=False, num_epochs=2).get(["image", "label"])
            assert (image.dtype, label.dtype, image.shape.as_list()) == (tf.string, tf.string, [])
            assert list(session(lambda session: session.run((image, label)))) == 2 * STRINGS

    @pytest.mark.parametrize("session", SESSIONS)
    def test_images(self, tmp_path, session):
        write_digits(tmp_path)
        with tf.Graph().as_default():
            image, label = digits(tmp_path, shuffle=False, num_epochs=1).get(["image", "label"])
            assert (image.dtype, image.shape.as_list()) == (tf.uint8, [28, 28, 1])
            assert (label.dtype, label.shape.as_list()) == (tf.int64, [])
            got = list(session(lambda session: session.run((image, label))))
        assert [label for _, label in got] == [0, 1, 2, 0, 4, 5]
        assert all((image == kept).all() for (image, _), kept in zip(got, IMAGES, strict=True))

    def test_batches_by_the_era_s_queues(self, tmp_path):
        """`tf.train.batch` behind the dataset, its threads started by the monitored session."""
        ids = write_numbers(tmp_path, [30])
        with tf.Graph().as_default():
            (number,) = numbers(tmp_path, shuffle=False, num_epochs=1).get(["id"])
            batch = tf.train.batch([number], 5)
            got = [values.tolist() for values in monitored_session(lambda session: session.run(batch))]
        assert sum(got, []) == ids and {len(values) for values in got} == {5}


class TestManualInARun:
    def test_strings(self, tmp_path):
        write_strings(tmp_path / "data")

        def input_fn(mode, **kwargs):
            image, label = strings(tmp_path / "data", shuffle=False, num_epochs=1).get(["image", "label"])
            return image, label

        result, seen = run_seeing(input_fn, batch_size=4)
        assert sum(seen, []) == [image for image, _ in STRINGS] and result.samples == 10

    def test_images_with_their_own_augmentation(self, tmp_path):
        write_digits(tmp_path / "data")

        def input_fn(mode, **kwargs):
            image, label = digits(tmp_path / "data", shuffle=False, num_epochs=1).get(["image", "label"])
            image = tf.image.flip_left_right(image)
            return image, label

        _, seen = run_seeing(input_fn, batch_size=3)
        assert (np.concatenate(seen) == np.stack(IMAGES)[:, :, ::-1]).all()

    def test_batch_size_is_known_where_the_data_has_no_end(self, tmp_path):
        write_numbers(tmp_path, [10])
        shapes = []

        def input_fn(mode, **kwargs):
            return numbers(tmp_path).get(["id"])

        def model_fn(inputs, mode, **kwargs):
            shapes.append(inputs[0].shape.as_list())
            return mox.ModelSpec(loss=tf.get_variable("w", []))

        train(input_fn, model_fn, batch_size=4, max_number_of_steps=2)
        assert shapes == [[4]]


RADAR_SCRIPT = """
# Two radar bands per record, as scripts of 2018 read them: training, then evaluation, then a file of predictions.
import os
import numpy as np
import tensorflow as tf
import moxing.tensorflow as mox
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, ImageClassificationTFRecordMetadata

tf.flags.DEFINE_string('data_url', None, '')
tf.flags.DEFINE_string('train_url', None, '')
flags = tf.flags.FLAGS
SIDE = 5


class RadarDataset(BaseTFRecordDataset):
  def _build_features(self, band_1, band_2, angle, id_or_label):
    self._add_feature('band_1', tf.reshape(band_1, [SIDE, SIDE]))
    self._add_feature('band_2', tf.reshape(band_2, [SIDE, SIDE]))
    self._add_feature('angle', angle)
    self._add_feature(self.last_name, id_or_label)


class TrainDataset(RadarDataset):
  last_name = 'label'


class TestDataset(RadarDataset):
  last_name = 'id'


def input_fn(run_mode, **kwargs):
  predict = run_mode == mox.ModeKeys.PREDICT
  meta = ImageClassificationTFRecordMetadata(
    flags.data_url, 'radar-test-*.tfrecord' if predict else 'radar-train-*.tfrecord',
    num_samples=12 if predict else 40, redirect_dir=None)
  last = tf.FixedLenFeature((), tf.string if predict else tf.int64, default_value=None)
  dataset = (TestDataset if predict else TrainDataset)(
    meta,
    feature_keys=['band_1', 'band_2', 'angle', 'id' if predict else 'is_iceberg'],
    feature_values=[tf.FixedLenFeature((SIDE * SIDE,), tf.float32, default_value=None),
                    tf.FixedLenFeature((SIDE * SIDE,), tf.float32, default_value=None),
                    tf.FixedLenFeature((), tf.float32, default_value=None),
                    last],
    shuffle=run_mode == mox.ModeKeys.TRAIN,
    num_parallel=16,
    num_epochs=None if run_mode == mox.ModeKeys.TRAIN else 1)
  if predict:
    band_1, band_2, name, angle = dataset.get(['band_1', 'band_2', 'id', 'angle'])
    # Strings could not be fetched from several GPUs: as numbers, one by character.
    label = tf.py_func(lambda text: np.array([int(byte) for byte in text], np.int64), [name], tf.int64)
    label.set_shape([3])
  else:
    band_1, band_2, label, angle = dataset.get(['band_1', 'band_2', 'label', 'angle'])
  image = tf.stack([band_1, band_2], axis=-1)
  if run_mode == mox.ModeKeys.TRAIN:
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
  return image, label, angle


def model_fn(inputs, run_mode, **kwargs):
  image, label, angle = inputs
  values = tf.concat([tf.reduce_mean(image, [1, 2]), tf.expand_dims(angle, -1)], -1)
  logits = tf.squeeze(tf.layers.dense(values, 1), -1)
  if run_mode == mox.ModeKeys.PREDICT:
    return mox.ModelSpec(output_info={'id': label, 'probability': tf.nn.sigmoid(logits)})
  truth = tf.cast(label, tf.float32)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=logits))
  right = tf.reduce_mean(tf.cast(tf.equal(logits > 0, truth > 0.5), tf.float32))
  return mox.ModelSpec(loss=loss, log_info={'loss': loss, 'accuracy': right})


def output_fn(outputs):
  with open(os.path.join(flags.train_url, 'answers.csv'), 'a') as answers:
    for output in outputs:
      for name, probability in zip(output['id'], output['probability']):
        answers.write('%s,%f\\n' % (''.join(chr(code) for code in name), probability))


def main(_):
  common = dict(input_fn=input_fn, model_fn=model_fn)
  mox.run(optimizer_fn=mox.get_optimizer_fn('adam', learning_rate=0.1), run_mode=mox.ModeKeys.TRAIN, batch_size=10,
          log_dir=flags.train_url, max_number_of_steps=60, **common)
  mox.run(run_mode=mox.ModeKeys.EVAL, batch_size=8, checkpoint_path=flags.train_url, max_number_of_steps=5, **common)
  mox.run(run_mode=mox.ModeKeys.PREDICT, batch_size=4, checkpoint_path=flags.train_url, max_number_of_steps=3,
          output_fn=output_fn, output_every_n_steps=1, **common)


if __name__ == '__main__':
  tf.app.run(main=main)
"""


@pytest.mark.slow
def test_a_script_of_the_time(tmp_path):
    """Icebergs are bright in the first band: the script finds that out, and names its answers right."""
    generator = np.random.default_rng(0)

    def record(is_iceberg, key, value):
        bands = generator.normal(size=(2, 25)) + [[2.0 * is_iceberg], [0.0]]
        return example(
            {"band_1": bands[0].tolist(), "band_2": bands[1].tolist(), "angle": float(is_iceberg) / 7, key: value}
        )

    for part in range(2):
        records = [record(i % 2, "is_iceberg", i % 2) for i in range(20)]
        write(tmp_path / "data" / f"radar-train-{part}.tfrecord", records)
    write(tmp_path / "data" / "radar-test-0.tfrecord", [record(i % 2, "id", b"%03d" % i) for i in range(12)])
    (tmp_path / "script.py").write_text(RADAR_SCRIPT)
    done = warm_moxing("run", "script.py", f"--data_url={tmp_path / 'data'}", "--train_url=log", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [line.split(",") for line in (tmp_path / "log" / "answers.csv").read_text().splitlines()]
    assert [name for name, _ in answers] == [f"{i:03d}" for i in range(12)]
    assert [float(probability) > 0.5 for _, probability in answers] == [i % 2 == 1 for i in range(12)]
    assert "bad sample" not in done.stderr + done.stdout
