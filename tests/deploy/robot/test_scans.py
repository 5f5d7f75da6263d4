"""Lidars of others: what they say of nothing, of angles and of units, against a room whose walls are known."""

from __future__ import annotations

import contextlib
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Scan
from robo_rl.deploy.robot.scans import NOTHING, ScanError, ranges_of

COUNT, STEP = 360, math.tau / 360
LAYOUT = Scan(-math.pi, math.tau / 60, 0.12, 3.5)
BEAMS = 60
WALLS = np.linspace(0.2, 3.4, COUNT)
"""m, from the angle 0 on."""


def message(ranges: Any, **other: float) -> Any:
    given = {"angle_min": 0.0, "angle_increment": STEP, "range_min": 0.12, "range_max": 3.5, **other}
    last = given["angle_min"] + given["angle_increment"] * (len(ranges) - 1)
    return SimpleNamespace(**{"angle_max": last, **given}, ranges=list(ranges))


@pytest.mark.parametrize("value", [0.0, -1.0, 4.5, 65.535, math.inf])
def test_a_side_where_nothing_is_reads_as_the_farthest(value: float) -> None:
    ranges = np.full(COUNT, 1.5)
    ranges[40:100] = value
    found = ranges_of(message(ranges), LAYOUT, BEAMS, ("zero",))
    assert sorted(set(found)) == [1.5, 3.5]
    assert 8 <= (found == 3.5).sum() <= 10  # beams at its edges may have a neighbour


@pytest.mark.parametrize("value", [-math.inf, 0.05])
def test_what_is_too_close_is_not_far(value: float) -> None:
    ranges = np.full(COUNT, 1.5)
    ranges[40:100] = value
    with contextlib.suppress(ScanError):
        assert ranges_of(message(ranges), LAYOUT, BEAMS, NOTHING).max() == 1.5


def test_a_range_max_that_is_not_told_does_not_make_the_room_empty() -> None:
    found = ranges_of(message(np.full(COUNT, 1.5), range_min=0.0, range_max=0.0), LAYOUT, BEAMS, NOTHING)
    assert (found == 1.5).all()


def test_beams_in_either_direction_and_one_more_or_less_are_the_same_room() -> None:
    expected = ranges_of(message(WALLS), LAYOUT, BEAMS)
    clockwise = message(WALLS[::-1], angle_min=math.tau - STEP, angle_increment=-STEP)
    assert np.array_equal(ranges_of(clockwise, LAYOUT, BEAMS), expected)
    for ranges in (np.append(WALLS, WALLS[0]), WALLS[:-1]):
        told = ranges_of(message(ranges, angle_max=math.tau - STEP), LAYOUT, BEAMS)
        assert np.allclose(told, expected, atol=0.02)
    assert np.array_equal(ranges_of(message(WALLS, angle_max=0.0), LAYOUT, BEAMS), expected)  # left out


REFUSED = {
    "twice as many": (message(np.repeat(WALLS, 2), angle_max=6.26), "number of ranges"),
    "half as many": (message(WALLS[::2], angle_max=6.26), "number of ranges"),
    "two turns": (message(np.tile(WALLS, 2)), "within a full turn"),
    "degrees": (message(WALLS, angle_increment=1.0), "within a full turn"),
    "the wrong sign": (message(WALLS, angle_min=math.pi, angle_max=-math.pi), "the sign"),
    "mm": (message(1000 * WALLS), "in mm"),
    "mm, limits too": (message(1000 * WALLS, range_min=120.0, range_max=3500.0), "in mm"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_scan_that_contradicts_itself_is_refused(kind: str) -> None:
    told, word = REFUSED[kind]
    with pytest.raises(ScanError, match=word):
        ranges_of(told, LAYOUT, BEAMS, NOTHING)
