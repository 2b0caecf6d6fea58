"""Errors of a full disk."""

import errno

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.disk import explain, is_full


def test_a_real_full_device():
    """Of Python and of TensorFlow."""
    with pytest.raises(OSError) as python, open("/dev/full", "w") as stream:
        stream.write("x")
        stream.flush()
    assert is_full(python.value)
    with pytest.raises(tf.errors.OpError) as tensorflow:
        tf.io.gfile.GFile("/dev/full", "w").write("x" * 10**6)
    assert is_full(tensorflow.value)


def test_other_errors_stay(tmp_path):
    explain(PermissionError(errno.EACCES, "no"), "it", str(tmp_path), None)
    with pytest.raises(OSError, match="it could not be written, the disk is full .*; there is no checkpoint yet"):
        explain(OSError(errno.EDQUOT, "Disk quota exceeded"), "it", str(tmp_path), None)
