"""A module with a few other names."""

from __future__ import annotations

import math

from moxing.tf1.module_proxy import ModuleProxy


def test_other_names_win_and_the_real_module_stays():
    proxy = ModuleProxy(math, {"pi": 3, "answer": 42})
    assert (proxy.pi, proxy.answer, proxy.e) == (3, 42, math.e)
    assert math.pi != 3 and not hasattr(math, "answer")
