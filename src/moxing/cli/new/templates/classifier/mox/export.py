"""Exports the newest checkpoint of a training as a SavedModel, with the names of the classes.

    moxing run export.py --log_dir log

The model takes the bytes of image files (`image_bytes`) and returns `class` and `probabilities`. It is written to
log_dir/export/servo/<number>, where TensorFlow Serving and predict.py find the newest one.
"""

import argparse

import moxing.tensorflow as mox
import tensorflow as tf

import options as command_line


def input_fn(mode, **kwargs):
    """One grey image: the export needs the type of the input, and is compared with the trained model on it."""
    return tf.image.encode_png(tf.fill([64, 64, 3], tf.constant(128, tf.uint8)))


def make_model_fn(model):
    def model_fn(inputs, mode, **kwargs):
        (encoded,) = inputs
        outputs = model.postprocess(model.predict(model.preprocess(encoded), training=False))
        return mox.ModelSpec(
            log_info={"confidence": tf.reduce_max(outputs["probabilities"])},
            export_spec=mox.ExportSpec(inputs_dict={"image_bytes": encoded}, outputs_dict=outputs),
        )

    return model_fn


def main():
    parser = argparse.ArgumentParser(description="Exports the newest checkpoint of a training as a SavedModel.")
    parser.add_argument("--log_dir", required=True, help="log_dir of train.py")
    options = parser.parse_args()
    result = mox.run(
        input_fn=input_fn,
        model_fn=make_model_fn(command_line.trained_model(options.log_dir)),
        run_mode=mox.ModeKeys.EVAL,
        batch_size=1,
        log_dir=f"{options.log_dir}/export/servo",
        checkpoint_path=options.log_dir,
        max_number_of_steps=1,
        export_model=mox.ExportKeys.TF_SERVING,
    )
    print(f"exported step {result.global_step} to {result.export_path}")


if __name__ == "__main__":
    main()
