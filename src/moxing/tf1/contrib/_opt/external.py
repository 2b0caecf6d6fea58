"""Optimizers that are not part of the graph: they call the session, and SciPy's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
_LOGGER = logging.getLogger(__name__)


class ExternalOptimizerInterface:
    """Minimises a loss with a function of vectors; a subclass implements `_minimize`.

    While it runs the variables hold the values that are tried, since resource variables cannot be fed.

    Args:
      loss: scalar tensor.
      var_list: variables to change. Default: the trainable ones.
      equalities: scalar tensors that are to be 0.
      inequalities: scalar tensors that are to be at least 0.
      var_to_bounds: pairs of lower and upper bounds by variable; a bound is broadcast to the shape of the variable.
      **optimizer_kwargs: given to `_minimize`.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: dict[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._vars = list(v1.trainable_variables() if var_list is None else var_list)
        self._equalities, self._inequalities = list(equalities or []), list(inequalities or [])
        self.optimizer_kwargs = optimizer_kwargs
        sizes = [var.shape.num_elements() for var in self._vars]
        ends = np.cumsum([0, *sizes])
        self._slices = [slice(start, end) for start, end in zip(ends[:-1], ends[1:], strict=True)]
        self._packed_bounds = self._pack_bounds(var_to_bounds)
        self._packed_var = _pack(self._vars)
        self._loss_grad = self._gradient(loss)
        self._equality_grads = [self._gradient(one) for one in self._equalities]
        self._inequality_grads = [self._gradient(one) for one in self._inequalities]
        self._placeholders = [v1.placeholder(var.dtype.base_dtype, var.shape) for var in self._vars]
        self._updates = [var.assign(value) for var, value in zip(self._vars, self._placeholders, strict=True)]

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimises the loss at once, and leaves the best values in the variables.

        Args:
          session: a session. Default: the default one.
          feed_dict: given to `session.run`.
          fetches: tensors that are given to `loss_callback`.
          step_callback: called after each step with the values of all variables, in one vector.
          loss_callback: called with the values of `fetches` when the loss was computed.
          **run_kwargs: given to `session.run`.
        """
        session = session or v1.get_default_session()
        feeds, extra = feed_dict or {}, list(fetches or [])

        def evaluate(tensors: list[Any], vector: Any) -> list[Any]:
            self._load(session, vector, run_kwargs)
            return session.run(tensors, feed_dict=feeds, **run_kwargs)

        def function(tensor: Any) -> Callable[[Any], Any]:
            return lambda vector: evaluate([tensor], vector)[0]

        def loss_and_gradient(vector: Any) -> tuple[float, Any]:
            loss, gradient, *values = evaluate([self._loss, self._loss_grad, *extra], vector)
            if loss_callback is not None:
                loss_callback(*values)
            return float(loss), gradient.astype(np.float64)

        best = self._minimize(
            initial_val=session.run(self._packed_var, **run_kwargs),
            loss_grad_func=loss_and_gradient,
            equality_funcs=[function(one) for one in self._equalities],
            equality_grad_funcs=[function(one) for one in self._equality_grads],
            inequality_funcs=[function(one) for one in self._inequalities],
            inequality_grad_funcs=[function(one) for one in self._inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda vector: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._load(session, best, run_kwargs)

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Callable[[Any], tuple[float, Any]],
        equality_funcs: list[Any],
        equality_grad_funcs: list[Any],
        inequality_funcs: list[Any],
        inequality_grad_funcs: list[Any],
        packed_bounds: Any,
        step_callback: Callable[[Any], Any],
        optimizer_kwargs: dict[str, Any],
    ) -> Any:
        """Returns the vector with the lowest loss."""
        raise NotImplementedError("implement _minimize in a subclass of ExternalOptimizerInterface")

    def _load(self, session: Any, vector: Any, run_kwargs: dict[str, Any]) -> None:
        values = {
            placeholder: np.reshape(vector[part], placeholder.shape.as_list())
            for placeholder, part in zip(self._placeholders, self._slices, strict=True)
        }
        session.run(self._updates, feed_dict=values, **run_kwargs)

    def _gradient(self, tensor: Any) -> Any:
        gradients = tf.gradients(tensor, self._vars, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return _pack([tf.convert_to_tensor(one) for one in gradients])

    def _pack_bounds(self, bounds: dict[Any, tuple[Any, Any]] | None) -> list[tuple[float, float]] | None:
        if bounds is None:
            return None
        by_name = {var.op.name: pair for var, pair in bounds.items()}
        packed: list[tuple[float, float]] = []
        for var in self._vars:
            low, high = (
                np.broadcast_to(one, var.shape.as_list()).ravel() for one in by_name.get(var.op.name, (-np.inf, np.inf))
            )
            packed.extend(zip(low, high, strict=True))
        return packed


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimises a loss with `scipy.optimize.minimize`; `method` is L-BFGS-B by default.

    Other keyword arguments, such as `options={"maxiter": 100}`, are SciPy's.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Callable[[Any], tuple[float, Any]],
        equality_funcs: list[Any],
        equality_grad_funcs: list[Any],
        inequality_funcs: list[Any],
        inequality_grad_funcs: list[Any],
        packed_bounds: Any,
        step_callback: Callable[[Any], Any],
        optimizer_kwargs: dict[str, Any],
    ) -> Any:
        try:
            from scipy import optimize
        except ImportError as error:
            raise ImportError("tf.contrib.opt.ScipyOptimizerInterface needs SciPy: pip install scipy") from error
        options = dict(optimizer_kwargs)
        method = options.pop("method", self._DEFAULT_METHOD)
        taken = {"jac", "callback", "constraints", "bounds"} & set(options)
        if taken:
            raise ValueError(f"{', '.join(sorted(taken))} cannot be passed: bounds are var_to_bounds, the rest is set")
        constraints = [
            {"type": kind, "fun": function, "jac": gradient}
            for kind, functions, gradients in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, gradient in zip(functions, gradients, strict=True)
        ]
        result = optimize.minimize(
            loss_grad_func,
            np.asarray(initial_val, np.float64),
            jac=True,
            method=method,
            bounds=packed_bounds,
            constraints=constraints,
            callback=step_callback,
            **options,
        )
        _LOGGER.info("%s: loss %f after %s evaluations", result.message, result.fun, getattr(result, "nfev", "?"))
        return result.x


def _pack(tensors: list[Any]) -> Any:
    return tf.concat([tf.reshape(one, [-1]) for one in tensors], axis=0)
