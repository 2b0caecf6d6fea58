"""`sklearn.utils.linear_assignment_`, which scikit-learn dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["linear_assignment"]


def linear_assignment(X: Any) -> np.ndarray:
    """Returns the pairs of row and column with the least sum of costs, one pair per line.

    Example:
      >>> linear_assignment([[4, 1], [2, 8]]).tolist()
      [[0, 1], [1, 0]]
    """
    from scipy.optimize import linear_sum_assignment

    return np.stack(linear_sum_assignment(np.asarray(X)), axis=1)
