"""The search for a hole: its spiral leaves no gap, at an even speed, and its clock runs while the peg is on the rim."""

from __future__ import annotations

import numpy as np
import pytest

from robo_rl.controllers.skills.inserting import (
    ABOVE,
    FAST,
    FRICTION,
    INSIDE,
    PITCH,
    PRESS,
    PUSH,
    RUBBING,
    SEARCH_TIME,
    SINKING,
    SPEED,
    WIDEST,
    below_rim,
    insert,
    pressed,
    searched,
    spiral,
    touched,
)


def test_no_place_that_the_hole_may_be_at_is_farther_from_the_spiral_than_half_its_pitch() -> None:
    way = np.stack(spiral(np.linspace(0.0, 0.5 * SEARCH_TIME, 6_000), np.sin, np.cos), 1)
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


def test_the_spiral_turns_in_one_sense_and_covers_more_on_its_way_back() -> None:
    time = np.linspace(0.0, SEARCH_TIME, 8001)
    way = np.stack(spiral(time, np.sin, np.cos), 1)
    angle = np.unwrap(np.arctan2(way[:, 1], way[:, 0]))[10:-10]
    assert (np.diff(angle) > 0.0).all()
    line = np.linspace(-0.0035, 0.0035, 36)
    places = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    within = [np.abs(places[:, None] - part[None]).max(2).min(1) < 0.3 * PITCH for part in (way[:4000:4], way[::4])]
    out, both = (float(part.mean()) for part in within)
    assert both > 0.85
    assert both > out + 0.1


def test_after_the_way_back_the_spiral_begins_again() -> None:
    time = np.linspace(0.1, SEARCH_TIME - 0.1, 50)
    first, again = (np.stack(spiral(t, np.sin, np.cos)) for t in (time, 2.0 * SEARCH_TIME - time))
    np.testing.assert_allclose(first, again, atol=1e-9)
    assert searched(2.0 * SEARCH_TIME, 1.0, 0.0, 0.05) == pytest.approx(2.0 * SEARCH_TIME)


@pytest.mark.parametrize(
    ("touching", "depth", "runs"),
    [(1.0, 0.0, 1.0), (0.0, 0.0, 0.0), (1.0, -2.0 * ABOVE, 0.0), (1.0, 2.0 * INSIDE, 0.0)],
    ids=["pressed on the rim", "not pressed", "above the rim", "in the hole"],
)
def test_the_clock_runs_while_the_peg_is_pressed_on_the_rim(touching: float, depth: float, runs: float) -> None:
    assert searched(0.5, touching, depth, 0.05) == pytest.approx(0.5 + 0.05 * runs)


@pytest.mark.parametrize(
    ("deflection", "speed", "above", "found"),
    [(PRESS, 0.0, 0.0, 1.0), (0.5 * PRESS, 0.0, 0.0, 0.0), (PRESS, -2 * SINKING, 0.0, 0.0), (PRESS, 0.0, 0.05, 0.0)],
    ids=["pressed", "free", "still going down", "far above the rim"],
)
def test_a_deflected_tool_at_rest_near_the_rim_is_pressed_on_it(
    deflection: float, speed: float, above: float, found: float
) -> None:
    assert pressed(deflection, speed, above) == pytest.approx(found)


def test_the_height_at_which_the_peg_was_pressed_counts_more_than_the_seen_one() -> None:
    seen = 0.085
    assert below_rim(seen, touched(0.0, 0.15, 0.0), seen) < 0.0  # nothing was touched: in the air, whatever is seen
    rim = touched(0.0, seen + 0.003, 1.0)
    assert below_rim(seen + 0.003, rim, seen) == pytest.approx(0.0)
    assert touched(rim, seen - 0.01, 1.0) == pytest.approx(rim)  # pressed on the ground of the hole
    assert below_rim(seen - 0.01, rim, seen) == pytest.approx(0.013)


def test_the_hand_goes_across_above_the_rim_and_straight_down_once_the_peg_is_in() -> None:
    x, _, z = insert((0.03, 0.0, -ABOVE), -ABOVE, (0.0, 0.0))
    assert x == pytest.approx(FAST)
    assert z == pytest.approx(0.0)
    assert insert((0.001, 0.001, 2.0 * INSIDE), 2.0 * INSIDE, (0.0, 0.002)) == (0.0, 0.0, -PUSH)


def test_on_the_rim_the_hand_pulls_aside_no_harder_than_a_peg_in_it_can_bear() -> None:
    x, y, z = insert((0.0023, -0.0005, 0.0), 0.0, (0.0, 0.0))
    assert (x, z) == (pytest.approx(RUBBING), pytest.approx(-PRESS))
    assert y == pytest.approx(-0.00125 - FRICTION)


def test_a_peg_that_is_caught_beside_the_point_of_the_spiral_is_lifted() -> None:
    assert insert((0.0, 0.002, 0.0), 0.0, (0.0, 0.0))[2] < 0.0
    assert insert((0.0, 0.004, 0.0), 0.0, (0.0, 0.0))[2] > 0.0
