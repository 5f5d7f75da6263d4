"""The watchdog makes the steps that a late policy keeps from being made, and no others."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.watchdog import LATE, LATE_FOR_A_STOP, Watchdog

PERIOD = 0.01


class Bench:
    """A watchdog whose time is in our hands, and when it acted."""

    def __init__(self) -> None:
        self.now, self.acts, self.hung = 100.0, [], []
        self.watchdog = Watchdog(
            PERIOD, lambda: self.acts.append(self.now), lambda: self.now, lambda: self.hung.append(self.now)
        )

    def until(self, end: float) -> None:
        """Let it look when it wants to, from now until ``end``."""
        look = self.watchdog.check(self.now, self.now)
        while look <= end:
            assert look > self.now
            self.now = look
            look = self.watchdog.check(self.now, self.now)
        self.now = end


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0, 1.7])
def test_a_policy_that_answers_within_its_time_is_never_disturbed(part: float) -> None:
    bench = Bench()
    for _ in range(100):
        bench.watchdog.begin()
        bench.until(bench.now + part * PERIOD)
        assert bench.watchdog.end()
        bench.until(bench.now + max(0.0, 1 - part) * PERIOD)
    assert not bench.acts


def test_it_looks_no_more_than_once_in_a_period_while_all_is_well() -> None:
    bench, looks = Bench(), []
    look = bench.watchdog.check(bench.now)
    for k in range(1000):
        bench.now = 100.0 + k * PERIOD
        bench.watchdog.begin()
        bench.watchdog.end()
        while look < bench.now + PERIOD:
            looks.append(look)
            look = bench.watchdog.check(look, look)
    assert len(looks) <= 1000


def test_a_policy_that_hangs_is_replaced_within_two_periods_and_then_every_period() -> None:
    bench = Bench()
    for _ in range(3):
        bench.watchdog.begin()
        bench.watchdog.end()
        bench.until(bench.now + PERIOD)
    begun = bench.now
    bench.watchdog.begin()
    bench.until(begun + 1.0)
    np.testing.assert_allclose(np.array(bench.acts) - begun, PERIOD * (LATE + np.arange(len(bench.acts))), atol=1e-9)
    assert len(bench.acts) == 99
    assert LATE < 2
    assert not bench.watchdog.end()
    bench.until(bench.now + 1.0)
    assert len(bench.acts) == 99
    bench.watchdog.begin()
    assert bench.watchdog.end()


@pytest.mark.parametrize("asked", [-0.5, 0.0, 0.3, 1.2, 30.4])
def test_a_stop_waits_for_the_policy_for_less_than_a_period(asked: float) -> None:
    bench = Bench()
    if asked < 0:
        bench.watchdog.hurry()
        bench.until(bench.now - asked * PERIOD)
    begun = bench.now
    bench.watchdog.begin()
    bench.until(begun + max(0.0, asked) * PERIOD)
    bench.watchdog.hurry()
    before, when = len(bench.acts), bench.now
    bench.until(when + 5 * PERIOD)
    assert bench.acts[before] - when <= PERIOD * (1 + 1e-9)
    if 0 <= asked < 1:
        assert bench.acts[before] - when == pytest.approx(LATE_FOR_A_STOP * PERIOD)


def test_a_stall_of_the_whole_process_is_excused_once() -> None:
    bench = Bench()
    begun = bench.now
    bench.watchdog.begin()
    planned = bench.watchdog.check(bench.now)
    bench.now = begun + 1.5  # all of the process stood still
    again = bench.watchdog.check(bench.now, planned)
    assert not bench.acts
    assert again - bench.now == pytest.approx(LATE_FOR_A_STOP * PERIOD)
    bench.now = again + 1.0
    bench.watchdog.check(bench.now, again)
    assert len(bench.acts) == 1


@pytest.mark.parametrize("asked", [-0.9, -0.2, 0.0, 0.3, 7.0])
def test_a_stop_while_a_call_of_the_robot_hangs_is_told_once_within_two_periods(asked: float) -> None:
    """Before the step whose reading hangs, as it begins to hang, or later."""
    bench = Bench()
    bench.watchdog.begin()
    assert bench.watchdog.end()
    bench.watchdog.answered()
    bench.until(bench.now + (1 + asked) * PERIOD)
    when = bench.now
    bench.watchdog.hurry()
    bench.until(when + 50 * PERIOD)
    assert len(bench.hung) == 1
    assert bench.hung[0] - when <= 1.5 * PERIOD + 1e-9
    assert not bench.acts


def test_so_is_one_that_the_gate_has_answered_where_the_answer_is_never_sent() -> None:
    bench = Bench()
    bench.watchdog.begin()
    bench.watchdog.hurry()
    assert bench.watchdog.end()
    when = bench.now
    bench.until(when + 50 * PERIOD)
    assert len(bench.hung) == 1
    assert bench.hung[0] - when <= 1.5 * PERIOD + 1e-9


def test_so_is_one_that_comes_while_a_step_is_written_which_has_not_heard_it_where_the_next_reading_hangs() -> None:
    bench = Bench()
    bench.watchdog.begin()
    assert bench.watchdog.end()
    bench.watchdog.hurry()
    when = bench.now
    bench.watchdog.answered()
    bench.until(when + 50 * PERIOD)
    assert len(bench.hung) == 1
    assert bench.hung[0] - when <= 1.5 * PERIOD + 1e-9


@given(
    st.lists(
        st.tuples(st.floats(0.0, 0.4), st.floats(0.0, 0.7), st.floats(0.0, 0.3), st.booleans(), st.booleans()),
        min_size=1, max_size=30,
    )
)  # fmt: skip
def test_no_stop_of_a_robot_that_answers_in_time_is_taken_for_a_hang(steps: list) -> None:
    """Reading, the policy, writing (periods), and requests before the reading and before the writing."""
    bench = Bench()
    for reading, thinking, writing, early, late in steps:
        due = bench.now + PERIOD
        if early:
            bench.watchdog.hurry()
        bench.until(bench.now + reading * PERIOD)
        bench.watchdog.begin()
        bench.until(bench.now + thinking * PERIOD)
        bench.watchdog.end()
        if late:
            bench.watchdog.hurry()
        bench.until(bench.now + writing * PERIOD)
        bench.watchdog.answered()
        bench.until(max(bench.now, due))
    assert not bench.hung


def test_a_stall_of_the_whole_process_is_no_hang_if_a_step_follows() -> None:
    bench = Bench()
    bench.watchdog.hurry()
    planned = bench.watchdog.check(bench.now)
    bench.now += 1.5  # all of the process stood still
    bench.watchdog.check(bench.now, planned)
    bench.until(bench.now + 0.5 * PERIOD)
    bench.watchdog.begin()
    bench.watchdog.end()
    bench.watchdog.answered()
    bench.until(bench.now + 5 * PERIOD)
    assert not bench.hung


def test_an_error_in_a_step_does_not_end_it() -> None:
    tries = itertools.count()

    def act() -> None:
        raise RuntimeError(f"try {next(tries)}")

    watchdog = Watchdog(PERIOD, act, clock=lambda: 100.0)
    watchdog.begin()
    for now in (101.0, 102.0, 103.0):
        watchdog.check(now)
    assert "try 2" in watchdog.broken


def test_the_thread_acts_while_another_is_stuck() -> None:
    acted = threading.Semaphore(0)
    watchdog = Watchdog(1e-3, acted.release)
    watchdog.start()
    watchdog.begin()
    for _ in range(3):
        assert acted.acquire(timeout=60)
    assert watchdog.waited > 0
    assert not watchdog.end()
    watchdog.stop()
