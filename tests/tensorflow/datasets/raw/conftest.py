"""Fixtures of the tests of image folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import write_folder
from raw_running import COUNTS

import moxing.tensorflow as mox


@pytest.fixture
def logged(monkeypatch):
    """The log lines by level; the tensorflow logger may be silent in another test's wake."""
    lines = {"info": [], "warning": []}
    for level, found in lines.items():
        monkeypatch.setattr(tf.logging, level, lambda message, *args, found=found: found.append(message % args))
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("images")
    write_folder(root, COUNTS)
    return root


@pytest.fixture(scope="module")
def images() -> dict[str, np.ndarray]:
    return {
        f"{number:03d}.png": np.random.default_rng(number).integers(
            0, 256, (5 + number % 4, 6 + number % 3, 3), np.uint8
        )
        for number in range(11)
    }


@pytest.fixture(scope="module")
def metadata(folder):
    return mox.ImageClassificationRawMetadata(str(folder))
