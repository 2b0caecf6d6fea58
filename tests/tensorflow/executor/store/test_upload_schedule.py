"""When a file is uploaded again."""

from __future__ import annotations

import pytest

from moxing.tensorflow.executor.store.upload_schedule import UploadSchedule


def test_a_new_file_is_due_at_once():
    schedule = UploadSchedule()
    assert schedule.is_due("events")
    assert schedule.seconds_until("events") is None


@pytest.mark.parametrize(("took", "pause"), [(0.0, 4), (1.0, 10), (30.0, 300)])
def test_uploads_of_a_growing_file_take_a_tenth_of_the_time(took, pause):
    schedule = UploadSchedule()
    schedule.succeeded("events", took)
    assert not schedule.is_due("events")
    assert schedule.seconds_until("events") == pytest.approx(pause, abs=0.5)


def test_a_marker_is_due_again_at_once():
    schedule = UploadSchedule()
    schedule.succeeded("checkpoint")
    assert schedule.is_due("checkpoint")


def test_failures_double_the_pause_up_to_a_minute():
    schedule = UploadSchedule()
    pauses = []
    for _ in range(5):
        schedule.failed("events")
        pauses.append(schedule.seconds_until("events"))
    assert pauses == pytest.approx([8, 16, 32, 60, 60], abs=0.5)
    schedule.succeeded("events", 0.0)
    schedule.failed("events")
    assert schedule.seconds_until("events") == pytest.approx(8, abs=0.5)
