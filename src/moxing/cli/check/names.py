"""Lists what a module imports, which attributes of modules it uses, and how it calls them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from moxing.cli.check.scopes import Comprehension, Function, Scope, Scopes
from moxing.tf1.user.resolver import Origin

_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError"})
_CAUGHT_WITH_ALL = frozenset({"Exception", "BaseException"})
_VERSION = re.compile(r"__version__|\bVERSION\b|version_info|\bPY[23]\b|hasattr\(|[Vv]ersion\(")


@dataclass(eq=False)
class Guard:
    """A branch that runs only with some versions: the body of a `try` that catches import errors, or of an `if`.

    Attributes:
      instead_of: for an `except` branch, the `try` body whose failure it handles.
    """

    instead_of: Guard | None = None


@dataclass(frozen=True)
class Call:
    """The arguments of a call.

    Attributes:
      count: the number of positional arguments.
      names: the keyword arguments.
      complete: whether there are no `*args` and `**kwargs`.
    """

    count: int
    names: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class Use:
    """An import, or the use of a name that comes from an import.

    Attributes:
      kind: `import` or `name`.
      line: the line.
      origins: what it may stand for: more than one if the program binds the name more than once.
      call: the arguments if it is called.
      guards: the guarded branches around it.
    """

    kind: str
    line: int
    origins: tuple[Origin, ...]
    call: Call | None = None
    guards: tuple[Guard, ...] = ()


@dataclass
class ModuleUses:
    """What a module uses.

    Attributes:
      uses: imports and names, in the order of the source.
      written: dotted names that the module assigns to, as `tf.contrib.old = new`.
      calls: every call, for checks by its form.
      methods: names of the functions that the module defines.
    """

    uses: list[Use] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    calls: list[tuple[ast.Call, tuple[Origin, ...]]] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def uses_of(tree: ast.Module) -> ModuleUses:
    """Returns what a module uses.

    Example:
      >>> lines = 'import tensorflow as tf', 'slim = tf.contrib.slim', 'slim.conv2d(x, 3, padding=1)'
      >>> [str(use.origins[0]) for use in uses_of(ast.parse(chr(10).join(lines))).uses]
      ['tensorflow', 'tensorflow.contrib.slim', 'tensorflow.contrib.slim.conv2d']
    """
    reader = _Reader(tree)
    reader.visit(tree)
    return reader.found


class _Reader(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found = ModuleUses()
        self._scopes = Scopes(tree)
        self._scope: Scope = Scope()
        self._guards: tuple[Guard, ...] = ()
        self._calls: dict[ast.expr, Call] = {}

    def visit(self, node: ast.AST) -> None:
        inner = self._scopes.of(node)
        if inner is None:
            super().visit(node)
            return
        if isinstance(node, Function | ast.ClassDef):
            self._outside(node)
        outer, self._scope = self._scope, inner
        try:
            for child in self._inside(node):
                self.visit(child)
        finally:
            self._scope = outer

    def _outside(self, node: Function | ast.ClassDef) -> None:
        """Visits what belongs to the scope around a definition: decorators, defaults, base classes."""
        if not isinstance(node, ast.Lambda):
            self.found.methods.add(node.name)
            self._visit_all(node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self._visit_all((*node.bases, *node.keywords))
        else:
            self._visit_all((*node.args.defaults, *filter(None, node.args.kw_defaults)))

    def _inside(self, node: ast.AST) -> Iterable[ast.AST]:
        if isinstance(node, ast.Lambda):
            return [node.body]
        if isinstance(node, Comprehension):
            return ast.iter_child_nodes(node)
        return node.body  # type: ignore[attr-defined]

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add("import", node, [Origin(alias.name)])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or node.module == "__future__":
            return
        for alias in node.names:
            self._add("import", node, [Origin(node.module, "" if alias.name == "*" else alias.name)])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        origins = self._scope.chain(node)
        if not origins:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._add("name", node, origins)
        else:
            self.found.written.update(str(origin) for origin in origins)

    def visit_Name(self, node: ast.Name) -> None:
        # The import itself is a use already; a call of what was imported is one more, for its arguments.
        if node in self._calls:
            origins = self._scope.origins(node.id)
            if origins:
                self._add("name", node, origins)

    def visit_Call(self, node: ast.Call) -> None:
        names = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
        starred = any(isinstance(one, ast.Starred) for one in node.args) or len(names) < len(node.keywords)
        self._calls[node.func] = Call(len(node.args), names, not starred)
        self.found.calls.append((node, tuple(self._scope.chain(node.func))))
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        if not _catches_import_errors(node):
            self.generic_visit(node)
            return
        guard = Guard()
        self._visit_guarded(node.body, guard)
        for handler in node.handlers:
            self._visit_guarded(handler.body, Guard(guard))
        # `else` runs only if the body has succeeded.
        self._visit_guarded(node.orelse, guard)
        self._visit_all(node.finalbody)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        if _VERSION.search(ast.unparse(node.test)):
            self._visit_guarded([*node.body, *node.orelse], Guard())
        else:
            self._visit_all([*node.body, *node.orelse])

    def _visit_guarded(self, nodes: Sequence[ast.AST], guard: Guard) -> None:
        with self._guarded(guard):
            self._visit_all(nodes)

    @contextmanager
    def _guarded(self, guard: Guard) -> Iterator[None]:
        before = self._guards
        self._guards = (*before, guard)
        try:
            yield
        finally:
            self._guards = before

    def _add(self, kind: str, node: ast.stmt | ast.expr, origins: Sequence[Origin]) -> None:
        call = self._calls.get(node) if isinstance(node, ast.expr) else None
        self.found.uses.append(Use(kind, node.lineno, tuple(origins), call, self._guards))


def _catches_import_errors(node: ast.Try) -> bool:
    caught: set[str] = set()
    for handler in node.handlers:
        if handler.type is None:
            caught.add("BaseException")
        else:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            caught.update(ast.unparse(kind).rpartition(".")[2] for kind in kinds)
    if caught & _CAUGHT:
        return True
    # `except Exception` around a whole program does not mean that the program can do without what is missing.
    simple = all(isinstance(one, ast.Import | ast.ImportFrom | ast.Assign) for one in node.body)
    return bool(caught & _CAUGHT_WITH_ALL) and simple
