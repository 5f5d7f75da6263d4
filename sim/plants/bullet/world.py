"""One robot with its ground and objects in Bullet."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pybullet
import torch
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

from robo_rl.sim.actuators import Motors, Targets, torque
from robo_rl.sim.plants.bullet.bodies import GEARING, ROTOR, add_object, add_rotors, gear, lay_solids, lay_surroundings
from robo_rl.sim.plants.bullet.sensing import WorldSensors
from robo_rl.sim.plants.impedance import springs, wrench
from robo_rl.sim.plants.indices import find_indices
from robo_rl.sim.plants.parameters import ArticulatedParameters
from robo_rl.sim.plants.physics import LONGEST_DELAY
from robo_rl.sim.plants.sensing import W_LAST, frames
from robo_rl.sim.robots.mechanism import DrivenJoint, Mechanism
from robo_rl.sim.robots.urdf import Style, write_urdf
from robo_rl.sim.scenes.solids import Solids

TIMESTEP = 0.001
"""s: the rate of the control in the motors of usual legged robots."""

SAMPLES = round(LONGEST_DELAY / TIMESTEP) + 1
"""Targets that may be on their way, newest first."""

W_FIRST = np.array([3, 0, 1, 2])
"""From quaternions x, y, z, w to MuJoCo's."""

FASTEST = 1e8
"""rad/s and m/s, more than any joint or rotor reaches."""

LIGHT = 1e-6
"""kg: links of less mass have no weight to speak of."""


class WorldState(NamedTuple):
    """What can be read of a world and set in another, in MuJoCo's layout."""

    time: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    history: np.ndarray
    """(samples · drives,) targets, newest first."""
    references: np.ndarray
    """(samples · tools · 7,) targets, newest first."""


