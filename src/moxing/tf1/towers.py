"""Building a model several times in one graph, each time as if it were the first.

A second tower must find the graph as the first one found it. It sees neither the collections that the first one filled
nor its variable scopes, so that code which asks "is this variable new?" says yes again: losses of regularizers are made
for every tower. Only at the very end of a variable's creation it is not created,
but taken from the first tower, whatever asked for it: `tf.get_variable`, `tf.Variable`, a Keras layer. The order of
creation tells which one. A model in another mode may have fewer variables: there it is the name, and among equal names
the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import variable_scope

#: The variable scopes of a graph and the variables in them.
_STORES = (variable_scope._VARSTORE_KEY, variable_scope._VARSCOPESTORE_KEY)

#: What only the first tower has: the same summary twice would be two lines of one name.
_OF_FIRST_ALONE = (tf.GraphKeys.SUMMARIES,)

#: What also a script that asks for it inside model_fn finds on the first tower alone: moving averages that are shared
#: move once a step.
_EMPTY_ON_OTHERS = (tf.GraphKeys.UPDATE_OPS,)

#: Makes a tower's own variable: (tower, the first tower's variable, create, arguments of `create`). It may return the
#: first tower's, which then is shared.
Copy = Callable[[int, tf.Variable, Callable[..., tf.Variable], dict[str, Any]], tf.Variable]

#: The variable to use instead of another one.
Instead = Callable[[tf.Variable], tf.Variable]

#: What makes a name unique in the graph: the scope of a tower, and the number of a second layer of a kind.
_UNIQUE = re.compile(r"\btower_\d+/|(_\d+)+(?=/|$)|/$")


@dataclass(frozen=True)
class _Created:
    variable: tf.Variable
    name: str
    asked: str
    collections: list[str]


class Towers:
    """The towers of one graph.

    Args:
      copy: makes the variables of the towers behind the first; None: they share those of the first.

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

    def __init__(self, copy: Copy | None = None) -> None:
        self._copy = copy
        self._created: list[_Created] = []
        self._before: dict[str, list[Any]] = {}
        self._known: dict[str, Any] = {}
        self._copies: set[int] = set()

    @contextmanager
    def build(self, index: int) -> Iterator[None]:
        """Inside, tower `index` is built; they must be built in their order."""
        if index == 0:
            self._before, self._known = _collections(), dict(variable_scope._get_default_variable_store()._vars)
            with tf.variable_creator_scope(self._record):
                yield
            return
        remaining = iter(self._created)

        def shared(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
            return self._again(index, next(remaining, None), create, arguments)

        with _collections_of(self._before, self._copies), _own_scopes(self._known), tf.name_scope(f"tower_{index}"):
            with tf.variable_creator_scope(shared):
                yield
        missing = next(remaining, None)
        if missing is not None:
            raise ValueError(
                f"model_fn did not create the variable {missing.variable.op.name} for tower {index}, as it did for the "
                "first one: every call of model_fn must build the same model, with layers and variables of its own."
            )

    @contextmanager
    def build_beside(self, scope: str, instead: Instead = lambda variable: variable) -> Iterator[list[tf.Variable]]:
        """Inside, the model is built in another mode, on the variables of the first tower.

        Args:
          scope: name scope of its operations.
          instead: what the model is given for a variable, its moving average for instance.

        Yields:
          What it makes of its own: counters and the like, nothing that is trained.
        """
        left, own = list(self._created), []

        def found(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
            first = _like(left, arguments)
            if first is not None:
                left.remove(first)
                for key in first.collections:
                    tf.add_to_collection(key, first.variable)
                return instead(first.variable)
            variable = create(**arguments)
            if variable.trainable:
                raise ValueError(
                    f"model_fn created the variable {variable.op.name} of shape {variable.shape} for {scope}, and none "
                    "like it in training: it would never be trained. Both modes must build the same model."
                )
            own.append(variable)
            return variable

        with _collections_of(self._before, self._copies), _own_scopes(self._known), tf.name_scope(scope):
            with tf.variable_creator_scope(found):
                yield own

    def _record(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        variable = create(**arguments)
        graph = tf.get_default_graph()
        newest = {key: graph.get_collection_ref(key)[-1:] for key in graph.get_all_collection_keys()}
        keys = [key for key, last in newest.items() if last and last[0] is variable]
        self._created.append(_Created(variable, _plain_name(arguments), arguments.get("name") or "", keys))
        return variable

    def _again(
        self, index: int, first: _Created | None, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        name, shape = arguments.get("name"), _shape(arguments)
        if first is None:
            raise ValueError(
                f"model_fn created one more variable, {name!r}, for tower {index} than for the first one: every call "
                "of model_fn must build the same model."
            )
        if not first.variable.shape.is_compatible_with(shape) or first.name != _plain_name(arguments):
            raise ValueError(
                f"model_fn created a variable {name!r} of shape {shape} for tower {index}, where the first one has "
                f"{first.variable.op.name} of shape {first.variable.shape}: every call of model_fn must build the same "
                "model, in the same order."
            )
        variable = first.variable
        if self._copy is not None:
            variable = self._copy(index, first.variable, create, arguments)
        if variable is not first.variable:
            self._copies.add(id(variable))
        for key in first.collections:
            tf.add_to_collection(key, variable)
        return variable


def _like(candidates: list[_Created], arguments: dict[str, Any]) -> _Created | None:
    """The variable that the arguments ask for once more: of the same name, else of the same but for its numbers."""
    name, plain, shape = arguments.get("name") or "", _plain_name(arguments), _shape(arguments)
    fitting = [made for made in candidates if made.name == plain and made.variable.shape.is_compatible_with(shape)]
    return next((made for made in fitting if made.asked == name), fitting[0] if fitting else None)


def _plain_name(arguments: dict[str, Any]) -> str:
    """The name that was asked for, without what makes it unique in the graph."""
    return _UNIQUE.sub("", arguments.get("name") or "")


def _shape(arguments: dict[str, Any]) -> tf.TensorShape:
    """The shape of a variable that is to be created, as far as its arguments tell."""
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
    """Inside, the graph's collections are those of `before`; what is added is added to the others at the end.

    Args:
      before: the contents of the collections.
      hidden: `id` of what is not added.
    """
    graph = tf.get_default_graph()
    kept = _collections()
    _fill(before)
    for key in _EMPTY_ON_OTHERS:
        graph._collections[key] = _Unchanging(before.get(key, []))
    try:
        yield
    finally:
        inside = _collections()
        for key, items in inside.items():
            known = {id(item) for item in kept.get(key, [])} | hidden
            new = [] if key in _OF_FIRST_ALONE else items[len(before.get(key, [])) :]
            kept.setdefault(key, []).extend(item for item in new if id(item) not in known)
        for key in inside:
            graph.clear_collection(key)
        _fill(kept)


class _Unchanging(list[Any]):
    """What is added to it is forgotten."""

    def append(self, item: Any) -> None:
        del item


def _fill(contents: dict[str, list[Any]]) -> None:
    graph = tf.get_default_graph()
    for key in {*graph.get_all_collection_keys(), *contents}:
        graph.get_collection_ref(key)[:] = contents.get(key, [])


@contextmanager
def _own_scopes(variables: dict[str, Any]) -> Iterator[None]:
    """Inside, no variable scope is open, and `tf.get_variable` knows `variables` alone."""
    references = [tf.get_default_graph().get_collection_ref(key) for key in _STORES]
    kept = [list(reference) for reference in references]
    for reference in references:
        reference.clear()
    variable_scope._get_default_variable_store()._vars.update(variables)
    try:
        yield
    finally:
        for reference, contents in zip(references, kept, strict=True):
            reference[:] = contents
