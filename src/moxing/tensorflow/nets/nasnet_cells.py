"""The cells that NASNet and PNASNet are stacked from.

A search found the cells, people stacked them. A cell sees the outputs of the two cells below it. These are its hidden
states 0 and 1; five times it takes two states, does something to each and adds them, which makes states 2 to 6; some of
the states, joined, are its output. So a cell is a table, and this file is what reads the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers

#: Does something to a state: (layers, state, depth of the result, stride).
Operation = Callable[[Layers, tf.Tensor, int, int], tf.Tensor]
#: A hidden state by its number, and what is done to it.
Branch = tuple[int, Operation]

#: The hidden states that a cell begins with: the output of the cell below it, and of the one below that.
CURRENT, PREVIOUS = 0, 1


class Cell(NamedTuple):
    """The table of a cell: pairs of branches that are added, and the numbers of the states that are its output."""

    combinations: tuple[tuple[Branch, Branch], ...]
    outputs: tuple[int, ...]


# --- operations ------------------------------------------------------------------------------------------------------


def normalised_conv(
    net: Layers, x: tf.Tensor, depth: int, kernel: Any, stride: int = 1, *, scopes: tuple[str, str]
) -> tf.Tensor:
    """A convolution and a batch normalisation, each in a scope of its own; the activation comes before."""
    scope, norm_scope = scopes
    x = net.styled(batch_norm=None, biases=False).conv(x, depth, kernel, stride, scope=scope)
    return net.batch_norm(x, scope=norm_scope)


def _separable(net: Layers, x: tf.Tensor, depth: int, stride: int, *, kernel: int) -> tf.Tensor:
    """Two separable convolutions; the first one has the stride."""
    for number, step in enumerate((stride, 1), start=1):
        name = f"{kernel}x{kernel}_{number}"
        x = tf.nn.relu(x)
        x = net.styled(batch_norm=None, biases=False).separable(x, depth, kernel, step, scope=f"separable_{name}")
        x = net.batch_norm(x, scope=f"bn_sep_{name}")
    return x


def _avg_pool(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    return _deepened(net, net.avg_pool(x, 3, stride, padding="SAME"), depth)


def _max_pool(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    return _deepened(net, net.max_pool(x, 3, stride, padding="SAME"), depth)


def _deepened(net: Layers, x: tf.Tensor, depth: int) -> tf.Tensor:
    return x if net.channels(x) == depth else normalised_conv(net, x, depth, 1, scopes=("1x1", "bn_1"))


def _identity(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    if stride == 1 and net.channels(x) == depth:
        return x
    return normalised_conv(net, tf.nn.relu(x), depth, 1, stride, scopes=("1x1", "bn_1"))


SEPARABLE_3X3: Operation = partial(_separable, kernel=3)
SEPARABLE_5X5: Operation = partial(_separable, kernel=5)
SEPARABLE_7X7: Operation = partial(_separable, kernel=7)
AVG_POOL_3X3: Operation = _avg_pool
MAX_POOL_3X3: Operation = _max_pool
IDENTITY: Operation = _identity


# --- drop path -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DropPath:
    """Drop path: in training a whole branch is set to zero for some images.

    The higher a cell, and the later in training, the more often.

    Attributes:
      keep_prob: probability to stay, in the last cell at the end of training; 1 drops nothing.
      total_training_steps: after so many steps of the graph's global step the probability is reached; None, or no
        global step: from the beginning.
      num_cells: how many cells there are in all.
    """

    keep_prob: float
    total_training_steps: int | None
    num_cells: int

    def keep_prob_in(self, number: int) -> Any:
        """Returns the keep probability of cell `number`, from 0; a tensor if it changes during training.

        Example:
          >>> DropPath(keep_prob=0.6, total_training_steps=None, num_cells=20).keep_prob_in(9)
          0.8
        """
        drop_prob = (number + 1) / self.num_cells * (1 - self.keep_prob)
        global_step = tf.train.get_global_step()
        if self.total_training_steps is None or global_step is None:
            return 1 - drop_prob
        progress = tf.minimum(1.0, tf.cast(global_step, tf.float32) / self.total_training_steps)
        return 1 - progress * drop_prob


def dropped(x: tf.Tensor, keep_prob: Any) -> tf.Tensor:
    """Sets whole images to zero with probability 1 - `keep_prob`, and scales the others up."""
    chance = tf.random.uniform([tf.shape(x)[0], 1, 1, 1])
    return x * tf.cast(tf.floor(keep_prob + chance) / keep_prob, x.dtype)


# --- cells -----------------------------------------------------------------------------------------------------------


class Output(NamedTuple):
    """The output of a cell, and how often height and width were halved up to it. Sizes may be unknown, this is not."""

    x: tf.Tensor
    halvings: int


class CellStack:
    """A stack of cells.

    Args:
      net: the layers; their style has no activation.
      x: what the first cell stands on.
      drop_path: how branches are dropped in training.

    Example:
      >>> from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False).styled(batch_norm=BatchNorm(), activation=None)
      ...     cell = Cell((((CURRENT, SEPARABLE_3X3), (PREVIOUS, IDENTITY)),), outputs=(CURRENT, 2))
      ...     stack = CellStack(net, tf.zeros([1, 8, 8, 3]), DropPath(1.0, None, num_cells=2))
      ...     stack.add(cell, depth=5, scope='cell_0').shape
      TensorShape([1, 8, 8, 10])
    """

    def __init__(self, net: Layers, x: tf.Tensor, drop_path: DropPath) -> None:
        self._net, self._drop_path = net, drop_path
        self._outputs = [Output(x, 0)]

    @property
    def top(self) -> tf.Tensor:
        """The output of the last cell."""
        return self._outputs[-1].x

    @property
    def below_top(self) -> Output | None:
        """The output of the last cell but one, which is state 1 of the next cell; None where there is none."""
        return self._outputs[-2] if len(self._outputs) > 1 else None

    def add(self, cell: Cell, depth: int, *, scope: str, stride: int = 1, previous: Output | None = None) -> tf.Tensor:
        """Adds a cell.

        Args:
          cell: its table.
          depth: of its hidden states.
          scope: its name.
          stride: 2 halves height and width.
          previous: its state 1, from an earlier `below_top`; None is the present one.

        Returns:
          Its output.
        """
        net, current = self._net, self._outputs[-1]
        previous = self.below_top if previous is None else previous
        # One tensor per cell, not per branch: a smaller graph.
        keep_prob = self._drop_path.keep_prob_in(len(self._outputs) - 1) if self._drops() else 1.0
        with net.scope(scope):
            matched = current.x if previous is None else _matched(net, previous, current, depth)
            states = [
                normalised_conv(net, tf.nn.relu(current.x), depth, 1, scopes=("1x1", "beginning_bn")),
                matched,
            ]
            for number, branches in enumerate(cell.combinations):
                with net.scope(f"comb_iter_{number}"):
                    left, right = (
                        self._applied(states, branch, depth, stride, keep_prob, scope=side)
                        for branch, side in zip(branches, ("left", "right"), strict=True)
                    )
                    states.append(left + right)
            with net.scope("cell_output"):
                x = net.concat([_as_deep(net, states[number], depth, number) for number in cell.outputs])
        self._outputs.append(Output(x, current.halvings + (stride > 1)))
        return x

    def _drops(self) -> bool:
        return self._net.training and self._drop_path.keep_prob < 1

    def _applied(
        self, states: list[tf.Tensor], branch: Branch, depth: int, stride: int, keep_prob: Any, *, scope: str
    ) -> tf.Tensor:
        number, operation = branch
        with self._net.scope(scope):
            # States of the cell itself already have the right size.
            x = operation(self._net, states[number], depth, stride if number in (CURRENT, PREVIOUS) else 1)
            return dropped(x, keep_prob) if self._drops() and operation is not IDENTITY else x


def _matched(net: Layers, previous: Output, current: Output, depth: int) -> tf.Tensor:
    """Returns `previous` in the size of `current` and in the given depth."""
    if previous.halvings != current.halvings:
        return _halved(net, tf.nn.relu(previous.x), depth)
    if net.channels(previous.x) != depth:
        return normalised_conv(net, tf.nn.relu(previous.x), depth, 1, scopes=("prev_1x1", "prev_bn"))
    return previous.x


def _halved(net: Layers, x: tf.Tensor, depth: int) -> tf.Tensor:
    """Halves height and width: half of the channels from every other pixel, the others from their neighbours."""
    # Shifted by one pixel diagonally, padded with zeros.
    neighbours = tf.slice(tf.pad(x, net.per_axis([0, 1], [0, 1], other=[0, 0])), net.per_axis(1, 1, other=0), [-1] * 4)
    conv = partial(net.styled(padding="VALID", batch_norm=None, biases=False).conv, kernel=1, stride=2)
    paths = [conv(x, depth // 2, scope="path1_conv"), conv(neighbours, depth - depth // 2, scope="path2_conv")]
    return net.batch_norm(net.concat(paths), scope="final_path_bn")


def _as_deep(net: Layers, x: tf.Tensor, depth: int, number: int) -> tf.Tensor:
    """State `number` in that depth. Only state 1 of the first cell, which has no cell before it, can differ."""
    if net.channels(x) == depth:
        return x
    with net.scope(f"reduction_{number}"):
        return normalised_conv(net, x, depth, 1, scopes=("path_conv", "path_bn"))
