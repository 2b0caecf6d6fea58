"""`tensorflow.examples.tutorials` for user code."""
