"""Compiled operations, downloads and methods of Python 2."""

import ast

from moxing.cli.check import signs
from moxing.cli.check.names import uses_of

SOURCE = """
import tensorflow as tf
import six
from urllib.request import urlretrieve
tf.load_op_library(path)
tf.load_op_library(os.path.join(here, 'missing.so'))
tf.load_op_library('./old.so')
tf.load_op_library('new.so')
for k, v in d.iteritems(): d.has_key(k)
for k, v in six.iteritems(d): table.itervalues()
urlretrieve('http://example.com/data.zip', target)
maybe_download(url='https://example.com/vgg.tgz')
say('https://example.com/manual')
"""


def test_all_signs(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "old.so").write_bytes(b"\x7fELF libtensorflow_framework.so.1")
    (tmp_path / "new.so").write_bytes(b"\x7fELF libtensorflow_framework.so.2")
    found = list(signs.find(uses_of(ast.parse(SOURCE)), {"itervalues"}, str(tmp_path)))
    told = [(one.kind, one.status, one.name, one.lines[0]) for one in found]
    assert sorted(told, key=lambda one: one[3]) == [
        ("native", "note", "tf.load_op_library", 5),
        ("native", "missing", "missing.so", 6),
        ("native", "missing", "./old.so", 7),
        ("native", "note", "new.so", 8),
        ("syntax", "missing", ".iteritems()", 9),
        ("syntax", "missing", ".has_key()", 9),
        ("download", "note", "http://example.com/data.zip", 11),
        ("download", "note", "https://example.com/vgg.tgz", 12),
    ]
    texts = {one.name: one.message for one in found}
    assert "was not linked with TensorFlow 2" in texts["./old.so"] and "tf.sysconfig" in texts["./old.so"]
    assert texts[".has_key()"].endswith("write `key in d`") and texts[".iteritems()"].endswith("write `d.items()`")
