"""`DataFrame.append` and `Series.append`, which pandas 2 dropped."""

from __future__ import annotations

from typing import Any

from moxing.tf1.era.user_only_method import UserOnlyMethod


def install() -> None:
    """Adds `append` to the two classes, for user modules only.

    Example:
      >>> import pandas
      >>> install()
      >>> hasattr(pandas.DataFrame(), 'append')
      False
    """
    import pandas

    for kind, append in ((pandas.DataFrame, _append_to_frame), (pandas.Series, _append_to_series)):
        if not hasattr(kind, "append"):
            kind.append = UserOnlyMethod(f"{kind.__name__}.append", append, "pandas.concat")


def _append_to_frame(
    self: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False, sort: bool | None = False
) -> Any:
    import pandas

    if isinstance(other, dict):
        if not ignore_index:
            raise TypeError("Can only append a dict if ignore_index=True")
        other = pandas.Series(other)
    if isinstance(other, pandas.Series):
        if other.name is None and not ignore_index:
            raise TypeError("Can only append a Series if ignore_index=True or if the Series has a name")
        other = other.to_frame().T.infer_objects()
    elif isinstance(other, list):
        if not other:
            return self.copy()
        if not isinstance(other[0], pandas.DataFrame):
            other = pandas.DataFrame(other)
    others = other if isinstance(other, list) else [other]
    parts = [self, *others] if len(self.columns) else list(others)
    return pandas.concat(parts, ignore_index=ignore_index, verify_integrity=verify_integrity, sort=bool(sort))


def _append_to_series(self: Any, to_append: Any, ignore_index: bool = False, verify_integrity: bool = False) -> Any:
    import pandas

    others = list(to_append) if isinstance(to_append, list | tuple) else [to_append]
    return pandas.concat([self, *others], ignore_index=ignore_index, verify_integrity=verify_integrity)
