"""Trains a classifier on a folder of photos, then evaluates it. The same command again resumes.

moxing run train.py --data_dir photos --log_dir log
"""

import tensorflow as tf

import data
import options as command_line
from model_fn import make_estimator


def make_input_fn(plan, batch_size, training):
    photos = plan.photos.training if training else plan.photos.validation
    crop = data.training_image if training else data.centre_image

    def load(path, label):
        return {"image": crop(data.decode(tf.io.read_file(path)), plan.model.image_size)}, label

    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((photos.paths, photos.labels))
        if training:
            dataset = dataset.shuffle(len(photos.paths))
        dataset = dataset.map(load, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        # A file that cannot be decoded is skipped, with a line in the log.
        dataset = dataset.apply(tf.data.experimental.ignore_errors(log_warning=True))
        if training:
            dataset = dataset.repeat()
        return dataset.batch(batch_size).prefetch(tf.data.experimental.AUTOTUNE)

    return input_fn


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    options = command_line.parse()
    plan = command_line.make_plan(options)
    params = {
        **vars(options),
        "trained": set(plan.trained),
        "restored": plan.restored,
    }
    config = tf.estimator.RunConfig(
        save_checkpoints_secs=600,
        keep_checkpoint_every_n_hours=options.keep_checkpoint_every_n_hours or 10_000,
        log_step_count_steps=10,
    )
    estimator = make_estimator(plan.model, options.log_dir, params, config)
    estimator.train(make_input_fn(plan, options.batch_size, training=True), max_steps=plan.steps)
    result = estimator.evaluate(make_input_fn(plan, options.batch_size, training=False))
    print(
        f"step {result['global_step']}: accuracy {result['accuracy']:.3f} on {result['photos']} validation photos",
    )


if __name__ == "__main__":
    main()
