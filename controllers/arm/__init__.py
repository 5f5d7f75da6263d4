"""Classical control of arms: a Cartesian impedance, and inverse kinematics for arms that take positions alone.

Both are pure functions in components, of one robot (numbers) or a batch (arrays (n,) of numpy or torch): the plant's
own impedance, an arm's low level and the policies' commands of joint positions agree with them (tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robo_rl.controllers.arm.chain import (
    Chain,
    Pose,
    as_axes,
    damped_step,
    downwards,
    pointing_rows,
    pose_rows,
    turn_between,
)
from robo_rl.controllers.rotation import Quaternion, Vector, dot

DAMPING = 0.02
"""m, of inverse kinematics: what a joint's turn by 1 rad costs beside a distance that is left."""
LEVER = 0.1
"""m per rad: what a turn of the tool that is left costs beside a distance that is left."""
TINY = 1e-18


class Impedance(NamedTuple):
    """Figures of a spring and a damper at a tool: of translation, then of rotation."""

    stiffness: tuple[float, float]
    """N/m and N m/rad."""
    damping: tuple[float, float]
    """N s/m and N m s/rad."""
    clip: tuple[float, float]
    """m and rad, the longest deflection that counts: the static force is at most stiffness · clip."""


def clipped(vector: Vector, longest: float) -> Vector:
    """``vector``, shortened to the length ``longest`` where it is longer."""
    length = (dot(vector, vector) + TINY) ** 0.5
    over = abs(length - longest)
    scale = longest / (0.5 * (length + longest + over))  # longest over the greater of the two
    return tuple(scale * x for x in vector)


def impedance_torques(
    chain: Chain, of: Impedance, angles: Sequence[Any], rates: Sequence[Any], target: Vector, turned: Quaternion
) -> Vector:
    """N m at the joints: Jᵀ (K clip(x_d − x) − D v), of joint angles (rad), rates (rad/s), and the target's pose (m,
    quaternion x, y, z, w) in the base frame. Gravity is compensated elsewhere.

    Turns are those of small angles: exact to second order.
    """
    pose = chain.pose(angles)
    linear, angular = pose.jacobian()
    away = tuple(wanted - is_at for wanted, is_at in zip(target, pose.position, strict=True))
    turn = turn_between(pose, as_axes(turned))
    wrench: list[Vector] = []
    for k, (error, columns) in enumerate(((away, linear), (turn, angular))):
        velocity = [sum(column[i] * rate for column, rate in zip(columns, rates, strict=True)) for i in range(3)]
        spring = clipped(error, of.clip[k])
        wrench.append(tuple(of.stiffness[k] * e - of.damping[k] * v for e, v in zip(spring, velocity, strict=True)))
    return tuple(dot(a, wrench[0]) + dot(b, wrench[1]) for a, b in zip(linear, angular, strict=True))


def nullspace_torques(
    chain: Chain, stiffness: float, angles: Sequence[Any], rates: Sequence[Any], home: Sequence[float]
) -> np.ndarray:
    """(J,) N m that pull one robot's joints home without moving its tool: (I − Jᵀ (Jᵀ)⁺) (k (q₀ − q) − 2 √k q̇)."""
    linear, angular = chain.pose([float(angle) for angle in angles]).jacobian()
    jacobian = np.concatenate([np.array(linear, float).T, np.array(angular, float).T])
    pull = stiffness * (np.asarray(home, float) - np.asarray(angles, float))
    pull = pull - 2.0 * stiffness**0.5 * np.asarray(rates, float)
    return pull - jacobian.T @ (np.linalg.pinv(jacobian.T) @ pull)


def pointing_step(chain: Chain, angles: Sequence[Any], change: Vector, damping: float = DAMPING) -> Vector:
    """(J) rad that move the tool by ``change`` (m, base frame) while its z axis is turned to point down."""
    pose = chain.pose(angles)
    errors = (*change, *(LEVER * sine for sine in downwards(pose)))
    return damped_step(pointing_rows(pose, LEVER), errors, damping)


def pose_step(chain: Chain, pose: Pose, position: Vector, turned: Quaternion, damping: float = DAMPING) -> Vector:
    """(J) rad towards a pose (m, quaternion x, y, z, w) of the tool in the base frame."""
    away = tuple(wanted - is_at for wanted, is_at in zip(position, pose.position, strict=True))
    turn = turn_between(pose, as_axes(turned))
    return damped_step(pose_rows(pose, LEVER), (*away, *(LEVER * angle for angle in turn)), damping)


def inverse(
    chain: Chain, position: np.ndarray, start: np.ndarray, turned: Quaternion | None = None, lower: Any = None,
    upper: Any = None, steps: int = 60,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Joint angles (n, J) rad that bring the tool to ``position`` (n, 3) m, and the distance (n,) m that is left.

    The tool is turned as the quaternion ``turned``, or, without one, points down. Steps begin at ``start`` (J,) rad and
    stay within ``lower`` and ``upper`` (J,).
    """
    angles = np.repeat(np.asarray(start, float)[None], len(position), 0)
    goal = tuple(position.T)
    for _ in range(steps):
        columns = list(angles.T)
        pose = chain.pose(columns)
        if turned is None:
            change = tuple(wanted - is_at for wanted, is_at in zip(goal, pose.position, strict=True))
            step = pointing_step(chain, columns, change)
        else:
            step = pose_step(chain, pose, goal, turned)
        turn = np.clip(np.stack(np.broadcast_arrays(*step), 1), -0.3, 0.3)
        angles = np.clip(angles + turn, lower, upper)
    left = np.stack(chain.pose(list(angles.T)).position, 1) - position
    return angles, np.linalg.norm(left, axis=1)
