"""Keras `fit` on arrays, as people call it; the argument is `steps_per_execution`."""

import os

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
from common import BATCH, arguments, digits, serve, timed

(per_execution, *_), count = arguments()
x, y = digits()
x, y = x[: count * BATCH], y[: count * BATCH]
model = keras.Sequential([keras.layers.Input([784]), keras.layers.Dense(10)])
model.compile(
    keras.optimizers.SGD(0.5),
    keras.losses.CategoricalCrossentropy(from_logits=True),
    steps_per_execution=int(per_execution),
)
per_epoch = len(x) // BATCH
epochs = -(-count // per_epoch)
serve(lambda: timed(lambda: model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0), epochs * per_epoch))
