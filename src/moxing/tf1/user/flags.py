"""`tf.flags` as TensorFlow 1.4 had it, on absl's flag types.

The command line is parsed when a value is first read, and undefined flags are ignored. The registry is separate from
absl's global one, which already has `log_dir` and other flags that scripts define too.
"""

from __future__ import annotations

import difflib
import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

from absl import flags as absl_flags

from moxing.framework import flags as moxing_flags

# Flags belong to the module that calls a DEFINE function here, not to this one.
absl_flags.disclaim_key_flags()

_BOOLEAN_WORDS = frozenset({"true", "t", "1", "yes", "y", "on", "false", "f", "0", "no", "n", "off"})

#: Errors of Python's conversions, and what they mean.
_EXPECTED = (
    (r"invalid literal for int\(\).*", "expected an integer"),
    (r"could not convert string to float.*", "expected a number"),
)

#: Parameter names of TensorFlow 1.4, and those of absl.
_PARAMETERS = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class FlagValues(absl_flags.FlagValues):
    """The flags of a script.

    Args:
      shared_with_moxing: whether flags of the same name as MoXing's share their value with it.

    Example:
      >>> values = FlagValues()
      >>> _ = DEFINE_integer('batch_size', 32, 'Samples per step.', flag_values=values)
      >>> values.parse_arguments(['--batch_size=64', '--unknown=1'])
      ['--unknown=1']
      >>> values.batch_size
      64
    """

    # absl stores everything in __dict__, because attributes are flags.

    def __init__(self, shared_with_moxing: bool = False) -> None:
        super().__init__()
        self.__dict__["_shared"] = shared_with_moxing
        self.__dict__["_unparsed"] = {}
        self.__dict__["_valid"] = False
        self.__dict__["_definitions"] = {}

    def __setitem__(self, name: str, flag: absl_flags.Flag) -> None:
        super().__setitem__(name, flag)
        self.__dict__["_unparsed"][flag.name] = flag
        if self.__dict__["_shared"]:
            moxing_flags.FLAGS.share_with_user(
                name, functools.partial(getattr, self, name), functools.partial(setattr, self, name)
            )

    def __getitem__(self, name: str) -> absl_flags.Flag:
        self._parse_new()
        return super().__getitem__(name)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            self._parse_new()
            self._validate()
            return super().__getattr__(name)
        if name.startswith("__"):
            raise AttributeError(name)
        if name in absl_flags.FLAGS:
            # From TensorFlow 1.5 on this was absl's registry: scripts may define a flag in one and read it in the
            # other.
            if not absl_flags.FLAGS.is_parsed():
                absl_flags.FLAGS(sys.argv, known_only=True)
            return getattr(absl_flags.FLAGS, name)
        near = difflib.get_close_matches(name, list(self), n=3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        # Without name and obj, from which Python would derive another hint.
        raise AttributeError(f"No flag {name!r} is defined.{hint}")

    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[override]
        self._parse_new()
        if name in self:
            super().__setattr__(name, value)
        else:
            # TensorFlow 1.4 let scripts store any value here.
            self.__dict__[name] = value

    def __call__(self, argv: Sequence[str], known_only: bool = True) -> list[str]:
        """Parses `argv` as absl does. Undefined flags are returned instead of being an error."""
        return [argv[0], *self.parse_arguments(argv[1:])]

    def flag_values_dict(self) -> dict[str, Any]:
        """Returns the values of all flags by name."""
        self._parse_new()
        return super().flag_values_dict()

    def unparse_flags(self) -> None:
        """Forgets all values: the next access parses the command line again."""
        super().unparse_flags()
        self.__dict__["_unparsed"] = {flag.name: flag for flag in self._flags().values()}

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        """Parses the command line; the name that scripts of TensorFlow 1.4 use."""
        return self.parse_process_arguments() if args is None else self.parse_arguments(args)

    def parse_process_arguments(self) -> list[str]:
        """Parses the command line of the process for flags that were defined since the last time.

        Returns:
          The arguments that are not flags of the script.
        """
        self._parse_new()
        self._validate()
        _, rest = _scan(self._flags(), sys.argv[1:])
        return rest

    def parse_arguments(self, arguments: Sequence[str]) -> list[str]:
        """Parses `arguments`, which do not include the program name.

        Returns:
          The arguments that are not flags of the script.
        """
        self.__dict__["_unparsed"] = {}
        rest = self._parse(self._flags(), arguments)
        self._validate()
        return rest

    def strip_script_flags(self, arguments: Sequence[str], keep: Callable[[str], bool]) -> list[str]:
        """Returns `arguments` without the flags of the script, except those for which `keep(name)` is true."""
        _, rest = _scan({name: flag for name, flag in self._flags().items() if not keep(name)}, arguments)
        return rest

    def forget_if_defined_at(self, name: str, location: tuple[str, int]) -> None:
        """Drops a flag that the same line of source defined before, since the script runs a second time."""
        definitions: dict[str, tuple[str, int]] = self.__dict__["_definitions"]
        if name in self and definitions.get(name) == location:
            short_name = self._flags()[name].short_name
            delattr(self, name)
            if short_name is not None and short_name in self:
                delattr(self, short_name)
        definitions[name] = location

    def _shown_flags(self) -> dict[str, Any]:
        self._parse_new()
        return {name: _shown(flag) for name, flag in self._flags().items()}

    def _parse_new(self) -> None:
        unparsed: dict[str, absl_flags.Flag] = self.__dict__["_unparsed"]
        if not unparsed and self.is_parsed():
            return
        if not self.is_parsed():
            self._help_if_asked()
        self.__dict__["_unparsed"] = {}
        by_name = {}
        for flag in unparsed.values():
            by_name[flag.name] = flag
            if flag.short_name is not None:
                by_name[flag.short_name] = flag
        self._parse(by_name, sys.argv[1:])

    def expect_validation(self) -> None:
        """Runs the validators before the next value is read."""
        self.__dict__["_valid"] = False

    def _validate(self) -> None:
        # Not while parsing: absl reads a flag when it registers a validator for it.
        if self.__dict__["_valid"]:
            return
        self.__dict__["_valid"] = True
        try:
            self.validate_all_flags()
        except absl_flags.Error as error:
            _fail(error)

    def _parse(self, flags: Mapping[str, absl_flags.Flag], arguments: Sequence[str]) -> list[str]:
        try:
            found, rest = _scan(flags, arguments)
            for flag, text in found:
                flag.parse(text)
                flag.using_default_value = False
        except (absl_flags.Error, ValueError) as error:
            _fail(error)
        self.mark_as_parsed()
        self.expect_validation()
        return rest

    def _help_if_asked(self) -> None:
        if {"-h", "--help"} & set(sys.argv[1:]) and not {"h", "help"} & set(self):
            print(f"{self.get_help()}\n{moxing_flags.FLAGS.get_help()}")
            sys.exit(0)


#: `FLAGS.__flags`: a dictionary of values in TensorFlow 1.4, and of flags, which have a `value`, from 1.5 on. Set here
#: because the name would be mangled inside the class.
setattr(FlagValues, "__flags", property(FlagValues._shown_flags))  # noqa: B010


class _NoValue:
    """The value of a flag that is None: Python allows no subclass of its type."""

    value = None

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _NoValue)

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "None"


