"""Builds a model several times in one graph, on shared variables.

Every tower finds the graph as the first one found it: without the collections and variable scopes of other towers. So
code that asks whether a variable is new gets the same answer, and every tower has its own regularization losses. Only
at the end of the creation of a variable, by `tf.get_variable`, `tf.Variable` or a Keras layer, the variable of the
first tower is returned instead of a new one: the n-th variable of a tower is the n-th variable of the first tower. A
model in another mode may have fewer variables; there the name decides, and among equal names the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import variable_scope

#: Collections with the variable scopes of a graph and their variables.
_STORES = (variable_scope._VARSTORE_KEY, variable_scope._VARSCOPESTORE_KEY)

#: Collections that only the first tower fills: the same summary twice would be two curves of one name.
_FIRST_TOWER_ONLY = (tf.GraphKeys.SUMMARIES,)

#: Collections that are empty on other towers even inside model_fn: shared moving averages are updated once a step.
_EMPTY_ON_OTHERS = (tf.GraphKeys.UPDATE_OPS,)

#: Returns the variable of a tower: called with the tower, the variable of the first tower, `create` and the arguments
#: of `create`. It may return the variable of the first tower, which is then shared.
CopyVariable = Callable[[int, tf.Variable, Callable[..., tf.Variable], dict[str, Any]], tf.Variable]

#: Returns the variable to use instead of another one.
ReplaceVariable = Callable[[tf.Variable], tf.Variable]

#: What TensorFlow adds to make a name unique: the scope of a tower, and the number of the second layer of a kind.
_UNIQUE_PARTS = re.compile(r"\btower_\d+/|(_\d+)+(?=/|$)|/$")


@dataclass(frozen=True)
class _Created:
    """A variable of the first tower."""

    variable: tf.Variable
    plain_name: str
    requested_name: str
    collections: list[str]


@dataclass(eq=False)
class Towers:
    """The towers of one graph.

    Attributes:
      copy: makes the variables of all towers but the first; None: they share those of the first.

    Example:
      >>> def model():
      ...     weights = tf.get_variable('weights', [3], regularizer=tf.nn.l2_loss)
      ...     return tf.Variable(0.0, name='plain'), len(tf.losses.get_regularization_losses())
      >>> with tf.Graph().as_default():
      ...     towers = Towers()
      ...     for index in range(2):
      ...         with towers.build(index):
      ...             print(model())
      ...     print(len(tf.trainable_variables()))
      (<tf.Variable 'plain:0' shape=() dtype=float32>, 1)
      (<tf.Variable 'plain:0' shape=() dtype=float32>, 1)
      2
    """

    copy: CopyVariable | None = None
    _created: list[_Created] = field(default_factory=list, init=False)
    _before: dict[str, list[Any]] = field(default_factory=dict, init=False)
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    _copies: set[int] = field(default_factory=set, init=False)

    @contextmanager
    def build(self, index: int) -> Iterator[None]:
        """Builds tower `index` inside the block. Build the towers in order, starting with 0."""
        if index == 0:
            self._before, self._known = _collections(), dict(variable_scope._get_default_variable_store()._vars)
            with tf.variable_creator_scope(self._record):
                yield
            return
        remaining = iter(self._created)

        def shared(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
            return self._variable_of_tower(index, next(remaining, None), create, arguments)

        with _collections_of(self._before, self._copies), _own_scopes(self._known), tf.name_scope(f"tower_{index}"):
            with tf.variable_creator_scope(shared):
                yield
        missing = next(remaining, None)
        if missing is not None:
            raise ValueError(
                f"model_fn created the variable {missing.variable.op.name} for the first tower, but not for tower "
                f"{index}. Every call of model_fn must build the same model, with layers and variables of its own."
            )

    @contextmanager
    def build_in_other_mode(
        self, scope: str, instead: ReplaceVariable = lambda variable: variable
    ) -> Iterator[list[tf.Variable]]:
        """Builds the model in another mode inside the block, on the variables of the first tower.

        Args:
          scope: name scope of the operations.
          instead: returns what the model gets for a variable, for example its moving average.

        Yields:
          The variables that only this mode has, such as counters. None of them is trainable.
        """
        unused, own = list(self._created), []

        def existing_or_own(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
            first = _match(unused, arguments)
            if first is not None:
                unused.remove(first)
                for key in first.collections:
                    tf.add_to_collection(key, first.variable)
                return instead(first.variable)
            variable = create(**arguments)
            if variable.trainable:
                raise ValueError(
                    f"model_fn created the variable {variable.op.name} of shape {variable.shape} for {scope}, but no "
                    "such variable for training, so it would never be trained. Build the same model in both modes."
                )
            own.append(variable)
            return variable

        with _collections_of(self._before, self._copies), _own_scopes(self._known), tf.name_scope(scope):
            with tf.variable_creator_scope(existing_or_own):
                yield own

    def _record(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        variable = create(**arguments)
        graph = tf.get_default_graph()
        last_items = {key: graph.get_collection_ref(key)[-1:] for key in graph.get_all_collection_keys()}
        keys = [key for key, last in last_items.items() if last and last[0] is variable]
        self._created.append(_Created(variable, _plain_name(arguments), arguments.get("name") or "", keys))
        return variable

    def _variable_of_tower(
        self, index: int, first: _Created | None, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        name, shape = arguments.get("name"), _shape(arguments)
        if first is None:
            raise ValueError(
                f"model_fn created one more variable, {name!r}, for tower {index} than for the first tower. Every call "
                "of model_fn must build the same model."
            )
        if not first.variable.shape.is_compatible_with(shape) or first.plain_name != _plain_name(arguments):
            raise ValueError(
                f"model_fn created the variable {name!r} of shape {shape} for tower {index}, where the first tower has "
                f"{first.variable.op.name} of shape {first.variable.shape}. Every call of model_fn must build the same "
                "model, in the same order."
            )
        variable = first.variable
        if self.copy is not None:
            variable = self.copy(index, first.variable, create, arguments)
        if variable is not first.variable:
            self._copies.add(id(variable))
        for key in first.collections:
            tf.add_to_collection(key, variable)
        return variable


def _match(candidates: list[_Created], arguments: dict[str, Any]) -> _Created | None:
    """Returns the variable with the requested name, or else the first whose name differs only in its numbers."""
    name, plain, shape = arguments.get("name") or "", _plain_name(arguments), _shape(arguments)
    alike = [one for one in candidates if one.plain_name == plain and one.variable.shape.is_compatible_with(shape)]
    return next((one for one in alike if one.requested_name == name), alike[0] if alike else None)


def _plain_name(arguments: dict[str, Any]) -> str:
    """Returns the requested name without the parts that make it unique in the graph."""
    return _UNIQUE_PARTS.sub("", arguments.get("name") or "")


def _shape(arguments: dict[str, Any]) -> tf.TensorShape:
    """Returns the shape of a variable that is about to be created, as far as its arguments tell."""
    if arguments.get("shape") is not None:
        return tf.TensorShape(arguments["shape"])
    value = arguments.get("initial_value")
    if value is None or callable(value):
        return tf.TensorShape(None)
    return tf.TensorShape(value.shape if hasattr(value, "shape") else np.shape(value))


def _collections() -> dict[str, list[Any]]:
    graph = tf.get_default_graph()
    return {key: list(graph.get_collection_ref(key)) for key in graph.get_all_collection_keys()}


@contextmanager
def _collections_of(before: dict[str, list[Any]], hidden: set[int]) -> Iterator[None]:
    """Replaces the collections of the graph inside the block; afterwards new items are added to the originals.

    Args:
      before: the contents of the collections inside the block.
      hidden: `id` of the items that are not added afterwards.
    """
    graph = tf.get_default_graph()
    originals = _collections()
    _fill(before)
    for key in _EMPTY_ON_OTHERS:
        graph._collections[key] = _DiscardingList(before.get(key, []))
    try:
        yield
    finally:
        inside = _collections()
        for key, items in inside.items():
            known = {id(item) for item in originals.get(key, [])} | hidden
            new = [] if key in _FIRST_TOWER_ONLY else items[len(before.get(key, [])) :]
            originals.setdefault(key, []).extend(item for item in new if id(item) not in known)
        for key in inside:
            graph.clear_collection(key)
        _fill(originals)


class _DiscardingList(list[Any]):
    """A list that discards what is appended."""

    def append(self, item: Any) -> None:
        del item


def _fill(contents: dict[str, list[Any]]) -> None:
    graph = tf.get_default_graph()
    for key in {*graph.get_all_collection_keys(), *contents}:
        graph.get_collection_ref(key)[:] = contents.get(key, [])


@contextmanager
def _own_scopes(variables: dict[str, Any]) -> Iterator[None]:
    """Closes all variable scopes inside the block; `tf.get_variable` then finds only `variables`."""
    references = [tf.get_default_graph().get_collection_ref(key) for key in _STORES]
    originals = [list(reference) for reference in references]
    for reference in references:
        reference.clear()
    variable_scope._get_default_variable_store()._vars.update(variables)
    try:
        yield
    finally:
        for reference, contents in zip(references, originals, strict=True):
            reference[:] = contents
