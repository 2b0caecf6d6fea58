"""Words on the command line that are nearly flags of MoXing: nobody reads them, and the user should know.

Unknown flags are no error, as in TensorFlow 1.4: a script's own flags can come from anywhere. So a warning is given for
near misses only, and only for names that stand nowhere in the script.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

#: `num_gpu` is that near to `num_gpus`; `total_samples` is not so near to `dgc_total_samples`.
_NEAR = 0.88
#: `dgc_sparsity` is the beginning of `dgc_sparsity_strategy`; a shorter word may be anybody's.
_LONG = 10


def near_misses(names: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """The names that nobody knows, each with the one of `known` that is probably meant.

    Args:
      names: flags on the command line that are none of `known`.
      known: the flags there are.

    Example:
      >>> near_misses(['loss_scal', 'learning_rate'], ['num_gpus', 'loss_scale'])
      {'loss_scal': 'loss_scale'}
    """
    found = {}
    for name in names:
        # Users of argparse write dashes.
        plain = name.replace("-", "_")
        near = difflib.get_close_matches(plain, known, n=1, cutoff=_NEAR)
        if not near and len(plain) >= _LONG:
            near = [flag for flag in known if flag.startswith(f"{plain}_")][:1]
        if near and not _is_read_by_somebody(name, near[0]):
            found[name] = near[0]
    return found


def _is_read_by_somebody(name: str, near: str) -> bool:
    absl_flags = sys.modules.get("absl.flags")
    if absl_flags is not None and name in absl_flags.FLAGS:
        return True
    # Whoever reads a flag has its name: an option of argparse, a parameter of a function, a text to look for. There a
    # dash may be an underscore, unless that is the name of our flag.
    between = "-" if name.replace("-", "_") == near else "[-_]"
    pattern = between.join(map(re.escape, re.split("[-_]", name)))
    word = re.compile(rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])")
    return any(word.search(text) for text in _texts_of_script())


def _texts_of_script() -> Iterator[str]:
    """The sources of the modules that are the user's: not Python's, not installed, not ours."""
    not_users = tuple({sysconfig.get_path("stdlib"), str(Path(__file__).resolve().parents[1])})
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py") or file.startswith(not_users):
            continue
        if not {"site-packages", "dist-packages"} & set(Path(file).parts):
            with contextlib.suppress(OSError):
                yield Path(file).read_text(errors="replace")
