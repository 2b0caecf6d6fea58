"""All networks of the zoo by their names."""

from __future__ import annotations

import importlib
from enum import EnumType, StrEnum
from typing import TYPE_CHECKING, Any

from moxing.framework.util.names import nearest
from moxing.tensorflow.nets.network import Network


class _NearestNames(EnumType):
    """Tells the nearest names when an unknown one is asked for."""

    if not TYPE_CHECKING:  # a type checker would take every name for a known one

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name in cls.__members__:  # Python 3.11 may look for them here
                return cls.__members__[name]
            near = nearest(name, list(cls.__members__))
            hint = f"did you mean {' or '.join(near)}?" if near else "`moxing zoo` lists all networks."
            # Without `obj` Python does not add a suggestion of its own.
            raise AttributeError(f"mox.{cls.__name__} has no {name}; {hint}", name=name)


class NetworkKeys(StrEnum, metaclass=_NearestNames):
    """The names that `mox.get_model_fn` knows.

    Example:
      >>> NetworkKeys.RESNET_V1_50
      <NetworkKeys.RESNET_V1_50: 'resnet_v1_50'>
    """

    ALEXNET_V2 = "alexnet_v2"
    CIFARNET = "cifarnet"
    INCEPTION_RESNET_V2 = "inception_resnet_v2"
    INCEPTION_V1 = "inception_v1"
    INCEPTION_V2 = "inception_v2"
    INCEPTION_V3 = "inception_v3"
    INCEPTION_V4 = "inception_v4"
    LENET = "lenet"
    MOBILENET_V1 = "mobilenet_v1"
    MOBILENET_V1_025 = "mobilenet_v1_025"
    MOBILENET_V1_050 = "mobilenet_v1_050"
    MOBILENET_V1_075 = "mobilenet_v1_075"
    MOBILENET_V2 = "mobilenet_v2"
    MOBILENET_V2_035 = "mobilenet_v2_035"
    MOBILENET_V2_140 = "mobilenet_v2_140"
    NASNET_CIFAR = "nasnet_cifar"
    NASNET_LARGE = "nasnet_large"
    NASNET_MOBILE = "nasnet_mobile"
    OVERFEAT = "overfeat"
    PNASNET_LARGE = "pnasnet_large"
    PNASNET_MOBILE = "pnasnet_mobile"
    PVANET = "pvanet"
    RESNET_V1_18 = "resnet_v1_18"
    RESNET_V1_20 = "resnet_v1_20"
    RESNET_V1_50 = "resnet_v1_50"
    RESNET_V1_50_8K = "resnet_v1_50_8k"
    RESNET_V1_50_MOX = "resnet_v1_50_mox"
    RESNET_V1_50_OCT = "resnet_v1_50_oct"
    RESNET_V1_101 = "resnet_v1_101"
    RESNET_V1_110 = "resnet_v1_110"
    RESNET_V1_152 = "resnet_v1_152"
    RESNET_V1_200 = "resnet_v1_200"
    RESNET_V2_50 = "resnet_v2_50"
    RESNET_V2_101 = "resnet_v2_101"
    RESNET_V2_152 = "resnet_v2_152"
    RESNET_V2_200 = "resnet_v2_200"
    RESNEXT_B_50 = "resnext_b_50"
    RESNEXT_B_101 = "resnext_b_101"
    RESNEXT_C_50 = "resnext_c_50"
    RESNEXT_C_101 = "resnext_c_101"
    VGG_16 = "vgg_16"
    VGG_16_BN = "vgg_16_bn"
    VGG_19 = "vgg_19"
    VGG_19_BN = "vgg_19_bn"
    VGG_A = "vgg_a"
    VGG_A_BN = "vgg_a_bn"
    XCEPTION_41 = "xception_41"
    XCEPTION_65 = "xception_65"
    XCEPTION_71 = "xception_71"


#: The module of a network by the beginning of its name; the longest beginning counts.
_MODULES = {
    "alexnet": "alexnet",
    "cifarnet": "cifarnet",
    "inception_resnet_v2": "inception_resnet_v2",
    "inception_v1": "inception_v1",
    "inception_v2": "inception_v2",
    "inception_v3": "inception_v3",
    "inception_v4": "inception_v4",
    "lenet": "lenet",
    "mobilenet_v1": "mobilenet_v1",
    "mobilenet_v2": "mobilenet_v2",
    "nasnet": "nasnet",
    "overfeat": "overfeat",
    "pnasnet": "pnasnet",
    "pvanet": "pvanet",
    "resnet_v1": "resnet_v1",
    "resnet_v1_18": "resnet_v1_small",
    "resnet_v1_20": "resnet_v1_small",
    "resnet_v1_110": "resnet_v1_small",
    "resnet_v1_200": "resnet_v1",
    "resnet_v1_50_8k": "resnet_v1_variants",
    "resnet_v1_50_mox": "resnet_v1_variants",
    "resnet_v1_50_oct": "resnet_v1_octave",
    "resnet_v2": "resnet_v2",
    "resnext": "resnext",
    "vgg": "vgg",
    "xception": "xception",
}


def network(key: NetworkKeys) -> Network:
    """The network of that name; only its own family is imported.

    Example:
      >>> network(NetworkKeys.RESNET_V1_50).scope
      'resnet_v1_50'
    """
    beginning = max((text for text in _MODULES if key.startswith(text)), key=len)
    family = importlib.import_module(f"moxing.tensorflow.nets.{_MODULES[beginning]}")
    found: Network = family.NETWORKS[key.value]
    return found
