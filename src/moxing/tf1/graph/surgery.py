"""Cuts a subgraph out of a graph and rebuilds it inside a function.

This is how the per-sample operations of an `input_fn`, written behind an iterator, become a `Dataset.map`, and how the
training step becomes the body of a loop that runs many steps per `session.run`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import op_def_registry

#: A larger constant is passed to the function instead of being copied into its body.
_LARGE_CONSTANT_BYTES = 1 << 16

_REF_BASE = 100  # larger DataType values are reference types, see types.proto of TensorFlow


class CannotRebuild(Exception):
    """The subgraph cannot be rebuilt in a function; the message names the operation."""


def ancestors(targets: Sequence[tf.Tensor | tf.Operation], stop: Collection[str] = ()) -> dict[str, tf.Operation]:
    """Returns all operations that `targets` depend on, by name.

    Args:
      targets: tensors or operations; they are included.
      stop: names of operations at which the search ends; they are not included.

    Example:
      >>> with tf.Graph().as_default():
      ...     a = tf.constant(1, name='a'); b = tf.negative(a, name='b')
      ...     sorted(ancestors([b]))
      ['a', 'b']
    """
    found: dict[str, tf.Operation] = {}
    pending = [target if isinstance(target, tf.Operation) else target.op for target in targets]
    while pending:
        op = pending.pop()
        if op.name in found or op.name in stop:
            continue
        found[op.name] = op
        pending.extend(tensor.op for tensor in op.inputs)
        pending.extend(op.control_inputs)
    return found


#: Prefixes of the types of operations that write variables.
_WRITES = ("Assign", "Scatter", "Resource")
#: Types of operations that may write variables in one of their branches.
CONDITIONALS = ("If", "StatelessIf")


def run_after(
    updates: Sequence[tf.Tensor | tf.Operation], first: Sequence[tf.Operation], op_types: tuple[str, ...] = _WRITES
) -> None:
    """Makes the variable writes that `updates` depend on wait for the operations `first`.

    Args:
      updates: tensors or operations that depend on the writes.
      first: operations that must run before the writes.
      op_types: prefixes of the types of the operations that wait.

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
        if op.type.startswith(op_types) and op.name not in upstream:
            op._add_control_inputs([other for other in first if other not in op.control_inputs])


def read_before_write(
    updates: Sequence[tf.Tensor | tf.Operation], variable: tf.Variable, copies: Sequence[tf.Operation] = ()
) -> None:
    """Makes the writes of a resource variable wait for all its reads in the same step that do not come after them.

    A program that assigns the global step by itself leaves open whether a learning rate that decays reads the value
    before or after it: two equal trainings could differ.

    Args:
      updates: tensors or operations of a step.
      variable: the variable; one that is no resource variable stays as it is.
      copies: operations that the writes wait for too, such as copies of its value.

    Example:
      >>> with tf.Graph().as_default():
      ...     step = tf.get_variable('step', initializer=1, use_resource=True)
      ...     read = tf.raw_ops.ReadVariableOp(resource=step.handle, dtype=tf.int32).op
      ...     update = step.assign(step + 1).op
      ...     read_before_write([read, update], step)
      ...     read in update.control_inputs
      True
    """
    handle = getattr(variable, "handle", None)
    users = [op for op in ancestors(updates).values() if any(tensor is handle for tensor in op.inputs)]
    writes = [op for op in users if op.type.startswith(_WRITES)]
    for read in (*(op for op in users if op not in writes), *copies):
        before = ancestors([read])
        for write in writes:
            if write.name not in before and read not in write.control_inputs:
                write._add_control_inputs([read])


#: Stateful operations without side effects: they read variables, check, or call functions, which are searched too.
_WITHOUT_SIDE_EFFECTS = (
    *("VarHandleOp", "VarIsInitializedOp", "ReadVariableOp", "ResourceGather", "Variable", "VariableV2", "Assert"),
    *("If", "Case", "While", "PartitionedCall", "StatefulPartitionedCall"),
)


