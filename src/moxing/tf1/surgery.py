"""Taking a part out of a graph and building it again inside a function.

Two things rest on this: the per-sample work of an `input_fn` becomes a `Dataset.map` (it was written as plain ops
behind an iterator), and the training step becomes the body of a loop that runs many steps per `session.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import op_def_registry

#: A constant larger than this is passed into the function instead of being copied into its body.
_LARGE_CONSTANT_BYTES = 1 << 16

_REF_BASE = 100  # DataType values above it are reference types, in TensorFlow's types.proto


class CannotRebuild(Exception):
    """The part of the graph cannot stand in a function; the message names the operation."""


def ancestors(targets: Sequence[tf.Tensor | tf.Operation], stop: Collection[str] = ()) -> dict[str, tf.Operation]:
    """All operations that `targets` need, by name; operations named in `stop` are left out, with what is behind them.

    Example:
      >>> with tf.Graph().as_default():
      ...     a = tf.constant(1, name='a'); b = tf.negative(a, name='b')
      ...     sorted(ancestors([b]))
      ['a', 'b']
    """
    found: dict[str, tf.Operation] = {}
    pending = [_operation(target) for target in targets]
    while pending:
        op = pending.pop()
        if op.name in found or op.name in stop:
            continue
        found[op.name] = op
        pending.extend(tensor.op for tensor in op.inputs)
        pending.extend(op.control_inputs)
    return found


#: Begin of the types of operations that write variables.
_WRITES = ("Assign", "Scatter", "Resource")
#: Those that may hold such operations in a branch.
BRANCHES = ("If", "StatelessIf")


def run_after(
    updates: Sequence[tf.Tensor | tf.Operation], first: Sequence[tf.Operation], kinds: tuple[str, ...] = _WRITES
) -> None:
    """Has the variable writes behind `updates` wait for the operations `first`.

    Args:
      updates: what needs them.
      first: what comes before.
      kinds: begin of the types of the operations that wait, for others than writes.

    Example:
      >>> with tf.Graph().as_default():
      ...     first = tf.no_op(); update = tf.get_variable('v', [], use_resource=True).assign_add(1.0).op
      ...     run_after([update], [first])
      ...     first in update.control_inputs
      True
    """
    if not updates:
        return
    upstream = ancestors(first)
    for op in ancestors(updates).values():
        if op.type.startswith(kinds) and op.name not in upstream:
            op._add_control_inputs([other for other in first if other not in op.control_inputs])


#: Stateful operations that change nothing: they read variables, check, or call functions that are looked into.
_HARMLESS = (
    *("VarHandleOp", "VarIsInitializedOp", "ReadVariableOp", "ResourceGather", "Variable", "VariableV2", "Assert"),
    *("If", "Case", "While", "PartitionedCall", "StatefulPartitionedCall"),
)


def only_reads_variables(tensor: tf.Tensor) -> bool:
    """True where a tensor can be fetched beside the steps: it needs no data and no feed, and changes nothing.

    Example:
      >>> with tf.Graph().as_default():
      ...     step = tf.get_variable('step', initializer=1.0, use_resource=True)
      ...     [only_reads_variables(rate) for rate in (step * 2, step.assign_add(1.0), tf.random_uniform([]))]
      [True, False, False]
    """
    inside = tf.GraphDef()
    for op in ancestors([tensor]).values():
        inside.node.add().CopyFrom(op.node_def)
    _add_functions(tensor.graph, inside)
    nodes = [*inside.node, *(node for function in inside.library.function for node in function.node_def)]
    return not any(
        node.op.startswith("Placeholder") or (node.op not in _HARMLESS and _is_stateful(node.op)) for node in nodes
    )


def _is_stateful(kind: str) -> bool:
    definition = op_def_registry.get(kind)
    return definition is None or definition.is_stateful


def has_fixed_seed(node: tf.NodeDef) -> bool:
    """True for a random operation whose numbers come in one order.

    Example:
      >>> with tf.Graph().as_default():
      ...     has_fixed_seed(tf.random_uniform([], seed=1).op.node_def), has_fixed_seed(tf.zeros([]).op.node_def)
      (True, False)
    """
    return "seed" in node.attr and "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


class Part:
    """A part of a graph: what lies between `inputs` (tensors that will be replaced) and `targets`.

    Args:
      targets: tensors or operations to be built again.
      inputs: tensors at which the part begins; `build` is given their replacements.
      known: names of operations that exist already where the part will be built; their outputs count as inputs.
      forbidden: operation types that must not be inside, each with the reason.
    """

    def __init__(
        self,
        targets: Sequence[tf.Tensor | tf.Operation],
        inputs: Sequence[tf.Tensor] = (),
        known: Collection[str] = (),
        forbidden: Callable[[tf.Operation], str | None] = lambda op: None,
    ) -> None:
        self._targets = list(targets)
        self._graph = _operation(targets[0]).graph
        input_ops = {tensor.op.name for tensor in inputs}
        stop = set(known) | input_ops
        everything = ancestors(self._targets, stop)
        self._captured = {name: op for name, op in everything.items() if _belongs_outside(op)}
        self._ops = ancestors(self._targets, stop | set(self._captured))
        for op in (*self._ops.values(), *self._captured.values()):
            _check(op, forbidden)
        self.operations = frozenset(self._ops)
        self.boundary = self._find_boundary(stop)

    def _find_boundary(self, stop: Collection[str]) -> dict[str, tf.Tensor]:
        """Tensors that the part reads from `inputs` and `known`, by name."""
        wanted = [tensor for op in self._ops.values() for tensor in op.inputs]
        wanted += [target for target in self._targets if isinstance(target, tf.Tensor)]
        return {tensor.name: tensor for tensor in wanted if tensor.op.name in stop}

    def draws_seeded_numbers(self) -> bool:
        """True when a random operation with a fixed seed is inside: its numbers come in one order."""
        return any(has_fixed_seed(op.node_def) for op in self._ops.values())

    def build(self, replacements: Mapping[str, tf.Tensor], name: str = "step") -> list[tf.Tensor | tf.Operation]:
        """Builds the part in the current function graph; returns what stands for the targets.

        Args:
          replacements: for the name of every tensor in `boundary`, the tensor to use instead.
          name: name scope of the new operations.
        """
        inner = tf.get_default_graph()
        outside = {tensor.name: inner.capture(tensor) for op in self._captured.values() for tensor in op.outputs}
        provided = {
            **outside,
            **{key: new if new.graph is inner else inner.capture(new) for key, new in replacements.items()},
        }
        graph_def = self._graph_def()
        used = {_full_name(text) for node in graph_def.node for text in node.input if not text.startswith("^")}
        wanted = [target for target in self._targets if target.name not in provided]
        elements = tf.import_graph_def(
            graph_def,
            input_map={key: tensor for key, tensor in provided.items() if key in used},
            return_elements=[target.name for target in wanted],
            name=name,
        )
        built = {target.name: element for target, element in zip(wanted, elements, strict=True)}
        return [built.get(target.name, provided.get(target.name)) for target in self._targets]

    def _graph_def(self) -> tf.GraphDef:
        graph_def = tf.GraphDef()
        graph_def.versions.CopyFrom(self._graph.graph_def_versions)
        for op in self._ops.values():
            node = graph_def.node.add()
            node.CopyFrom(op.node_def)
            # Colocation names operations that stay outside; resources place their users by themselves.
            node.attr.pop("_class", None)
            kept = [text for text in node.input if not text.startswith("^") or text[1:] in self._ops]
            del node.input[:]
            node.input.extend(kept)
        _add_functions(self._graph, graph_def)
        return graph_def


def _operation(target: tf.Tensor | tf.Operation) -> tf.Operation:
    return target if isinstance(target, tf.Operation) else target.op


def _full_name(text: str) -> str:
    return text if ":" in text else text + ":0"


def _belongs_outside(op: tf.Operation) -> bool:
    """True for what a function must not make its own copy of: resources, placeholders, large constants."""
    if op.type.startswith("Placeholder"):
        return True
    if op.inputs or not op.outputs:
        return False
    if op.outputs[0].dtype.base_dtype in (tf.resource, tf.variant):
        return True
    if op.type == "Const":
        shape = op.outputs[0].shape
        return (shape.num_elements() or 0) * max(op.outputs[0].dtype.size, 1) > _LARGE_CONSTANT_BYTES
    return False


def _check(op: tf.Operation, forbidden: Callable[[tf.Operation], str | None]) -> None:
    if any(tensor.dtype.as_datatype_enum > _REF_BASE for tensor in op.outputs):
        raise CannotRebuild(f"{op.name} ({op.type}) is a reference variable")
    reason = forbidden(op)
    if reason:
        raise CannotRebuild(f"{op.name} ({op.type}): {reason}")


def _add_functions(graph: tf.Graph, graph_def: tf.GraphDef) -> None:
    """Adds the functions that the nodes call (bodies of `tf.cond`, `tf.while_loop`, ...), and those they call."""
    pending = [name for node in graph_def.node for name in _called(node)]
    if not pending:
        return
    everything = tf.GraphDef()
    graph._copy_functions_to_graph_def(everything, 0)
    by_name = {function.signature.name: function for function in everything.library.function}
    added: set[str] = set()
    while pending:
        name = pending.pop()
        if name in added or name not in by_name:
            continue
        added.add(name)
        graph_def.library.function.add().CopyFrom(by_name[name])
        pending.extend(inner for node in by_name[name].node_def for inner in _called(node))
    for gradient in everything.library.gradient:
        if gradient.function_name in added:
            graph_def.library.gradient.add().CopyFrom(gradient)


def _called(node: object) -> list[str]:
    names: list[str] = []
    for value in node.attr.values():  # type: ignore[attr-defined]
        if value.HasField("func"):
            names.append(value.func.name)
        names.extend(function.name for function in value.list.func)
    return names
