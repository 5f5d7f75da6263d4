"""Rigid bodies by Bullet, to see whether a policy depends on the engine that it was trained in.

Contacts, friction and integration are Bullet's own; the motors' law is that of ``sim.actuators``, at 1 kHz. Each robot
is a world of its own, made anew from a URDF with its own parameters whenever it is placed, so this is slow: for tests
of tens of robots. Bullet has no armature: the rotor's inertia is added to the link that it moves.
"""

from __future__ import annotations

from collections import deque
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
from sim.fuse import empty_block
from sim.plants.rigid import (
    Physics,
    RigidParameters,
    RigidTruth,
    assemble,
    find_places,
    nominal_parameters,
    shapes,
    standing_height,
    substeps,
)
from sim.plants.urdf import write_urdf
from sim.robots import LeggedCard

TIMESTEP = 0.001
"""s: the rate of the control in the motors of usual legged robots."""


class BulletPlant:
    """n robots, stepped one after the other at one control rate; the same names and frames as ``MujocoPlant``."""

    def __init__(self, card: LeggedCard, n: int, period: float) -> None:
        """``period`` is the control period in s."""
        self.card, self.n, self.period = card, n, period
        self.model = assemble(card, Physics(contacts="all"))
        self.places, self.height = find_places(self.model, card), standing_height(self.model, card)
        self.substeps = substeps(period, Physics(timestep=TIMESTEP))
        self.nominal = nominal_parameters(self.model, self.places)
        self.parameters = RigidParameters(*(value.repeat(n, *[1] * (value.ndim - 1)) for value in self.nominal))
        self._block, parts = empty_block(n, shapes(card))
        self._truth = RigidTruth(*parts)
        self._worlds: list[_World | None] = [None] * n
        stand = torch.tensor([[joint.stand for joint in card.joints]]).expand(n, -1)
        upright, still = torch.tensor([[0.0, 0.0, 0.0, 1.0]]).expand(n, -1), torch.zeros(n, 3)
        place = torch.tensor([[0.0, 0.0, self.height]]).expand(n, -1)
        self.place(torch.arange(n), place, upright, still, still, stand, torch.zeros_like(stand))

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
        for row, i in enumerate(ids.tolist()):
            own: list[Any] = [value[i].numpy() for value in self.parameters]
            parameters = RigidParameters(*own)
            old = self._worlds[i]
            if old is not None:
                old.close()
            world = self._worlds[i] = _World(self.card, self.model, parameters)
            world.place(*(part[row].double().numpy() for part in parts))
            self._read(i, world)

    def _read(self, i: int, world: _World) -> None:
        for value, found in zip(self._truth, world.truth(), strict=True):
            value[i] = torch.from_numpy(np.asarray(found))

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self._truth._asdict()

    def step(self, commands: dict[str, Tensor]) -> None:
        """One control period under ``joint_position_target`` commands (n, J), rad, held constant."""
        for i, target in enumerate(commands["joint_position_target"].double().numpy()):
            world = self._worlds[i]
            assert world is not None
            world.step(target, self.parameters.force[i].numpy(), self.parameters.torque[i].numpy(), self.substeps)
            self._read(i, world)

    def save(self) -> dict[str, Tensor]:
        raise NotImplementedError("Bullet's worlds can't be saved; train with MuJoCo")

    def load(self, saved: dict[str, Tensor]) -> None:
        raise NotImplementedError("Bullet's worlds can't be saved; train with MuJoCo")


class _World:
    """One robot on its ground."""

    def __init__(self, card: LeggedCard, model: mujoco.MjModel, parameters: RigidParameters) -> None:
        self.card, self.model, self.parameters = card, model, parameters
        self.bullet = bullet = BulletClient(pybullet.DIRECT)
        bullet.setGravity(*model.opt.gravity)
        bullet.setTimeStep(TIMESTEP)
        with TemporaryDirectory() as folder:
            robot, ground = Path(folder, "robot.urdf"), Path(folder, "ground.urdf")
            robot.write_text(write_urdf(model, card, parameters))
            ground.write_text(GROUND)
            self.ground = bullet.loadURDF(str(ground), useFixedBase=True)
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
        self.torque = np.zeros(len(card.joints))
        self.late = round(float(parameters.command_delay.max()) / TIMESTEP)

    def _set_surfaces(self, links: range) -> None:
        """Bullet multiplies the friction of two bodies; damping in the air, which it has by itself, is taken out."""
        bullet = self.bullet
        bullet.changeDynamics(self.ground, -1, lateralFriction=float(self.parameters.ground_friction), restitution=0.0)
        for link in (-1, *links):
            bullet.changeDynamics(
                self.robot, link, lateralFriction=1.0, restitution=0.0, linearDamping=0.0, angularDamping=0.0,
                jointDamping=0.0, maxJointVelocity=1000.0,
            )  # fmt: skip
        self._add_rotors()
        friction = dict(zip(self._joint_order(), self.parameters.joint_friction, strict=True))
        for name, joint in zip(self.card.joint_names, self.joints, strict=True):
            bullet.setJointMotorControl2(
                self.robot, joint, pybullet.VELOCITY_CONTROL, targetVelocity=0.0, force=float(friction[name])
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
        center, inner = self._inertial()
        spin = turn.apply(angular)
        bullet.resetBasePositionAndOrientation(
            self.robot, position + turn.apply(center), (turn * inner).as_quat(canonical=False)
        )
        bullet.resetBaseVelocity(self.robot, linear + np.cross(spin, turn.apply(center)), spin)
        for joint, angle, speed in zip(self.joints, joints, speeds, strict=True):
            bullet.resetJointState(self.robot, joint, angle, speed)
        self.targets = deque([joints.copy()] * (self.late + 1), maxlen=self.late + 1)
        self.torque[:] = 0.0

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
        bullet, (center, inner) = self.bullet, self._inertial()
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
        contacts = self.bullet.getContactPoints(self.robot, self.ground, link)
        return foot, linear + np.cross(spin, foot - center), sum(contact[9] for contact in contacts)


GROUND = """<robot name="ground"><link name="ground"><inertial><mass value="0"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
<collision><geometry><plane normal="0 0 1"/></geometry></collision></link></robot>"""
