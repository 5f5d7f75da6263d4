"""An arm with a square peg in its hand, and a block with a hole in it, by the facts of a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from tests.contract_only.handling import SOLID, STEP, Arm
from tests.contract_only.interface import Draws, Policy, Sensors

ROOM = 0.02
"""m, of the hole from the workspace's border: the tool searches around it."""
HEIGHT = (0.1, 0.17)
"""m, of the tool above the ground at first (docs/bundle.md)."""
SQUEEZED = 2e-4
"""m by which each pad is pressed into the peg at first."""


class Inserter(Arm):
    """See the module's text."""

    def add_objects(self, spec: mujoco.MjSpec, facts: dict[str, Any], drawn: dict[str, float]) -> None:
        peg, hole = facts["object"], facts["hole"]
        self.thick, self.long = 0.5 * (hole["width"] - drawn["clearance"]), 0.5 * peg["length"]
        self.below, self.depth = peg["end_below_tool"], hole["depth"]
        body = spec.worldbody.add_body(name="peg", pos=[0.5, 0.0, 0.5])
        body.add_freejoint()
        size, mass = [self.thick, self.thick, self.long], peg["mass"] * drawn["peg_mass"]
        body.add_geom(name="peg", size=size, mass=mass, friction=[drawn["peg_friction"], 0.005, 1e-4], **SOLID)
        block = spec.worldbody.add_body(name="block", mocap=True, pos=[0.5, 0.0, 0.0])
        inner, outer = 0.5 * hole["width"], 0.5 * hole["block_width"]
        middle, wall = 0.5 * (inner + outer), 0.5 * (outer - inner)
        for x, y, wide, deep in ((middle, 0, wall, outer), (-middle, 0, wall, outer),
                                 (0, middle, inner, wall), (0, -middle, inner, wall)):  # fmt: skip
            block.add_geom(pos=[x, y, 0.5 * self.depth], size=[wide, deep, 0.5 * self.depth], **SOLID | {"priority": 0})

    def put(self, place: np.ndarray, level: np.ndarray, yaw: float, grasp: np.ndarray) -> None:
        """The tool at ``place`` (3,) m, the hole at ``level`` (2,) m, turned by ``yaw``; the peg in the hand, beside
        its place by ``grasp`` (2,) m along x and z."""
        model, data = self.model, self.data
        for _ in range(60):  # Newton's steps, from home
            linear, angular, turned, off, turn = np.zeros((3, model.nv)), np.zeros((3, model.nv)), *np.zeros((3, 4))
            mujoco.mj_jacSite(model, data, linear, angular, self.tool)
            mujoco.mju_mat2Quat(turned, data.site_xmat[self.tool])
            mujoco.mju_mulQuat(off, self.turn, turned * [1, -1, -1, -1])
            mujoco.mju_quat2Vel(turn[:3], off, 1.0)
            way = np.concatenate([place - data.site_xpos[self.tool], turn[:3]])
            data.qpos[self.joints] += 0.5 * np.linalg.pinv(np.concatenate([linear, angular])[:, self.arm]) @ way
            mujoco.mj_forward(model, data)
        block = model.body("block").mocapid[0]
        data.mocap_pos[block], data.mocap_quat[block] = [*level, 0.0], [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        at = model.jnt_qposadr[model.body("peg").jntadr[0]]
        data.qpos[self.places] = self.thick - SQUEEZED
        down = self.below - self.long
        data.qpos[at : at + 7] = [*data.site_xpos[self.tool] + [grasp[0], 0.0, grasp[1] - down], 1.0, 0.0, 0.0, 0.0]
        mujoco.mj_forward(model, data)

    def left(self) -> np.ndarray:
        """(3,) m from the peg's end to the middle of the rim."""
        block, peg = self.model.body("block").mocapid[0], self.data.body("peg")
        end = peg.xpos - self.long * peg.xmat.reshape(3, 3)[:, 2]
        return self.data.mocap_pos[block] + [0.0, 0.0, self.depth] - end


def success(file: Path, model: Path, n: int, seed: int = 0) -> float:
    """The part of n pegs that are deep enough in the hole, for so long, in an episode's time."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    arms, sensors = [Inserter(policy, draw, i, model) for i in range(n)], Sensors(policy, draw, policy.period)
    low, high = (np.array(policy.facts["workspace"][end]) for end in ("lower", "upper"))
    yaw, grasp, bias = draw("initial.yaw"), draw("initial.grasp", 2), draw("bias.hole_position", 3)
    level = draw.random.uniform(low[:2] + ROOM, high[:2] - ROOM, (n, 2))
    above = np.clip(level - draw("initial.way", 2), low[:2], high[:2])
    places = np.column_stack([above, draw.random.uniform(*HEIGHT, n)])
    for arm, *given in zip(arms, places, level, yaw, grasp, strict=True):
        arm.put(*given)
    limits, good, held = policy.facts["success"], np.zeros(n, bool), np.zeros(n)
    per, late = round(policy.period / STEP), np.rint(draw("command_delay") / STEP).astype(int)
    before = [arm.begin() for arm in arms]
    holes = np.column_stack([level, [arm.depth for arm in arms]]) + bias
    for _ in range(round(policy.facts["episode"] / policy.period)):
        truth = [arm.truth() for arm in arms]
        for name in truth[0]:
            sensors.note(name, np.stack([one[name] for one in truth]))
        sensors.note("hole_position", holes)
        commands = policy(sensors.read())
        for i in np.flatnonzero(~good):
            now = {name: value[i] for name, value in commands.items()}
            for k in range(per):
                arms[i].step(now if k >= late[i] else before[i])
            before[i] = now
            away = arms[i].left()
            there = away[2] > limits["deeper_than_m"] and np.linalg.norm(away[:2]) < 0.5 * policy.facts["hole"]["width"]
            held[i] = held[i] + policy.period if there else 0.0
            good[i] = held[i] >= limits["for_s"] - 1e-9
        if good.all():
            break
    return float((good & ~policy.refused).mean())
