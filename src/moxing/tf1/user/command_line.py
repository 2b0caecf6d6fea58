"""Hides MoXing's flags from the parsers of a script, which exit at flags that they do not know.

A flag that a parser defines itself is not hidden from it: the script and MoXing then share its value.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from moxing.framework import flags as moxing_flags


def shield_argparse() -> None:
    """Hides MoXing's flags from `ArgumentParser.parse_args` on the command line of the process.

    Example:
      >>> shield_argparse()
      >>> argparse.ArgumentParser().parse_args(['--num_gpus=1', '--lr=1'])
      Traceback (most recent call last):
      SystemExit: 2
    """
    parser = argparse.ArgumentParser
    if not hasattr(parser.parse_args, "_moxing_original"):
        parser.parse_args = _shielded_parse_args(parser.parse_args)  # type: ignore[method-assign]
        parser.parse_known_args = _sharing_parse_known_args(parser.parse_known_args)  # type: ignore[method-assign]


def shield_absl() -> None:
    """Hides MoXing's flags from the global flags of absl, with which `absl.app.run` parses.

    Example:
      >>> shield_absl()
    """
    from absl import flags as absl_flags

    if not hasattr(absl_flags.FlagValues.__call__, "_moxing_original"):
        absl_flags.FlagValues.__call__ = _shielded_call(absl_flags.FlagValues.__call__)  # type: ignore[method-assign]


def _shielded_parse_args(original: Any) -> Any:
    @functools.wraps(original)
    def parse_args(self: argparse.ArgumentParser, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        if not _is_own_command_line(args):
            return original(self, args, namespace)
        defined = dict(_defined_by(self))
        try:
            line = moxing_flags.FLAGS.strip(sys.argv[1:], keep=defined.__contains__)
        except moxing_flags.FlagError:
            # The script has a flag of the same name and another type: leave the command line to the script.
            line = sys.argv[1:]
        parsed = original(self, line, namespace)
        _share(defined, parsed)
        return parsed

    parse_args._moxing_original = original  # type: ignore[attr-defined]
    return parse_args


def _sharing_parse_known_args(original: Any) -> Any:
    @functools.wraps(original)
    def parse_known_args(
        self: argparse.ArgumentParser, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        parsed, rest = original(self, args, namespace)
        if _is_own_command_line(args):
            _share(dict(_defined_by(self)), parsed)
        return parsed, rest

    return parse_known_args


def _is_own_command_line(args: Sequence[str] | None) -> bool:
    return args is None or list(args) == sys.argv[1:]


def _defined_by(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yields name and attribute of the MoXing flags that a parser or one of its sub-commands defines itself."""
    names = set(moxing_flags.FLAGS.names())
    for action in parser._actions:
        for option in action.option_strings:
            if option.lstrip("-") in names:
                yield option.lstrip("-"), action.dest
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _defined_by(child)


def _share(defined: dict[str, str], parsed: Any) -> None:
    for name, attribute in defined.items():
        if hasattr(parsed, attribute):
            moxing_flags.FLAGS.share_with_user(
                name, functools.partial(getattr, parsed, attribute), functools.partial(setattr, parsed, attribute)
            )


def _shielded_call(original: Any) -> Any:
    from absl import flags as absl_flags

    @functools.wraps(original)
    def call(self: Any, argv: Sequence[str], known_only: bool = False) -> list[str]:
        if self is not absl_flags.FLAGS or list(argv) != sys.argv:
            return original(self, argv, known_only)
        from moxing.tf1.user import flags

        # From TensorFlow 1.5 on, the flags of tf.flags were flags of absl.
        line = flags.FLAGS.strip_script_flags(argv[1:], keep=self.__contains__)
        rest = original(self, [argv[0], *moxing_flags.FLAGS.strip(line, keep=self.__contains__)], known_only)
        for name in moxing_flags.FLAGS.names():
            if name in self:
                moxing_flags.FLAGS.share_with_user(
                    name, functools.partial(getattr, self, name), functools.partial(setattr, self, name)
                )
        return rest

    call._moxing_original = original  # type: ignore[attr-defined]
    return call
