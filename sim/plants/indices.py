"""Where a MuJoCo model keeps what plants read and write, and the pose in which its robot begins."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np

from robo_rl.sim.plants.assembly import GROUND, lowest
from robo_rl.sim.plants.linkages import Curve, close_loops, linkage_curves
from robo_rl.sim.plants.sensing import W_LAST, sensor_columns
from robo_rl.sim.robots.mechanism import Mechanism

QUATERNION = 3 + W_LAST
"""Of a free joint's seven numbers."""


class ModelIndices(NamedTuple):
    """Where a model keeps what plants read and write, found by name once."""

    base: int
    """Body number of the base."""
    trunk: int
    """Body number of the heaviest of the base and the bodies that are fixed to it: its mass and centre vary."""
    free_position: int
    """First index in qpos of the base's place and quaternion; -1 if it is fixed."""
    free_velocity: int
    """First index in qvel; -1 if it is fixed."""
    position: np.ndarray
    """(J,) indices in qpos, robot's order."""
    velocity: np.ndarray
    """(J,) indices in qvel, robot's order."""
    state: np.ndarray
    """(numbers,) indices in qpos and qvel, one after the other, of ``Quantities.state``."""
    torque: np.ndarray
    """(numbers,) indices in the forces of actuators, and after them those on degrees of freedom, of the torques."""
    sensors: np.ndarray
    """(numbers,) indices in sensordata of ``Quantities.sensed``."""
    followers: tuple[tuple[int, int, float], ...]
    """Numbers of the joints that are coupled, of their leaders, and the ratios."""
    curves: tuple[Curve, ...]
    """Where linkages have joints that no motor moves."""
    ground: np.ndarray
    """Geom numbers of the ground; the first has the friction that the others get."""
    bodies: slice
    """The robot's."""
    dofs: slice
    """The robot's in qvel, but for a free base."""
    objects: np.ndarray
    """(B,) body numbers of the free objects."""
    origins: tuple[int, ...]
    """Site numbers of where rays start."""


def find_indices(model: mujoco.MjModel, mechanism: Mechanism) -> ModelIndices:
    """All indices that a plant needs."""
    base = model.body(mechanism.base).id
    joints = np.array([model.joint(name).id for name in mechanism.joint_names], int)
    position, velocity = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    objects = np.array([model.body(thing.name).id for thing in mechanism.objects], int)
    free_position, free_velocity = (
        (-1, -1)
        if mechanism.fixed
        else (int(model.jnt_qposadr[model.body_jntadr[base]]), int(model.jnt_dofadr[model.body_jntadr[base]]))
    )
    robot_dofs = model.nv - 6 * len(objects)
    return ModelIndices(
        base=base,
        trunk=_trunk(model, base),
        free_position=free_position,
        free_velocity=free_velocity,
        position=position,
        velocity=velocity,
        state=_state_columns(model, mechanism, free_position, free_velocity, position, velocity, objects),
        torque=_torque_columns(model, mechanism, velocity),
        sensors=sensor_columns(model, mechanism),
        followers=tuple(
            (model.joint(name).id, model.joint(coupling.leader).id, ratio)
            for coupling in mechanism.couplings
            for name, ratio in coupling.followers
        ),
        curves=linkage_curves(model, mechanism),
        ground=np.array([i for i in range(model.ngeom) if model.geom(i).name.startswith(f"{GROUND} ")], int),
        bodies=slice(1, model.nbody - len(objects)),
        dofs=slice(0 if mechanism.fixed else free_velocity + 6, robot_dofs),
        objects=objects,
        origins=tuple(model.site(f"{rays.name} origin").id for rays in mechanism.rays),
    )


def _trunk(model: mujoco.MjModel, base: int) -> int:
    """An empty base link, as ROS wants it, has the trunk fixed to it."""
    if not model.body_weldid[base]:
        return base
    fixed = np.flatnonzero(model.body_weldid == model.body_weldid[base])
    return max((int(body) for body in fixed), key=lambda body: (float(model.body_mass[body]), body == base))


def _state_columns(
    model: mujoco.MjModel, mechanism: Mechanism, free_position: int, free_velocity: int, position: np.ndarray,
    velocity: np.ndarray, objects: np.ndarray,
) -> np.ndarray:  # fmt: skip
    def pose(at: int, rate: int) -> list[np.ndarray]:
        return [at + np.arange(3), at + QUATERNION, model.nq + rate + np.arange(6)]

    parts = [] if mechanism.fixed else pose(free_position, free_velocity)
    start = 0
    for group in mechanism.groups:
        own = slice(start, start + len(group.joints))
        parts += [position[own], model.nq + velocity[own]]
        start = own.stop
    for body in objects:
        joint = model.body_jntadr[body]
        parts += pose(int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]))
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)


def _torque_columns(model: mujoco.MjModel, mechanism: Mechanism, velocity: np.ndarray) -> np.ndarray:
    """Drives' own forces; of groups that only impedances move, what these put on their joints."""
    outputs = len(mechanism.driven) + 6 * len(mechanism.impedances)
    found, joint, driven = [], 0, 0
    for group in mechanism.groups:
        for _ in group.joints:
            if group.law != "none":
                found.append(driven)
                driven += 1
            elif mechanism.impedances:
                found.append(outputs + int(velocity[joint]))
            joint += 1
    return np.array(found, np.int64)


def home(model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices | None = None) -> np.ndarray:
    """(nq,) where the robot is unless a task says otherwise: joints at home, the base so high that it stands."""
    indices = indices or find_indices(model, mechanism)
    qpos = model.qpos0.copy()
    qpos[indices.position] = [joint.home for joint in mechanism.joints]
    follow(qpos[None], model, indices)
    close_loops(model, mechanism, qpos)
    if not mechanism.fixed:
        base = indices.free_position
        qpos[base + 3 : base + 7] = [1, 0, 0, 0]
        qpos[base : base + 3] = [0, 0, _height(model, mechanism, indices, qpos)]
    return qpos


def follow(qpos: Any, model: mujoco.MjModel, indices: ModelIndices) -> None:
    """Put joints that are coupled where their leaders are in ``qpos`` (m, nq), of numpy or torch."""
    for follower, leader, ratio in indices.followers:
        mine, its = model.jnt_qposadr[follower], model.jnt_qposadr[leader]
        qpos[:, mine] = model.qpos0[mine] + ratio * (qpos[:, its] - model.qpos0[its])
    for curve in indices.curves:
        qpos[:, model.jnt_qposadr[curve.joint]] = curve.at(qpos[:, model.jnt_qposadr[curve.leader]])


def _height(model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices, qpos: np.ndarray) -> float:
    """m, of the base above level ground that the lowest contact point, or shape that touches, just touches."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    names = {model.geom(i).name: i for i in range(model.ngeom)}
    shapes = [names[point] for point in mechanism.points if point in names]
    if not shapes:
        touching = (model.geom_contype > 0) | (model.geom_conaffinity > 0)
        of_robot = (model.geom_bodyid >= indices.bodies.start) & (model.geom_bodyid < indices.bodies.stop)
        shapes = np.flatnonzero(touching & of_robot).tolist()
    below = min((lowest(model, data, shape) for shape in shapes), default=float(data.xpos[indices.base, 2]))
    return float(data.xpos[indices.base, 2] - below)


def standing_height(model: mujoco.MjModel, mechanism: Mechanism) -> float:
    """Height (m) of the base above flat ground when the robot stands with its joints at home."""
    indices = find_indices(model, mechanism)
    if mechanism.fixed:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        return float(data.xpos[indices.base, 2])
    return float(home(model, mechanism, indices)[indices.free_position + 2])
