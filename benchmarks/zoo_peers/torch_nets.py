"""The three networks in plain `torch.nn`, with the layers, strides and parameters of the zoo's.

Layers infer the depth of their input from the first image, so only output depths are given here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def conv(
    depth: int,
    kernel: int | tuple[int, int] = 1,
    stride: int = 1,
    padded: bool = True,
    groups: int = 1,
    activation: Callable[..., nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """Convolution, batch normalisation, activation."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = (height // 2, width // 2) if padded else 0
    layers = [
        nn.LazyConv2d(depth, (height, width), stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(depth),
    ]
    return nn.Sequential(*layers, *([activation(inplace=True)] if activation else []))


def head(classes: int, dropout: float) -> list[nn.Module]:
    """Return the layers from features to logits."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.LazyLinear(classes)]


class Residual(nn.Module):
    """The sum of two paths, followed by further layers."""

    def __init__(self, residual: nn.Module, shortcut: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.residual, self.shortcut, self.activation = residual, shortcut, activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.residual(x) + self.shortcut(x))


class Branches(nn.Module):
    """The concatenated channels of several paths."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def resnet_v1_50(classes: int) -> nn.Module:
    """Strides are in the last unit of a block, as in TF-Slim: 3.48 G multiply-adds instead of 4.09 G."""
    layers: list[nn.Module] = [conv(64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for number, units in enumerate((3, 4, 6, 3)):
        depth = 256 * 2**number
        for unit in range(units):
            stride = 2 if unit == units - 1 and number < 3 else 1
            residual = nn.Sequential(conv(depth // 4), conv(depth // 4, 3, stride), conv(depth, activation=None))
            if unit == 0:
                shortcut: nn.Module = conv(depth, activation=None)
            else:
                shortcut = nn.MaxPool2d(1, stride) if stride > 1 else nn.Identity()
            layers.append(Residual(residual, shortcut, nn.ReLU(inplace=True)))
    return nn.Sequential(*layers, *head(classes, 0.0))


def mobilenet_v2(classes: int) -> nn.Module:
    layers: list[nn.Module] = [conv(32, 3, 2, activation=nn.ReLU6)]
    channels = 32
    # Expansion, depth, blocks, stride of the first block.
    for expansion, depth, blocks, first_stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for number in range(blocks):
            stride = first_stride if number == 0 else 1
            inner = channels * expansion
            expand = [conv(inner, activation=nn.ReLU6)] if expansion > 1 else []
            depthwise = conv(inner, 3, stride, groups=inner, activation=nn.ReLU6)
            block: nn.Module = nn.Sequential(*expand, depthwise, conv(depth, activation=None))
            adds = stride == 1 and channels == depth
            layers.append(Residual(block, nn.Identity(), nn.Identity()) if adds else block)
            channels = depth
    return nn.Sequential(*layers, conv(1280, activation=nn.ReLU6), *head(classes, 0.2))


def inception_v3(classes: int) -> nn.Module:
    """Without the auxiliary head; batch normalization has no trained scale."""
    net = nn.Sequential(
        *(conv(32, 3, 2, padded=False), conv(32, 3, padded=False), conv(64, 3), nn.MaxPool2d(3, 2)),
        *(conv(80), conv(192, 3, padded=False), nn.MaxPool2d(3, 2)),
        *(_module_35(32), _module_35(64), _module_35(64), _shrink_to_17()),
        *(_module_17(128), _module_17(160), _module_17(160), _module_17(192), _shrink_to_8()),
        *(_module_8(), _module_8(), *head(classes, 0.2)),
    )
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.weight.requires_grad_(False)
    return net


def _pooled(depth: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), conv(depth))


def _module_35(pooled: int) -> Branches:
    return Branches(
        conv(64),
        nn.Sequential(conv(48), conv(64, 5)),
        nn.Sequential(conv(64), conv(96, 3), conv(96, 3)),
        _pooled(pooled),
    )


def _module_17(inner: int) -> Branches:
    wide, tall = (1, 7), (7, 1)
    return Branches(
        conv(192),
        nn.Sequential(conv(inner), conv(inner, wide), conv(192, tall)),
        nn.Sequential(conv(inner), conv(inner, tall), conv(inner, wide), conv(inner, tall), conv(192, wide)),
        _pooled(192),
    )


def _module_8() -> Branches:
    return Branches(
        conv(320),
        nn.Sequential(conv(384), Branches(conv(384, (1, 3)), conv(384, (3, 1)))),
        nn.Sequential(conv(448), conv(384, 3), Branches(conv(384, (1, 3)), conv(384, (3, 1)))),
        _pooled(192),
    )


def _shrink_to_17() -> Branches:
    return Branches(
        conv(384, 3, 2, padded=False),
        nn.Sequential(conv(64), conv(96, 3), conv(96, 3, 2, padded=False)),
        nn.MaxPool2d(3, 2),
    )


def _shrink_to_8() -> Branches:
    return Branches(
        nn.Sequential(conv(192), conv(320, 3, 2, padded=False)),
        nn.Sequential(conv(192), conv(192, (1, 7)), conv(192, (7, 1)), conv(192, 3, 2, padded=False)),
        nn.MaxPool2d(3, 2),
    )


NETS = {"resnet_v1_50": resnet_v1_50, "mobilenet_v2": mobilenet_v2, "inception_v3": inception_v3}