class _Boolean(int):
    """A value of True or False, which allow no subclass either."""

    def __repr__(self) -> str:
        return str(bool(self))

    __str__ = __repr__


def _shown(flag: absl_flags.Flag) -> Any:
    """Returns the value of a flag as an object of its own type that also has the attributes of the flag."""
    if flag.value is None:
        return _NoValue()
    kind = _Boolean if isinstance(flag.value, bool) else type(flag.value)
    shown = type(kind.__name__, (kind,), {"__module__": __name__})(flag.value)
    shown.value, shown.name, shown.default, shown.help = flag.value, flag.name, flag.default, flag.help
    return shown


def _fail(error: Exception) -> NoReturn:
    # Like the argparse parser behind the flags of TensorFlow 1.4: one line, and exit code 2.
    text = str(error)
    for pattern, expected in _EXPECTED:
        text = re.sub(pattern, expected, text)
    print(f"{sys.argv[0]}: error: {text}", file=sys.stderr)
    sys.exit(2)


def _scan(
    flags: Mapping[str, absl_flags.Flag], arguments: Sequence[str]
) -> tuple[list[tuple[absl_flags.Flag, str]], list[str]]:
    """Returns the flags in `arguments`, each with its text, and the other arguments."""
    found: list[tuple[absl_flags.Flag, str]] = []
    rest: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        name, equals, text = word.lstrip("-").partition("=")
        flag = flags.get(name) if word.startswith("-") else None
        negated = flags.get(name[2:]) if word.startswith("-") and name.startswith("no") and not equals else None
        if flag is not None and equals:
            found.append((flag, text))
        elif flag is not None and flag.boolean:
            # `--flag` alone means true; `--flag False` is accepted too.
            found.append((flag, words.pop(0) if words and words[0].lower() in _BOOLEAN_WORDS else "true"))
        elif flag is not None:
            if not words or words[0].startswith("--"):
                raise ValueError(f"--{name} needs a value")
            found.append((flag, words.pop(0)))
        elif negated is not None and negated.boolean:
            found.append((negated, "false"))
        else:
            rest.append(word)
    return found, rest


#: The name of the class in TensorFlow 1.4, which scripts of that time use.
_FlagValues = FlagValues

FLAGS = FlagValues(shared_with_moxing=True)


def _for_script(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an absl function that uses the flags of the script unless `flag_values` is given."""

    @functools.wraps(function)
    def with_script_flags(*args: Any, **kwargs: Any) -> Any:
        for old, new in _PARAMETERS.items():
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        values = kwargs.setdefault("flag_values", FLAGS)
        name = args[0] if args else kwargs.get("name")
        if isinstance(values, FlagValues):
            values.expect_validation()
            if function.__name__.startswith("DEFINE") and isinstance(name, str):
                caller = sys._getframe(1)
                values.forget_if_defined_at(name, (caller.f_code.co_filename, caller.f_lineno))
        return function(*args, **kwargs)

    return with_script_flags


DEFINE_string = _for_script(absl_flags.DEFINE_string)
DEFINE_integer = _for_script(absl_flags.DEFINE_integer)
DEFINE_float = _for_script(absl_flags.DEFINE_float)
DEFINE_boolean = _for_script(absl_flags.DEFINE_boolean)
DEFINE_bool = _for_script(absl_flags.DEFINE_bool)


def __getattr__(name: str) -> Any:
    """Returns any other name of `absl.flags`, for the flags of the script."""
    value = getattr(absl_flags, name)
    if isinstance(value, FunctionType) and "flag_values" in value.__code__.co_varnames:
        value = _for_script(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(absl_flags)})
