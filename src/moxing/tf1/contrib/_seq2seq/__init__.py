"""`tf.contrib.seq2seq`: decoders, helpers, attention and beam search, with the variable names of TensorFlow 1.12."""
