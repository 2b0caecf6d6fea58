"""Keras 3 `fit` in its usual form.

keras_train.py NAME RECORDS WARM_UP STEPS
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf
from common import VOCABULARY, WORKS, Moment, Timed, dataset, report
from keras import layers

name, path, warm_up, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
work = WORKS[name]


def resnet20(images):
    decay = keras.regularizers.L2(1e-4)  # l2_loss is half of it

    def convolution(inputs, filters, size, strides):
        outputs = layers.Conv2D(filters, size, strides, padding="same", use_bias=False, kernel_regularizer=decay)(
            inputs
        )
        return layers.BatchNormalization()(outputs)

    net = layers.ReLU()(convolution(images, 16, 3, 1))
    for filters in (16, 32, 64):
        for block in range(3):
            strides = 2 if filters > 16 and block == 0 else 1
            shortcut = convolution(net, filters, 1, strides) if strides > 1 else net
            inner = layers.ReLU()(convolution(net, filters, 3, strides))
            net = layers.ReLU()(shortcut + convolution(inner, filters, 3, 1))
    return layers.Dense(work.classes, kernel_regularizer=decay)(layers.GlobalAveragePooling2D()(net))


class Positions(layers.Layer):
    """Adds an embedding of the position."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], initializer="truncated_normal")

    def call(self, inputs):
        return inputs + self.table


def bert_tiny(tokens):
    hidden, heads = 128, 2
    net = Positions()(layers.Embedding(VOCABULARY, hidden)(tokens))
    net = layers.Dropout(0.1)(layers.LayerNormalization(epsilon=1e-12)(net))
    for _ in range(2):
        attention = layers.MultiHeadAttention(heads, hidden // heads, dropout=0.1)(net, net)
        net = layers.LayerNormalization(epsilon=1e-12)(net + layers.Dropout(0.1)(attention))
        inner = layers.Dense(hidden)(layers.Dense(4 * hidden, "gelu")(net))
        net = layers.LayerNormalization(epsilon=1e-12)(net + layers.Dropout(0.1)(inner))
    pooled = layers.Dense(hidden, "tanh")(net[:, 0])
    return layers.Dense(work.classes)(layers.Dropout(0.1)(pooled))


inputs = keras.Input(work.shape, work.batch, dtype="int32" if name == "bert_tiny" else "float32")
outputs = {"softmax": layers.Dense(work.classes), "resnet20": resnet20, "bert_tiny": bert_tiny}[name](inputs)
model = keras.Model(inputs, outputs)
optimizer = {
    "softmax": lambda: keras.optimizers.SGD(0.01),
    "resnet20": lambda: keras.optimizers.SGD(0.1, 0.9),
    "bert_tiny": lambda: keras.optimizers.Adam(1e-4),
}[name]()
data = dataset(tf, name, path)
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def fit(count):
    started = Moment.now()
    model.fit(data, epochs=1, steps_per_epoch=count, verbose=0)
    return Timed(started, Moment.now(), count)


first = fit(1)
fit(warm_up)
report(first, fit(steps), sum(int(tf.size(variable)) for variable in model.trainable_variables))
