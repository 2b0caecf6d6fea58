"""The cells of `tf.contrib.rnn` that TensorFlow 2 does not have, with the variable names of TensorFlow 1.12."""
