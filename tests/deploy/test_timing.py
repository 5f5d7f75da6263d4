"""Late steps and quantiles of computing, against numpy on all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.timing import LONGEST, Timing


@given(st.lists(st.integers(0, LONGEST), min_size=1, max_size=200), st.sampled_from([0.5, 0.99, 1.0]))
def test_quantiles_are_numpys(took: list[int], part: float) -> None:
    timing = Timing(0.02)
    for k, one in enumerate(took):
        timing.note(20_000 * k, one)
    assert timing.quantile(part) == np.quantile(took, part, method="inverted_cdf")
    assert timing.figures()["computing_max_ms"] == max(took) / 1000
    assert timing.late == 0


@given(st.lists(st.integers(1, 100_000), max_size=100))
def test_steps_later_than_a_tenth_of_a_period_are_counted(intervals: list[int]) -> None:
    timing, times = Timing(0.02), np.cumsum([0, *intervals])
    for time in times:
        timing.note(int(time), 10**9)
    assert timing.late == sum(one > 22_000 for one in intervals)
    assert timing.longest == max(intervals, default=0)
    assert timing.figures()["computing_p99_ms"] == LONGEST / 1000


def test_nothing_is_told_of_no_steps() -> None:
    assert set(Timing(0.02).figures().values()) == {0}
