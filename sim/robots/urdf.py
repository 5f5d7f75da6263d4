"""A robot as URDF, from MuJoCo's model of it: for ROS, for Bullet, for whatever reads nothing else.

A URDF has one joint above every link, at the link's origin; MuJoCo has any number of joints anywhere in a body. Here

- a body without joints hangs on a fixed joint; a body with several has a massless link (its name and a number) below
  each but the last;
- where a joint is not at the body's origin, the link below it is (named so, too), and the body is fixed to that;
- where a joint's zero is not the pose that the model file shows, the frame below it is turned, or moved, by as much;
- one body that follows another's joint (an equality of joints, linear) gets a <mimic>.

A robot whose base is fixed hangs on the link "world".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np

from robo_rl.files.escaping import xml_text

WORLD = "world"
LIMITLESS = 1e6
"""m, for slides without stops: a URDF must have some."""

TYPES = {mujoco.mjtJoint.mjJNT_HINGE: "revolute", mujoco.mjtJoint.mjJNT_SLIDE: "prismatic"}

INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")

Pose = tuple[np.ndarray, np.ndarray]
"""Position (3,) m and rotation matrix (3, 3)."""


@dataclass(frozen=True)
class Style:
    """How to write what readers differ in."""

    digits: int | None = None
    """Of numbers; None for as many as there are, so that they are read as the very same."""
    capsules: bool = True
    """Whether the reader knows <capsule>. ROS doesn't: a cylinder of the same radius and length stands for one."""
    visual: bool = True
    """Whether shapes are to be seen too."""
    zeros: bool = False
    """Whether to say that a massless link has no mass: Bullet would make one up."""
    mesh: Callable[[Path], str] | None = None
    """From a mesh's file to how the reader finds it; None: a robot with meshes is refused."""


def write_urdf(
    model: mujoco.MjModel, name: str, base: str, limits: Mapping[str, tuple[float, float]] | None = None,
    points: Sequence[str] = (), style: Style | None = None,
) -> str:  # fmt: skip
    """The robot that ``base`` carries, or that hangs on the world with it, called ``name``.

    ``limits``: effort (N m, N) and velocity (rad/s, m/s) by joint, where known. ``points`` are shapes and sites that
    get links of their own. Raises ValueError, in a sentence, for what a URDF can't have.
    """
    return _Writer(model, name, limits or {}, points, style or Style()).write(base)


