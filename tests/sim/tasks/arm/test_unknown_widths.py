"""Grasps whose width nobody knows: cubes of 25 to 50 mm, pads of another thickness, jaws as their maker draws them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import mujoco
import pytest
import torch

from robo_rl.controllers.skills.placing import Grasp, by_standstill
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP, Physics
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.place import Place

EPISODES = 12


@pytest.mark.parametrize("robot", ["panda", "so101"])
def test_a_gripper_that_stands_still_short_of_where_it_is_told_to_is_closed_at_whatever_width(robot: str) -> None:
    task = Place(load_arm(robot))
    jaw, sizes = task.card.gripper.joint, task.sizes
    way = jaw.upper - jaw.lower

    def found(at: float, pace: float = 0.0, target: float = jaw.lower) -> Grasp:
        return by_standstill(at, pace, target, sizes)

    for part in (0.2, 0.3, 0.5, 0.7, 0.9):
        at = jaw.lower + part * way
        assert found(at).closed == 1.0
        assert found(at, pace=-0.05 * way).closed == 0.0  # on its way
        assert found(at, target=jaw.upper).closed == 0.0  # told to open
        assert found(at, target=at).closed == 0.0  # where it was told to be
    assert found(jaw.lower).closed == 0.0  # closed on nothing


def thicker(folder: Path, more: float) -> Path:
    """The Panda's model with finger tips that are thicker by ``more`` (m) on their inner sides."""
    task = load_arm("panda")
    spec = mujoco.MjSpec.from_file(str(task.model))
    for name, sign in (("left pad", 1.0), ("right pad", -1.0)):
        pad = spec.geom(name)
        pad.size[1] += 0.5 * more
        pad.pos[1] -= 0.5 * sign * more
    spec.compile()
    (folder / "panda.xml").write_text(spec.to_xml())
    return folder / "panda.xml"


@pytest.mark.parametrize(("more", "edge"), [(0.005, 0.05), (-0.005, 0.025)])
def test_the_script_places_cubes_with_finger_tips_that_it_does_not_know(
    more: float, edge: float, tmp_path: Path
) -> None:
    task = Place()
    mechanism = dataclasses.replace(task.card.mechanism, model=thicker(tmp_path, more), objects=task.objects())
    physics = dataclasses.replace(GRASP, contacts="model", impratio=10.0, tolerance=1e-6)

    def plants(n: int) -> Any:
        return MujocoPlant(mechanism, n, task.period, physics=physics)

    fixed = {"cube_size": edge / task.card.grasp.size, "bias/gripper_position": 0.0}
    found = rollout(task, ControllerPolicy(task), Conditions(EPISODES, 3, None, fixed, 0, plants), None)
    assert found.summary()["success"] >= 1.0 - 1.5 / EPISODES  # none of cubes of 5 cm, by a width of the card's


@pytest.mark.parametrize("stiffness", [15.0, 1000.0])
def test_the_script_places_cubes_with_servos_of_whatever_stiffness(stiffness: float) -> None:
    task = Place(load_arm("so101"))
    fixed = {"log_stiffness": float(torch.tensor(stiffness / 17.8).log())}
    found = rollout(task, ControllerPolicy(task), Conditions(EPISODES, 3, None, fixed), None)
    assert found.summary()["success"] >= 1.0 - 2.5 / EPISODES


def test_stiffer_servos_are_damped_alike() -> None:
    env = VecEnv(Place(load_arm("so101")), 32, seed=1)
    stiffness, damping = (env.plant.param(name)[:, 0] for name in ("stiffness", "damping"))
    assert float(stiffness.min()) < 60.0
    assert float(stiffness.max()) > 300.0
    ratio = damping / stiffness.sqrt() / (0.6 / 17.8**0.5)
    assert 0.7 < float(ratio.min()) < float(ratio.max()) < 1.45  # each of the two differs by a fifth or so, besides


def test_an_open_gripper_near_a_grasp_does_not_begin_in_the_cube() -> None:
    task = Place()
    near = {"initial/family": 0.0, "initial/kind": 0.0, "cube_size": task.edges()[1], "initial/yaw": 0.4}
    env = VecEnv(task, 32, seed=4, fixed=near)
    env.reset()
    assert float(env.truth(torch.arange(32))["pad_force"].max()) == 0.0


def test_the_jaws_of_the_so101_are_as_far_apart_as_in_its_makers_meshes() -> None:
    """Lips of wrist_roll_follower_so101_v1 at x = -7.9, of moving_jaw_so101_v1 at -12.3 mm from an axis at 20.2."""
    mechanism = load_arm("so101").mechanism
    model = assemble(mechanism, Physics())
    data = mujoco.MjData(model)
    pads = [model.geom(name).id for name in ("fixed pad", "moving pad")]
    data.joint("gripper").qpos = 0.0
    mujoco.mj_kinematics(model, data)
    assert mujoco.mj_geomDistance(model, data, *pads, 1.0, None) == pytest.approx(0.0202 - 0.0123 + 0.0079, abs=1e-4)


def test_the_contract_tells_what_may_be_grasped_and_what_counts_as_held() -> None:
    panda, so101 = (Place(load_arm(name)).spec.facts for name in ("panda", "so101"))
    assert panda["object"]["edges"] == [0.025, 0.05]
    assert panda["grasped"]["gripper_position_differs"] == [-0.005, 0.005]
    assert "servos" not in panda
    assert so101["object"]["edges"] == [0.02, 0.03]
    assert so101["servos"]["stiffness"] == [15.0, 1000.0]
    for facts in (panda, so101):
        assert {"size", "mass", "friction"} <= set(facts["object"])
        assert {"lifted_m", "cube_within_m", "for_s"} <= set(facts["success"])
