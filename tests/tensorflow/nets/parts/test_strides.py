import re

import pytest

from moxing.tensorflow.nets.parts.strides import strides_and_rates


def test_strides_and_rates():
    assert strides_and_rates([2, 1, 2, 2], None) == [(2, 1), (1, 1), (2, 1), (2, 1)]
    assert strides_and_rates([2, 1, 2, 2, 1], 2) == [(2, 1), (1, 1), (1, 1), (1, 2), (1, 4)]
    with pytest.raises(ValueError, match=re.escape("output_stride=3: expected None or one of [2, 4, 8].")):
        strides_and_rates([2, 1, 2, 2], 3)