def only_reads_variables(tensor: tf.Tensor) -> bool:
    """Returns True if a tensor can be fetched between steps: it needs no data and no feed, and has no side effects.

    Example:
      >>> with tf.Graph().as_default():
      ...     step = tf.get_variable('step', initializer=1.0, use_resource=True)
      ...     [only_reads_variables(rate) for rate in (step * 2, step.assign_add(1.0), tf.random_uniform([]))]
      [True, False, False]
    """
    graph_def = tf.GraphDef()
    for op in ancestors([tensor]).values():
        graph_def.node.add().CopyFrom(op.node_def)
    _add_functions(tensor.graph, graph_def)
    nodes = [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]
    return not any(node.op.startswith("Placeholder") or _has_side_effects(node.op) for node in nodes)


def _has_side_effects(op_type: str) -> bool:
    definition = op_def_registry.get(op_type)
    return op_type not in _WITHOUT_SIDE_EFFECTS and (definition is None or definition.is_stateful)


def reads_variable(tensor: tf.Tensor, variable: tf.Variable) -> bool:
    """Returns True if a tensor is the value of a resource variable and nothing else.

    Example:
      >>> with tf.Graph().as_default():
      ...     step = tf.get_variable('step', initializer=1, use_resource=True)
      ...     [reads_variable(tensor, step) for tensor in (step.read_value(), tf.identity(step), step + 1)]
      [True, True, False]
    """
    handle = getattr(variable, "handle", None)
    ops = ancestors([tensor])
    return (
        handle is not None
        and handle.op.name in ops
        and all(op is handle.op or op.type in ("ReadVariableOp", "Identity") for op in ops.values())
    )


def has_fixed_seed(node: tf.NodeDef) -> bool:
    """Returns True for a random operation with a fixed seed, whose numbers depend on the order of its calls.

    Example:
      >>> with tf.Graph().as_default():
      ...     has_fixed_seed(tf.random_uniform([], seed=1).op.node_def), has_fixed_seed(tf.zeros([]).op.node_def)
      (True, False)
    """
    return "seed" in node.attr and "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


