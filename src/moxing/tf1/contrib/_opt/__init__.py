"""The optimizers of `tf.contrib.opt`, with the slot names of TensorFlow 1.12."""
