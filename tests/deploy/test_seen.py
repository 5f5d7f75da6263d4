"""What counts as outside of the range seen in training."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.logs.replay import beyond

NUMBERS = st.floats(-100.0, 100.0)


def test_the_last_digit_of_a_quaternion_is_not_outside() -> None:
    low, high = np.array([-0.975037]), np.array([0.999968])
    assert beyond(np.array([[0.999996], [1.0]]), low, high).tolist() == [[False], [False]]
    assert beyond(np.array([[-0.98], [1.01], [np.nan]]), low, high).all()


@given(st.tuples(NUMBERS, NUMBERS).map(sorted), NUMBERS)
def test_outside_is_more_than_a_thousandth_beyond(ends: list[float], value: float) -> None:
    low, high = np.array(ends[:1]), np.array(ends[1:])
    away = max(low[0] - value, value - high[0])
    found = bool(beyond(np.array([[value]]), low, high)[0, 0])
    if away <= 0.0:
        assert not found
    if away > 0.001 * (high - low)[0] + 2e-4:
        assert found
