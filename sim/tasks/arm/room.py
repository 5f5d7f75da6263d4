"""Whether a gripper can get at a cube on the ground: how near the ground it comes, and what it touches a cube with.

Cards that describe it wrongly would have tasks in which nothing is ever grasped.
"""

from __future__ import annotations

import dataclasses
import math

import mujoco
import numpy as np
import torch

from robo_rl.sim.plants.assembly import assemble, lowest
from robo_rl.sim.plants.indices import find_indices, follow
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import FreeObject
from robo_rl.sim.tasks.arm.workspace import LIFTED, Workspace, workspace

DEEP, BESIDE = 0.006, 0.005
"""m, by which a shape may be in the ground, and a pad away from a cube between them. With its pads 10 mm in the ground
the script of ``examples/own_arm`` places none of 32 cubes, 6 with 4 mm, and 32 where they just clear it; PyBullet's
xArm 6 places four of five with 3 mm."""
BEFORE = 0.25
"""Edges of the cube by which another shape may be in it: an eighth does not hinder PyBullet's xArm 6."""
LEANING = math.radians(10.0)
"""By which the gripper may not point down at home."""
TURNED = math.radians(30.0)
"""By which the way from pad to pad may be off the tool's y axis: that of a jaw that swings is, by up to some 15."""
OVER = 0.01
"""m, of a workspace above the height to which an object is lifted at least."""
POSES = 32
"""Of the lowest ones of a workspace."""
AWAY = 10.0
"""m, where a cube is in nobody's way."""


def reasons_against(card: ArmCard) -> dict[str, str | None]:
    """Why tasks that reach with an arm can't use it (``no_reach``), and those that grasp (``no_place``), or None."""
    try:
        space = workspace(card)
    except CardError as error:
        return {"no_reach": str(error), "no_place": str(error)}
    try:
        require_room(card, space)
        require_lift(card, space)
    except CardError as error:
        return {"no_reach": None, "no_place": str(error)}
    return {"no_reach": None, "no_place": None}


def require_room(card: ArmCard, space: Workspace) -> None:
    """CardError where the gripper is deep in the ground as it grasps, or above the cube that lies there; or where its
    pads don't touch a cube in the hand, or other shapes are far in it."""
    pointing = float(card.chain.pose([float(angle) for angle in card.home]).z[2])
    if card.turned and pointing > -math.cos(LEANING):
        leaning = math.degrees(math.acos(max(-1.0, -pointing)))
        raise CardError(
            f"robot '{card.name}': at home the z axis of its tool '{card.tool}' is {leaning:.0f} degrees from pointing "
            "down; expected a home at which the gripper points down, and z where it points"
        )
    hand, grasped = _Hand(card), float(space.closed_on(torch.tensor(0.5 * card.grasp.size)))
    _require_grasp(card, hand, grasped)
    _require_height(card, space, hand, grasped)


def require_lift(card: ArmCard, space: Workspace, lifted: float = LIFTED) -> None:
    """CardError where the workspace ends below the height to which success wants an object ``lifted`` (m)."""
    needed = max(0.5 * card.grasp.size, space.lower[2]) + lifted + OVER
    if space.upper[2] < needed:
        raise CardError(
            f"robot '{card.name}': workspace.upper is at {space.upper[2]:g} m, and a cube that is placed is lifted by "
            f"{lifted:g} m from where it is grasped; expected {needed:.3f} m or above"
        )


def _require_grasp(card: ArmCard, hand: _Hand, grasped: float) -> None:
    """With the gripper closed on a cube at the tool."""
    between = hand.place(np.array(card.home), grasped, 0.0)
    if between < math.cos(TURNED):
        raise CardError(
            f"robot '{card.name}': pad to pad is {math.degrees(math.acos(between)):.0f} degrees from the y axis "
            f"of its tool '{card.tool}'; expected a tool whose y axis goes from pad to pad"
        )
    if card.one_jaw and hand.towards_moving() < 0:
        raise CardError(
            f"robot '{card.name}': the y axis of its tool '{card.tool}' points from the pad that moves to the one that "
            "does not; expected from the one that does not to the one that moves: turn the tool about its z axis by "
            "half a turn"
        )
    on_cube = (
        f"robot '{card.name}': where its pads are {card.grasp.size:g} m apart, with a cube of that size at its tool, "
    )
    for name, pad in zip(card.gripper.pads, hand.pads, strict=True):
        gap = mujoco.mj_geomDistance(hand.model, hand.data, pad, hand.cube, 1.0, None)
        if gap > BESIDE:
            raise CardError(
                f"{on_cube}the pad '{name}' is {1000 * gap:.0f} mm from the cube; expected the tool between the pads"
            )
    depth, shape = max([(0.0, ""), *hand.touched_by({hand.cube})])
    if depth > BEFORE * card.grasp.size:
        raise CardError(
            f"{on_cube}'{shape}' is {1000 * depth:.0f} mm in the cube; expected pads in front of all other shapes (of "
            "a mesh its convex hull touches), and the tool where the middle of what is held is"
        )


