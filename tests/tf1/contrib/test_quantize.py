"""tf.contrib.quantize is imported by TF-Slim's programs, which may never call it."""

from __future__ import annotations

import pytest

from moxing.tf1 import contrib


@pytest.mark.parametrize("name", contrib.quantize.__all__)
def test_the_calls_are_refused(name):
    with pytest.raises(NotImplementedError, match=rf"tf\.contrib\.quantize\.{name} .*tf\.lite\.TFLiteConverter"):
        getattr(contrib.quantize, name)(quant_delay=100)


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match=r"tf\.contrib\.quantize\.fold.*tensorflow-model-optimization"):
        _ = contrib.quantize.fold
