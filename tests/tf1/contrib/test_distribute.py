"""tf.contrib.distribute."""

from __future__ import annotations

import pytest

from moxing.tf1.contrib import distribute


def test_the_number_of_gpus_and_devices():
    assert distribute.MirroredStrategy(num_gpus=0).num_replicas_in_sync == 1
    assert distribute.MirroredStrategy(devices=["/cpu:0"]).num_replicas_in_sync == 1
    with pytest.raises(ValueError, match=r"MirroredStrategy\(devices=\['/cpu:0'\], num_gpus=1\): give one of the two"):
        distribute.MirroredStrategy(devices=["/cpu:0"], num_gpus=1)
