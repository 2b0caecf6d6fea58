"""The file functions of TensorFlow in a script, and their names."""

from __future__ import annotations

import textwrap

import tensorflow.compat.v1 as tf
from tensorflow.python.lib.io import file_io as real_file_io

from helpers.launcher import warm_moxing
from moxing.framework import file
from moxing.tf1.files import file_io, gfile, io_gfile


def test_the_names_are_those_of_tensorflow():
    for ours, theirs in ((gfile, tf.gfile), (io_gfile, tf.io.gfile), (file_io, real_file_io)):
        assert [name for name in dir(theirs) if not name.startswith("_") and not hasattr(ours, name)] == []


def test_in_a_script(s3_folder, tmp_path):
    script = """
        import sys
        import tensorflow as tf
        from tensorflow.python.platform import gfile
        from tensorflow.python.lib.io import file_io
        import moxing.tensorflow as mox
        mox.cache()
        url = sys.argv[1]
        with tf.gfile.GFile(url + '/a.txt', 'w') as f:
            f.write('from a script')
        assert tf.gfile.Exists(url + '/a.txt') and gfile.Exists(url + '/a.txt') and tf.io.gfile.exists(url + '/a.txt')
        assert file_io.read_file_to_string(url + '/a.txt') == 'from a script'
        assert tf.compat.v1.gfile.ListDirectory(url) == ['a.txt']
        assert tf.train.latest_checkpoint(url) is None
        for name in ('model.ckpt-7.index', 'model.ckpt-7.data-00000-of-00001'):
            mox.file.write(url + '/log/' + name, '')
        mox.file.write(url + '/log/checkpoint', 'model_checkpoint_path: "model.ckpt-7"')
        assert tf.train.latest_checkpoint(url + '/log') == url + '/log/model.ckpt-7'
        assert tf.train.get_checkpoint_state(url + '/log').model_checkpoint_path == url + '/log/model.ckpt-7'
        assert tf.train.checkpoint_exists(url + '/log/model.ckpt-7')
        assert tf.io.read_file and tf.io.TFRecordWriter is tf.python_io.TFRecordWriter
        try:
            tf.gfile.Open(url + '/none').read()
        except tf.errors.NotFoundError as error:
            print(error)
    """
    (tmp_path / "main.py").write_text(textwrap.dedent(script))
    done = warm_moxing("run", "main.py", s3_folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert s3_folder + "/none" in done.stdout
    assert file.read(s3_folder + "/a.txt") == "from a script"
