"""The layers that the networks are built from.

A network is a function of a `Layers` and a batch of images. `Layers` holds the settings of the whole network: training
or not, data format, weight decay, batch normalisation. `Style` holds the defaults of its layers. So the file of a
network shows only what is particular to it: depths, kernels, strides, names.

The variables have the names of TF-Slim (`weights`, `biases`, `BatchNorm/beta`, ...), so the published checkpoints load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm, normalise
from moxing.tensorflow.nets.parts.variables import network_variable

Activation = Callable[[tf.Tensor], tf.Tensor] | None

#: He et al., "Delving deep into rectifiers": the initializer of most of the networks.
HE_INITIALIZER = tf.variance_scaling_initializer(2.0, "fan_in", "truncated_normal")


@dataclass(frozen=True)
class Style:
    """Settings of layers; `Layers.styled` changes them for some layers, or for all.

    Attributes:
      batch_norm: batch normalisation after every convolution; None: none.
      activation: activation of every layer; None: none.
      initializer: initializer of the weights.
      biases: whether convolutions have biases; None: those without batch normalisation do.
      biases_initializer: initializer of the biases.
      padding: `SAME`, `VALID`, or `FIXED`: the same number of zeros on each side whatever the size of the image, so
        that a stride starts from the same pixel for every size.
      groups: number of groups that the channels of a convolution are divided into; groups do not see each other.
      collect: true if the output of every layer becomes an end point, named by the layer's scope.
      decay: true if the weights have L2 losses.
      decay_depthwise: true if depthwise weights have them as well.
    """

    batch_norm: BatchNorm | None = None
    activation: Activation = tf.nn.relu
    initializer: Any = HE_INITIALIZER
    biases: bool | None = None
    biases_initializer: Any = tf.zeros_initializer()
    padding: str = "SAME"
    groups: int = 1
    collect: bool = False
    decay: bool = True
    decay_depthwise: bool = False


@dataclass(eq=False)
class Layers:
    """The layers of one network.

    Attributes:
      training: true if batch normalisation uses the batch and dropout drops.
      data_format: `NHWC` or `NCHW`: the order of the axes of every tensor in the network.
      weight_decay: factor of the L2 losses of the weights; 0: none.
      batch_norm_fused: see `normalise`.
      batch_renorm: see `normalise`.
      variable_dtype: type of the weights; None: that of the input.
      style: settings of the layers.
      end_points: tensors for the user, by name.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False, style=Style(batch_norm=BatchNorm()))
      ...     x = net.conv(tf.zeros([1, 32, 32, 3]), 8, 3, stride=2, scope='conv1')
      ...     print(x.shape, [variable.op.name for variable in tf.trainable_variables()])
      (1, 16, 16, 8) ['conv1/weights', 'conv1/BatchNorm/gamma', 'conv1/BatchNorm/beta']
    """

    training: bool
    data_format: str = "NHWC"
    weight_decay: float = 0.0
    batch_norm_fused: bool = True
    batch_renorm: bool = False
    variable_dtype: tf.DType | None = None
    style: Style = Style()
    end_points: dict[str, tf.Tensor] = field(default_factory=dict)
    _scopes: list[str] = field(default_factory=list)

    def styled(self, **changes: Any) -> Layers:
        """Returns the same layers with some fields of the `Style` changed. Scopes and end points are shared.

        Example:
          >>> with tf.Graph().as_default():
          ...     net = Layers(training=False)
          ...     net.styled(activation=None, padding='VALID').conv(tf.zeros([1, 9, 9, 3]), 8, 3, scope='conv').shape
          TensorShape([1, 7, 7, 8])
        """
        return replace(self, style=replace(self.style, **changes))

    # --- names ---------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """A variable scope; names of collected end points start with it."""
        self._scopes.append(name)
        try:
            with tf.variable_scope(name):
                yield
        finally:
            self._scopes.pop()

    def end_point(self, name: str, x: tf.Tensor) -> tf.Tensor:
        """Adds `x` to the end points; returns `x`."""
        self.end_points[name] = x
        return x

    def collected(self, x: tf.Tensor, scope: str | None = None) -> tf.Tensor:
        """Adds `x` to the end points, named by the current scopes and `scope`, if the style collects; returns `x`."""
        if self.style.collect:
            self.end_points["/".join([*self._scopes, scope] if scope else self._scopes)] = x
        return x

    # --- axes ----------------------------------------------------------------------------------------------------

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return 1 if self.data_format == "NCHW" else 3

    @property
    def spatial_axes(self) -> tuple[int, int]:
        """The axes of height and width."""
        return (2, 3) if self.data_format == "NCHW" else (1, 2)

    def channels(self, x: tf.Tensor) -> int:
        """The number of channels of `x`."""
        return int(x.shape.as_list()[self.channel_axis])

    def size(self, x: tf.Tensor) -> tuple[int | None, int | None]:
        """Height and width of `x`; None where unknown."""
        shape = x.shape.as_list()
        height, width = self.spatial_axes
        return shape[height], shape[width]

    def concat(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        """Concatenates the channels."""
        return tf.concat(list(tensors), self.channel_axis)

    def per_axis(self, height: Any, width: Any, other: Any = 1) -> list[Any]:
        """Returns a value for every axis, in the order of `data_format`."""
        return [other, other, height, width] if self.data_format == "NCHW" else [other, height, width, other]

    # --- layers with weights ---------------------------------------------------------------------------------------

    def conv(
        self,
        x: tf.Tensor,
        depth: int,
        kernel: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        *,
        scope: str,
        rate: int = 1,
    ) -> tf.Tensor:
        """A convolution, with biases, batch normalisation and activation as the style has them.

        Args:
          x: the input.
          depth: number of output channels.
          kernel: size of the kernel.
          stride: stride of both axes.
          scope: name of the layer.
          rate: dilation rate.
        """
        kernel_size = _pair(kernel)
        with self.scope(scope):
            weights = self.weights("weights", [*kernel_size, self.channels(x) // self.style.groups, depth], x)
            convolve = partial(
                tf.nn.conv2d,
                strides=self.per_axis(*_pair(stride)),
                padding=self._padding(kernel_size, _pair(stride), rate),
                data_format=self.data_format,
                dilations=self.per_axis(rate, rate),
            )
            if self.style.groups == 1 or not self.training or self.data_format == "NCHW":
                return self._finished(convolve(x, weights))
            # The CPU has no gradient of a grouped convolution with explicit padding, or without oneDNN.
            parts = zip(*(tf.split(tensor, self.style.groups, 3) for tensor in (x, weights)), strict=True)
            return self._finished(tf.concat([convolve(part, part_weights) for part, part_weights in parts], 3))

    def depthwise(
        self, x: tf.Tensor, kernel: int | Sequence[int], stride: int = 1, *, scope: str, rate: int = 1
    ) -> tf.Tensor:
        """A depthwise convolution; see `conv`."""
        with self.scope(scope):
            return self._finished(self._depthwise(x, _pair(kernel), stride, rate))

    def separable(
        self, x: tf.Tensor, depth: int, kernel: int | Sequence[int], stride: int = 1, *, scope: str, rate: int = 1
    ) -> tf.Tensor:
        """A depthwise and a 1 x 1 convolution as one layer in one scope; see `conv`."""
        with self.scope(scope):
            x = self._depthwise(x, _pair(kernel), stride, rate)
            weights = self.weights("pointwise_weights", [1, 1, self.channels(x), depth], x)
            return self._finished(tf.nn.conv2d(x, weights, strides=1, padding="VALID", data_format=self.data_format))

    def dense(self, x: tf.Tensor, depth: int, *, scope: str) -> tf.Tensor:
        """A fully connected layer on [batch, features], with biases and without batch normalisation."""
        with self.scope(scope):
            weights = self.weights("weights", [int(x.shape.as_list()[1]), depth], x)
            return self.styled(batch_norm=None, biases=True)._finished(tf.matmul(x, weights))

    def batch_norm(self, x: tf.Tensor, *, scope: str = "BatchNorm", activation: Activation = None) -> tf.Tensor:
        """Batch normalisation as the style has it, by itself."""
        constants = self.style.batch_norm or BatchNorm()
        with tf.variable_scope(scope):
            x = normalise(x, constants, self.training, self.data_format, self.batch_norm_fused, self.batch_renorm)
        return activation(x) if activation else x

    def weights(
        self, name: str, shape: Sequence[int], like: tf.Tensor, initializer: Any = None, decay: bool = True
    ) -> Any:
        """Returns the weights `name` in the type of `like`; without `initializer` the style's."""
        return network_variable(
            name,
            shape,
            like.dtype,
            self.variable_dtype or like.dtype,
            initializer or self.style.initializer,
            self.weight_decay if decay and self.style.decay else 0.0,
        )

    def _depthwise(self, x: tf.Tensor, kernel: tuple[int, int], stride: int, rate: int) -> tf.Tensor:
        shape = [*kernel, self.channels(x), 1]
        weights = self.weights("depthwise_weights", shape, x, decay=self.style.decay_depthwise)
        padding = self._padding(kernel, (stride, stride), rate)
        if not isinstance(padding, str):
            # As an operation of its own: TensorFlow 2.21 crashes when it optimises a depthwise convolution with
            # explicit padding and biases behind it.
            x, padding = tf.pad(x, padding), "VALID"
        return tf.nn.depthwise_conv2d(
            x,
            weights,
            strides=self.per_axis(stride, stride),
            padding=padding,
            data_format=self.data_format,
            dilations=[rate, rate],
        )

    def _finished(self, x: tf.Tensor) -> tf.Tensor:
        """Adds the biases, the batch normalisation and the activation of the style."""
        style = self.style
        if style.biases if style.biases is not None else style.batch_norm is None:
            depth = int(x.shape.as_list()[self.channel_axis if x.shape.rank == 4 else 1])
            biases = self.weights("biases", [depth], x, style.biases_initializer, decay=False)
            x = tf.nn.bias_add(x, biases, self.data_format if x.shape.rank == 4 else None)
        if style.batch_norm is not None:
            x = self.batch_norm(x)
        return self.collected(style.activation(x) if style.activation else x)

    def _padding(self, kernel: tuple[int, int], stride: tuple[int, int], rate: int) -> Any:
        if self.style.padding != "FIXED":
            return self.style.padding
        if stride == (1, 1):
            return "SAME"  # the same zeros, and supported by more kernels
        totals = [(length - 1) * rate for length in kernel]
        height, width = ([total // 2, total - total // 2] for total in totals)
        return self.per_axis(height, width, other=[0, 0])

    # --- layers without weights -----------------------------------------------------------------------------------

    def max_pool(
        self, x: tf.Tensor, kernel: int | Sequence[int], stride: int = 2, *, padding: str = "VALID",
        scope: str | None = None,
    ) -> tf.Tensor:  # fmt: skip
        """Max pooling. With a `scope` the output is collected under that name."""
        x = tf.nn.max_pool2d(x, _pair(kernel), _pair(stride), padding, self.data_format, name=scope)
        return self.collected(x, scope) if scope else x

    def avg_pool(
        self, x: tf.Tensor, kernel: int | Sequence[int], stride: int = 2, *, padding: str = "VALID",
        scope: str | None = None,
    ) -> tf.Tensor:  # fmt: skip
        """Average pooling. With a `scope` the output is collected under that name."""
        x = tf.nn.avg_pool2d(x, _pair(kernel), _pair(stride), padding, self.data_format, name=scope)
        return self.collected(x, scope) if scope else x

    def global_pool(self, x: tf.Tensor, keep: bool = True) -> tf.Tensor:
        """The mean over height and width; `keep` keeps the two axes, of length 1."""
        return tf.reduce_mean(x, self.spatial_axes, keepdims=keep, name="global_pool")

    def squeeze(self, x: tf.Tensor) -> tf.Tensor:
        """Reshapes [batch, 1, 1, depth] to [batch, depth]."""
        return tf.squeeze(x, self.spatial_axes, name="SpatialSqueeze")

    def flatten(self, x: tf.Tensor) -> tf.Tensor:
        """Reshapes to [batch, features], in the order height, width, channels whatever the data format."""
        x = self.channels_last(x)
        height, width, depth = x.shape.as_list()[1:]
        return tf.reshape(x, [-1, height * width * depth])

    def softmax(self, x: tf.Tensor, name: str | None = None) -> tf.Tensor:
        """Softmax over the classes, for logits with or without height and width."""
        return tf.nn.softmax(x, axis=1 if x.shape.rank == 2 else self.channel_axis, name=name)

    def subsampled(self, x: tf.Tensor, stride: int) -> tf.Tensor:
        """Keeps every `stride`-th pixel."""
        return x if stride == 1 else self.max_pool(x, 1, stride=stride)

    def channels_last(self, x: tf.Tensor) -> tf.Tensor:
        """Transposes to [batch, height, width, depth]."""
        return tf.transpose(x, [0, 2, 3, 1]) if self.data_format == "NCHW" else x

    def dropout(self, x: tf.Tensor, keep_prob: float) -> tf.Tensor:
        """Dropout in training; otherwise returns `x`."""
        check_keep_prob("dropout_keep_prob", keep_prob)
        return tf.nn.dropout(x, rate=1 - keep_prob) if self.training and keep_prob < 1 else x


def check_keep_prob(argument: str, value: float) -> None:
    """Raises a ValueError unless `value` is a probability above 0.

    Example:
      >>> check_keep_prob('dropout_keep_prob', 0.0)
      Traceback (most recent call last):
      ValueError: dropout_keep_prob=0.0: expected a number above 0 and at most 1; 1 drops nothing.
    """
    if not 0 < value <= 1:
        raise ValueError(f"{argument}={value!r}: expected a number above 0 and at most 1; 1 drops nothing.")


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    first, second = value
    return first, second
