"""Small helpers that scripts import from `moxing.framework.util`."""

from moxing.framework.util import compat, runtime

__all__ = ["compat", "runtime"]
