"""Rigid bodies by Bullet, to see whether a policy depends on the engine that it was trained in.

Contacts, friction and integration are Bullet's own; the motors' law is that of ``sim.actuators``, at 1 kHz. Each robot
is a world of its own, made anew from a URDF with its own parameters whenever it is placed, so this is slow: for tests
of tens of robots, which several processes share. Bullet has no armature: the rotor's inertia is added to the link that
it moves.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import weakref
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
import pybullet
import torch
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation
from torch import Tensor

from sim.actuators import Motors, torque
from sim.drawing import Poser
from sim.fuse import empty_block
from sim.plants.rigid import (
    Physics,
    RigidParameters,
    RigidTruth,
    assemble,
    draw_rigid,
    find_indices,
    nominal_parameters,
    shapes,
    standing,
    standing_height,
    substeps,
)
from sim.plants.urdf import write_urdf
from sim.robots.legged import LeggedCard
from sim.solids import Solids
from sim.terrain import Ground

TIMESTEP = 0.001
"""s: the rate of the control in the motors of usual legged robots."""

NEAR = 10.0
"""m, that a robot can walk in its longest episode on rough ground."""


class BulletPlant:
    """n robots at one control rate, several in processes of their own; names and frames as of ``MujocoPlant``."""

    def __init__(
        self, card: LeggedCard, n: int, period: float, processes: int | None = None, ground: Ground | None = None
    ) -> None:
        """``period`` is the control period in s; ``processes`` are as many as torch's threads by default.

        Without a ``ground`` it is a plane; with one, robots have what is within ``NEAR`` of where they begin.
        """
        self.card, self.n, self.period, self.ground = card, n, period, ground
        self.model = assemble(card, Physics(contacts="all"))
        self.indices, self.height = find_indices(self.model, card), standing_height(self.model, card)
        self.substeps = substeps(period, Physics(timestep=TIMESTEP))
        self.nominal = nominal_parameters(self.model, self.indices)
        self.parameters = RigidParameters(*(value.repeat(n, *[1] * (value.ndim - 1)) for value in self.nominal))
        self._block, parts = empty_block(n, shapes(card))
        self._truth = RigidTruth(*parts)
        count = min(n, torch.get_num_threads() if processes is None else processes)
        self._shares = [np.arange(n)[k::count] for k in range(count)]
        self._hosts: list[_Worlds | _Worker]
        if n == 1:
            self._hosts = [_Worlds(card, n, ground)]
        else:
            self._hosts = [_Worker(card, len(share), ground) for share in self._shares]
        self.place(torch.arange(n), *standing(card, self.height, n))

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter; all but pushes hold from the next ``place`` on."""
        if name not in RigidParameters._fields:
            raise KeyError(f"a rigid body has no parameter '{name}'; it has {list(RigidParameters._fields)}")
        return getattr(self.parameters, name)

    def place(
        self, ids: Tensor, position: Tensor, orientation: Tensor, linear_velocity: Tensor, angular_velocity: Tensor,
        joint_position: Tensor, joint_velocity: Tensor,
    ) -> None:  # fmt: skip
        """Put the robots ``ids`` (m,) into a state, (m, k) each as in ``RigidTruth``, their motors holding it."""
        parts = (position, orientation, linear_velocity, angular_velocity, joint_position, joint_velocity)
        states, chosen = [part.double().numpy() for part in parts], ids.numpy()
        asked = []
        for share, host in zip(self._shares, self._hosts, strict=True):
            rows = np.flatnonzero(np.isin(chosen, share))
            own: list[Any] = [value[chosen[rows]].double().numpy() for value in self.parameters]
            host.ask(
                "place", np.searchsorted(share, chosen[rows]), RigidParameters(*own), [state[rows] for state in states]
            )
            asked.append(chosen[rows])
        self._collect(asked)

    def _collect(self, asked: Sequence[np.ndarray]) -> None:
        """Read what the hosts answer: the truth of the robots that each was asked about."""
        for robots, host in zip(asked, self._hosts, strict=True):
            self._block[:, torch.from_numpy(robots)] = torch.from_numpy(host.answer()).float().mT

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self._truth._asdict()

    def step(self, commands: dict[str, Tensor]) -> None:
        """One control period under ``joint_position_target`` commands (n, J), rad, held constant."""
        target = commands["joint_position_target"].double().numpy()
        force, push = self.parameters.force.numpy(), self.parameters.torque.numpy()
        for share, host in zip(self._shares, self._hosts, strict=True):
            host.ask("step", target[share], force[share], push[share], self.substeps)
        self._collect(self._shares)

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the velocity of the bases of the robots ``ids`` by ``velocity`` (3,) m/s, world."""
        asked = []
        for share, host in zip(self._shares, self._hosts, strict=True):
            mine = np.flatnonzero(np.isin(share, ids.numpy()))
            host.ask("push", mine, velocity.double().numpy())
            asked.append(share[mine])
        self._collect(asked)

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_rigid(self.card, self.ground))

    def drawing(self) -> mujoco.MjModel:
        """A model of how a robot and its ground look."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        truth, places = self._truth, np.zeros((len(ids), self.drawing().nq))
        free = self.indices.free_position
        places[:, free : free + 7] = torch.cat([truth.position[ids], truth.orientation[ids][:, [3, 0, 1, 2]]], 1)
        places[:, self.indices.position] = truth.joint_position[ids]
        return self._poser.poses(places)

    def save(self) -> dict[str, Tensor]:
        raise ValueError("Bullet's worlds can't be saved; train with MuJoCo")

    def load(self, saved: dict[str, Tensor]) -> None:
        raise ValueError("Bullet's worlds can't be saved; train with MuJoCo")


