"""Ages by a sender's clock: right whatever its rate and offset, as long as something comes as fast as ever."""

from __future__ import annotations

import numpy as np
import pytest

from robo_rl.deploy.robot.drivers.ticks import Ticks

PERIOD = 0.01  # s


def ages(rate: float, seconds: float, late: tuple[float, float, float] = (0.0, 0.0, 0.0), seed: int = 0) -> np.ndarray:
    """(n, 2) s: the age that is told and the true one, of messages that take 1 to 4 ms; ``late``: from, to, by s."""
    ticks, random, found = Ticks(), np.random.default_rng(seed), []
    begin, end, more = late
    for sent in np.arange(0.0, seconds, PERIOD):
        delay = 0.001 + 0.003 * random.random() + (more if begin <= sent < end else 0.0)
        if ticks.new(round(1000 * (1234.5 + rate * sent))):
            came = 77.0 + sent + delay
            found.append((came - ticks.sent(came), delay))
    return np.array(found)


@pytest.mark.parametrize("rate", [0.985, 0.99, 0.994, 0.9999, 1.0, 1.0001, 1.01])
def test_ages_are_those_of_the_network_whatever_the_rate_of_the_sender_s_clock(rate: float) -> None:
    told, true = ages(rate, 30.0).T
    settled = told[800:] - true[800:]
    assert np.abs(settled).max() < 0.006  # whole milliseconds, and the fastest took 1 ms
    assert np.abs(told[:800] - true[:800]).max() < 0.006 + 4.0 * abs(1 - rate) * 1.5, "until the rate is known"


def test_what_is_late_is_told_at_once_and_for_as_long_as_it_lasts() -> None:
    told, true = ages(0.99, 30.0, (15.0, 17.0, 0.3)).T
    late = true > 0.3
    assert late.sum() == 200
    assert np.abs(told[late] - true[late]).max() < 0.02
    assert np.abs(told[1750:] - true[1750:]).max() < 0.006


@pytest.mark.parametrize(
    ("rate", "remark", "right"), [(1.0, "", True), (0.99, "0.990 of ours", True), (0.9, "0.900 of ours: all", False)]
)
def test_a_clock_that_does_not_run_as_ours_is_told(rate: float, remark: str, right: bool) -> None:
    ticks = Ticks()
    for sent in np.arange(0.0, 8.0, PERIOD):
        ticks.new(round(1000 * rate * sent))
        ticks.sent(sent)
    assert ticks.remark.startswith("its clock runs at " + remark if remark else "")
    assert bool(ticks.remark) == bool(remark)
    assert ticks.rate == pytest.approx(rate, abs=1e-3)
    assert ticks.right == right


def test_a_sender_that_starts_anew_is_measured_anew() -> None:
    ticks = Ticks()
    for sent in np.arange(0.0, 8.0, PERIOD):
        ticks.new(round(1000 * 0.99 * sent) + 500_000)
        ticks.sent(sent)
    assert ticks.new(5)
    assert ticks.sent(9.0) == 9.0
    assert ticks.rate == 1.0
