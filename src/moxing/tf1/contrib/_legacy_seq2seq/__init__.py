"""`tf.contrib.legacy_seq2seq`: models that are unrolled over a fixed number of steps, with lists of tensors."""
