"""The scopes of a module: which names are bound where, and to what import or alias."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from moxing.tf1.user.resolver import Origin

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

#: What a name is bound to: an import, an expression that may be an alias, or something else.
Binding = Origin | ast.expr | None


class Scope:
    """The names that one module, class, function or comprehension binds.

    Args:
      parent: the scope around it.
      is_class: whether it is the body of a class, whose names its methods do not see.

    Example:
      >>> tree = ast.parse('import tensorflow as tf' + chr(10) + 'slim = tf.contrib.slim')
      >>> scope = Scopes(tree).of(tree)
      >>> [str(origin) for origin in scope.origins('slim')]
      ['tensorflow.contrib.slim']
    """

    def __init__(self, parent: Scope | None = None, is_class: bool = False) -> None:
        self.parent = parent
        self.is_class = is_class
        self.bindings: dict[str, list[Binding]] = {}
        self.globals: set[str] = set()
        self._open: set[str] = set()

    @property
    def module(self) -> Scope:
        """The scope of the module."""
        return self if self.parent is None else self.parent.module

    def bind(self, name: str, value: Binding) -> None:
        """Records that `name` is bound to `value` somewhere in this scope."""
        scope = self.module if name in self.globals else self
        scope.bindings.setdefault(name, []).append(value)

    def origins(self, name: str) -> list[Origin]:
        """Returns what `name` may stand for when it is read in this scope; empty if that is not known."""
        scope: Scope | None = self
        while scope is not None and (name not in scope.bindings or (scope.is_class and scope is not self)):
            scope = scope.parent
        if scope is None or name in scope._open:
            return []
        scope._open.add(name)
        try:
            return scope._resolved(name)
        finally:
            scope._open.discard(name)

    def _resolved(self, name: str) -> list[Origin]:
        found: list[Origin] = []
        for binding in self.bindings[name]:
            origins = [binding] if isinstance(binding, Origin) else self.chain(binding)
            if not origins:
                return []
            found += [origin for origin in origins if origin not in found]
        return found

    def chain(self, node: ast.expr | None) -> list[Origin]:
        """Returns what `a.b.c` may stand for; empty if the expression is no such chain or `a` is not known."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return []
        return [origin.attribute(*attributes) for origin in self.origins(node.id)]


class Scopes:
    """All scopes of a module, by the node that opens them.

    Args:
      tree: the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[ast.AST, Scope] = {}
        self._open(tree, Scope(), tree.body)

    def of(self, node: ast.AST) -> Scope | None:
        """Returns the scope that a node opens, if it opens one."""
        return self._scopes.get(node)

    def _open(self, node: ast.AST, scope: Scope, body: list[ast.stmt] | list[ast.expr]) -> None:
        self._scopes[node] = scope
        for statement in body:
            # `global` counts for the whole function, wherever it stands.
            for inner in _same_scope(statement):
                if isinstance(inner, ast.Global | ast.Nonlocal):
                    scope.globals.update(inner.names)
        for statement in body:
            self._bind(statement, scope)

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _bind_import(node, scope)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            self._bind_definition(node, scope)
            return
        elif isinstance(node, Comprehension):
            inner = Scope(scope)
            self._scopes[node] = inner
            for generator in node.generators:
                _bind_target(generator.target, inner)
            for child in ast.iter_child_nodes(node):
                self._bind(child, inner)
            return
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            scope.bind(node.targets[0].id, node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            scope.bind(node.id, None)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            scope.bind(node.name, None)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.Assign) and child is node.targets[0] and isinstance(child, ast.Name)):
                self._bind(child, scope)

    def _bind_definition(self, node: Function | ast.ClassDef, scope: Scope) -> None:
        if not isinstance(node, ast.Lambda):
            scope.bind(node.name, None)
            for decorator in node.decorator_list:
                self._bind(decorator, scope)
        inner = Scope(scope, isinstance(node, ast.ClassDef))
        if isinstance(node, ast.ClassDef):
            for expression in (*node.bases, *node.keywords):
                self._bind(expression, scope)
        else:
            own = node.args
            for default in (*own.defaults, *filter(None, own.kw_defaults)):
                self._bind(default, scope)
            for argument in (*own.posonlyargs, *own.args, *own.kwonlyargs, *filter(None, (own.vararg, own.kwarg))):
                inner.bind(argument.arg, None)
        self._open(node, inner, [node.body] if isinstance(node, ast.Lambda) else node.body)


def _bind_import(node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            head = alias.name.partition(".")[0]
            scope.bind(alias.asname or head, Origin(alias.name if alias.asname else head))
        elif alias.name != "*":
            # A relative import is of the program's own modules.
            own = node.level > 0 or not node.module
            scope.bind(alias.asname or alias.name, None if own else Origin(node.module or "", alias.name))


def _bind_target(target: ast.expr, scope: Scope) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.bind(node.id, None)


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yields a node and those below it in the same scope."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | Comprehension):
        for child in ast.iter_child_nodes(node):
            yield from _same_scope(child)
