"""`append` of pandas 1."""

import pandas as pd
import pytest

from moxing.tf1.era import old_pandas


def test_a_dict_and_a_series_need_ignore_index():
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(TypeError, match="append a dict if ignore_index=True"):
        old_pandas._append_to_frame(frame, {"a": 2})
    with pytest.raises(TypeError, match="ignore_index=True or if the Series has a name"):
        old_pandas._append_to_frame(frame, pd.Series({"a": 2}))
    assert old_pandas._append_to_frame(frame, {"a": 2}, ignore_index=True)["a"].tolist() == [1, 2]
    named = old_pandas._append_to_frame(frame, pd.Series({"a": 3}, name="x"))
    assert named.index.tolist() == [0, "x"]


def test_verify_integrity_is_passed_on():
    frame, series = pd.DataFrame({"a": [1]}), pd.Series([1])
    with pytest.raises(ValueError, match="overlapping"):
        old_pandas._append_to_frame(frame, frame, verify_integrity=True)
    with pytest.raises(ValueError, match="overlapping"):
        old_pandas._append_to_series(series, series, verify_integrity=True)
    assert old_pandas._append_to_series(series, [series, series]).tolist() == [1, 1, 1]


def test_only_user_modules_see_it():
    old_pandas.install()
    old_pandas.install()
    assert not hasattr(pd.DataFrame(), "append") and not hasattr(pd.Series([1]), "append")
