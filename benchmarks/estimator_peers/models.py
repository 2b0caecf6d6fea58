"""The models in TensorFlow 1 code. `train_op(tf, name, features, labels)` is what a model_fn needs."""

from __future__ import annotations

import numpy as np
from common import VOCABULARY, WORKS

WEIGHT_DECAY = 2e-4
HIDDEN, HEADS, LAYERS, DROPOUT = 128, 2, 2, 0.1


def train_op(tf, name: str, features, labels):
    """Return the loss of a model in training and the operation of a step."""
    logits = {"softmax": softmax, "resnet20": resnet20, "bert_tiny": bert_tiny}[name](tf, features)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if name == "resnet20":
        kernels = [variable for variable in tf.trainable_variables() if "kernel" in variable.name]
        loss += WEIGHT_DECAY * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])
    optimizer = {
        "softmax": lambda: tf.train.GradientDescentOptimizer(0.01),
        "resnet20": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        "bert_tiny": lambda: tf.train.AdamOptimizer(1e-4),
    }[name]()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return loss, optimizer.minimize(loss, tf.train.get_global_step())


def softmax(tf, images):
    return tf.layers.dense(images, WORKS["softmax"].classes)


def resnet20(tf, images):
    """The network of He et al. (2015) for CIFAR-10, with projections in place of padded shortcuts."""

    def convolution(inputs, filters, size, strides):
        outputs = tf.layers.conv2d(inputs, filters, size, strides, padding="same", use_bias=False)
        return tf.layers.batch_normalization(outputs, training=True, fused=True)

    net = tf.nn.relu(convolution(images, 16, 3, 1))
    for filters in (16, 32, 64):
        for block in range(3):
            strides = 2 if filters > 16 and block == 0 else 1
            shortcut = convolution(net, filters, 1, strides) if strides > 1 else net
            inner = tf.nn.relu(convolution(net, filters, 3, strides))
            net = tf.nn.relu(shortcut + convolution(inner, filters, 3, 1))
    return tf.layers.dense(tf.reduce_mean(net, [1, 2]), WORKS["resnet20"].classes)


def bert_tiny(tf, tokens):
    """A classifier on BERT's encoder: two layers, two heads, hidden size 128."""
    batch, length = WORKS["bert_tiny"].batch, WORKS["bert_tiny"].shape[0]
    normal = tf.truncated_normal_initializer(stddev=0.02)

    def dense(inputs, units, activation=None):
        return tf.layers.dense(inputs, units, activation, kernel_initializer=normal)

    def normalised(inputs, name):
        beta = tf.get_variable(f"{name}/beta", [HIDDEN], initializer=tf.zeros_initializer())
        gamma = tf.get_variable(f"{name}/gamma", [HIDDEN], initializer=tf.ones_initializer())
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)

    def dropped(inputs):
        return tf.nn.dropout(inputs, rate=DROPOUT)

    def gelu(inputs):
        return inputs * 0.5 * (1 + tf.tanh(np.sqrt(2 / np.pi) * (inputs + 0.044715 * tf.pow(inputs, 3))))

    def heads(inputs):
        split = tf.reshape(dense(inputs, HIDDEN), [batch, length, HEADS, HIDDEN // HEADS])
        return tf.transpose(split, [0, 2, 1, 3])

    words = tf.get_variable("word_embeddings", [VOCABULARY, HIDDEN], initializer=normal)
    positions = tf.get_variable("position_embeddings", [length, HIDDEN], initializer=normal)
    net = dropped(normalised(tf.gather(words, tokens) + positions, "embeddings"))
    net = tf.reshape(net, [batch * length, HIDDEN])
    for layer in range(LAYERS):
        query, key, value = heads(net), heads(net), heads(net)
        scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(HIDDEN // HEADS)
        context = tf.matmul(dropped(tf.nn.softmax(scores)), value)
        context = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [batch * length, HIDDEN])
        net = normalised(net + dropped(dense(context, HIDDEN)), f"attention_{layer}")
        net = normalised(net + dropped(dense(dense(net, 4 * HIDDEN, gelu), HIDDEN)), f"output_{layer}")
    first = tf.reshape(net, [batch, length, HIDDEN])[:, 0]
    return dense(dropped(dense(first, HIDDEN, tf.tanh)), WORKS["bert_tiny"].classes)
