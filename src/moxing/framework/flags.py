"""MoXing's command-line flags: one registry, parsed from anywhere on the command line.

Scripts do not define these flags; the registry is separate from `tf.flags` and `argparse`. If a script defines a flag
of the same name, MoXing uses the value of the script (`share_with_user`).
"""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moxing.framework.flag import (
    FALSE_WORDS,
    NO_VALUE,
    TRUE_WORDS,
    Flag,
    FlagError,
    FlagNotAvailableError,
    ScriptFlagError,
    expected_one_of,
)
from moxing.framework.misspelled_flags import near_misses, not_read

#: Options of `moxing run` for a cluster, which scripts do not see.
_RUN_OPTIONS = frozenset({"workers", "ps", "max_restarts", "cluster_logs", "evaluator", "isolate"})

#: The logger of TensorFlow, as for all warnings of a run. TensorFlow itself may not be imported yet.
_log = logging.getLogger("tensorflow")

__all__ = [
    "FLAGS",
    "Flag",
    "FlagError",
    "FlagNotAvailableError",
    "FlagRegistry",
    "ScriptFlagError",
    "expected_one_of",
]


@dataclass
class _UserFlag:
    """A flag of the script with the same name: functions that read and write its value."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass
class FlagRegistry:
    """The flags of a process, with values from the command line, `set_flag`, or the defaults.

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
    #: The texts of the flags in `_errors`.
    _rejected: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name = {flag.name: flag for flag in self.flags}

    def names(self) -> list[str]:
        """Returns all names, in the order of the help text."""
        return [flag.name for flag in self.flags]

    def parse(self, arguments: Sequence[str] | None = None) -> None:
        """Parses the flags in `arguments`, by default the command line, and ignores unknown ones.

        A wrong value raises an error in `get` and `check`, and not here: the script may still define the flag itself.
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
                self._rejected[name] = text

    def check(self) -> None:
        """Raises the error of a flag with a wrong value, and warns once about misspelled flags."""
        if not self._parsed:
            self.parse()
        for name, error in self._errors.items():
            if name not in self._user_flags:
                raise error
        unknown = self._take_unknown()
        if not unknown:
            return
        misses = near_misses(unknown, [name for name in self._by_name if name not in self._user_flags])
        for name, near in misses.items():
            _log.warning("Ignoring --%s: not a flag of MoXing or of this script. Did you mean --%s?", name, near)

    def warn_unknown(self, script_flags: Sequence[str]) -> None:
        """Warns once about flags on the command line that neither MoXing nor the script has.

        Args:
          script_flags: the names of the script's flags, all of which are defined now.
        """
        if not self._parsed:
            self.parse()
        known = [*script_flags, *self._by_name]
        others = [name for name in self._take_unknown() if not {name, name.removeprefix("no")} & set(known)]
        for name in not_read(others):
            near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
            hint = f" Did you mean --{near[0]}?" if near else ""
            if name in _RUN_OPTIONS:
                hint = " Options of moxing run come before the script."
            _log.warning("Ignoring --%s: not a flag of MoXing or of this script.%s", name, hint)

    def _take_unknown(self) -> list[str]:
        """Returns the flags that are not MoXing's, once. In a cluster, only one process gets them."""
        is_first = not self._values.get("task_index") and self._values.get("job_name") != "ps"
        unknown, self._unknown = self._unknown, []
        return unknown if is_first else []

    def get(self, name: str) -> Any:
        """Returns the value of a flag. The error for an unknown name suggests similar names."""
        flag = self._lookup(name)
        if name in self._user_flags:
            return flag.parse(self._user_flags[name].read())
        if not self._parsed:
            self.parse()
        if name in self._errors:
            raise self._errors[name]
        return self._values.get(name, flag.default)

    def add_choice(self, name: str, choice: str) -> None:
        """Adds a value to those that a flag takes. A value that was rejected before is read again.

        Example:
          >>> registry = FlagRegistry((Flag('color', str, None, 'The color.', ('red',)),))
          >>> registry.parse(['--color=blue'])
          >>> registry.add_choice('color', 'blue')
          >>> registry.get('color')
          'blue'
        """
        flag = self._lookup(name)
        if choice not in flag.choices:
            self._by_name[name] = replace(flag, choices=(*flag.choices, choice))
            self.flags = tuple(self._by_name.values())
        if self._rejected.get(name) == choice and name in self._errors:
            del self._errors[name]
            self._values[name] = choice

    def set(self, name: str, value: Any) -> None:
        """Sets a flag, as the command line does."""
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
        """Uses the value of the script from now on, since the script defined the flag `name` itself."""
        if name in self._by_name:
            self._user_flags[name] = _UserFlag(read, write)

    def strip(self, arguments: Sequence[str], keep: Callable[[str], bool] = lambda name: False) -> list[str]:
        """Returns `arguments` without MoXing's flags and their values, except those for which `keep(name)` is true.

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
        """Resets all values, as in a new process."""
        self._values.clear()
        self._errors.clear()
        self._rejected.clear()
        self._user_flags.clear()
        self._unknown = []
        self._parsed = False

    def get_help(self) -> str:
        """Returns the help text of all flags."""
        lines = ["MoXing's command-line flags (a script does not define them):"]
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
        """Returns MoXing's flags in `arguments`: start, stop, name and text of each."""
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
            # `--flag` alone means true; `--flag False` is accepted too, as by the argparse-based flags of 2017.
            if following is not None and following.lower() in TRUE_WORDS | FALSE_WORDS:
                return position, position + 2, name, following
            return position, position + 1, name, True
        if following is None or (following.startswith("--") and len(following) > 2):
            return position, position + 1, name, NO_VALUE
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

