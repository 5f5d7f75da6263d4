"""Two fingers hold what they grasped: it creeps by less than a millimetre, does not turn, and hardly swings out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP, Physics
from robo_rl.sim.robots.mechanism import FreeObject

FORCE = 40.0  # N, of the drive: 20 on each side
CUBE = FreeObject("cube", "box", (0.02, 0.02, 0.02), 0.05, position=(0.0, 0.0, 0.019))
BEAM = FreeObject("cube", "box", (0.08, 0.015, 0.015), 0.1, position=(0.04, 0.0, 0.014))  # held off its middle


def move(plant: Any, seconds: float, lift: Callable[[float], float], finger: float, swing: float = 0.0) -> None:
    """Hand at ``lift`` of the part that has passed, swinging by ``swing`` rad once a second, for so long."""
    steps = round(seconds / plant.period)
    for k in range(steps):
        angle = swing * math.sin(2 * math.pi * k * plant.period)
        told = {"lift": lift((k + 1) / steps), "swing": angle, "finger": finger}
        plant.step({f"{name}_position_target": torch.full((plant.n, 1), value) for name, value in told.items()})


def lifted(machines, make: Callable[..., Any], physics: Physics, thing: FreeObject) -> Any:
    """A gripper that has grasped a thing and holds it in the air."""
    plant = make(machines.gripper(thing), 1, 0.02, physics)
    move(plant, 0.6, lambda part: -0.1 * part, 0.03)
    move(plant, 0.4, lambda part: -0.1, 0.0)
    move(plant, 0.8, lambda part: -0.1 + 0.2 * part, 0.0)
    move(plant, 0.2, lambda part: 0.1, 0.0)
    return plant


def held(plant: Any) -> tuple[float, np.ndarray]:
    """Height of the thing in the hand (m), and its orientation."""
    truth = plant.truth()
    height = float(truth["cube_position"][0, 2].double() - truth["lift_position"][0, 0].double())
    return height, truth["cube_orientation"][0].double().numpy().copy()


def turned(one: np.ndarray, other: np.ndarray) -> float:
    """Degrees between two orientations."""
    return math.degrees(2 * math.acos(min(1.0, abs(float(one @ other)))))


def test_a_held_cube_creeps_by_less_than_a_tenth_of_a_millimetre_in_five_seconds(machines) -> None:
    plant = lifted(machines, MujocoPlant, GRASP, CUBE)
    (before, orientation), force = held(plant), plant.truth()["pad_force"][0].numpy()
    np.testing.assert_allclose(force, FORCE / 2, rtol=0.01)
    move(plant, 5.0, lambda part: 0.1, 0.0)
    after, then = held(plant)
    assert float(plant.truth()["cube_position"][0, 2]) > 0.1
    assert abs(after - before) < 1e-4
    assert turned(orientation, then) < 0.1


def test_with_the_contacts_of_walking_a_held_cube_slides_out(machines) -> None:
    """Why there is another choice: pyramidal cones never stick (google-deepmind/mujoco#3328)."""
    plant = lifted(machines, MujocoPlant, Physics(timestep=0.005, contacts="all"), CUBE)
    before, _ = held(plant)
    move(plant, 2.0, lambda part: 0.1, 0.0)
    assert before - held(plant)[0] > 1e-3


@pytest.mark.release
def test_warp_holds_a_cube_as_well(machines) -> None:
    pytest.importorskip("mujoco_warp", reason="mujoco_warp is missing: pip install 'robo-rl[dev]'")
    from robo_rl.sim.plants.warp import WarpPlant

    plant = lifted(machines, lambda *arguments: WarpPlant(*arguments, device="cpu"), GRASP, CUBE)
    before, orientation = held(plant)
    move(plant, 1.0, lambda part: 0.1, 0.0)
    after, then = held(plant)
    assert abs(after - before) < 1e-4
    assert turned(orientation, then) < 0.1
    np.testing.assert_allclose(plant.truth()["pad_force"][0].numpy(), FORCE / 2, rtol=0.02)


def test_bullet_holds_a_cube_too(machines) -> None:
    bullet = pytest.importorskip("robo_rl.sim.plants.bullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    plant = lifted(machines, lambda *arguments: bullet.BulletPlant(*arguments[:3]), GRASP, CUBE)
    before, _ = held(plant)
    move(plant, 1.0, lambda part: 0.1, 0.0)
    assert abs(held(plant)[0] - before) < 1e-3
    assert float(plant.truth()["cube_position"][0, 2]) > 0.1


def test_a_beam_that_is_held_off_its_middle_does_not_turn_in_the_fingers(machines) -> None:
    angles = {}
    for name, physics in (("grasp", GRASP), ("walk", Physics(timestep=0.005, contacts="all"))):
        plant = lifted(machines, MujocoPlant, physics, BEAM)
        _, before = held(plant)
        move(plant, 2.0, lambda part: 0.1, 0.0)
        angles[name] = turned(before, held(plant)[1])
    assert angles["grasp"] < 0.5
    assert angles["walk"] > 5.0


def test_a_cube_that_is_swung_stays_within_millimetres_with_small_steps(machines) -> None:
    physics = dataclasses.replace(GRASP, timestep=0.002, solref=(0.004, 1.0))
    plant = lifted(machines, MujocoPlant, physics, CUBE)
    before, _ = held(plant)
    move(plant, 4.0, lambda part: 0.1, 0.0, swing=0.48)  # 1 Hz, 3 rad/s at most
    move(plant, 1.0, lambda part: 0.1, 0.0)
    assert abs(held(plant)[0] - before) < 6e-3


def test_fingers_that_are_coupled_stay_alike_and_share_the_force(machines) -> None:
    plant = lifted(machines, MujocoPlant, GRASP, CUBE)
    left, right = (float(plant.batch.qpos[0, plant.model.joint(name).qposadr[0]]) for name in ("left", "right"))
    assert left == pytest.approx(right, abs=2e-4)
    assert left == pytest.approx(0.02, abs=1.5e-3)
    assert float(plant.truth()["finger_force"][0, 0]) == pytest.approx(-FORCE, rel=0.01)
