"""Exports the newest checkpoint of a training as a SavedModel, with the names of the classes.

    moxing run export.py --log_dir log

The model takes the bytes of image files (`image_bytes`) and returns `class` and `probabilities`. It is written to
log_dir/export/servo/<number>, where TensorFlow Serving and predict.py find the newest one.
"""

import argparse

import tensorflow as tf

import options as command_line
from model_fn import make_estimator


def make_receiver_fn(model):
    def receiver_fn():
        encoded = tf.placeholder(tf.string, [None], name="image_bytes")
        features = {"image": model.preprocess(encoded)}
        return tf.estimator.export.ServingInputReceiver(features, {"image_bytes": encoded})

    return receiver_fn


def main():
    parser = argparse.ArgumentParser(description="Exports the newest checkpoint of a training as a SavedModel.")
    parser.add_argument("--log_dir", required=True, help="log_dir of train.py")
    options = parser.parse_args()
    model = command_line.trained_model(options.log_dir)
    estimator = make_estimator(model, options.log_dir)
    path = estimator.export_saved_model(
        f"{options.log_dir}/export/servo",
        make_receiver_fn(model),
        assets_extra={"labels.txt": f"{options.log_dir}/labels.txt"},
    )
    print(f"exported step {estimator.get_variable_value('global_step')} to {path.decode()}")


if __name__ == "__main__":
    main()
