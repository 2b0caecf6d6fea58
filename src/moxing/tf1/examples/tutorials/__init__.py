"""`tensorflow.examples.tutorials` for user code: contains `mnist`."""
