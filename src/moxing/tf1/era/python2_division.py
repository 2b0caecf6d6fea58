"""The division of Python 2: `/` between two whole numbers rounds down."""

from __future__ import annotations

import ast
import operator
from typing import Any

#: The names of the functions below in the builtins of user modules.
_DIVIDE = "__moxing_divide__"
_IN_PLACE = "__moxing_divide_in_place__"
_ATTRIBUTE = "__moxing_divide_attribute__"
_ITEM = "__moxing_divide_item__"


def rewrite(tree: ast.Module) -> ast.Module:
    """Replaces the divisions of a file by calls of the functions below.

    A file with `from __future__ import division` is not changed.

    Example:
      >>> ast.unparse(rewrite(ast.parse('x = 7 / 2')))
      'x = __moxing_divide__(7, 2)'
    """
    for node in tree.body:
        names = node.names if isinstance(node, ast.ImportFrom) and node.module == "__future__" else []
        if any(name.name == "division" for name in names):
            return tree
    return ast.fix_missing_locations(_Divisions().visit(tree))


class _Divisions(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or _has_float(node.left) or _has_float(node.right):
            return node
        return ast.copy_location(_call(_DIVIDE, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or _has_float(node.value):
            return node
        target = node.target
        changed: ast.stmt
        if isinstance(target, ast.Name):
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            changed = ast.Assign([target], _call(_IN_PLACE, read, node.value))
        elif isinstance(target, ast.Attribute):
            changed = ast.Expr(_call(_ATTRIBUTE, target.value, ast.Constant(target.attr), node.value))
        else:
            changed = ast.Expr(_call(_ITEM, target.value, _index(target.slice), node.value))
        return ast.copy_location(changed, node)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _has_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _index(node: ast.expr) -> ast.expr:
    """An index as an argument of a function: slices are calls of `slice` there."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(part) for part in node.elts], ast.Load())
    if isinstance(node, ast.Slice):
        return _call("slice", *(part or ast.Constant(None) for part in (node.lower, node.upper, node.step)))
    return node


def divide(left: Any, right: Any) -> Any:
    """`left / right` in Python 2.

    Classes that define `__div__`, such as tensors and dimensions, decide themselves.

    Example:
      >>> divide(7, 2), divide(-7, 2), divide(7, 2.0)
      (3, -4, 3.5)
    """
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    for method, self, other in (("__div__", left, right), ("__rdiv__", right, left)):
        function = getattr(type(self), method, None)
        result = NotImplemented if function is None else function(self, other)
        if result is not NotImplemented:
            return result
    return left // right if _is_whole(left) and _is_whole(right) else left / right


def divide_in_place(left: Any, right: Any) -> Any:
    """`left /= right` in Python 2; returns the new value.

    Example:
      >>> divide_in_place(7, 2)
      3
    """
    if hasattr(type(left), "__itruediv__"):
        both_whole = _is_whole(left) and _is_whole(right)
        return operator.ifloordiv(left, right) if both_whole else operator.itruediv(left, right)
    return divide(left, right)


def divide_attribute(owner: Any, name: str, right: Any) -> None:
    """`owner.name /= right` in Python 2."""
    setattr(owner, name, divide_in_place(getattr(owner, name), right))


def divide_item(owner: Any, index: Any, right: Any) -> None:
    """`owner[index] /= right` in Python 2."""
    owner[index] = divide_in_place(owner[index], right)


def _is_whole(value: Any) -> bool:
    """Returns True for whole numbers of Python and NumPy, and for arrays of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, int) or kind in ("i", "u", "b")


#: For the builtins of user modules.
BUILTINS: dict[str, Any] = {
    _DIVIDE: divide,
    _IN_PLACE: divide_in_place,
    _ATTRIBUTE: divide_attribute,
    _ITEM: divide_item,
}
