"""MoXing's own command-line flags: one registry, read from anywhere on the command line.

Users do not define these flags; they stand in their own registry, beside `tf.flags` and `argparse`. Where a script
defines a flag of the same name, the name is the script's: both see its value (`share_with_user`).
"""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moxing.framework.flags_ignored import near_misses
from moxing.framework.util import names

#: TensorFlow's, as for all warnings of a run; the flags are read before TensorFlow is imported.
_log = logging.getLogger("tensorflow")

_TRUE = frozenset({"true", "t", "1", "yes", "y", "on"})
_FALSE = frozenset({"false", "f", "0", "no", "n", "off"})


#: Stands for the value of a flag that was given none.
_NO_VALUE = object()


class FlagError(ValueError):
    """The command line, or what a scheduler says in its place, cannot be carried out.

    `moxing run` shows the message alone, without a traceback, and ends with exit code 2: to try again is no use.
    """


class FlagNotAvailableError(FlagError, NotImplementedError):
    """A flag asks for what this version does not have."""


class ScriptFlagError(FlagError):
    """A script asks for a flag that does not exist, or sets one to a wrong value: the traceback says where."""


@dataclass(frozen=True)
class Flag:
    """One flag: its name, the type of its value, the default and a line of help.

    `choices` are the only values that it takes, `words` are values beside those of its type.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def parse(self, text: Any) -> Any:
        """The value for a text from the command line or a Python value from `set_flag`.

        Example:
          >>> Flag('num_gpus', int, 1, 'GPUs').parse('4')
          4
        """
        if text is None:
            return None
        if text is _NO_VALUE:
            raise FlagError(f"--{self.name} needs a value: {self._expected()}.")
        if text in self.words:
            return text
        value = self._convert(text)
        if self.choices and value not in self.choices:
            raise FlagError(f"--{self.name}={text!r}: {expected_one_of(str(text), self.choices)}")
        return value

    def _convert(self, text: Any) -> Any:
        try:
            if self.kind is bool:
                return _parse_bool(text)
            if self.kind is int and isinstance(text, bool | float) and text != int(text):
                raise ValueError(text)
            return self.kind(text)
        except (TypeError, ValueError):
            raise FlagError(f"--{self.name}={text!r}: expected {self._expected()}.") from None

    def _expected(self) -> str:
        return " or ".join([_KIND_NAMES[self.kind], *self.words])


def expected_one_of(text: str, choices: Sequence[str]) -> str:
    """The end of an error about a value that is none of `choices`.

    Example:
      >>> expected_one_of('workers', ('ps', 'worker'))
      "expected one of ps, worker. Did you mean 'worker'?"
      >>> expected_one_of('chief', ('ps', 'worker'))
      'expected one of ps, worker.'
    """
    near = difflib.get_close_matches(text.lower(), choices, n=1) or names.nearest(text, choices, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(choices)}.{hint}"


_KIND_NAMES = {int: "an integer", float: "a number", bool: "True or False", str: "a string"}


def _parse_bool(text: Any) -> bool:
    word = str(text).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


@dataclass
class _UserFlag:
    """A flag of the same name that the script defined: where its value is read and written."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass
