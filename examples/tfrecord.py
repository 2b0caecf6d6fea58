"""Write TFRecord files and train on them with a MoXing dataset.

Shows `tf.python_io.TFRecordWriter`, a subclass of `BaseTFRecordDataset` for records in a layout of your own, and
training over whole epochs. MoXing indexes the records once; later runs start without a scan.

Run it:

    moxing run examples/tfrecord.py --data_url=houses --train_url=houses_log

Run it again and it trains another `--epochs` from the checkpoint in `houses_log`: the length of this training is set by
the data, and every run reads it from the start. (`train_line.py` is limited by the number of steps: its second run does
not train.)
"""

import os
import random

import tensorflow as tf

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.dataset_utils import float_feature, int64_feature
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, BaseTFRecordMetadata

tf.flags.DEFINE_string(
    "data_url", "houses", "Directory of the TFRecord files; written if it does not exist or is empty"
)
tf.flags.DEFINE_string("train_url", "houses_log", "Directory for checkpoints and summaries")
tf.flags.DEFINE_integer("epochs", 10, "Passes over the data")
flags = tf.flags.FLAGS

FILES = 2
HOUSES_PER_FILE = 200


def write_houses(directory):
    """Write records with the number of rooms, the area and the price of made-up houses."""
    random.seed(1)
    os.makedirs(directory, exist_ok=True)
    for number in range(FILES):
        path = os.path.join(directory, "houses-%05d-of-%05d.tfrecord" % (number, FILES))
        with tf.python_io.TFRecordWriter(path) as writer:
            for _ in range(HOUSES_PER_FILE):
                rooms, area = random.randint(1, 6), random.uniform(0.3, 2.0)
                features = {
                    "rooms": int64_feature(rooms),
                    "area": float_feature([area]),
                    "price": float_feature([0.2 * rooms + 1.5 * area]),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


class Houses(BaseTFRecordDataset):
    """Turns the parsed values of a record into the features of a sample."""

    def _build_features(self, rooms, area, price):  # In the order of feature_keys.
        self._add_feature("house", tf.stack([tf.cast(rooms, tf.float32), area]))
        self._add_feature("price", price)


def make_input_fn(metadata):
    def input_fn(mode, **kwargs):
        training = mode == mox.ModeKeys.TRAIN
        dataset = Houses(
            metadata,
            feature_keys=["rooms", "area", "price"],
            feature_values=[
                tf.FixedLenFeature([], tf.int64),
                tf.FixedLenFeature([], tf.float32),
                tf.FixedLenFeature([], tf.float32),
            ],
            shuffle=training,
            num_epochs=flags.epochs if training else 1,
        )
        return dataset.get(["house", "price"])

    return input_fn


def model_fn(inputs, mode, **kwargs):
    houses, prices = inputs
    predicted = tf.layers.dense(houses, 1, use_bias=False)[:, 0]
    loss = tf.reduce_mean(tf.square(predicted - prices))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def main(_):
    if not os.path.isdir(flags.data_url) or not os.listdir(flags.data_url):
        write_houses(flags.data_url)
    metadata = BaseTFRecordMetadata(flags.data_url, "*.tfrecord")

    tf.set_random_seed(1)
    result = mox.run(
        input_fn=make_input_fn(metadata),
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("adam", learning_rate=0.02),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=20,
        log_dir=flags.train_url,
        max_number_of_steps=100000,  # The run ends earlier, at the end of the data.
        log_every_n_steps=50,
    )
    print("trained on %d samples: %d records, %d epochs" % (result.samples, metadata.num_samples, flags.epochs))
    result = mox.run(
        input_fn=make_input_fn(metadata),
        model_fn=model_fn,
        run_mode=mox.ModeKeys.EVAL,
        batch_size=20,
        checkpoint_path=flags.train_url,
        max_number_of_steps=100000,
    )
    print("mean squared error of %d records: %.4f" % (result.samples, result.log_info["loss"]))


if __name__ == "__main__":
    tf.app.run()