class World:
    """One robot on its ground."""

    def __init__(
        self, mechanism: Mechanism, model: mujoco.MjModel, parameters: ArticulatedParameters, ground: Solids | None
    ) -> None:
        self.mechanism, self.model, self.parameters = mechanism, model, parameters
        self.indices = find_indices(model, mechanism)
        self.bullet = bullet = BulletClient(pybullet.DIRECT)
        bullet.setGravity(*model.opt.gravity)
        bullet.setTimeStep(TIMESTEP)
        friction = float(parameters.ground_friction)
        if ground is not None:
            lay_solids(bullet, ground, friction)
        with TemporaryDirectory() as folder:
            if ground is None and mechanism.floor:
                plane = Path(folder, "plane.urdf")
                plane.write_text(PLANE)
                body = bullet.loadURDF(str(plane), useFixedBase=True)
                bullet.changeDynamics(body, -1, lateralFriction=friction, restitution=0.0)
            robot = Path(folder, "robot.urdf")
            robot.write_text(self._urdf())
            flags = pybullet.URDF_USE_INERTIA_FROM_FILE
            self.robot = bullet.loadURDF(str(robot), flags=flags, useFixedBase=mechanism.fixed)
        lay_surroundings(bullet, model, mechanism)
        figures = (parameters.object_mass, parameters.object_size, parameters.object_friction)
        rows = zip(mechanism.objects, *figures, strict=True)
        self.objects = [add_object(bullet, model, *row) for row in rows]
        self._find_parts()
        self._set_surfaces()
        self._couple()
        self._set_drives()
        self._springs = springs(torch.from_numpy(np.array(parameters.impedance_stiffness))[None], mechanism.impedances)
        self.late = np.round(np.array(parameters.command_delay) / TIMESTEP).astype(int)
        self.tools_late = np.round(np.array(parameters.impedance_delay) / TIMESTEP).astype(int)
        self.forces, self._every = np.zeros(len(mechanism.joints)), np.arange(len(mechanism.driven))
        self._data = mujoco.MjData(model)
        self.time = 0.0

    def _urdf(self) -> str:
        """The robot with its own masses, centres of mass and rotors."""
        model, bodies = copy.copy(self.model), self.indices.bodies
        model.body_mass[bodies], model.body_ipos[bodies] = self.parameters.mass, self.parameters.center_of_mass
        armatures = dict(zip([joint.name for joint in self.mechanism.driven], self.parameters.armature, strict=True))
        passive = {model.joint(j).name: model.dof_armature[model.jnt_dofadr[j]] for j in range(model.njnt)}
        written = write_urdf(model, self.mechanism.name, self.mechanism.base, style=Style(visual=False, zeros=True))
        return add_rotors(written, {name: float(value) for name, value in {**passive, **armatures}.items()})

    def _find_parts(self) -> None:
        """Numbers of links by body, and of the joints that move."""
        bullet, model, robot = self.bullet, self.model, self.robot
        found = [bullet.getJointInfo(robot, k) for k in range(bullet.getNumJoints(robot))]
        self.numbers = numbers = {info[1].decode(): info[0] for info in found}
        self.rotors = {name.removesuffix(ROTOR): k for name, k in numbers.items() if name.endswith(ROTOR)}
        self.links = {info[12].decode(): info[0] for info in found}
        self.links.setdefault(bullet.getBodyInfo(robot)[0].decode(), -1)
        single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        self.order = [j for j in range(model.njnt) if mujoco.mjtJoint(model.jnt_type[j]) in single]
        self.joint_links = {j: numbers[model.joint(j).name or f"joint{j}"] for j in self.order}
        self.all_links = [self.joint_links[j] for j in self.order]
        self.joints = [numbers[name] for name in self.mechanism.joint_names]
        self.sensors = WorldSensors(bullet, robot, model, self.mechanism, self.links)
        masses = {model.body(b).name: float(model.body_mass[b]) for b in range(model.nbody)}
        self.weights = {link: masses[name] for name, link in self.links.items() if masses.get(name, 0.0) > LIGHT}

    def _set_surfaces(self) -> None:
        """Friction, and losses; damping in the air, which Bullet has by itself, is taken out."""
        bullet, model = self.bullet, self.model
        for link in (-1, *range(bullet.getNumJoints(self.robot))):
            bullet.changeDynamics(
                self.robot, link, lateralFriction=1.0, restitution=0.0, linearDamping=0.0, angularDamping=0.0,
                jointDamping=0.0, maxJointVelocity=FASTEST,
            )  # fmt: skip
        friction = dict(enumerate(self.parameters.joint_friction, self.indices.dofs.start))
        for joint, link in zip(self.order, self.all_links, strict=True):
            dof = int(model.jnt_dofadr[joint])
            bullet.changeDynamics(self.robot, link, jointDamping=float(model.dof_damping[dof]))
            bullet.setJointMotorControl2(
                self.robot, link, pybullet.VELOCITY_CONTROL, targetVelocity=0.0, force=float(friction[dof])
            )

    def _couple(self) -> None:
        """Gears between joints that are coupled, and how each drive's torque is shared."""
        columns = {self.model.joint(j).name: k for k, j in enumerate(self.order)}
        self.shares = np.zeros((len(self.mechanism.joints), len(self.order)))
        coupled = {coupling.leader: dict(coupling.followers) for coupling in self.mechanism.couplings}
        for row, name in enumerate(self.mechanism.joint_names):
            ratios = {name: 1.0, **coupled.get(name, {})}
            total = sum(ratio * ratio for ratio in ratios.values())
            for joint, ratio in ratios.items():
                self.shares[row, columns[joint]] = ratio / total
        for follower, leader, ratio in self.indices.followers:
            gear(self.bullet, self.robot, self.joint_links[leader], self.joint_links[follower], ratio, erp=0.2)
        for name, rotor in self.rotors.items():
            control = pybullet.VELOCITY_CONTROL
            self.bullet.setJointMotorControl2(self.robot, rotor, control, targetVelocity=0.0, force=0.0)
            gear(self.bullet, self.robot, self.numbers[name], rotor, GEARING, erp=0.0)

    def _set_drives(self) -> None:
        """Which joints have drives, of which law, and the drives' figures."""
        mechanism, own = self.mechanism, self.parameters
        of = [group for group in mechanism.groups for _ in group.joints]
        self.driven = np.array([k for k, group in enumerate(of) if group.law != "none"], int)
        self.idle = np.array([float(group.law == "none") for group in of])
        laws = [of[k].law for k in self.driven]
        self.is_law = [np.array([law == name for law in laws], bool) for name in ("position", "velocity", "torque")]
        speeds = [joint.velocity if of[k].dc_motor else math.inf for k, joint in self._drives()]
        self.motors = Motors(
            stiffness=own.stiffness * self.is_law[0],
            damping=own.damping * ~self.is_law[2],
            effort=np.array([joint.effort for joint in mechanism.driven]),
            velocity=np.array(speeds),
            resistance=own.resistance,
        )

    def _drives(self) -> list[tuple[int, DrivenJoint]]:
        """Number among all joints, and figures, of every joint with a drive."""
        return list(zip(self.driven.tolist(), self.mechanism.driven, strict=True))

    def close(self) -> None:
        self.bullet.disconnect()

    def set(self, state: WorldState) -> None:
        """Put everything where ``state`` has it."""
        bullet, model = self.bullet, self.model
        self.time = float(state.time[0])
        if not self.mechanism.fixed:
            first, rate = self.indices.free_position, self.indices.free_velocity
            self._set_body(
                self.robot, state.qpos[first : first + 7], state.qvel[rate : rate + 6], self.sensors.inertial
            )
        rotors = {self.numbers[name]: rotor for name, rotor in self.rotors.items()}
        for joint, link in zip(self.order, self.all_links, strict=True):
            angle, speed = state.qpos[model.jnt_qposadr[joint]], state.qvel[model.jnt_dofadr[joint]]
            bullet.resetJointState(self.robot, link, angle, speed)
            if link in rotors:
                bullet.resetJointState(self.robot, rotors[link], 0.0, GEARING * speed)
        for body, (thing, inertial) in zip(self.indices.objects, self.objects, strict=True):
            joint = model.body_jntadr[body]
            first, rate = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            self._set_body(thing, state.qpos[first : first + 7], state.qvel[rate : rate + 6], inertial)
        self.line = state.history.reshape(SAMPLES, -1).copy()
        self.tools_line = state.references.reshape(SAMPLES, -1, 7).copy()
        self.forces[:] = 0.0

    def _set_body(self, body: int, pose: np.ndarray, rates: np.ndarray, inertial: tuple[np.ndarray, Rotation]) -> None:
        center, inner = inertial
        turn = Rotation.from_quat(pose[3:][W_LAST])
        spin = turn.apply(rates[3:])
        self.bullet.resetBasePositionAndOrientation(
            body, pose[:3] + turn.apply(center), (turn * inner).as_quat(canonical=False)
        )
        self.bullet.resetBaseVelocity(body, rates[:3] + np.cross(spin, turn.apply(center)), spin)

    def state(self) -> WorldState:
        """As far as Bullet lets it be read."""
        model, qpos, qvel = self.model, self.model.qpos0.copy(), np.zeros(self.model.nv)
        free = [] if self.mechanism.fixed else [(self.indices.base, self.robot, self.sensors.inertial)]
        free += [(body, *made) for body, made in zip(self.indices.objects, self.objects, strict=True)]
        for body, number, inertial in free:
            joint = model.body_jntadr[body]
            first, rate = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            place, turn, linear, spin = self.sensors.body(number, inertial)
            qpos[first : first + 7] = [*place, *turn[W_FIRST]]
            qvel[rate : rate + 6] = [*linear, *spin]
        position, velocity = self._joint_states(self.all_links)
        qpos[model.jnt_qposadr[self.order]], qvel[model.jnt_dofadr[self.order]] = position, velocity
        return WorldState(np.array([self.time]), qpos, qvel, self.line.ravel().copy(), self.tools_line.ravel().copy())

    def step(self, count: int, told: np.ndarray, tools_told: np.ndarray, force: np.ndarray, push: np.ndarray) -> None:
        """So many steps under targets (drives,) and (tools, 7), with a force and a torque on the base."""
        bullet = self.bullet
        for _ in range(count):
            for line, newest in ((self.line, told), (self.tools_line, tools_told)):
                if newest.size:
                    line[1:], line[0] = line[:-1].copy(), newest
            self.forces = self._drive()
            efforts = self.forces @ self.shares
            if self.mechanism.impedances:
                pulled = self._pull()
                efforts = efforts + pulled
                self.forces = self.forces + pulled[[self.all_links.index(link) for link in self.joints]] * self.idle
            if self.all_links:
                control = pybullet.TORQUE_CONTROL
                bullet.setJointMotorControlArray(self.robot, self.all_links, control, forces=efforts)
            if force.any() or push.any():
                center = bullet.getBasePositionAndOrientation(self.robot)[0]
                bullet.applyExternalForce(self.robot, -1, force, center, pybullet.WORLD_FRAME)
                bullet.applyExternalTorque(self.robot, -1, push, pybullet.WORLD_FRAME)
            if self.mechanism.weightless:
                self._carry()
            bullet.stepSimulation()
            self.time += TIMESTEP

    def _drive(self) -> np.ndarray:
        """(J,) torques of the drives, 0 where there is none."""
        found = np.zeros(len(self.idle))
        if len(self.driven):
            position, velocity = self._joint_states([self.joints[k] for k in self.driven])
            told = self.line[self.late, self._every]
            found[self.driven] = torque(self.motors, Targets(*(told * law for law in self.is_law)), position, velocity)
        return found

    def _pull(self) -> np.ndarray:
        """(joints,) torques by which the tools' springs and dampers move the joints that move, in order.

        By MuJoCo's Jacobian: Bullet's has the rotors in it, too.
        """
        model, data, dofs = self.model, self._data, self.model.jnt_dofadr[self.order]
        data.qpos[:] = self.state().qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        first = len(frames(self.mechanism)) - len(self.mechanism.impedances)
        found = np.zeros(len(self.order))
        for tool, impedance in enumerate(self.mechanism.impedances):
            position, turn, linear, spin = self.sensors.frame(first + tool)
            target = self.tools_line[self.tools_late[tool], tool]
            pose = np.concatenate([position, Rotation.from_matrix(turn).as_quat()])
            spring = wrench(self._springs, torch.from_numpy(target)[None, None], torch.from_numpy(pose)[None, None])
            damping = np.repeat(self.parameters.impedance_damping[tool], 3)
            pulled = spring[0, tool].numpy() - damping * np.concatenate([linear, spin])
            frame = self.sensors.reference(impedance.relative_to or self.mechanism.base)[1]
            forward, about = np.zeros((3, model.nv)), np.zeros((3, model.nv))
            mujoco.mj_jacSite(model, data, forward, about, model.site(impedance.at).id)
            found += forward[:, dofs].T @ (frame @ pulled[:3]) + about[:, dofs].T @ (frame @ pulled[3:])
        return found

    def _carry(self) -> None:
        """Bear the weight of every link."""
        for link, mass in self.weights.items():
            where = self.bullet.getBasePositionAndOrientation(self.robot)[0]
            if link >= 0:
                where = self.bullet.getLinkState(self.robot, link)[0]
            lift = (-mass * self.model.opt.gravity).tolist()
            self.bullet.applyExternalForce(self.robot, link, lift, where, pybullet.WORLD_FRAME)

    def _joint_states(self, links: list[int]) -> tuple[np.ndarray, np.ndarray]:
        states = self.bullet.getJointStates(self.robot, links) if links else []
        return np.array([state[0] for state in states]), np.array([state[1] for state in states])

    def truth(self) -> np.ndarray:
        """(numbers,) all quantities, now."""
        parts: list[Any] = [] if self.mechanism.fixed else [*self.sensors.body(self.robot, self.sensors.inertial)]
        position, velocity = self._joint_states(self.joints)
        shown, start = [], 0
        for group in self.mechanism.groups:
            own = slice(start, start + len(group.joints))
            parts += [position[own], velocity[own]]
            if group.law != "none" or self.mechanism.impedances:
                shown.append(self.forces[own])
            start = own.stop
        for thing, inertial in self.objects:
            parts += self.sensors.body(thing, inertial)
        parts += [*shown, *self.sensors.contacts()]
        for k in range(len(frames(self.mechanism))):
            place, turn, linear, spin = self.sensors.frame(k)
            parts += [place, Rotation.from_matrix(turn).as_quat(), linear, spin]
        parts += [self.sensors.ranges(k) for k in range(len(self.mechanism.rays))]
        return np.concatenate(parts) if parts else np.empty(0)


PLANE = """<robot name="ground"><link name="ground"><inertial><mass value="0"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
<collision><geometry><plane normal="0 0 1"/></geometry></collision></link></robot>"""
