"""What the card of an arm says of its grasp holds in the simulation: creep, twist and swing of a held cube."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.controllers.arm import inverse
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks.arm.workspace import Workspace, workspace

PERIOD = 0.02  # s
OWN = str(Path(__file__).parents[3] / "examples" / "own_arm" / "card.toml")


class Holding:
    """An arm that has a cube in its hand."""

    def __init__(self, card: ArmCard) -> None:
        self.card, self.space = card, workspace(card)
        half = 0.5 * card.grasp.size
        physics = dataclasses.replace(GRASP, contacts="model", timestep=0.002, solref=(0.004, 1.0))
        middle = (self.space.places - self.space.origin).norm(dim=1).argmin()
        self.middle = self.space.places[middle].double().numpy()
        cube = FreeObject("cube", "box", (half,) * 3, card.grasp.mass, position=tuple(self.middle))
        mechanism = dataclasses.replace(card.mechanism, objects=(cube,))
        self.joints = self.space.angles[middle].double().numpy()
        self.plant = MujocoPlant(mechanism, 1, PERIOD, physics, threads=1)
        yaw = 0.5 * self.space.yaw(torch.from_numpy(self.middle)[None])
        zero = torch.zeros(1)
        self.plant.place(
            torch.arange(1),
            joint_position=self.space.angles[middle][None],
            gripper_position=self.space.closed_on(torch.tensor([half]))[:, None],
            cube_position=torch.from_numpy(self.middle)[None],
            cube_orientation=torch.stack([zero, zero, torch.sin(yaw), torch.cos(yaw)], -1),
        )

    def _joints(self, place: np.ndarray) -> np.ndarray:
        limits = np.array([(joint.lower, joint.upper) for joint in self.card.joints]).T
        found, _ = inverse(self.card.chain, place[None], self.joints, self.card.turned, *limits, steps=4)
        self.joints = found[0]
        return self.joints

    def move(self, seconds: float, sideways: float = 0.0) -> None:
        """The hand closed, to and fro by ``sideways`` (m) once a second."""
        for k in range(round(seconds / PERIOD)):
            place = self.middle.copy()
            place[1] += sideways * math.sin(2 * math.pi * k * PERIOD)
            told = {"gripper_position_target": torch.tensor([[self.card.gripper.joint.lower]])}
            if self.card.impedance:
                told["tool_position_target"] = torch.from_numpy(place)[None].float()
            else:
                told["joint_position_target"] = torch.from_numpy(self._joints(place))[None].float()
            self.plant.step(told)

    def relative(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the cube is from the tool, in the world's axes (m), and its orientation."""
        truth = self.plant.truth()
        away = (truth["cube_position"] - truth["tool_position"])[0].double().numpy()
        return away, truth["cube_orientation"][0].double().numpy().copy()


def angle(one: np.ndarray, other: np.ndarray) -> float:
    """Between two orientations, rad."""
    return 2.0 * math.acos(min(1.0, abs(float(one @ other))))


@pytest.mark.parametrize(
    "name",
    ["so101", pytest.param("panda", marks=pytest.mark.release), pytest.param(OWN, marks=pytest.mark.release)],
    ids=["so101", "panda", "own"],
)
def test_a_held_cube_creeps_twists_and_swings_as_little_as_the_card_says(name: str) -> None:
    card = load_arm(name)
    holding = Holding(card)
    holding.move(1.5)
    (_, grasped), force = holding.relative(), holding.plant.truth()["pad_force"][0].numpy()
    assert force.min() > 5.0
    holding.move(4.0)
    before, turned = holding.relative()
    assert angle(grasped, turned) < 0.05  # it settles between jaws with lips
    holding.move(2.0)
    after, then = holding.relative()
    assert np.linalg.norm(after - before) / 2.0 < card.grasp.creep
    assert angle(turned, then) / 2.0 < card.grasp.twist
    holding.move(4.0, 0.04)
    holding.move(0.5)
    assert np.linalg.norm(holding.relative()[0] - after) < card.grasp.swing


def test_the_workspace_finds_how_far_a_gripper_closes() -> None:
    space: Workspace = workspace(load_arm("panda"))
    half = torch.tensor([0.018, 0.02, 0.022])
    torch.testing.assert_close(space.closed_on(half), half, atol=1e-6, rtol=0.0)  # each finger by half of the width
