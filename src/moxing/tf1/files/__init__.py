"""TensorFlow's file functions for user modules: TensorFlow's own, which also take the urls of `mox.file`.

`gfile`, `io_gfile` and `file_io` are served as `tf.gfile`, `tf.io.gfile` and `tensorflow.python.lib.io.file_io`.
`dispatch` sends a call to TensorFlow or to `url_operations`, `url_file` does the same for file objects, and
`gfile_shift` patches TensorFlow itself for `mox.file.shift`. Only the facade and `mox.file.shift` import from here.
"""
