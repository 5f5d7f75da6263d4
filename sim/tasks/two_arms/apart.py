"""Whether two arms keep out of each other's way while each is anywhere in its own workspace."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.two_arms import TwoArmCard
from robo_rl.sim.tasks.arm.workspace import Workspace, workspace

PAIRS = 512
"""Poses of both arms that are looked at."""


def reason_against(card: TwoArmCard) -> str | None:
    """Why the task of two arms can't use a robot, or None."""
    try:
        workspaces(card)
    except CardError as error:
        return str(error)
    return None


def workspaces(card: TwoArmCard) -> dict[str, Workspace]:
    """Those of both arms. CardError where one can't reach all of its own, or where the arms meet on the way."""
    found = {}
    for name, arm in card.arms.items():
        try:
            found[name] = workspace(arm)
        except CardError as error:
            raise CardError(f"{error} (of the arm '{name}')") from None
    _require_apart(card, found)
    return found


def _require_apart(card: TwoArmCard, spaces: dict[str, Workspace]) -> None:
    model = assemble(card.mechanism, Physics(contacts="model"))
    data, random = mujoco.MjData(model), np.random.default_rng(0)
    for coupling in card.mechanism.couplings:
        leader = next(joint for joint in card.mechanism.joints if joint.name == coupling.leader)
        for follower, ratio in coupling.followers:
            data.qpos[model.joint(follower).qposadr] = ratio * leader.home
    for joint in card.mechanism.joints:
        data.qpos[model.joint(joint.name).qposadr] = joint.home
    sides = [{model.joint(joint.name).bodyid[0] for joint in arm.joints} for arm in card.arms.values()]
    places = {name: [model.joint(j.name).qposadr[0] for j in arm.joints] for name, arm in card.arms.items()}
    for _ in range(PAIRS):
        for name, space in spaces.items():
            data.qpos[places[name]] = space.angles[random.integers(len(space.angles))].numpy()
        mujoco.mj_fwdPosition(model, data)
        for contact in data.contact:
            bodies = [int(model.geom_bodyid[shape]) for shape in contact.geom]
            owners = [_owner(model, body, sides) for body in bodies]
            if None not in owners and owners[0] != owners[1]:
                touching = [model.body(body).name for body in bodies]
                raise CardError(
                    f"robot '{card.name}': its arms meet while each is in its own workspace, {touching} touch; "
                    "expected workspaces that are farther apart"
                )


def _owner(model: mujoco.MjModel, body: int, sides: list[set[int]]) -> int | None:
    """Which arm a body is of, or hangs on."""
    while body > 0:
        for number, side in enumerate(sides):
            if body in side:
                return number
        body = int(model.body_parentid[body])
    return None
