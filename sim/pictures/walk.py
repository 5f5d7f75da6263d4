"""Where the bodies and shapes of a robot on legs are: what pictures of it need."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from sim.plants.rigid import Physics, assemble, find_indices
from sim.robots.legged import LeggedCard

KINDS = {
    mujoco.mjtGeom.mjGEOM_BOX: "box",
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
}


class Poser:
    """From places and joint angles of robots to the poses of all their bodies."""

    def __init__(self, card: LeggedCard) -> None:
        self.model = assemble(card, Physics(contacts="all"))
        self.indices = find_indices(self.model, card)
        self.data = mujoco.MjData(self.model)

    def put(self, position: np.ndarray, orientation: np.ndarray, joints: np.ndarray) -> None:
        """Compute ``data`` for one robot: (3,) m, quaternion (4,) x, y, z, w, and (J,) rad."""
        start = self.indices.free_position
        self.data.qpos[start : start + 3] = position
        self.data.qpos[start + 3 : start + 7] = orientation[[3, 0, 1, 2]]
        self.data.qpos[self.indices.position] = joints
        mujoco.mj_kinematics(self.model, self.data)

    def poses(self, position: np.ndarray, orientation: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """(n, bodies, 7): place (m) and quaternion x, y, z, w of every body but the world, of n robots."""
        found = np.empty((len(position), self.model.nbody - 1, 7))
        for i in range(len(position)):
            self.put(position[i], orientation[i], joints[i])
            found[i, :, :3] = self.data.xpos[1:]
            found[i, :, 3:] = self.data.xquat[1:][:, (1, 2, 3, 0)]
        return found


def shapes(model: mujoco.MjModel) -> list[dict[str, Any]]:
    """Every shape but the ground: body (as in ``poses``), kind, size, at and turn (x, y, z, w) in the body's frame.

    Sizes are MuJoCo's: half lengths of a box; radius, and half length, of the others. A mesh is shown as its box.
    """
    found = []
    for i in range(model.ngeom):
        geom = model.geom(i)
        kind = KINDS.get(mujoco.mjtGeom(int(geom.type[0])))
        if geom.bodyid[0] == 0:
            continue
        size = geom.size.tolist() if kind else geom.aabb[3:].tolist()
        found.append(
            {
                "body": int(geom.bodyid[0]) - 1,
                "name": geom.name,
                "kind": kind or "box",
                "size": size,
                "at": geom.pos.tolist(),
                "turn": geom.quat[[1, 2, 3, 0]].tolist(),
            }
        )
    return found
