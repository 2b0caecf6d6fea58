"""`tensorflow.examples` for user code: the tutorial modules that published scripts import."""