class FlagRegistry:
    """The flags of one process, with values from the command line, `set_flag`, or the defaults.

    Example:
      >>> registry = FlagRegistry((Flag('num_gpus', int, 1, 'GPUs'),))
      >>> registry.parse(['--num_gpus=2', '--not_ours', 'file'])
      >>> registry.get('num_gpus')
      2
    """

    flags: Sequence[Flag]
    _values: dict[str, Any] = field(default_factory=dict)
    _errors: dict[str, FlagError] = field(default_factory=dict)
    _user_flags: dict[str, _UserFlag] = field(default_factory=dict)
    _parsed: bool = False
    _unknown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_name = {flag.name: flag for flag in self.flags}

    def names(self) -> list[str]:
        """All names, in the order of the help text."""
        return [flag.name for flag in self.flags]

    def parse(self, arguments: Sequence[str] | None = None) -> None:
        """Reads the flags from `arguments` (by default the command line); what it does not know it leaves alone.

        A value of the wrong type is an error when the flag is asked for, and in `check`: until then the script may
        say that the name is its own.
        """
        self._parsed = True
        words = sys.argv[1:] if arguments is None else arguments
        self._unknown = _flag_names(self.strip(words))
        for _, _, name, text in self._matches(words):
            self._errors.pop(name, None)
            try:
                self._values[name] = self._by_name[name].parse(text)
            except FlagError as error:
                self._errors[name] = error

    def check(self) -> None:
        """Raises the error of a flag on the command line whose value cannot be used; warns of misspelt ones, once."""
        if not self._parsed:
            self.parse()
        for name, error in self._errors.items():
            if name not in self._user_flags:
                raise error
        # In a cluster one process says it for all.
        is_first = not self._values.get("task_index") and self._values.get("job_name") != "ps"
        known = [name for name in self._by_name if name not in self._user_flags]
        misses = near_misses(self._unknown, known) if is_first else {}
        self._unknown = []
        for name, near in misses.items():
            _log.warning("--%s is no flag of MoXing or of this script and is ignored. Did you mean --%s?", name, near)

    def get(self, name: str) -> Any:
        """The value of a flag. An unknown name is an error that lists the nearest ones."""
        flag = self._lookup(name)
        if name in self._user_flags:
            return flag.parse(self._user_flags[name].read())
        if not self._parsed:
            self.parse()
        if name in self._errors:
            raise self._errors[name]
        return self._values.get(name, flag.default)

    def set(self, name: str, value: Any) -> None:
        """Sets a flag as the command line would."""
        try:
            parsed = self._lookup(name).parse(value)
        except FlagError as error:
            raise ScriptFlagError(str(error)) from None
        if not self._parsed:
            self.parse()
        self._errors.pop(name, None)
        self._values[name] = parsed
        if name in self._user_flags:
            self._user_flags[name].write(parsed)

    def share_with_user(self, name: str, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        """Tells that the script itself defined the flag `name`: from now on the script's value is the value."""
        if name in self._by_name:
            self._user_flags[name] = _UserFlag(read, write)

    def strip(self, arguments: Sequence[str], keep: Callable[[str], bool] = lambda name: False) -> list[str]:
        """`arguments` without MoXing's flags and their values; `keep(name)` says which to leave in.

        Example:
          >>> registry = FlagRegistry((Flag('num_gpus', int, 1, 'GPUs'),))
          >>> registry.strip(['--num_gpus', '2', '--lr=0.1'])
          ['--lr=0.1']
        """
        rest = list(arguments)
        for start, stop, name, _ in reversed(list(self._matches(arguments))):
            if not keep(name):
                del rest[start:stop]
        return rest

    def reset(self) -> None:
        """Forgets all values, as in a new process."""
        self._values.clear()
        self._errors.clear()
        self._user_flags.clear()
        self._unknown = []
        self._parsed = False

    def get_help(self) -> str:
        """The help text: a line or two for every flag."""
        lines = ["MoXing's command-line flags (no script defines them):"]
        for flag in self.flags:
            lines.append(f"  --{flag.name}  ({flag.kind.__name__}, default {flag.default!r})")
            choices = f" One of {', '.join(flag.choices)}." if flag.choices else ""
            lines.append(f"      {flag.help}{choices}")
        return "\n".join(lines)

    def _lookup(self, name: str) -> Flag:
        if name in self._by_name:
            return self._by_name[name]
        near = difflib.get_close_matches(name, self._by_name, n=3, cutoff=0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else "mox_flags.get_help() lists all flags."
        raise ScriptFlagError(f"MoXing has no flag {name!r}. {hint}")

    def _matches(self, arguments: Sequence[str]) -> list[tuple[int, int, str, Any]]:
        """Every flag of ours: where it starts and stops in `arguments`, its name, its text."""
        found: list[tuple[int, int, str, Any]] = []
        position = 0
        while position < len(arguments):
            if arguments[position] == "--":
                break
            match = self._match(arguments, position)
            if match is not None:
                found.append(match)
                position = match[1]
            else:
                position += 1
        return found

    def _match(self, arguments: Sequence[str], position: int) -> tuple[int, int, str, Any] | None:
        word = arguments[position]
        if not word.startswith("-"):
            return None
        name, equals, text = word.lstrip("-").partition("=")
        negated = self._by_name.get(name[2:]) if name.startswith("no") and not equals else None
        if negated is not None and negated.kind is bool:
            return position, position + 1, negated.name, False
        if name not in self._by_name:
            return None
        if equals:
            return position, position + 1, name, text
        following = arguments[position + 1] if position + 1 < len(arguments) else None
        if self._by_name[name].kind is bool:
            # `--flag` alone means true; `--flag False` is read too, as argparse-based flags of 2017 did.
            if following is not None and following.lower() in _TRUE | _FALSE:
                return position, position + 2, name, following
            return position, position + 1, name, True
        if following is None or (following.startswith("--") and len(following) > 2):
            return position, position + 1, name, _NO_VALUE
        return position, position + 2, name, following


def _flag_names(words: Sequence[str]) -> list[str]:
    end = words.index("--") if "--" in words else len(words)
    return list(dict.fromkeys(word[2:].partition("=")[0] for word in words[:end] if word.startswith("--")))


_VARIABLE_UPDATES = (
    "auto",
    "parameter_server",
    "replicated",
    "replicated_host",
    "distributed_replicated",
    "distributed_replicated_dgc",
    "distributed_replicated_mix",
    "collective",
)

FLAGS = FlagRegistry(
    (
        Flag("num_gpus", int, 1, "GPUs per worker; leave it at 1 on a CPU."),
        Flag("job_name", str, "", "Role of this process in a cluster: ps or worker."),
        Flag("task_index", int, 0, "Index of this process in its job; worker 0 is the chief."),
        Flag("ps_hosts", str, "", "Comma-separated host:port list of the parameter servers."),
        Flag("worker_hosts", str, "", "Comma-separated host:port list of the workers."),
        Flag("controller_host", str, "", "host:port of the controller of an all-reduce job without ps."),
        Flag("sync_replicas", bool, True, "Workers apply their gradients together."),
        Flag(
            "variable_update",
            str,
            None,
            "How variables are updated; by default the best for the devices found.",
            _VARIABLE_UPDATES,
        ),
        Flag("dgc_sparsity_strategy", str, None, "Sparsities of deep gradient compression, comma-separated."),
        Flag("dgc_momentum_type", str, None, "Momentum of deep gradient compression: vanilla or nesterov."),
        Flag("dgc_momentum", float, None, "Momentum factor of deep gradient compression."),
        Flag("dgc_momentum_factor_masking", bool, None, "Mask the momentum of gradients that were sent."),
        Flag("dgc_total_samples", int, None, "Samples per epoch, for the warm-up of the sparsity."),
        Flag("min_size_in_kb", int, None, "Smallest variable whose gradients are compressed."),
        Flag("var_space_starter", int, None, "distributed_replicated_mix: tuning."),
        Flag("var_mix_offset", int, None, "distributed_replicated_mix: tuning."),
        Flag(
            "checkpoint_include_patterns",
            str,
            None,
            "Comma-separated regular expressions: variables to take from checkpoint_path.",
        ),
        Flag(
            "checkpoint_exclude_patterns",
            str,
            None,
            "Comma-separated regular expressions: variables not to take from checkpoint_path.",
        ),
        Flag("trainable_include_patterns", str, None, "Comma-separated regular expressions: variables to train."),
        Flag("trainable_exclude_patterns", str, None, "Comma-separated regular expressions: variables to freeze."),
        Flag(
            "loss_scale",
            float,
            1.0,
            "The loss is multiplied by it before, the gradients divided by it after; dynamic finds it by itself.",
            words=("dynamic",),
        ),
        Flag("gradient_clip_type", str, None, "How gradients are clipped.", ("norm", "global_norm", "value")),
        Flag("gradient_clip", float, None, "The bound of the clipping."),
        Flag("use_fp16", bool, False, "Compute convolutions and matrix products in half precision."),
        Flag("exact_fp16", bool, False, "Compute half precision as written where the device does not accelerate it."),
        Flag("var_dtype", str, None, "Type of the variables.", ("fp32", "fp16")),
        Flag("clone_on_cpu", bool, False, "Put the towers on the CPU."),
        Flag("local_parameter_device", str, None, "Where variables live.", ("cpu", "gpu")),
        Flag("log_first_clone", bool, True, "Print the log_info of the first tower only; False: the mean of all."),
        Flag("summary_verbosity", int, 1, "0: no summaries; 1 and above: log_info and tf.summary.*."),
        Flag("running_log_level", int, 2, "0: silent, 1: warnings, 2: the run's log lines, 3: debug."),
        Flag("num_inter_threads", int, 0, "Operations that run at once (0: TensorFlow decides)."),
        Flag("num_intra_threads", int, 0, "Threads within one operation (0: TensorFlow decides)."),
        Flag("num_prefetch_threads", int, 0, "Parallel calls of the input's per-sample work (0: adapted by itself)."),
        Flag("warmup_steps", int, 0, "Steps at the start that are left out of sample/sec."),
        Flag("server_protocol", str, "grpc", "Protocol between the processes of a cluster."),
        Flag("sync_before_server", bool, False, "Wait for all processes before the servers start."),
        Flag("session_timeout", int, 0, "Seconds to wait for the chief's session (0: for ever)."),
        Flag("chief_inc_global_step", bool, False, "Only the chief advances global_step."),
        Flag("rank", int, 0, "Index of this process (accepted for scripts that pass it to every backend)."),
        Flag("keep_checkpoint_max", int, 5, "How many checkpoints are kept."),
        Flag("max_bad_samples", str, "0.1%", "Unreadable samples that are left out before a run stops."),
        Flag("max_image_pixels", int, 178_000_000, "Images of more pixels are refused before they are decoded."),
        Flag("data_requests", int, 32, "Requests for a data set on an object store that are under way at once."),
        Flag("data_patience", float, 300.0, "Seconds for which a run waits for the data of a store that is away."),
        Flag("upload_patience", float, 300.0, "Seconds for which a run that has ended waits for a store to upload to."),
        Flag("data_cache_dir", str, None, "Local directory that keeps what was read of data sets on object stores."),
        Flag("data_cache_gb", float, 100.0, "How large the cache of data sets on object stores may become, in GB."),
        Flag("restart", bool, False, "Move the checkpoints in log_dir aside and train from the start."),
    )
)
