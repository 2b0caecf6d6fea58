"""Readers of image files: the values of the argument `reader_class`.

`readers` has `ParallelReader`, which reads in TensorFlow's threads, and `AsyncRawGenerator`, which reads in separate
processes. Import both from `moxing.tensorflow.datasets`. `raw_reader` is the import path of the first versions.
"""
