"""Requests ahead: begun in order, taken once, never more than asked for."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from helpers import warm
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.datasets.stored.look_ahead import LookAhead, RequestThreads, requests_at_once


def test_as_many_at_once_as_there_are_threads():
    meeting = threading.Barrier(5, timeout=20)
    threads = RequestThreads(5)
    assert len([future.result(20) for future in [threads.submit(meeting.wait) for _ in range(5)]]) == 5
    running, most = [], []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    for future in [threads.submit(work) for _ in range(30)]:
        future.result(20)
    assert max(most) == 5


def test_threads_end_with_their_owner():
    threads = RequestThreads(3)
    names = [future.result(20) for future in [threads.submit(threading.current_thread) for _ in range(9)]]
    del threads
    gc.collect()
    for thread in set(names):
        thread.join(20)
        assert not thread.is_alive()


def test_an_error_is_that_of_its_request():
    threads = RequestThreads(1)
    failed = threads.submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(20)
    assert threads.submit(int, "7").result(20) == 7


def test_a_request_that_hangs_does_not_keep_the_process():
    code = (
        "import time; from moxing.tensorflow.datasets.stored.look_ahead import RequestThreads\n"
        "threads = RequestThreads(2); threads.submit(time.sleep, 600); print('done', flush=True)"
    )
    done = warm.run(warm.Program("code", code))
    assert done.stdout.endswith("done\n") and done.returncode == 0


def test_what_is_expected_is_begun_once_and_in_order():
    begun: list[int] = []
    threads = RequestThreads(1)

    def begin(numbers):
        begun.extend(numbers)
        return {number: threads.submit(lambda value: 10 * value, number) for number in numbers}

    ahead = LookAhead(begin, 100)
    ahead.expect([3, 1, 2])
    ahead.expect([1, 2, 5])
    assert ahead.take([3, 1, 1]) == [30, 10, 10]
    assert begun == [3, 1, 2, 5]
    assert ahead.take([2, 1]) == [20, 10]
    assert begun == [3, 1, 2, 5, 1]


def test_what_nobody_takes_is_forgotten():
    threads = RequestThreads(2)
    ahead = LookAhead(lambda numbers: {number: threads.submit(abs, number) for number in numbers}, 10)
    for number in range(1000):
        ahead.expect([number])
    assert len(ahead._started) == 10
    assert ahead.take([0, 999]) == [0, 999]


def test_the_flag():
    FLAGS.set("data_requests", 0)
    with pytest.raises(FlagError, match="--data_requests=0: expected a number from 1"):
        requests_at_once()
