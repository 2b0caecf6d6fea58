"""Trains a classifier on a folder of photos, then evaluates it. The same command again resumes.

moxing run train.py --data_dir photos --log_dir log
"""

import sys

import moxing.tensorflow as mox
import tensorflow as tf

import data
import options as command_line
import scopes


def make_input_fn(plan):
    def input_fn(mode, **kwargs):
        training = mode == mox.ModeKeys.TRAIN
        crop = data.training_image if training else data.centre_image
        dataset = mox.ImageClassificationRawDataset(
            plan.photos.training if training else plan.photos.validation,
            shuffle=training,
            num_epochs=None if training else 1,
            augmentation_fn=lambda image: crop(image, plan.model.image_size),
        )
        return dataset.get(["image", "label"])

    return input_fn


def make_model_fn(model):
    def model_fn(inputs, mode, **kwargs):
        images, labels = inputs
        logits = model.predict(images, training=mode == mox.ModeKeys.TRAIN)
        loss = model.loss(logits, labels)
        return mox.ModelSpec(
            loss=loss,
            log_info={"loss": loss, "accuracy": model.accuracy(logits, labels)},
            hooks=[mox.GradientNormHook()],
        )

    return model_fn


def make_optimizer_fn(options):
    def optimizer_fn():
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(
            options.learning_rate, step, options.decay_steps, options.decay_rate, staircase=True
        )
        return tf.train.MomentumOptimizer(rate, momentum=0.9)

    return optimizer_fn


def choose_variables(options, plan):
    """Tells mox.run which variables to train, and which to read from --checkpoint_path."""
    # The step counter and the state of the optimizer belong to the other training.
    excluded = ["^global_step$", "/Momentum$", *map(scopes.pattern_of, options.checkpoint_exclude_scopes)]
    mox.set_flag("checkpoint_exclude_patterns", ",".join(excluded) if plan.restored else None)
    mox.set_flag("trainable_include_patterns", ",".join(map(scopes.pattern_of, options.trainable_scopes)) or None)
    mox.set_flag("trainable_exclude_patterns", ",".join(map(scopes.pattern_of, options.freeze_scopes)) or None)
    mox.set_flag("keep_checkpoint_every_n_hours", options.keep_checkpoint_every_n_hours)


def main():
    options = command_line.parse()
    workers = len((mox.get_flag("worker_hosts") or "this one").split(","))
    plan = command_line.make_plan(options, batches_per_step=mox.get_flag("num_gpus") * workers)
    choose_variables(options, plan)
    mox.run(
        input_fn=make_input_fn(plan),
        model_fn=make_model_fn(plan.model),
        optimizer_fn=make_optimizer_fn(options),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=options.batch_size,
        log_dir=options.log_dir,
        checkpoint_path=options.checkpoint_path,
        max_number_of_steps=plan.steps,
    )
    result = mox.run(
        input_fn=make_input_fn(plan),
        model_fn=make_model_fn(plan.model),
        run_mode=mox.ModeKeys.EVAL,
        batch_size=options.batch_size,
        log_dir=options.log_dir,
        max_number_of_steps=sys.maxsize,
    )
    # In a cluster only the first worker evaluates.
    if result.samples:
        accuracy = result.log_info["accuracy"]
        print(f"step {result.global_step}: accuracy {accuracy:.3f} on {result.samples} validation photos")


if __name__ == "__main__":
    main()
