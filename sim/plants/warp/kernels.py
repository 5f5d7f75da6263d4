"""Kernels of the plant in MuJoCo Warp: targets on their way, springs at tools, rays."""

# mypy: disable-error-code="attr-defined, index, misc, operator"

from __future__ import annotations

import warp
from mujoco_warp._src.types import vec6

EVERY_GROUP = vec6(-1, -1, -1, -1, -1, -1)
"""Shapes of all groups."""


@warp.kernel
def pass_on(
    target: warp.array2d[float],
    delay: warp.array2d[float],
    rate: float,
    line: warp.array3d[float],
    control: warp.array2d[float],
) -> None:
    """Targets wait in a line, (n, J, samples), newest first, as many physics steps as fit their delay (s)."""
    robot, joint = warp.tid()
    last = line.shape[2] - 1
    for i in range(last):
        line[robot, joint, last - i] = line[robot, joint, last - i - 1]
    line[robot, joint, 0] = target[robot, joint]
    steps = int(warp.ceil(delay[robot, joint] * rate - 1.0e-4))
    control[robot, joint] = line[robot, joint, warp.clamp(steps, 0, last)]


@warp.kernel
def tell(target: warp.array2d[float], control: warp.array2d[float]) -> None:
    """Targets (n, J) as controls, at once."""
    robot, joint = warp.tid()
    control[robot, joint] = target[robot, joint]


@warp.kernel
def pull(
    sites: warp.array2d[int],
    place: warp.array2d[warp.vec3],
    turn: warp.array2d[warp.mat33],
    delay: warp.array2d[float],
    rate: float,
    stiffness: warp.array3d[float],
    clip: warp.array2d[float],
    first: int,
    line: warp.array4d[float],
    control: warp.array2d[float],
) -> None:
    """Springs from tools to their targets, (n, T): ``robo_rl.sim.plants.impedance.wrench`` for targets that wait in
    a line.

    ``sites`` (T, 2) of tool and reference; ``line`` (n, T, 1 + samples, 7): the target told, then one per physics step.
    """
    robot, tool = warp.tid()
    last = line.shape[2] - 1
    for i in range(last):
        for k in range(7):
            line[robot, tool, last - i, k] = line[robot, tool, last - i - 1, k]
    steps = int(warp.ceil(delay[robot, tool] * rate - 1.0e-4))
    at = 1 + warp.clamp(steps, 0, last - 1)
    wanted = warp.vec3(line[robot, tool, at, 0], line[robot, tool, at, 1], line[robot, tool, at, 2])
    goal = warp.quat(
        line[robot, tool, at, 3], line[robot, tool, at, 4], line[robot, tool, at, 5], line[robot, tool, at, 6]
    )
    back = warp.transpose(turn[robot, sites[tool, 1]])
    position = back * (place[robot, sites[tool, 0]] - place[robot, sites[tool, 1]])
    orientation = warp.quat_from_matrix(back * turn[robot, sites[tool, 0]])
    away = wanted - position
    difference = warp.normalize(goal) * warp.quat_inverse(orientation)
    axis = warp.vec3(difference[0], difference[1], difference[2])
    sine = warp.length(axis)
    angle = 2.0 * warp.atan2(sine, warp.abs(difference[3])) * warp.where(difference[3] < 0.0, -1.0, 1.0)
    spin = axis * (angle / warp.max(sine, 1.0e-12))
    force = away * (stiffness[robot, tool, 0] * warp.min(clip[tool, 0] / warp.max(warp.length(away), 1.0e-12), 1.0))
    torque = spin * (stiffness[robot, tool, 1] * warp.min(clip[tool, 1] / warp.max(warp.length(spin), 1.0e-12), 1.0))
    for k in range(3):
        control[robot, first + 6 * tool + k] = force[k]
        control[robot, first + 6 * tool + 3 + k] = torque[k]


@warp.kernel
def aim(
    sites: warp.array[int],
    origins: warp.array[warp.vec3],
    directions: warp.array[warp.vec3],
    place: warp.array2d[warp.vec3],
    turn: warp.array2d[warp.mat33],
    start: warp.array2d[warp.vec3],
    along: warp.array2d[warp.vec3],
) -> None:
    """Rays (n, R) in the world, from origins and directions (R,) in the frames of sites (R,)."""
    robot, ray = warp.tid()
    site = sites[ray]
    start[robot, ray] = place[robot, site] + turn[robot, site] * origins[ray]
    along[robot, ray] = turn[robot, site] * directions[ray]