class _Writer:
    """One file in the making."""

    def __init__(
        self, model: mujoco.MjModel, name: str, limits: Mapping[str, tuple[float, float]], points: Sequence[str],
        style: Style,
    ) -> None:  # fmt: skip
        self.model, self.limits, self.points, self.style = model, limits, set(points), style
        self.robot = Xml.Element("robot", name=name)

    def write(self, base: str) -> str:
        model = self.model
        number = model.body(base).id
        if _is_free(model, number):
            self._link(number)
        else:
            self._massless(Xml.SubElement(self.robot, "link", name=WORLD))
            for body in range(1, model.nbody):
                if model.body_parentid[body] == 0 and not _is_free(model, body) and self._belongs(body, number):
                    self._body(body, WORLD)
            return self._text()
        for body in _children(model, number):
            self._body(body, self._name(number))
        return self._text()

    def _belongs(self, body: int, base: int) -> bool:
        """Whether a body on the world is the robot's: it is its base, or moves."""
        tree = [k for k in range(body, self.model.nbody) if self.model.body_rootid[k] == body]
        return base in tree or any(self.model.body_jntnum[k] for k in tree)

    def _text(self) -> str:
        Xml.indent(self.robot)  # Bullet breaks lines after 8,191 characters, in the middle of a number if it has to
        return f'<?xml version="1.0"?>\n{Xml.tostring(self.robot, encoding="unicode")}\n'

    def _name(self, body: int) -> str:
        return xml_text(self.model.body(body).name) or f"body{body}"

    def _body(self, body: int, parent: str) -> None:
        """A body, all joints between it and its parent, and all bodies on it."""
        model, name = self.model, self._name(body)
        joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        at: Pose = model.body_pos[body], _matrix(model.body_quat[body])
        here = np.zeros(3)  # of the link above, in the body's frame
        for k, joint in enumerate(joints):
            anchor = model.jnt_pos[joint]
            last = joint == joints[-1] and not anchor.any()
            child = name if last else f"{name}_{k + 1}"
            self._moving_joint(joint, parent, child, _shifted(at, anchor - here))
            if not last:
                self._massless(Xml.SubElement(self.robot, "link", name=child))
            parent, here, at = child, anchor, (np.zeros(3), np.eye(3))
        if parent != name:
            self._fixed_joint(f"{name}_fixed", parent, name, _shifted(at, -here))
        self._link(body)
        for child_body in _children(model, body):
            self._body(child_body, name)

    def _link(self, body: int) -> None:
        model, name = self.model, self._name(body)
        link = Xml.SubElement(self.robot, "link", name=name)
        self._inertial(link, body)
        for shape in range(model.ngeom):
            if model.geom_bodyid[shape] == body:
                pose = model.geom_pos[shape], _matrix(model.geom_quat[shape])
                own = model.geom(shape).name
                if own and own in self.points:
                    self._fixed_joint(f"{own}_joint", name, own, pose)
                    self._shape(Xml.SubElement(self.robot, "link", name=own), shape, (np.zeros(3), np.eye(3)))
                else:
                    self._shape(link, shape, pose)
        for site in range(model.nsite):
            own = model.site(site).name
            if model.site_bodyid[site] == body and own in self.points:
                pose = model.site_pos[site], _matrix(model.site_quat[site])
                self._fixed_joint(f"{own}_joint", name, own, pose)
                Xml.SubElement(self.robot, "link", name=own)

    def _inertial(self, link: Xml.Element, body: int) -> None:
        """Mass, and inertia about the centre of mass along the link's axes."""
        model = self.model
        if not model.body_mass[body]:
            self._massless(link)
            return
        part = Xml.SubElement(link, "inertial")
        self._origin(part, (model.body_ipos[body], np.eye(3)))
        Xml.SubElement(part, "mass", value=self._number(model.body_mass[body]))
        axes = _matrix(model.body_iquat[body])
        full = (axes * model.body_inertia[body]) @ axes.T
        entries = zip(INERTIA, (full[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))), strict=True)
        Xml.SubElement(part, "inertia", {name: self._number(value) for name, value in entries})

    def _massless(self, link: Xml.Element) -> None:
        if self.style.zeros:
            part = Xml.SubElement(link, "inertial")
            Xml.SubElement(part, "mass", value="0")
            Xml.SubElement(part, "inertia", dict.fromkeys(INERTIA, "0"))

    def _shape(self, link: Xml.Element, shape: int, pose: Pose) -> None:
        model = self.model
        touches = bool(model.geom_contype[shape] or model.geom_conaffinity[shape])
        kind, attributes = self._geometry(shape)
        if kind == "mesh":
            pose = _of_file(model, int(model.geom_dataid[shape]), pose)
        for part in ("visual",) * self.style.visual + ("collision",) * touches:
            entry = Xml.SubElement(link, part)
            self._origin(entry, pose)
            Xml.SubElement(Xml.SubElement(entry, "geometry"), kind, attributes)

    def _geometry(self, shape: int) -> tuple[str, dict[str, str]]:
        model, number, numbers = self.model, self._number, self._numbers
        size, name = model.geom_size[shape], model.geom(shape).name
        match mujoco.mjtGeom(model.geom_type[shape]):
            case mujoco.mjtGeom.mjGEOM_BOX:
                return "box", {"size": numbers(2 * size)}
            case mujoco.mjtGeom.mjGEOM_SPHERE:
                return "sphere", {"radius": number(size[0])}
            case mujoco.mjtGeom.mjGEOM_CYLINDER:
                return "cylinder", {"radius": number(size[0]), "length": number(2 * size[1])}
            case mujoco.mjtGeom.mjGEOM_CAPSULE if self.style.capsules:
                return "capsule", {"radius": number(size[0]), "length": number(2 * size[1])}
            case mujoco.mjtGeom.mjGEOM_CAPSULE:
                return "cylinder", {"radius": number(size[0]), "length": number(2 * (size[1] + size[0]))}
            case mujoco.mjtGeom.mjGEOM_MESH if self.style.mesh is not None:
                mesh = int(model.geom_dataid[shape])
                file = self.style.mesh(_file(model, mesh))
                return "mesh", {"filename": file, "scale": numbers(model.mesh_scale[mesh])}
            case mujoco.mjtGeom.mjGEOM_MESH:
                raise ValueError(f"shape '{name}' is a mesh, and it is not said how the reader finds its file")
            case other:
                is_a = other.name[7:].lower()
                raise ValueError(f"shape '{name}' is a {is_a}; expected a box, sphere, cylinder, capsule or mesh")

    def _moving_joint(self, joint: int, parent: str, child: str, pose: Pose) -> None:
        model, name = self.model, self._joint_name(joint)
        kind = mujoco.mjtJoint(model.jnt_type[joint])
        if kind not in TYPES:
            is_a = kind.name[6:].lower()
            raise ValueError(f"joint '{name}' is of type {is_a}; a URDF has hinges and slides only")
        axis, limited = model.jnt_axis[joint], bool(model.jnt_limited[joint])
        zero = model.qpos0[model.jnt_qposadr[joint]]
        if kind == mujoco.mjtJoint.mjJNT_SLIDE:
            pose = _shifted(pose, -zero * axis)
        else:
            pose = pose[0], pose[1] @ _about(axis, -zero)
        written = TYPES[kind] if limited or kind == mujoco.mjtJoint.mjJNT_SLIDE else "continuous"
        part = self._joint(name, written, parent, child, pose)
        Xml.SubElement(part, "axis", xyz=self._numbers(axis))
        effort, velocity = self.limits.get(name, (LIMITLESS, LIMITLESS))
        bounds = {"effort": self._number(effort), "velocity": self._number(velocity)}
        if written != "continuous":
            lower, upper = model.jnt_range[joint] if limited else (-LIMITLESS, LIMITLESS)
            bounds = {"lower": self._number(lower), "upper": self._number(upper), **bounds}
        Xml.SubElement(part, "limit", bounds)
        if model.dof_damping[model.jnt_dofadr[joint]] or model.dof_frictionloss[model.jnt_dofadr[joint]]:
            losses = model.dof_damping[model.jnt_dofadr[joint]], model.dof_frictionloss[model.jnt_dofadr[joint]]
            Xml.SubElement(part, "dynamics", damping=self._number(losses[0]), friction=self._number(losses[1]))
        self._mimic(part, joint)

    def _mimic(self, part: Xml.Element, joint: int) -> None:
        model = self.model
        for k in range(model.neq):
            if model.eq_type[k] != mujoco.mjtEq.mjEQ_JOINT or model.eq_obj1id[k] != joint or model.eq_obj2id[k] < 0:
                continue
            offset, ratio, *curve = model.eq_data[k, :5]
            if any(curve):
                raise ValueError(f"joint '{self._joint_name(joint)}' follows another in a curve; a URDF has lines only")
            leader = int(model.eq_obj2id[k])
            mine, its = (model.qpos0[model.jnt_qposadr[j]] for j in (joint, leader))
            told = {"multiplier": self._number(ratio), "offset": self._number(mine + offset - ratio * its)}
            Xml.SubElement(part, "mimic", {"joint": self._joint_name(leader), **told})

    def _joint_name(self, joint: int) -> str:
        return xml_text(self.model.joint(joint).name) or f"joint{joint}"

    def _fixed_joint(self, name: str, parent: str, child: str, pose: Pose) -> None:
        self._joint(name, "fixed", parent, child, pose)

    def _joint(self, name: str, kind: str, parent: str, child: str, pose: Pose) -> Xml.Element:
        part = Xml.SubElement(self.robot, "joint", name=name, type=kind)
        self._origin(part, pose)
        Xml.SubElement(part, "parent", link=parent)
        Xml.SubElement(part, "child", link=child)
        return part

    def _origin(self, part: Xml.Element, pose: Pose) -> None:
        Xml.SubElement(part, "origin", xyz=self._numbers(pose[0]), rpy=self._numbers(roll_pitch_yaw(pose[1])))

    def _number(self, value: Any) -> str:
        if self.style.digits is None:
            return repr(float(value))
        return f"{float(value):.{self.style.digits}g}" if abs(value) > 1e-12 else "0"

    def _numbers(self, values: Any) -> str:
        return " ".join(map(self._number, values))


