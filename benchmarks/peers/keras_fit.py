"""Keras `fit` on arrays, in its usual form. Argument: `steps_per_execution`."""

import os

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
from common import BATCH, arguments, digits, report

(per_execution, *_), count = arguments()
x, y = digits()
model = keras.Sequential([keras.layers.Input([784]), keras.layers.Dense(10)])
model.compile(
    keras.optimizers.SGD(0.5),
    keras.losses.CategoricalCrossentropy(from_logits=True),
    steps_per_execution=int(per_execution),
)
per_epoch = len(x) // BATCH


def run_steps(steps: int) -> None:
    # `fit` runs whole epochs; `count` is rounded up to them below.
    model.fit(x, y, batch_size=BATCH, epochs=-(-steps // per_epoch), verbose=0)


report(run_steps, -(-count // per_epoch) * per_epoch)
