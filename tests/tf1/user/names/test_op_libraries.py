"""`tf.load_op_library` of libraries that were built for something else: real shared libraries."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import tensorflow as tf

from moxing.tf1.user import facade
from moxing.tf1.user.names import op_libraries

COMPILER = shutil.which("gcc") or shutil.which("cc")

#: As a kernel of TensorFlow 1 does: a symbol that TensorFlow is to have.
OLD = "extern void *_ZTIN10tensorflow8OpKernel4oldE; void *used = &_ZTIN10tensorflow8OpKernel4oldE;"


def build(folder, name, source, *options):
    (folder / "ops.c").write_text(source)
    library = folder / name
    subprocess.run([COMPILER, "-shared", "-fPIC", "ops.c", "-o", name, *options], cwd=folder, check=True, timeout=60)
    return str(library)


def failure(path):
    with pytest.raises(tf.errors.NotFoundError) as error:
        facade.module("tensorflow").load_op_library(path)
    return error.value.message


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_library_of_tensorflow_1(tmp_path):
    path = build(tmp_path, "old_ops.so", OLD)
    text = failure(path)
    assert f"{path} cannot be loaded: it was built for another version of TensorFlow" in text
    assert "which had the symbol _ZTIN10tensorflow8OpKernel4oldE." in text
    assert "tf.sysconfig.get_compile_flags()" in text
    # Linked with the library of TensorFlow 1, which is not on this machine.
    build(tmp_path, "libtensorflow_framework.so.1", "", "-Wl,-soname,libtensorflow_framework.so.1")
    path = build(tmp_path, "linked.so", "", "-Wl,--no-as-needed", "-L.", "-l:libtensorflow_framework.so.1")
    (tmp_path / "libtensorflow_framework.so.1").unlink()
    assert "cannot be loaded: it was built for TensorFlow 1." in failure(path)


def test_files_that_are_no_libraries(tmp_path):
    assert "the file does not exist" in failure(str(tmp_path / "none.so"))
    (tmp_path / "text.so").write_text("no library at all, but long enough for a header " * 9)
    assert "it is no library for this machine" in failure(str(tmp_path / "text.so"))


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        ("libcudart.so.9.0: cannot open shared object file", "a CUDA that is not installed: libcudart.so.9.0"),
        ("libfoo.so.3: cannot open shared object file", "a library that it needs is not installed"),
        ("something else", "see above"),
    ],
)
def test_what_the_linker_says(message, meaning):
    assert meaning in op_libraries.explain("ops.so", message)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_library_that_can_be_loaded(tmp_path):
    assert op_libraries.load_op_library(build(tmp_path, "empty.so", "int nothing;")).__name__