_THREADS = (0, 4096)

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
            "How variables are updated; by default chosen for the available devices.",
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
            "Multiplies the loss before the gradients are computed and divides the gradients afterwards; "
            "dynamic: adapted automatically.",
            words=("dynamic",),
        ),
        Flag("gradient_clip_type", str, None, "How gradients are clipped.", ("norm", "global_norm", "value")),
        Flag("gradient_clip", float, None, "The clipping threshold."),
        Flag("use_fp16", bool, False, "Compute convolutions and matrix products in half precision."),
        Flag("exact_fp16", bool, False, "Compute in half precision even if the device does not accelerate it."),
        Flag("var_dtype", str, None, "Type of the variables.", ("fp32", "fp16")),
        Flag("clone_on_cpu", bool, False, "Put the towers on the CPU."),
        Flag("local_parameter_device", str, None, "The device of the variables.", ("cpu", "gpu")),
        Flag("log_first_clone", bool, True, "Print the log_info of the first tower only; False: the mean of all."),
        Flag("summary_verbosity", int, 1, "0: no summaries; 1 and above: log_info and tf.summary.*."),
        Flag("running_log_level", int, 2, "0: silent, 1: warnings, 2: the run's log lines, 3: debug."),
        Flag(
            *("num_inter_threads", int, 0, "Number of operations that run in parallel (0: TensorFlow decides)."),
            bounds=_THREADS,
        ),
        Flag(
            *("num_intra_threads", int, 0, "Number of threads within one operation (0: TensorFlow decides)."),
            bounds=_THREADS,
        ),
        Flag(
            *("num_prefetch_threads", int, 0, "Number of samples processed in parallel (0: tuned automatically)."),
            bounds=_THREADS,
        ),
        Flag("warmup_steps", int, 0, "Number of first steps that do not count for sample/sec."),
        Flag("server_protocol", str, "grpc", "Protocol between the processes of a cluster."),
        Flag("sync_before_server", bool, False, "Wait for all processes before the servers start."),
        Flag("session_timeout", int, 0, "Seconds to wait for the other processes at the start (0: forever)."),
        Flag("chief_inc_global_step", bool, False, "Only the chief increments global_step."),
        Flag("rank", int, 0, "Index of this process (accepted for scripts that pass it to every backend)."),
        Flag("keep_checkpoint_max", int, 5, "Number of checkpoints to keep."),
        Flag("keep_checkpoint_every_n_hours", float, None, "Keep one checkpoint for good every n hours."),
        Flag(
            "max_bad_samples",
            str,
            "0.1%",
            "Unreadable samples to skip before the run stops: a number or a percentage.",
        ),
        Flag("max_image_pixels", int, 178_000_000, "Images with more pixels are rejected before decoding."),
        Flag("data_requests", int, 32, "Number of parallel requests for a dataset on an object store."),
        Flag("data_patience", float, 300.0, "Seconds to wait for data if the object store is unreachable."),
        Flag(
            "upload_patience",
            float,
            300.0,
            "Seconds to wait for the last uploads if the store is unreachable.",
        ),
        Flag("data_cache_dir", str, None, "Local cache directory for datasets on object stores."),
        Flag("data_cache_gb", float, 100.0, "Maximum size of the cache of datasets on object stores, in GB."),
        Flag("restart", bool, False, "Move the checkpoints in log_dir aside and train from the start."),
    )
)
