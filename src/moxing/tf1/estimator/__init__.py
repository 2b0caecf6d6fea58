"""The package tensorflow-estimator 2.15, repaired for TensorFlow 2.21.

TensorFlow removed `tf.estimator` in 2.16. Its authors' package still exists, and lacks four private modules of
TensorFlow. `repair.load()` imports it with stand-ins for them (`stand_ins`) and `repair.install()` does the same for
whoever imports the package by its own name. TensorFlow itself does not change. `explained` completes its short
errors. The training loop and checkpoints of MoXing are added in `moxing.tensorflow.estimator`.
"""