class _Worlds:
    """Some robots, stepped one after the other."""

    def __init__(self, card: LeggedCard, n: int, ground: Ground | None) -> None:
        self.ground = ground
        self.card, self.model = card, assemble(card, Physics(contacts="all"))
        self.worlds: list[_World | None] = [None] * n
        self._answer = np.empty((0, 0))

    def ask(self, what: str, *arguments: Any) -> None:
        answers: dict[str, Any] = {"place": self._place, "push": self._push, "step": self._step}
        self._answer = answers[what](*arguments)

    def answer(self) -> np.ndarray:
        """(m, k): the truth of the robots asked about, fields of ``RigidTruth`` side by side."""
        return self._answer

    def _place(self, ids: np.ndarray, parameters: RigidParameters, states: Sequence[np.ndarray]) -> np.ndarray:
        for row, i in enumerate(ids):
            old = self.worlds[i]
            if old is not None:
                old.close()
            own: list[Any] = [value[row] for value in parameters]
            below = None if self.ground is None else self.ground.solids.near(states[0][row, :2], NEAR)
            world = self.worlds[i] = _World(self.card, self.model, RigidParameters(*own), below)
            world.place(*(state[row] for state in states))
        return self._truth([self.worlds[i] for i in ids])

    def _push(self, ids: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        pushed = [self.worlds[i] for i in ids]
        for world in pushed:
            assert world is not None
            world.push(velocity)
        return self._truth(pushed)

    def _step(self, targets: np.ndarray, forces: np.ndarray, torques: np.ndarray, count: int) -> np.ndarray:
        for world, target, force, push in zip(self.worlds, targets, forces, torques, strict=True):
            assert world is not None
            world.step(target, force, push, count)
        return self._truth(self.worlds)

    def _truth(self, worlds: Sequence[_World | None]) -> np.ndarray:
        width = sum(size for (size,) in shapes(self.card))
        return np.array([np.concatenate(world.truth()) for world in worlds if world is not None]).reshape(-1, width)


class _Worker:
    """``_Worlds`` in a process of its own, which ends with this object."""

    def __init__(self, card: LeggedCard, n: int, ground: Ground | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, card, n, ground), daemon=True)
        self._process.start()
        theirs.close()
        weakref.finalize(self, self._pipe.close)

    def ask(self, what: str, *arguments: Any) -> None:
        try:
            self._pipe.send((what, *arguments))
        except OSError:
            raise self._lost() from None

    def answer(self) -> np.ndarray:
        try:
            found = self._pipe.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(found, Exception):
            raise found
        return found

    def _lost(self) -> ChildProcessError:
        self._process.join(timeout=1)
        return ChildProcessError(f"a process that simulates robots by Bullet ended, exit code {self._process.exitcode}")