def _require_height(card: ArmCard, space: Workspace, hand: _Hand, grasped: float) -> None:
    """With the gripper open, and closed on a cube, where it grasps: half a cube or the lower face high."""
    for_table = "Of an arm on a table, base is a link at the height of the table's top"
    height = max(0.5 * card.grasp.size, space.lower[2])
    grasping = f"robot '{card.name}': with its tool {height:g} m above the ground, where it grasps, "
    depth, shape, pads = 0.0, "", 0.0
    for angles in space.angles[:POSES].numpy():
        hand.place(angles, card.gripper.joint.upper, AWAY)
        depth, shape = max([(depth, shape), *hand.touched_by(hand.ground)])
        hand.place(angles, grasped, AWAY)
        depth, shape = max([(depth, shape), *hand.touched_by(hand.ground)])
        pads = max(pads, *(lowest(hand.model, hand.data, pad) for pad in hand.pads))
    depth, pads = depth - (height - space.lower[2]), pads + height - space.lower[2]
    if depth > DEEP:
        raise CardError(
            f"{grasping}'{shape}' is {1000 * depth:.0f} mm in the ground; expected workspace.lower at "
            f"{height + depth:.3f} m or above. {for_table}"
        )
    if pads > card.grasp.size:
        raise CardError(
            f"{grasping}its pads are {pads:.3f} m above the ground, where a cube of {card.grasp.size:g} m lies; "
            f"expected workspace.lower at {height - pads + 0.25 * card.grasp.size:.3f} m or so. {for_table}"
        )


class _Hand:
    """An arm, ground, and a cube of its card's size, to be put anywhere."""

    def __init__(self, card: ArmCard) -> None:
        cube = FreeObject("cube", "box", (0.5 * card.grasp.size,) * 3, card.grasp.mass)
        mechanism = dataclasses.replace(card.mechanism, objects=(cube,))
        self.model = model = assemble(mechanism, dataclasses.replace(GRASP, contacts="model"))
        self.data, self.indices = mujoco.MjData(model), find_indices(model, mechanism)
        self.joints = np.array([model.joint(name).qposadr[0] for name in card.joint_names])
        self.finger = model.joint(card.gripper.joint.name).qposadr[0]
        self.pads = [model.geom(name).id for name in card.gripper.pads]
        self.tool, body = model.site(card.tool).id, model.body("cube").id
        self.cube, self.free = int(model.body_geomadr[body]), int(model.jnt_qposadr[model.body_jntadr[body]])
        self.ground = set(self.indices.ground.tolist())

    def place(self, angles: np.ndarray, gripper: float, above: float) -> float:
        """The arm's joints at ``angles`` (J,) rad, the gripper at its position, and the cube at the tool, in the middle
        between the pads, or ``above`` (m) that. The cosine of the angle between the tool's y axis and pad to pad."""
        model, data = self.model, self.data
        data.qpos[self.joints], data.qpos[self.finger] = angles, gripper
        follow(data.qpos[None], model, self.indices)
        mujoco.mj_kinematics(model, data)
        nearest, turn, axis = np.zeros(6), np.zeros(4), data.site_xmat[self.tool].reshape(3, 3)[:, 1]
        mujoco.mj_geomDistance(model, data, *self.pads, 1.0, nearest)
        way = nearest[3:] - nearest[:3]
        tool = data.site_xpos[self.tool]
        aside = (0.5 * (nearest[:3] + nearest[3:]) - tool) @ axis
        mujoco.mju_mat2Quat(turn, data.site_xmat[self.tool])
        data.qpos[self.free : self.free + 3] = tool + aside * axis + np.array([0.0, 0.0, above])
        data.qpos[self.free + 3 : self.free + 7] = turn
        mujoco.mj_fwdPosition(model, data)
        return float(min(1.0, abs(way @ axis) / max(np.linalg.norm(way), 1e-9)))

    def towards_moving(self) -> float:
        """m, from the pad that stays where it is in the hand to the other, along the tool's y axis."""
        hand = int(self.model.body_weldid[self.model.site_bodyid[self.tool]])
        fixed, moving = sorted(self.pads, key=lambda pad: self.model.body_weldid[self.model.geom_bodyid[pad]] != hand)
        nearest, axis = np.zeros(6), self.data.site_xmat[self.tool].reshape(3, 3)[:, 1]
        mujoco.mj_geomDistance(self.model, self.data, fixed, moving, 1.0, nearest)
        return float((nearest[3:] - nearest[:3]) @ axis)

    def touched_by(self, others: set[int]) -> list[tuple[float, str]]:
        """How deep (m) shapes of the robot are in shapes ``others``, and their names; not the pads in the cube."""
        found, but = [], {self.cube, *others} | (set(self.pads) if self.cube in others else set())
        for contact in self.data.contact[: self.data.ncon]:
            shapes = {int(contact.geom1), int(contact.geom2)}
            if shapes & others and shapes - but:
                (shape,) = shapes - but
                body = self.model.body(self.model.geom_bodyid[shape]).name
                found.append((-float(contact.dist), self.model.geom(shape).name or body))
        return found
