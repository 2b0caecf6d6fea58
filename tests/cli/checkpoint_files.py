"""Checkpoints as TensorFlow writes them, and a way to run `moxing checkpoint`."""

from __future__ import annotations

import os
import shutil

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.cli import main

V1, V2 = tf.train.SaverDef.V1, tf.train.SaverDef.V2

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def save(prefix, values, version=V2, **saver):
    """A checkpoint as TensorFlow writes it, with the file `checkpoint`."""
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {name: tf.Variable(value, use_resource=False) for name, value in values.items()}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(variables, write_version=version, **saver).save(session, prefix, write_meta_graph=False)


def run(*words, code=0):
    assert main.main(["checkpoint", *map(str, words)]) == code


def change(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


def damaged():
    """Writes checkpoints that are damaged in all ways that tests look at."""
    save("log/m.ckpt", {"w": W, "v": W})
    save("one.ckpt", {"w": np.arange(999, dtype=np.float32)}, V1)
    with open("log/m.ckpt.data-00000-of-00001", "rb") as stream:
        data = stream.read()
    for name in ("cut", "flipped", "nodata", "noindex", "cutindex"):
        shutil.copytree("log", name)
    change("cut/m.ckpt.data-00000-of-00001", data[:-1])
    change("flipped/m.ckpt.data-00000-of-00001", data[:-1] + bytes([data[-1] ^ 1]))
    os.remove("nodata/m.ckpt.data-00000-of-00001")
    os.remove("noindex/m.ckpt.index")
    change("cutindex/m.ckpt.index", b"half")
    with open("one.ckpt", "rb") as stream:
        content = stream.read()
    change("cutone.ckpt", content[:-9])
    change("bad.ckpt", content[:100] + bytes([content[100] ^ 255]) + content[101:])
    change("empty", b"")
    change("weights.h5", b"\x89HDF\r\n")
    change("[1].ckpt", content)
    os.makedirs("exported/variables")
    shutil.copy("log/m.ckpt.index", "exported/variables/variables.index")
    os.mkdir("void")
