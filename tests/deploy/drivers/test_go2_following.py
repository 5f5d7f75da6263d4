"""Whether a robot follows is found from its torques, whatever the constant and the noise that they are told with."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.drivers.unitree.following import IN_A_ROW, Following, Order

JOINTS, PERIOD = 12, 0.02
KP, KD = np.full(JOINTS, 35.0), np.full(JOINTS, 0.5)


def walked(following: Following, seed: int, gain: float, noise: float, delay: int, stops_after: int, steps: int) -> int:
    """Steps until it is noticed that the robot gets no commands any more; ``steps`` if it is not."""
    random = np.random.default_rng(seed)
    phases, sizes = random.uniform(0, 2 * np.pi, JOINTS), random.uniform(0.1, 0.4, JOINTS)
    q, dq, had = np.zeros(JOINTS), np.zeros(JOINTS), []
    for k in range(steps):
        if following.lost:
            return k
        order = Order(sizes * np.sin(2 * np.pi * 2.0 * k * PERIOD + phases), KP, KD)
        following.order(order)
        if k < stops_after:
            had.append(order)
        known = had[max(0, len(had) - 1 - (delay if k < stops_after else 0))]
        speed = 0.3 * (known.q - q) / PERIOD
        q, dq = q + speed * PERIOD, speed
        following.state(q, dq, gain * known.torque(q, dq) + noise * random.standard_normal(JOINTS))
    return steps


robots = {
    "seed": st.integers(0, 10**6), "gain": st.floats(0.7, 1.3), "noise": st.floats(0.0, 1.5), "delay": st.integers(0, 1)
}  # fmt: skip


@given(**robots)
def test_a_robot_that_follows_is_never_said_not_to(seed: int, gain: float, noise: float, delay: int) -> None:
    assert walked(Following(), seed, gain, noise, delay, 10**6, 300) == 300


@given(**robots)
def test_a_robot_that_goes_on_with_an_old_command_is_found_within_half_a_second(
    seed: int, gain: float, noise: float, delay: int
) -> None:
    assert 40 + IN_A_ROW <= walked(Following(), seed, gain, noise, delay, 40, 300) <= 65


def test_a_robot_that_stands_still_tells_nothing() -> None:
    following, still = Following(), Order(np.zeros(JOINTS), KP, KD)
    for _ in range(100):
        following.order(still)
        following.state(np.full(JOINTS, 0.1), np.zeros(JOINTS), np.full(JOINTS, -3.5))
    assert not following.lost
