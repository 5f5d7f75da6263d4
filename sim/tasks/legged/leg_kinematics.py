"""Joint angles that put a foot where it should be: damped least squares (Wampler 1986; Nakamura and Hanafusa 1986)."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.tasks.legged.limbs import foot_body, foot_pose

DAMPING = 1e-3
"""Of the least squares: m per rad, small beside legs, so that stretched ones stay finite."""
CLOSE = 1e-5
"""m and rad: near enough."""
STEPS = 60
LARGEST = 0.3
"""rad, of a joint in one step."""
FULL = 6
"""Joints of a leg that can turn its foot as well as place it; of shorter legs only the place counts."""


def reach(
    model: mujoco.MjModel, data: Any, foot: str, columns: np.ndarray, position: np.ndarray, turn: np.ndarray,
    limits: np.ndarray,
) -> float:  # fmt: skip
    """Move the joints of a leg in ``data`` until the foot is at ``position`` (3,) m, turned by ``turn`` (3, 3), world.

    It begins where the joints are. ``columns`` (k,): of the leg's joints in qpos, from which those in qvel follow;
    ``limits`` (k, 2) rad. Returns how far the foot is off in the end: the norm over m and, of full legs, rad.
    """
    rates = model.jnt_dofadr[np.searchsorted(model.jnt_qposadr, columns)]
    body, full = foot_body(model, foot), len(columns) >= FULL
    jacobian, error = np.zeros((6, model.nv)), np.zeros(6)
    rows = 6 if full else 3
    for _ in range(STEPS):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        place, turned = foot_pose(model, data, foot)
        error[:3], error[3:] = position - place, rotation_vector(turn @ turned.T)
        off = float(np.linalg.norm(error[:rows]))
        if off < CLOSE:
            break
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], place, body)
        own = jacobian[:rows, rates]
        change = own.T @ np.linalg.solve(own @ own.T + DAMPING**2 * np.eye(rows), error[:rows])
        change *= min(1.0, LARGEST / max(float(abs(change).max()), LARGEST))
        data.qpos[columns] = np.clip(data.qpos[columns] + change, *limits.T)
    return off


def rotation_vector(turn: np.ndarray) -> np.ndarray:
    """(3,) rad, axis times angle of a rotation matrix (3, 3)."""
    quaternion, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quaternion, turn.ravel())
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    return vector
