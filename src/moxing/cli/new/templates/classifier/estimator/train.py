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
            dataset = dataset.shuffle(len(photos.paths)).repeat()
        dataset = dataset.map(load, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        return dataset.batch(batch_size).prefetch(tf.data.experimental.AUTOTUNE)

    return input_fn


def drop_unreadable(photos):
    """Takes photos that cannot be decoded out of a part, with a line for each: one would end the training."""
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.data.Dataset.from_tensor_slices((list(range(len(photos.paths))), photos.paths))
        decoded = numbers.map(
            lambda number, path: (number, data.decode(tf.io.read_file(path))),
            num_parallel_calls=tf.data.experimental.AUTOTUNE,
        ).apply(tf.data.experimental.ignore_errors())
        number = decoded.map(lambda number, image: number).batch(64).make_one_shot_iterator().get_next()
        readable = []
        try:
            while True:
                readable.extend(session.run(number))
        except tf.errors.OutOfRangeError:
            pass
    for bad in sorted(set(range(len(photos.paths))) - set(readable)):
        tf.logging.warning("Skipped, cannot be decoded: %s", photos.paths[bad])
    if not readable:
        command_line.fail("--data_dir: no photo can be decoded.")
    photos.paths = [photos.paths[number] for number in sorted(readable)]
    photos.labels = photos.labels[sorted(readable)]


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    options = command_line.parse()
    if "://" in options.data_dir:
        command_line.fail(f"--data_dir={options.data_dir}: expected local photos; `moxing file cp -r` copies them.")
    plan = command_line.make_plan(options)
    drop_unreadable(plan.photos.training)
    drop_unreadable(plan.photos.validation)
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
    print(f"step {result['global_step']}: accuracy {result['accuracy']:.3f} on {result['photos']} validation photos")


if __name__ == "__main__":
    main()
