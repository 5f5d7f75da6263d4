"""The doctor's judgement of joints, on motions that follow from a model of a position control."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Command
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.doctor import healthy
from robo_rl.deploy.robot.joints import AMPLITUDE, JointTestError, Motion, examine_joints, find_joints, places

NAMES = ("hip", "thigh", "calf")
COMMAND = Command(
    "target", NAMES, "rad", "joint", (-1.0, -1.0, -2.6), (1.0, 3.0, -0.8), (0, 0.8, -1.5), start=(0, 0.8, -1.5)
)
REPORTS = 10
"""Over which what is reported at one place is averaged."""


def robot(
    wires=(0, 1, 2), signs=(1, 1, 1), gears=(1, 1, 1), offset=(0, 0, 0), rest=(0, 0.8, -1.5), noise=0.006
) -> Motion:
    """Three joints where they are told to be; slot i reports joint ``wires[i]`` with a sign, a gear and an offset."""
    draw, order = np.random.default_rng(0), list(wires)

    def report(true: np.ndarray) -> np.ndarray:
        seen = (np.array(signs) * np.array(gears) * (true - rest))[order] + np.array(rest)[order] + offset
        return seen + noise * draw.normal(size=3)

    commanded, reported = [], []
    for j in range(3):
        commanded.append(places(COMMAND, np.array(rest, float), j))
        reported.append([])
        for place in commanded[-1]:
            true = np.array(rest, float)
            true[j] += place
            reported[-1].append(np.mean([report(true) for _ in range(REPORTS)], axis=0))
    first = np.array(rest, float)[order] + 0.0
    return Motion(first, first + offset, np.array(commanded), np.array(reported))


def sentences(motion: Motion) -> dict[str, str]:
    found: dict[str, str] = {}
    for finding in examine_joints(COMMAND, motion):
        if not finding.good:
            found[finding.subject] = f"{found.get(finding.subject, '')} {finding.sentence}"
    return found


def test_nothing_is_wrong_with_a_robot_that_obeys():
    assert healthy(examine_joints(COMMAND, robot()))


@pytest.mark.parametrize(
    ("mistake", "joints", "said"),
    [
        ({"wires": (1, 0, 2)}, {"hip", "thigh"}, "reported as"),
        ({"wires": (1, 2, 0)}, set(NAMES), "reported as"),
        ({"signs": (1, -1, 1)}, {"thigh"}, "in the opposite direction"),
        ({"gears": (1, 1, 57.3)}, {"calf"}, "times as far"),
        ({"gears": (0.4, 1, 1)}, {"hip"}, "weak motor"),
        ({"gears": (0, 1, 1)}, {"hip"}, "no reported joint moved"),
        ({"offset": (0, 0.4, 0)}, {"thigh"}, "its zero is off by about +0.40"),
        ({"rest": (0.5, 0.8, -1.5)}, {"hip"}, "in the start pose it is at 0.00"),
        ({"rest": (0.0, 0.8, -0.5)}, {"calf"}, "beyond its stops"),
    ],
)
def test_a_mistake_is_found_at_the_joints_that_have_it(mistake, joints, said):
    found = sentences(robot(**mistake))
    assert set(found) == joints
    assert all(said in sentence for sentence in found.values()), found


def test_the_motion_stays_within_the_stops():
    for rest in ([-1.0, 3.0, -0.8], [1.0, -1.0, -2.6], [0.97, 0.0, -0.82]):
        for j in range(3):
            reached = rest[j] + np.array(places(COMMAND, np.array(rest), j))
            assert reached.min() >= COMMAND.lower[j] - 1e-12
            assert reached.max() <= COMMAND.upper[j] + 1e-12
            assert np.ptp(reached) >= AMPLITUDE - 1e-12


def test_robots_without_joints_are_refused(bundle_file: Path):
    with pytest.raises(JointTestError, match="rotor_speed"):
        find_joints(Bundle.read(bundle_file).contract)
