"""The search for a hole: its spiral leaves no gap, at an even speed, and its clock runs while the peg is on the rim."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.inserting import ABOVE, INSIDE, PITCH, PUSH, SEARCH_TIME, SPEED, WIDEST, insert, searched, spiral


def test_no_place_that_the_hole_may_be_at_is_farther_from_the_spiral_than_half_its_pitch() -> None:
    way = np.stack(spiral(np.linspace(0.0, 0.5 * SEARCH_TIME, 20_000), np.sin, np.cos), 1)
    random = np.random.default_rng(0)
    radius, angle = (WIDEST - PITCH) * random.uniform(size=500) ** 0.5, random.uniform(0.0, 2.0 * np.pi, 500)
    places = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    away = np.linalg.norm(places[:, None] - way[None], axis=2).min(1)
    assert away.max() < 0.51 * PITCH


def test_the_spiral_is_followed_at_its_speed_and_back_to_the_middle() -> None:
    time = np.linspace(0.0, SEARCH_TIME, 4001)
    x, y = spiral(time, np.sin, np.cos)
    speed = np.hypot(np.diff(x), np.diff(y)) / np.diff(time)
    first, turn = time[1:] < 0.2, np.abs(time[1:] - 0.5 * SEARCH_TIME) < 0.01  # about the middle it is slower
    last = time[1:] > SEARCH_TIME - 0.2
    np.testing.assert_allclose(speed[~(first | turn | last)], SPEED, rtol=0.05)
    assert np.hypot(x, y).max() == pytest.approx(WIDEST, rel=1e-3)
    assert np.hypot(x[-1], y[-1]) < 1e-4


@pytest.mark.parametrize(
    ("deflection", "depth", "runs"),
    [(0.004, 0.0, 1.0), (0.0, 0.0, 0.0), (0.004, -2.0 * ABOVE, 0.0), (0.004, 2.0 * INSIDE, 0.0)],
    ids=["pressed on the rim", "not pressed", "above the rim", "in the hole"],
)
def test_the_clock_runs_while_the_peg_is_pressed_on_the_rim(deflection: float, depth: float, runs: float) -> None:
    assert searched(0.5, deflection, depth, 0.05) == pytest.approx(0.5 + 0.05 * runs)


def test_the_clock_stops_at_the_end_of_the_spiral() -> None:
    assert searched(SEARCH_TIME, 0.004, 0.0, 0.05) == SEARCH_TIME
    assert np.isfinite(spiral(np.float32(SEARCH_TIME), np.sin, np.cos)).all()


def test_the_hand_goes_across_above_the_rim_and_straight_down_once_the_peg_is_in() -> None:
    x, _, z = insert((0.03, 0.0, -ABOVE), (0.0, 0.0))
    assert x > 0.01
    assert z == pytest.approx(0.0)
    assert insert((0.001, 0.001, 2.0 * INSIDE), (0.0, 0.002)) == (0.0, 0.0, -PUSH)
