"""What the tests of datasets on stores share."""

from __future__ import annotations

import urllib.parse
from typing import Any

import numpy as np


def fetched_keys(proxy: Any, ending: str = "") -> list[str]:
    """The keys of the objects that were read so far, without the test's own folder."""
    targets = [urllib.parse.unquote(target.partition("?")[0]) for method, target in proxy.requests if method == "GET"]
    return [target.split("/", 3)[3] for target in targets if target.count("/") > 2 and target.endswith(ending)]


def listings(proxy: Any) -> int:
    return sum("list-type=2" in target for _, target in proxy.requests)


def same(first: Any, second: Any) -> bool:
    """Whether two lists of features are the same in every value."""
    return len(first) == len(second) and all(
        np.array_equal(one, other) for a, b in zip(first, second, strict=True) for one, other in zip(a, b, strict=True)
    )