def _is_free(model: mujoco.MjModel, body: int) -> bool:
    first = model.body_jntadr[body]
    return bool(first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE)


def _children(model: mujoco.MjModel, body: int) -> list[int]:
    return [k for k in range(1, model.nbody) if model.body_parentid[k] == body and k != body]


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    """Of a quaternion w, x, y, z."""
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, quaternion)
    return found.reshape(3, 3)


def _about(axis: np.ndarray, angle: float) -> np.ndarray:
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, axis, angle)
    return _matrix(turn)


def _shifted(pose: Pose, way: np.ndarray) -> Pose:
    """A pose moved by ``way`` in its own frame."""
    return pose[0] + pose[1] @ way, pose[1]


def _of_file(model: mujoco.MjModel, mesh: int, pose: Pose) -> Pose:
    """The pose of a mesh as its file has it, of one that MuJoCo has moved to its centre and principal axes."""
    turn = pose[1] @ _matrix(model.mesh_quat[mesh]).T
    return pose[0] - turn @ model.mesh_pos[mesh], turn


def _file(model: mujoco.MjModel, mesh: int) -> Path:
    start = int(model.mesh_pathadr[mesh])
    if start < 0:
        raise ValueError(f"mesh '{model.mesh(mesh).name}' is of no file; a URDF refers to meshes by their files")
    return Path(model.paths[start:].partition(b"\0")[0].decode())


def roll_pitch_yaw(turn: np.ndarray) -> np.ndarray:
    """(3,) rad, about fixed axes, of a rotation matrix; exact where pitch is a right angle too."""
    roll = math.atan2(turn[2, 1], turn[2, 2])
    sine, cosine = math.sin(roll), math.cos(roll)
    pitch = math.atan2(-turn[2, 0], math.hypot(turn[2, 1], turn[2, 2]))
    return np.array(
        [roll, pitch, math.atan2(sine * turn[0, 2] - cosine * turn[0, 1], cosine * turn[1, 1] - sine * turn[1, 2])]
    )
