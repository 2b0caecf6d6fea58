"""Which variables are trained, and which are read from a checkpoint: chosen by the scopes in their names."""

import difflib
import os
import re

import tensorflow.compat.v1 as tf

_LISTED = 5


def split_scopes(text):
    """Returns the scopes in a comma-separated list.

    >>> split_scopes('net/conv1, net/logits/')
    ['net/conv1', 'net/logits']
    """
    return [scope for scope in (part.strip().strip("/") for part in text.split(",")) if scope]


def is_in(name, scopes):
    """Returns whether a variable is in one of the scopes.

    >>> is_in('net/conv1/weights', ['net/conv1']), is_in('net/conv10/weights', ['net/conv1'])
    (True, False)
    """
    return any(name == scope or name.startswith(scope + "/") for scope in scopes)


def pattern_of(scope):
    """Returns the regular expression of a scope, for MoXing's flags.

    >>> pattern_of('net/conv1')
    '^net/conv1(/|$)'
    """
    return f"^{re.escape(scope)}(/|$)"


def check_scopes(option, scopes, names):
    """Raises a ValueError if a scope has no variables."""
    for scope in scopes:
        if not any(is_in(name, [scope]) for name in names):
            known = sorted({"/".join(name.split("/")[:depth]) for name in names for depth in (1, 2, 3)})
            near = difflib.get_close_matches(scope, known, _LISTED, cutoff=0.5) or known[:_LISTED]
            raise ValueError(f"--{option}: no variable is in the scope {scope!r}; there are for example {_some(near)}.")


def trained_variables(trainable, trainable_scopes, freeze_scopes):
    """Returns the names of the variables to train.

    Args:
      trainable: the names of all variables that can be trained.
      trainable_scopes: train these scopes only; empty: all.
      freeze_scopes: do not train these.

    Raises:
      ValueError: a scope has no variables, or nothing is left to train.
    """
    check_scopes("trainable_scopes", trainable_scopes, trainable)
    check_scopes("freeze_scopes", freeze_scopes, trainable)
    chosen = [name for name in trainable if not trainable_scopes or is_in(name, trainable_scopes)]
    chosen = [name for name in chosen if not is_in(name, freeze_scopes)]
    if not chosen:
        raise ValueError("--trainable_scopes and --freeze_scopes leave no variable to train.")
    return chosen


def restored_variables(shapes, checkpoint_path, exclude_scopes):
    """Returns the names of the variables to read from a checkpoint.

    Args:
      shapes: the shapes of the model's variables by name.
      checkpoint_path: a checkpoint or a directory with checkpoints.
      exclude_scopes: these scopes are not read.

    Raises:
      ValueError: there is no checkpoint, it does not fit the model, or a scope has no variables.
    """
    check_scopes("checkpoint_exclude_scopes", exclude_scopes, shapes)
    wanted = [name for name in shapes if not is_in(name, exclude_scopes)]
    if not wanted:
        raise ValueError("--checkpoint_exclude_scopes leaves nothing to read from --checkpoint_path.")
    found = _shapes_in(checkpoint_path)
    missing = [name for name in wanted if name not in found]
    if len(missing) == len(wanted):
        raise ValueError(
            f"--checkpoint_path={checkpoint_path} is of another network: it has {_some(found)}, "
            f"the model has {_some(wanted)}."
        )
    different = [name for name in wanted if name in found and found[name] != shapes[name]]
    for names, problem in ((different, "have another shape in"), (missing, "are missing in")):
        if names:
            scopes = sorted({name.rpartition("/")[0] for name in names})
            raise ValueError(
                f"{_some(names)} {problem} --checkpoint_path={checkpoint_path}. To begin with new values there, pass "
                f"--checkpoint_exclude_scopes={','.join([*exclude_scopes, *scopes[:_LISTED]])}"
            )
    return wanted


def _shapes_in(checkpoint_path):
    try:
        if os.path.isdir(checkpoint_path) and not tf.train.latest_checkpoint(checkpoint_path):
            raise ValueError("there is no checkpoint in this directory")
        reader = tf.train.load_checkpoint(checkpoint_path)
        return reader.get_variable_to_shape_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise ValueError(f"--checkpoint_path={checkpoint_path} cannot be read: {str(error).splitlines()[0]}.") from None


def _some(names):
    names = sorted(names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