class Subgraph:
    """The operations between `inputs` and `targets`, which `build` copies into another graph.

    Args:
      targets: tensors or operations to rebuild.
      inputs: tensors at which the subgraph begins; `build` takes their replacements.
      known: names of operations that already exist where the subgraph will be built; their outputs count as inputs.
      forbidden: for operations that must not be in the subgraph the reason, by the beginning of their type.

    Attributes:
      operations: the names of the operations in the subgraph.
      boundary: the tensors that the subgraph reads from `inputs` and `known`, by name.

    Raises:
      CannotRebuild: an operation is forbidden, or is a reference variable.

    Example:
      >>> with tf.Graph().as_default():
      ...     image = tf.placeholder(tf.float32, [2], name='image')
      ...     subgraph = Subgraph([image * 2.0], inputs=[image])
      ...     numbers = tf.data.Dataset.from_tensors([1.0, 2.0])
      ...     doubled = numbers.map(lambda element: subgraph.build({'image:0': element})[0])
      ...     tf.Session().run(tf.data.make_one_shot_iterator(doubled).get_next()).tolist()
      [2.0, 4.0]
    """

    def __init__(
        self,
        targets: Sequence[tf.Tensor | tf.Operation],
        inputs: Sequence[tf.Tensor] = (),
        known: Collection[str] = (),
        forbidden: Mapping[str, str] | None = None,
    ) -> None:
        self._targets = list(targets)
        self._graph = targets[0].graph
        input_ops = {tensor.op.name for tensor in inputs}
        stop = set(known) | input_ops
        candidates = ancestors(self._targets, stop)
        self._captured = {name: op for name, op in candidates.items() if _must_be_captured(op)}
        self._ops = ancestors(self._targets, stop | set(self._captured))
        for op in (*self._ops.values(), *self._captured.values()):
            _check(op, forbidden or {})
        self.operations = frozenset(self._ops)
        self.boundary = self._find_boundary(stop)

    def _find_boundary(self, stop: Collection[str]) -> dict[str, tf.Tensor]:
        tensors = [tensor for op in self._ops.values() for tensor in op.inputs]
        tensors += [target for target in self._targets if isinstance(target, tf.Tensor)]
        return {tensor.name: tensor for tensor in tensors if tensor.op.name in stop}

    def draws_seeded_numbers(self) -> bool:
        """Returns True if a random operation with a fixed seed is in the subgraph."""
        return any(has_fixed_seed(op.node_def) for op in self._ops.values())

    def build(self, replacements: Mapping[str, tf.Tensor], name: str = "step") -> list[tf.Tensor | tf.Operation]:
        """Builds the subgraph in the current function graph.

        Args:
          replacements: the tensor to use for each tensor in `boundary`, by name.
          name: name scope of the new operations.

        Returns:
          The copies of the targets.
        """
        inner = tf.get_default_graph()
        provided = {tensor.name: inner.capture(tensor) for op in self._captured.values() for tensor in op.outputs}
        provided |= {key: new if new.graph is inner else inner.capture(new) for key, new in replacements.items()}
        graph_def = self._graph_def()
        inputs = [text for node in graph_def.node for text in node.input if not text.startswith("^")]
        used = {text if ":" in text else f"{text}:0" for text in inputs}
        missing = [target for target in self._targets if target.name not in provided]
        elements = tf.import_graph_def(
            graph_def,
            input_map={key: tensor for key, tensor in provided.items() if key in used},
            return_elements=[target.name for target in missing],
            name=name,
        )
        built = {target.name: element for target, element in zip(missing, elements, strict=True)}
        return [built.get(target.name, provided.get(target.name)) for target in self._targets]

    def _graph_def(self) -> tf.GraphDef:
        graph_def = tf.GraphDef()
        graph_def.versions.CopyFrom(self._graph.graph_def_versions)
        for op in self._ops.values():
            node = graph_def.node.add()
            node.CopyFrom(op.node_def)
            # Colocation refers to operations outside; operations on a resource follow its device anyway.
            node.attr.pop("_class", None)
            inputs = [text for text in node.input if not text.startswith("^") or text[1:] in self._ops]
            del node.input[:]
            node.input.extend(inputs)
        _add_functions(self._graph, graph_def)
        return graph_def


def _must_be_captured(op: tf.Operation) -> bool:
    """Returns True for operations that a function must not copy: resources, placeholders, large constants."""
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


def _check(op: tf.Operation, forbidden: Mapping[str, str]) -> None:
    if any(tensor.dtype.as_datatype_enum > _REF_BASE for tensor in op.outputs):
        raise CannotRebuild(f"{op.name} ({op.type}) is a reference variable")
    for beginning, reason in forbidden.items():
        if op.type.startswith(beginning):
            raise CannotRebuild(f"{op.name} ({op.type}): {reason}")


def _add_functions(graph: tf.Graph, graph_def: tf.GraphDef) -> None:
    """Adds the functions that the nodes call, such as the branches of a `tf.cond`, and the functions these call."""
    pending = [name for node in graph_def.node for name in _called_functions(node)]
    if not pending:
        return
    whole = tf.GraphDef()
    graph._copy_functions_to_graph_def(whole, 0)
    by_name = {function.signature.name: function for function in whole.library.function}
    added: set[str] = set()
    while pending:
        name = pending.pop()
        if name in added or name not in by_name:
            continue
        added.add(name)
        graph_def.library.function.add().CopyFrom(by_name[name])
        pending.extend(inner for node in by_name[name].node_def for inner in _called_functions(node))
    for gradient in whole.library.gradient:
        if gradient.function_name in added:
            graph_def.library.gradient.add().CopyFrom(gradient)


def _called_functions(node: object) -> list[str]:
    names: list[str] = []
    for value in node.attr.values():  # type: ignore[attr-defined]
        if value.HasField("func"):
            names.append(value.func.name)
        names.extend(function.name for function in value.list.func)
    return names
