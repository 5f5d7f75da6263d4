"""A base that approaches a place: wherever it begins, the place ends in the reach of its arm, and the base stands."""

from __future__ import annotations

import numpy as np
import pytest

from robo_rl.controllers.skills.approaching import Reach, approach, settled

REACH = Reach(0.13, 0.26, 1.82)


@pytest.mark.parametrize("start", [0.05, 0.5, 1.5])
def test_a_unicycle_brings_every_place_into_the_middle_of_its_reach_and_stands_there(start: float) -> None:
    bearing = np.linspace(-3.1, 3.1, 64)  # all but right behind, from where it may turn either way
    x, y = start * np.cos(bearing), start * np.sin(bearing)
    speed, turn = np.zeros(64), np.zeros(64)
    for _ in range(1000):
        forward, turning = approach(x, y, REACH)
        speed += 0.3 * (REACH.speed * forward - speed)  # wheels lag by about 0.1 s
        turn += 0.3 * (REACH.turn_rate * turning - turn)
        angle = -0.04 * turn
        x = x - 0.04 * speed
        x, y = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    assert settled(x, y, REACH).min() > 0.999
    assert np.abs(np.hypot(x, y) - REACH.middle).max() < 0.03  # m
    assert max(np.abs(speed).max(), np.abs(turn).max()) < 0.01


def test_commands_are_parts_of_the_greatest_ones_and_finite_everywhere() -> None:
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-5, 5, 101), np.linspace(-5, 5, 101)))
    forward, turning = approach(x, y, REACH)
    assert np.abs(forward).max() < 1.001
    assert np.abs(turning).max() < 1.001
    assert np.isfinite(forward + turning).all()
