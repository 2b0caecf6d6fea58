"""Definitions of parts of `tf.contrib` that are tables (`_tables`): what TensorFlow has under no name today."""
