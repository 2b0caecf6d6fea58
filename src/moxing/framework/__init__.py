"""The part of MoXing that needs no TensorFlow."""
