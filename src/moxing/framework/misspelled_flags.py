"""Finds misspelled flags of MoXing on the command line, which would otherwise be ignored silently.

Unknown flags are not an error, as in TensorFlow 1.4: a script may read them in any way. So only names that are close to
a flag of MoXing and that do not occur in the script are reported.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Similarity: `num_gpu` and `num_gpus` are above it, `total_samples` and `dgc_total_samples` below.
_NEAR = 0.88
#: A word of this length, such as `dgc_sparsity`, may be the beginning of a flag; a shorter one is too ambiguous.
_LONG = 10
#: From this length on, a word with two letters swapped is the flag.
_SWAPPED = 5


def near_misses(names: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Returns the misspelled names, each with the flag that is probably meant.

    Args:
      names: flags on the command line that are not in `known`.
      known: the flags of MoXing.

    Example:
      >>> near_misses(['loss_scal', 'learning_rate'], ['num_gpus', 'loss_scale'])
      {'loss_scal': 'loss_scale'}
    """
    found = {}
    for name in names:
        # Users of argparse write dashes.
        plain = name.replace("-", "_")
        near = difflib.get_close_matches(plain, known, n=1, cutoff=_NEAR)
        if not near and len(plain) >= _SWAPPED:
            near = [flag for flag in known if _is_swapped(plain, flag)][:1]
        if not near and len(plain) >= _LONG:
            near = [flag for flag in known if flag.startswith(f"{plain}_")][:1]
        if near and not _is_read_by_script(name, near[0]):
            found[name] = near[0]
    return found


def not_read(names: Sequence[str]) -> list[str]:
    """Returns the names that no module of the user has in quotes or after `--`, so that nothing reads them.

    Example:
      >>> not_read(['nobody_' + 'reads_this'])
      ['nobody_reads_this']
    """
    absl_flags = sys.modules.get("absl.flags")
    names = [name for name in names if absl_flags is None or name not in absl_flags.FLAGS]
    sources = list(_user_sources()) if names else []
    words = {name: re.compile(rf"(?:--|[\"'])-{{0,2}}{re.escape(name)}(?![A-Za-z0-9_])") for name in names}
    return [name for name, word in words.items() if not any(map(word.search, sources))]


def _is_swapped(name: str, flag: str) -> bool:
    """Whether two neighbouring letters of a flag are swapped, such as in `restrat`."""
    differing = [index for index, (a, b) in enumerate(zip(name, flag, strict=False)) if a != b]
    return (
        len(name) == len(flag)
        and len(differing) == 2
        and differing[1] == differing[0] + 1
        and sorted(name) == sorted(flag)
    )


def _is_read_by_script(name: str, near: str) -> bool:
    absl_flags = sys.modules.get("absl.flags")
    if absl_flags is not None and name in absl_flags.FLAGS:
        return True
    # Code that reads a flag contains its name, perhaps with underscores for dashes. An underscore form that equals a
    # flag of MoXing does not count.
    between = "-" if name.replace("-", "_") == near else "[-_]"
    pattern = between.join(map(re.escape, re.split("[-_]", name)))
    word = re.compile(rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])")
    return any(word.search(source) for source in _user_sources())


def _user_sources() -> Iterator[str]:
    """Yields the sources of the user modules: not of the standard library, installed packages or MoXing."""
    libraries = tuple({sysconfig.get_path("stdlib"), str(Path(__file__).resolve().parents[1])})
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py") or file.startswith(libraries):
            continue
        if not {"site-packages", "dist-packages"} & set(Path(file).parts):
            with contextlib.suppress(OSError):
                yield Path(file).read_text(errors="replace")
