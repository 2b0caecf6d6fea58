"""Output strides: strides are replaced by dilation, so that a network keeps the resolution that is asked for."""

from __future__ import annotations

from collections.abc import Sequence


def strides_and_rates(strides: Sequence[int], output_stride: int | None) -> list[tuple[int, int]]:
    """Returns stride and dilation rate of every layer.

    Args:
      strides: strides of the layers, in their order.
      output_stride: the resolution is reduced to 1 / output_stride and no further: later strides become dilation of
        the layers after them; None: no bound.

    Example:
      >>> strides_and_rates([2, 2, 1, 2, 1], output_stride=4)
      [(2, 1), (2, 1), (1, 1), (1, 1), (1, 2)]
    """
    reached = [1]
    for stride in strides:
        reached.append(reached[-1] * stride)
    possible = sorted(set(reached[1:]))
    if output_stride is not None and output_stride not in possible:
        raise ValueError(f"output_stride={output_stride!r}: expected None or one of {possible}.")
    bound = output_stride or reached[-1]
    return [
        (stride if before * stride <= bound else 1, max(1, before // bound))
        for stride, before in zip(strides, reached, strict=False)
    ]
