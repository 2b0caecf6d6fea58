"""The registry of networks: every name that `mox.get_model_fn` and `mox.get_data_augmentation_fn` know.

A network of the zoo is one file in `moxing.tensorflow.nets` and one line of `NetworkKeys`. A script adds its own with
`register_network`. The registry stands outside of `nets` because `preprocessing`, which `nets` imports, reads it too.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import EnumType, StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from moxing.framework.util.names import known_name, nearest


class _NearestNames(EnumType):
    """Suggests the nearest names when an unknown one is asked for."""

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
    """The networks of the zoo: the name, and the module of `moxing.tensorflow.nets` that defines it.

    Attributes:
      module: the module; its table `NETWORKS` has the network under its name.

    Example:
      >>> NetworkKeys.RESNET_V1_18, NetworkKeys.RESNET_V1_18.module
      (<NetworkKeys.RESNET_V1_18: 'resnet_v1_18'>, 'resnet_v1_small')
    """

    module: str

    def __new__(cls, name: str, module: str = "") -> NetworkKeys:
        member = str.__new__(cls, name)
        member._value_, member.module = name, module
        return member

    ALEXNET_V2 = "alexnet_v2", "alexnet"
    CIFARNET = "cifarnet", "cifarnet"
    INCEPTION_RESNET_V2 = "inception_resnet_v2", "inception_resnet_v2"
    INCEPTION_V1 = "inception_v1", "inception_v1"
    INCEPTION_V2 = "inception_v2", "inception_v2"
    INCEPTION_V3 = "inception_v3", "inception_v3"
    INCEPTION_V4 = "inception_v4", "inception_v4"
    LENET = "lenet", "lenet"
    MOBILENET_V1 = "mobilenet_v1", "mobilenet_v1"
    MOBILENET_V1_025 = "mobilenet_v1_025", "mobilenet_v1"
    MOBILENET_V1_050 = "mobilenet_v1_050", "mobilenet_v1"
    MOBILENET_V1_075 = "mobilenet_v1_075", "mobilenet_v1"
    MOBILENET_V2 = "mobilenet_v2", "mobilenet_v2"
    MOBILENET_V2_035 = "mobilenet_v2_035", "mobilenet_v2"
    MOBILENET_V2_140 = "mobilenet_v2_140", "mobilenet_v2"
    NASNET_CIFAR = "nasnet_cifar", "nasnet"
    NASNET_LARGE = "nasnet_large", "nasnet"
    NASNET_MOBILE = "nasnet_mobile", "nasnet"
    OVERFEAT = "overfeat", "overfeat"
    PNASNET_LARGE = "pnasnet_large", "pnasnet"
    PNASNET_MOBILE = "pnasnet_mobile", "pnasnet"
    PVANET = "pvanet", "pvanet"
    RESNET_V1_18 = "resnet_v1_18", "resnet_v1_small"
    RESNET_V1_20 = "resnet_v1_20", "resnet_v1_small"
    RESNET_V1_50 = "resnet_v1_50", "resnet_v1"
    RESNET_V1_50_8K = "resnet_v1_50_8k", "resnet_v1_variants"
    RESNET_V1_50_MOX = "resnet_v1_50_mox", "resnet_v1_variants"
    RESNET_V1_50_OCT = "resnet_v1_50_oct", "resnet_v1_octave"
    RESNET_V1_101 = "resnet_v1_101", "resnet_v1"
    RESNET_V1_110 = "resnet_v1_110", "resnet_v1_small"
    RESNET_V1_152 = "resnet_v1_152", "resnet_v1"
    RESNET_V1_200 = "resnet_v1_200", "resnet_v1"
    RESNET_V2_50 = "resnet_v2_50", "resnet_v2"
    RESNET_V2_101 = "resnet_v2_101", "resnet_v2"
    RESNET_V2_152 = "resnet_v2_152", "resnet_v2"
    RESNET_V2_200 = "resnet_v2_200", "resnet_v2"
    RESNEXT_B_50 = "resnext_b_50", "resnext"
    RESNEXT_B_101 = "resnext_b_101", "resnext"
    RESNEXT_C_50 = "resnext_c_50", "resnext"
    RESNEXT_C_101 = "resnext_c_101", "resnext"
    VGG_16 = "vgg_16", "vgg"
    VGG_16_BN = "vgg_16_bn", "vgg"
    VGG_19 = "vgg_19", "vgg"
    VGG_19_BN = "vgg_19_bn", "vgg"
    VGG_A = "vgg_a", "vgg"
    VGG_A_BN = "vgg_a_bn", "vgg"
    XCEPTION_41 = "xception_41", "xception"
    XCEPTION_65 = "xception_65", "xception"
    XCEPTION_71 = "xception_71", "xception"


class Architecture(Protocol):
    """The function that builds a network.

    Its arguments are the layers (`moxing.tensorflow.nets.Layers`), the images in the layers' data format, and the
    number of classes. It returns the logits, or the features in front of the last layer if `num_classes` is None,
    and stores its end points in the layers. Its keyword arguments with defaults are the network's options.
    """

    def __call__(self, net: Any, images: Any, num_classes: int | None, **options: Any) -> Any: ...


@dataclass(frozen=True)
class Network:
    """A network and what the zoo knows about it.

    Attributes:
      architecture: builds it, see `Architecture`.
      scope: scope of its variables, the prefix in a checkpoint; empty if it has none.
      image_size: height and width of the images that it was published with.
      logits_pattern: regular expression for the variables whose shape depends on the number of classes.
      labels_offset: 1 if the published weights have 1,000 classes, 0 if they have a background class as well.
      smallest: least height and width of an image.
      channels: number of channels of the images that it was published with; it accepts any.
      preprocessing: pipeline for its images: `vgg`, `inception`, `cifarnet`, `lenet` or `pvanet`.
    """

    architecture: Callable[..., Any]
    scope: str
    image_size: int
    logits_pattern: str
    labels_offset: int = 0
    smallest: int = 1
    channels: int = 3
    preprocessing: str = "vgg"


#: End of the error for an unknown name.
REGISTER_ADVICE = "Register a network of your own with register_network before this call."

#: Networks of scripts, by name.
_registered: dict[str, Network] = {}


def register_network(name: str, network: Network) -> None:
    """Makes a network known to `mox.get_model_fn`, `mox.get_model_meta` and `mox.get_data_augmentation_fn`.

    Args:
      name: its name, in lower case. Registering a name again replaces the network.
      network: the network.

    Raises:
      TypeError: it is not a `Network`, or the arguments of its function do not fit.
      ValueError: the zoo has a network of that name, the name is not in lower case, or `smallest` is above
        `image_size`.

    Example:
      >>> def tiny(net, images, num_classes):
      ...     with net.scope('tiny'):
      ...         x = net.global_pool(net.conv(images, 8, 3, scope='conv1'))
      ...         return net.squeeze(net.styled(activation=None).conv(x, num_classes, 1, scope='logits'))
      >>> register_network('tiny', Network(tiny, scope='tiny', image_size=32, logits_pattern='logits'))
      >>> network('tiny').image_size
      32
    """
    if name in list(NetworkKeys):
        raise ValueError(f"register_network({name!r}, ...): the zoo has a network of this name; choose another one.")
    if name != name.lower() or not name:
        raise ValueError(f"register_network({name!r}, ...): expected a name in lower case.")
    if not isinstance(network, Network):
        raise TypeError(f"register_network({name!r}, {network!r}): expected a Network(architecture, scope=..., ...).")
    if network.smallest > network.image_size:
        raise ValueError(
            f"register_network({name!r}, Network(smallest={network.smallest}, image_size={network.image_size})): "
            "expected smallest to be at most image_size."
        )
    _check_architecture(name, network.architecture)
    _registered[name] = network


def _check_architecture(name: str, architecture: Callable[..., Any]) -> None:
    """Raises a TypeError unless the function can be called with layers, images and the number of classes."""
    what = f"register_network({name!r}, Network(architecture={getattr(architecture, '__name__', architecture)!s}))"
    if not callable(architecture):
        raise TypeError(f"{what}: expected a function (net, images, num_classes, *, option=default).")
    try:
        signature = inspect.signature(architecture)
    except ValueError:  # a function written in C has no signature
        return
    options = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    if options:
        raise TypeError(f"{what}: the option {options[0]} has no default; give it one, such as {options[0]}=None.")
    try:
        signature.bind(None, None, None)
    except TypeError as error:
        raise TypeError(f"{what}: {error}; expected (net, images, num_classes, *, option=default).") from None


def network_names() -> list[str]:
    """Returns the names of all networks: those of the zoo, then registered ones."""
    return [*(key.value for key in NetworkKeys), *_registered]


def network_name(function: str, name: Any) -> str:
    """Returns the name of a network as the registry has it.

    Args:
      function: the function that was called with `name`, for the error.
      name: a string in upper or lower case, or a member of an enum.

    Raises:
      ValueError: there is no such network; the message lists the nearest names.

    Example:
      >>> network_name('get_model_meta', 'LeNet')
      'lenet'
    """
    return known_name(function, "name", name, network_names(), REGISTER_ADVICE)


def network(name: str) -> Network:
    """Returns the network `name`. Of the zoo's modules only that of the network is imported.

    Example:
      >>> network('resnet_v1_50').scope
      'resnet_v1_50'
    """
    if name in _registered:
        return _registered[name]
    family = importlib.import_module(f"moxing.tensorflow.nets.{NetworkKeys(name).module}")
    found: Network = family.NETWORKS[name]
    return found