def _serve(pipe: Connection, card: LeggedCard, n: int, ground: Ground | None) -> None:
    """Answer until the other end closes. Bullet's greeting at every connection is of no interest there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    worlds = _Worlds(card, n, ground)
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            worlds.ask(*asked)
            pipe.send(worlds.answer())
        except Exception as error:  # told where it was asked for
            pipe.send(error)


class _World:
    """One robot on its ground."""

    def __init__(
        self, card: LeggedCard, model: mujoco.MjModel, parameters: RigidParameters, ground: Solids | None
    ) -> None:
        self.card, self.model, self.parameters = card, model, parameters
        self.bullet = bullet = BulletClient(pybullet.DIRECT)
        bullet.setGravity(*model.opt.gravity)
        bullet.setTimeStep(TIMESTEP)
        with TemporaryDirectory() as folder:
            robot, plane = Path(folder, "robot.urdf"), Path(folder, "plane.urdf")
            robot.write_text(write_urdf(model, card, parameters))
            plane.write_text(PLANE)
            self.ground = self._lay(ground) if ground is not None else {bullet.loadURDF(str(plane), useFixedBase=True)}
            self.robot = bullet.loadURDF(str(robot), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
        links = range(bullet.getNumJoints(self.robot))
        names = {bullet.getJointInfo(self.robot, link)[1].decode(): link for link in links}
        self.joints = [names[name] for name in card.joint_names]
        bodies = {bullet.getJointInfo(self.robot, link)[12].decode(): link for link in links}
        feet = [model.geom(foot) for foot in card.feet]
        self.feet = [(bodies[model.body(int(foot.bodyid[0])).name], foot.pos) for foot in feet]
        self._set_surfaces(links)
        self.motors = Motors(
            parameters.stiffness,
            parameters.damping,
            np.array([joint.effort for joint in card.joints]),
            np.array([joint.velocity for joint in card.joints]),
            parameters.resistance,
        )
        self.inertial = self._inertial()
        self.torque = np.zeros(len(card.joints))
        self.late = round(float(parameters.command_delay.max()) / TIMESTEP)

    def _lay(self, ground: Solids) -> set[int]:
        """The ground as bodies that don't move."""
        bullet, laid = self.bullet, set()
        for low, high in ground.boxes:
            shape = bullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.5 * (high - low)).tolist())
            laid.add(bullet.createMultiBody(0.0, shape, basePosition=(0.5 * (high + low)).tolist()))
        for wedge in ground.wedges:
            shape = bullet.createCollisionShape(pybullet.GEOM_MESH, vertices=(wedge - wedge.mean(0)).tolist())
            laid.add(bullet.createMultiBody(0.0, shape, basePosition=wedge.mean(0).tolist()))
        return laid

    def _set_surfaces(self, links: range) -> None:
        """Bullet multiplies the friction of two bodies; damping in the air, which it has by itself, is taken out."""
        bullet = self.bullet
        friction = float(self.parameters.ground_friction)
        for body in self.ground:
            bullet.changeDynamics(body, -1, lateralFriction=friction, restitution=0.0)
        for link in (-1, *links):
            bullet.changeDynamics(
                self.robot, link, lateralFriction=1.0, restitution=0.0, linearDamping=0.0, angularDamping=0.0,
                jointDamping=0.0, maxJointVelocity=1000.0,
            )  # fmt: skip
        self._add_rotors()
        frictions = dict(zip(self._joint_order(), self.parameters.joint_friction, strict=True))
        for name, joint in zip(self.card.joint_names, self.joints, strict=True):
            bullet.setJointMotorControl2(
                self.robot, joint, pybullet.VELOCITY_CONTROL, targetVelocity=0.0, force=float(frictions[name])
            )

    def _add_rotors(self) -> None:
        """Armature: inertia about the joint's axis, in the axes of the link's own moments."""
        for joint, armature in zip(self.joints, self.parameters.armature, strict=True):
            moments, quaternion = (np.array(self.bullet.getDynamicsInfo(self.robot, joint)[i]) for i in (2, 4))
            axis = Rotation.from_quat(quaternion).inv().apply(self.bullet.getJointInfo(self.robot, joint)[13])
            grown = moments + armature * np.square(axis)
            self.bullet.changeDynamics(self.robot, joint, localInertiaDiagonal=grown.tolist())

    def _joint_order(self) -> list[str]:
        """Names of the driven joints in the model's order, which that of dry friction is."""
        names = [self.model.joint(i).name for i in range(self.model.njnt)]
        return [name for name in names if name in self.card.joint_names]

    def close(self) -> None:
        self.bullet.disconnect()

    def place(
        self, position: np.ndarray, orientation: np.ndarray, linear: np.ndarray, angular: np.ndarray,
        joints: np.ndarray, speeds: np.ndarray,
    ) -> None:  # fmt: skip
        bullet, turn = self.bullet, Rotation.from_quat(orientation)
        center, inner = self.inertial
        spin = turn.apply(angular)
        bullet.resetBasePositionAndOrientation(
            self.robot, position + turn.apply(center), (turn * inner).as_quat(canonical=False)
        )
        bullet.resetBaseVelocity(self.robot, linear + np.cross(spin, turn.apply(center)), spin)
        for joint, angle, speed in zip(self.joints, joints, speeds, strict=True):
            bullet.resetJointState(self.robot, joint, angle, speed)
        self.targets = deque([joints.copy()] * (self.late + 1), maxlen=self.late + 1)
        self.torque[:] = 0.0

    def push(self, velocity: np.ndarray) -> None:
        linear, spin = (np.array(part) for part in self.bullet.getBaseVelocity(self.robot))
        self.bullet.resetBaseVelocity(self.robot, linear + velocity, spin)

    def _inertial(self) -> tuple[np.ndarray, Rotation]:
        """Place and turn of the frame in which Bullet gives the base, in the base's own frame."""
        found = self.bullet.getDynamicsInfo(self.robot, -1)
        return np.array(found[3]), Rotation.from_quat(found[4])

    def step(self, target: np.ndarray, force: np.ndarray, push: np.ndarray, count: int) -> None:
        bullet = self.bullet
        for _ in range(count):
            self.targets.append(target)
            position, velocity = self._joint_states()
            self.torque = torque(self.motors, self.targets[0], position, velocity)
            bullet.setJointMotorControlArray(self.robot, self.joints, pybullet.TORQUE_CONTROL, forces=self.torque)
            if force.any() or push.any():
                center = bullet.getBasePositionAndOrientation(self.robot)[0]
                bullet.applyExternalForce(self.robot, -1, force, center, pybullet.WORLD_FRAME)
                bullet.applyExternalTorque(self.robot, -1, push, pybullet.WORLD_FRAME)
            bullet.stepSimulation()

    def _joint_states(self) -> tuple[np.ndarray, np.ndarray]:
        states = self.bullet.getJointStates(self.robot, self.joints)
        return np.array([state[0] for state in states]), np.array([state[1] for state in states])

    def truth(self) -> tuple[Any, ...]:
        """The fields of ``RigidTruth``, now."""
        bullet, (center, inner) = self.bullet, self.inertial
        middle, quaternion = bullet.getBasePositionAndOrientation(self.robot)
        linear, spin = (np.array(part) for part in bullet.getBaseVelocity(self.robot))
        turn = Rotation.from_quat(quaternion) * inner.inv()
        arm = turn.apply(center)
        position, velocity = self._joint_states()
        feet = [self._foot(link, place) for link, place in self.feet]
        return (
            np.array(middle) - arm,
            turn.as_quat(),
            linear - np.cross(spin, arm),
            turn.inv().apply(spin),
            position,
            velocity,
            self.torque,
            np.concatenate([foot[0] for foot in feet]),
            np.concatenate([foot[1] for foot in feet]),
            np.array([foot[2] for foot in feet]),
        )

    def _foot(self, link: int, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Place, velocity and load of the foot at ``place`` in its link's frame."""
        found = self.bullet.getLinkState(self.robot, link, computeLinkVelocity=1, computeForwardKinematics=1)
        center, origin, quaternion, linear, spin = (np.array(found[i]) for i in (0, 4, 5, 6, 7))
        foot = origin + Rotation.from_quat(quaternion).apply(place)
        contacts = self.bullet.getContactPoints(bodyA=self.robot, linkIndexA=link)
        load = sum(contact[9] for contact in contacts if contact[2] in self.ground)
        return foot, linear + np.cross(spin, foot - center), load


PLANE = """<robot name="ground"><link name="ground"><inertial><mass value="0"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
<collision><geometry><plane normal="0 0 1"/></geometry></collision></link></robot>"""
