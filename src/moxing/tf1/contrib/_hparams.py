"""`HParams`: typed hyper-parameters, set from text, JSON or a dict."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Iterator, Mapping
from typing import Any

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*)\s*(?:\[\s*(?P<index>\d+)\s*\])?\s*="
    r"\s*(?:\[(?P<items>[^\]]*)\]|(?P<value>[^,\[\]]*))\s*(?:,|$)"
)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class HParams:
    """Hyper-parameters as attributes.

    The first value of a parameter fixes its type: int, float, bool or str, or a list of one of them. Later values
    must have this type; an int is accepted for a float. A parameter whose first value is None takes any value.

    Args:
      hparam_def: not supported; a protocol buffer that TensorFlow no longer has.
      model_structure: any object, returned by `get_model_structure`.
      **kwargs: the parameters.

    Example:
      >>> hparams = HParams(learning_rate=0.1, layers=[64, 32], name='net')
      >>> hparams.parse('learning_rate=1,layers[1]=16,name=other').values()
      {'learning_rate': 1.0, 'layers': [64, 16], 'name': 'other'}
      >>> hparams.learning_rate
      1.0
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise ValueError("hparam_def must be None. Pass the parameters by name: HParams(learning_rate=0.1)")
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a parameter.

        Raises:
          ValueError: the name is taken, or the value is an empty list, whose type is unknown.
        """
        if hasattr(self, name):
            raise ValueError(f"hyper-parameter {name!r} cannot be added: the name is taken")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"hyper-parameter {name!r} cannot start as an empty list: its type would be unknown")
        self._types[name] = (type(value[0]) if is_list else type(value), is_list)
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets a parameter; the value is converted to its type.

        Raises:
          KeyError: the parameter does not exist.
          ValueError: the value does not have the type of the parameter.
        """
        kind, is_list = self._type_of(name)
        if isinstance(value, (list, tuple)) != is_list:
            wanted = "a list" if is_list else "a single value"
            raise ValueError(f"hyper-parameter {name!r} must be {wanted} of type {kind.__name__}, got {value!r}")
        setattr(self, name, [_cast(name, kind, item) for item in value] if is_list else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a parameter if it exists."""
        if name in self._types:
            delattr(self, name)
            del self._types[name]

    def parse(self, values: str) -> HParams:
        """Sets parameters from text such as `a=1,b=[1,2],c[0]=3`.

        Returns:
          This object.

        Raises:
          ValueError: the text cannot be parsed, a parameter does not exist, or a value has the wrong type.
        """
        parsed = parse_values(values, {name: kind for name, (kind, _) in self._types.items()})
        for name, value in parsed.items():
            if not isinstance(value, dict):
                self.set_hparam(name, value)
                continue
            # {index: value}: single items of a list.
            kind, is_list = self._types[name]
            if not is_list:
                raise ValueError(f"hyper-parameter {name!r} is not a list, {name}[{min(value)}] cannot be set")
            items = list(getattr(self, name))
            for index, item in value.items():
                if index >= len(items):
                    raise ValueError(f"hyper-parameter {name!r} has {len(items)} items, {name}[{index}] does not exist")
                items[index] = item
            self.set_hparam(name, items)
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets parameters from a dict and returns this object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The earlier name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def parse_json(self, values_json: str) -> HParams:
        """Sets parameters from a JSON object and returns this object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(
        self, indent: int | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False
    ) -> str:
        """Returns the parameters as a JSON object, without functions.

        Example:
          >>> HParams(b=[1, 2], a=True).to_json(sort_keys=True)
          '{"a": true, "b": [1, 2]}'
        """
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Returns the parameters as a dict, in the order in which they were added."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a parameter, or `default` if it does not exist.

        Raises:
          ValueError: `default` does not have the type of the parameter.
        """
        if key not in self._types:
            return default
        if default is not None:
            kind, is_list = self._types[key]
            if isinstance(default, (list, tuple)) != is_list:
                raise ValueError(
                    f"default {default!r} does not have the type of hyper-parameter {key!r} = {getattr(self, key)!r}"
                )
            for item in default if is_list else [default]:
                _cast(key, kind, item)
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        """Stores an object with the parameters."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """Returns the object stored by `set_model_structure`."""
        return self._model_structure

    def _type_of(self, name: str) -> tuple[type, bool]:
        if name not in self._types:
            raise KeyError(f"no hyper-parameter {name!r}; expected one of: {', '.join(self._types) or 'none'}")
        return self._types[name]

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __iter__(self) -> Iterator[str]:
        # Without it, Python would iterate by index.
        return iter(self._types)

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"


def parse_values(values: str, type_map: Mapping[str, type]) -> dict[str, Any]:
    """Parses `a=1,b=[1,2],c[0]=3`.

    Args:
      values: the text.
      type_map: the type of each name.

    Returns:
      The values by name: a list for `b=[...]`, and `{index: value}` for items such as `c[0]=3`.

    Raises:
      ValueError: the text cannot be parsed, a name is unknown or assigned twice, or a value has the wrong type.

    Example:
      >>> parse_values('a=1,b=[x,y],c[2]=0.5', {'a': int, 'b': str, 'c': float})
      {'a': 1, 'b': ['x', 'y'], 'c': {2: 0.5}}
    """
    results: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(
                f"cannot parse hyper-parameters at {values[position:]!r}; expected name=value or name=[value,value]"
            )
        position = match.end()
        _assign(results, match, type_map)
    return results


def _assign(results: dict[str, Any], match: re.Match[str], type_map: Mapping[str, type]) -> None:
    name, index, items = match["name"], match["index"], match["items"]
    if name not in type_map:
        raise ValueError(f"no hyper-parameter {name!r}; expected one of: {', '.join(type_map) or 'none'}")
    kind = type_map[name]
    if index is not None:
        if items is not None:
            raise ValueError(f"hyper-parameter {name}[{index}] cannot be a list, got [{items}]")
        chosen = results.setdefault(name, {})
        if not isinstance(chosen, dict) or int(index) in chosen:
            raise ValueError(f"hyper-parameter {name}[{index}] is assigned twice")
        chosen[int(index)] = _parse_value(name, kind, match["value"])
        return
    if name in results:
        raise ValueError(f"hyper-parameter {name!r} is assigned twice")
    if items is None:
        results[name] = _parse_value(name, kind, match["value"])
    else:
        results[name] = [_parse_value(name, kind, item) for item in items.split(",")] if items.strip() else []


def _parse_value(name: str, kind: type, text: str) -> Any:
    text = text.strip()
    try:
        if issubclass(kind, bool):
            return _BOOLEANS[text.lower()]
        if issubclass(kind, (int, float)):
            return kind(text)
    except (ValueError, KeyError):
        raise ValueError(f"hyper-parameter {name!r} must be of type {kind.__name__}, got {text!r}") from None
    return text


def _cast(name: str, kind: type, value: Any) -> Any:
    if kind is type(None) or isinstance(value, kind) and isinstance(value, bool) == issubclass(kind, bool):
        return value
    fits = (
        isinstance(value, numbers.Number)
        and not isinstance(value, bool)
        and not issubclass(kind, bool)
        and (
            issubclass(kind, int)
            and isinstance(value, numbers.Integral)
            or issubclass(kind, float)
            and isinstance(value, numbers.Real)
        )
    )
    if not fits:
        raise ValueError(f"hyper-parameter {name!r} must be of type {kind.__name__}, got {value!r}")
    return kind(value)
