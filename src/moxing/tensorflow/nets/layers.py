"""The vocabulary that the networks are written in.

A network is a function of a `Layers` and a batch of images. `Layers` knows what is the same in the whole network:
whether it trains, the order of the axes, the weight decay, how batches are normalised. So the network's own file shows
what is particular to it: depths, kernels, strides, names.

The names of the variables are those of TF-Slim (`weights`, `biases`, `BatchNorm/beta`, ...), and so the published
checkpoints load.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.batch_norm import BatchNorm, normalise
from moxing.tensorflow.nets.variables import network_variable

Activation = Callable[[tf.Tensor], tf.Tensor] | None

#: He et al., "Delving deep into rectifiers": what most of the networks begin with.
HE_INITIALIZER = tf.variance_scaling_initializer(2.0, "fan_in", "truncated_normal")


@dataclass(frozen=True)
class Style:
    """What the layers of a network have in common, unless a layer says otherwise.

    Attributes:
      batch_norm: the constants of batch normalisation after every convolution; None: biases instead.
      activation: what every layer ends with; None is nothing.
      initializer: of the weights.
      padding: `SAME`, `VALID`, or `FIXED`: as many zeros on each side as the kernel reaches over, whatever the size
        of the image, so that a stride counts from the same pixel for every size.
      collect: every layer's output becomes an end point under the layer's scope.
      decay: the weights decay.
      decay_depthwise: depthwise weights decay like the others.
    """

    batch_norm: BatchNorm | None = None
    activation: Activation = tf.nn.relu
    initializer: Any = HE_INITIALIZER
    padding: str = "SAME"
    collect: bool = False
    decay: bool = True
    decay_depthwise: bool = False


#: "As the style says", where None has a meaning of its own.
AS_STYLED: Any = object()


class Layers:
    """Layers that share a style and the settings of `mox.get_model_fn`.

    Args:
      training: batch normalisation uses the batch and dropout drops.
      data_format: `NHWC` or `NCHW`: the order of the axes of every tensor in the network.
      weight_decay: factor of the L2 losses of the weights; 0 makes none.
      batch_norm_fused: see `BatchNorm.fused`.
      batch_renorm: see `BatchNorm.renorm`.
      variable_dtype: type that the weights are asked for in; None: that of the input.
      style: what the layers have in common.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False, style=Style(batch_norm=BatchNorm()))
      ...     x = net.conv(tf.zeros([1, 32, 32, 3]), 8, 3, stride=2, scope='conv1')
      ...     print(x.shape, [variable.op.name for variable in tf.trainable_variables()])
      (1, 16, 16, 8) ['conv1/weights', 'conv1/BatchNorm/gamma', 'conv1/BatchNorm/beta']
    """

    def __init__(
        self,
        training: bool,
        data_format: str = "NHWC",
        weight_decay: float = 0.0,
        batch_norm_fused: bool = True,
        batch_renorm: bool = False,
        variable_dtype: tf.DType | None = None,
        style: Style = Style(),  # noqa: B008 (immutable)
    ) -> None:
        self.training, self.data_format, self.weight_decay = training, data_format, weight_decay
        self.style = style
        #: Outputs by name, for the user.
        self.end_points: dict[str, tf.Tensor] = {}
        self._fused, self._renorm = batch_norm_fused, batch_renorm
        self._variable_dtype = variable_dtype
        self._scopes: list[str] = []

    def styled(self, **changes: Any) -> Layers:
        """The same layers with some fields of the `Style` changed; end points go to the same place."""
        other = copy.copy(self)
        other.style = replace(self.style, **changes)
        return other

    # --- names ---------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """A variable scope; the names of collected end points begin with it."""
        self._scopes.append(name)
        try:
            with tf.variable_scope(name):
                yield
        finally:
            self._scopes.pop()

    def end_point(self, name: str, x: tf.Tensor) -> tf.Tensor:
        """Gives `x` a name that the user finds it under; returns `x`."""
        self.end_points[name] = x
        return x

    def collected(self, x: tf.Tensor, scope: str | None = None) -> tf.Tensor:
        """Makes `x` an end point under the current scopes (and `scope`) if the style collects; returns `x`."""
        if self.style.collect:
            self.end_point("/".join([*self._scopes, scope] if scope else self._scopes), x)
        return x

    # --- axes ----------------------------------------------------------------------------------------------------

    @property
    def channel_axis(self) -> int:
        """Which axis the channels are."""
        return 1 if self.data_format == "NCHW" else 3

    @property
    def spatial_axes(self) -> tuple[int, int]:
        """Which axes height and width are."""
        return (2, 3) if self.data_format == "NCHW" else (1, 2)

    def channels(self, x: tf.Tensor) -> int:
        """The number of channels of `x`."""
        return int(x.shape.as_list()[self.channel_axis])

    def size(self, x: tf.Tensor) -> tuple[int | None, int | None]:
        """Height and width of `x`, as far as they are known."""
        shape = x.shape.as_list()
        height, width = self.spatial_axes
        return shape[height], shape[width]

    def concat(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        """Joins the channels."""
        return tf.concat(list(tensors), self.channel_axis)

    def per_axis(self, height: Any, width: Any, other: Any = 1) -> list[Any]:
        """A list with a value for every axis, in the order of `data_format`."""
        spatial = [height, width]
        return [other, other, *spatial] if self.data_format == "NCHW" else [other, *spatial, other]

    # --- layers with weights ---------------------------------------------------------------------------------------

    def conv(
        self,
        x: tf.Tensor,
        depth: int,
        kernel: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        *,
        scope: str,
        padding: str | None = None,
        rate: int = 1,
        groups: int = 1,
        activation: Activation = AS_STYLED,
        batch_norm: BatchNorm | None = AS_STYLED,
        biases: bool | None = None,
        biases_initializer: Any = None,
        initializer: Any = None,
    ) -> tf.Tensor:
        """A convolution, normalised or with biases, and its activation.

        Args:
          x: the input.
          depth: number of output channels.
          kernel: height and width of the kernel.
          stride: of both axes.
          scope: the name.
          padding: see `Style.padding`; None is the style's.
          rate: distance of the kernel's taps.
          groups: input and output channels fall into that many groups that do not see each other.
          activation: None is none.
          batch_norm: None is none.
          biases: None: when there is no batch normalisation.
          biases_initializer: None is zeros.
          initializer: of the weights; None is the style's.
        """
        kernel_size = _pair(kernel)
        with self.scope(scope):
            shape = [*kernel_size, self.channels(x) // groups, depth]
            weights = self.weights("weights", shape, initializer, x)
            convolve = partial(
                tf.nn.conv2d,
                strides=self.per_axis(*_pair(stride)),
                padding=self._padding(padding, kernel_size, _pair(stride), rate),
                data_format=self.data_format,
                dilations=self.per_axis(rate, rate),
            )
            if groups > 1 and self.training and self.data_format == "NHWC":
                # The CPU has no gradient of a grouped convolution with explicit padding, or without oneDNN.
                parts = zip(tf.split(x, groups, 3), tf.split(weights, groups, 3), strict=True)
                x = tf.concat([convolve(part, its_weights) for part, its_weights in parts], 3)
            else:
                x = convolve(x, weights)
            return self.collected(self._finished(x, activation, batch_norm, biases, biases_initializer))

    def depthwise(
        self,
        x: tf.Tensor,
        kernel: int | Sequence[int],
        stride: int = 1,
        *,
        scope: str,
        padding: str | None = None,
        rate: int = 1,
        activation: Activation = AS_STYLED,
        batch_norm: BatchNorm | None = AS_STYLED,
        biases: bool | None = None,
        initializer: Any = None,
    ) -> tf.Tensor:
        """A convolution of every channel by itself; see `conv`."""
        with self.scope(scope):
            x = self._depthwise(x, _pair(kernel), stride, padding, rate, initializer)
            return self.collected(self._finished(x, activation, batch_norm, biases, None))

    def separable(
        self,
        x: tf.Tensor,
        depth: int,
        kernel: int | Sequence[int],
        stride: int = 1,
        *,
        scope: str,
        padding: str | None = None,
        rate: int = 1,
        activation: Activation = AS_STYLED,
        batch_norm: BatchNorm | None = AS_STYLED,
        biases: bool | None = None,
        initializer: Any = None,
    ) -> tf.Tensor:
        """A depthwise convolution and a 1 x 1 convolution behind it, as one layer under one scope; see `conv`."""
        with self.scope(scope):
            channels = self.channels(x)
            x = self._depthwise(x, _pair(kernel), stride, padding, rate, initializer)
            weights = self.weights("pointwise_weights", [1, 1, channels, depth], initializer, x)
            x = tf.nn.conv2d(x, weights, strides=1, padding="VALID", data_format=self.data_format)
            return self.collected(self._finished(x, activation, batch_norm, biases, None))

    def dense(
        self,
        x: tf.Tensor,
        depth: int,
        *,
        scope: str,
        activation: Activation = AS_STYLED,
        initializer: Any = None,
        biases_initializer: Any = None,
    ) -> tf.Tensor:
        """A fully connected layer on [batch, features], with biases."""
        with self.scope(scope):
            weights = self.weights("weights", [int(x.shape.as_list()[1]), depth], initializer, x)
            return self.collected(self._finished(tf.matmul(x, weights), activation, None, True, biases_initializer))

    def batch_norm(
        self, x: tf.Tensor, *, scope: str = "BatchNorm", activation: Activation = None, style: BatchNorm | None = None
    ) -> tf.Tensor:
        """Batch normalisation by itself, with the style's constants unless `style` gives others."""
        constants = style or self.style.batch_norm or BatchNorm()
        with tf.variable_scope(scope):
            x = normalise(x, constants, self.training, self.data_format, self._fused, self._renorm)
        return activation(x) if activation else x

    def weights(self, name: str, shape: Sequence[int], initializer: Any, like: tf.Tensor, decay: bool = True) -> Any:
        """The weights `name` in the type of `like`; they decay unless `decay` is false."""
        return network_variable(
            name,
            shape,
            like.dtype,
            self._variable_dtype or like.dtype,
            initializer or self.style.initializer,
            self.weight_decay if decay and self.style.decay else 0.0,
        )

    def _depthwise(
        self, x: tf.Tensor, kernel: tuple[int, int], stride: int, padding: str | None, rate: int, initializer: Any
    ) -> tf.Tensor:
        shape = [*kernel, self.channels(x), 1]
        weights = self.weights("depthwise_weights", shape, initializer, x, self.style.decay_depthwise)
        zeros = self._padding(padding, kernel, (stride, stride), rate)
        if not isinstance(zeros, str):
            # By an operation of its own: with biases behind it, TensorFlow 2.21 ends the process when it optimises a
            # depthwise convolution that pads.
            x, zeros = tf.pad(x, zeros), "VALID"
        return tf.nn.depthwise_conv2d(
            x,
            weights,
            strides=self.per_axis(stride, stride),
            padding=zeros,
            data_format=self.data_format,
            dilations=[rate, rate],
        )

    def _finished(
        self,
        x: tf.Tensor,
        activation: Activation,
        batch_norm: BatchNorm | None,
        biases: bool | None,
        biases_initializer: Any,
    ) -> tf.Tensor:
        constants = self.style.batch_norm if batch_norm is AS_STYLED else batch_norm
        if biases if biases is not None else constants is None:
            depth = int(x.shape.as_list()[self.channel_axis if x.shape.rank == 4 else 1])
            added = self.weights("biases", [depth], biases_initializer or tf.zeros_initializer(), x, decay=False)
            x = tf.nn.bias_add(x, added, self.data_format if x.shape.rank == 4 else None)
        if constants is not None:
            x = self.batch_norm(x, style=constants)
        function = self.style.activation if activation is AS_STYLED else activation
        return function(x) if function else x

    def _padding(self, padding: str | None, kernel: tuple[int, int], stride: tuple[int, int], rate: int) -> Any:
        chosen = padding or self.style.padding
        if chosen != "FIXED":
            return chosen
        if stride == (1, 1):
            return "SAME"  # which is the same then, and known to more kernels
        vertical, horizontal = ((length - 1) * rate for length in kernel)
        return self.per_axis(_halved(vertical), _halved(horizontal), other=[0, 0])

    # --- layers without weights -----------------------------------------------------------------------------------

    def max_pool(
        self, x: tf.Tensor, kernel: int | Sequence[int], stride: int = 2, *, padding: str = "VALID",
        scope: str | None = None,
    ) -> tf.Tensor:  # fmt: skip
        """The largest of every window. With a `scope` it is collected under that name."""
        x = tf.nn.max_pool2d(x, _pair(kernel), _pair(stride), padding, self.data_format, name=scope)
        return self.collected(x, scope) if scope else x

    def avg_pool(
        self, x: tf.Tensor, kernel: int | Sequence[int], stride: int = 2, *, padding: str = "VALID",
        scope: str | None = None,
    ) -> tf.Tensor:  # fmt: skip
        """The mean of every window. With a `scope` it is collected under that name."""
        x = tf.nn.avg_pool2d(x, _pair(kernel), _pair(stride), padding, self.data_format, name=scope)
        return self.collected(x, scope) if scope else x

    def global_pool(self, x: tf.Tensor, keep: bool = True) -> tf.Tensor:
        """The mean over the image, for any size; `keep` keeps the two axes with length 1."""
        return tf.reduce_mean(x, self.spatial_axes, keepdims=keep, name="global_pool")

    def squeeze(self, x: tf.Tensor) -> tf.Tensor:
        """[batch, 1, 1, depth] to [batch, depth]."""
        return tf.squeeze(x, self.spatial_axes, name="SpatialSqueeze")

    def flatten(self, x: tf.Tensor) -> tf.Tensor:
        """[batch, features], in the order height, width, channels whatever the data format."""
        x = self.channels_last(x)
        height, width, depth = x.shape.as_list()[1:]
        return tf.reshape(x, [-1, height * width * depth])

    def softmax(self, x: tf.Tensor, name: str | None = None) -> tf.Tensor:
        """Shares of the classes that sum to 1, for logits with or without height and width."""
        return tf.nn.softmax(x, axis=1 if x.shape.rank == 2 else self.channel_axis, name=name)

    def subsampled(self, x: tf.Tensor, stride: int) -> tf.Tensor:
        """Every `stride`-th pixel."""
        return x if stride == 1 else self.max_pool(x, 1, stride=stride)

    def channels_last(self, x: tf.Tensor) -> tf.Tensor:
        """`x` as [batch, height, width, depth]."""
        return tf.transpose(x, [0, 2, 3, 1]) if self.data_format == "NCHW" else x

    def dropout(self, x: tf.Tensor, keep_prob: float) -> tf.Tensor:
        """In training drops features and scales the others up; else nothing."""
        require_share("dropout_keep_prob", keep_prob)
        return tf.nn.dropout(x, rate=1 - keep_prob) if self.training and keep_prob < 1 else x


def require_share(argument: str, value: float) -> None:
    """Raises an error that names the argument unless its value is a share that something can be kept with.

    Example:
      >>> require_share('dropout_keep_prob', 0.0)
      Traceback (most recent call last):
      ValueError: dropout_keep_prob=0.0: expected a number above 0 and at most 1; 1 drops nothing.
    """
    if not 0 < value <= 1:
        raise ValueError(f"{argument}={value!r}: expected a number above 0 and at most 1; 1 drops nothing.")


def _halved(zeros: int) -> list[int]:
    return [zeros // 2, zeros - zeros // 2]


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    first, second = value
    return first, second
