"""The file of figures: complete, up to date, and those of the papers."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from network_checks import slow_if

from moxing.tensorflow.nets.parts.figures import FILE, figures_of
from moxing.tensorflow.network_registry import NetworkKeys, network

STORED = json.loads(FILE.read_text())


GOLDEN = Path(__file__).parents[1] / "golden"


def test_the_figures_are_of_all_networks_in_order():
    assert list(STORED) == [key.value for key in NetworkKeys]


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.json")), ids=lambda file: file.stem)
def test_the_figures_count_the_variables_of_the_published_networks(file):
    golden, stored = json.loads(file.read_text()), STORED[file.stem]
    shapes = dict(golden["variables"])
    pattern = network(NetworkKeys(file.stem)).logits_pattern
    expected = 0
    for name in golden["trainable"]:
        *others, last = shapes[name]
        # The golden networks have ten classes.
        expected += math.prod(others) * (stored["num_classes"] if re.search(pattern, name) else last)
    assert stored["parameters"] == expected


# Of the papers: parameters in millions and, where they count them as we do, multiply-adds in millions.
@pytest.mark.parametrize(
    ("name", "millions", "multiply_adds"),
    [
        ("vgg_16", 138.4, 15_470),  # Simonyan and Zisserman, table 2
        ("mobilenet_v1", 4.2, 569),  # Howard et al., table 6
        ("mobilenet_v1_025", 0.5, 41),
        ("mobilenet_v2", 3.5, 300),  # Sandler et al., table 4: 3.4
        ("nasnet_mobile", 5.3, 564),  # Zoph et al., table 2
        ("resnet_v1_50", 25.6, None),  # 3.8 G with the strides in the paper's places
    ],
)
def test_the_figures_are_those_of_the_papers(name, millions, multiply_adds):
    assert round(STORED[name]["parameters"] / 1e6, 1) == pytest.approx(millions, abs=0.051)
    if multiply_adds:
        assert STORED[name]["multiply_adds"] / 1e6 == pytest.approx(multiply_adds, rel=0.02)


#: Deep, of layers that a smaller network of the family has too.
DEEP = {
    *("inception_resnet_v2", "inception_v4", "nasnet_cifar", "nasnet_large", "nasnet_mobile", "pnasnet_large"),
    *("pnasnet_mobile", "pvanet", "resnet_v1_101", "resnet_v1_110", "resnet_v1_152", "resnet_v1_200"),
    *("resnet_v1_50_oct", "resnet_v2_101", "resnet_v2_152", "resnet_v2_200", "resnext_b_101", "resnext_b_50"),
    *("resnext_c_101", "resnext_c_50", "xception_41", "xception_65", "xception_71"),
}


@pytest.mark.parametrize("name", slow_if(STORED, DEEP.__contains__))
def test_the_file_of_figures_is_up_to_date(name):
    assert figures_of(NetworkKeys(name)) == STORED[name], (
        "python -m moxing.tensorflow.nets.parts.figures writes the file"
    )
