"""What there is to know about a simulated robot: quantities by name, and where MuJoCo has each number.

A plant's truth is one block of numbers, (numbers, n): first what the state has (pose of a free base, joints, objects),
then the torques of the drives, then what sensors of the model have (contact points, frames), then rays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Frame, Mechanism

Shapes = dict[str, tuple[int, ...]]

POSE = {"position": 3, "orientation": 4, "linear_velocity": 3, "angular_velocity": 3}
"""Parts of a pose and its change, and their numbers of elements."""

CONTACT = ("FRAMEPOS", "FRAMELINVEL", "TOUCH")
"""MuJoCo's sensors of a contact point."""

FRAME = ("FRAMEPOS", "FRAMEQUAT", "FRAMELINVEL", "FRAMEANGVEL")
"""MuJoCo's sensors of a frame."""

MARGIN = 5e-4
"""m, by which the site that feels the contacts of a shape is larger than it: edges are in."""

W_LAST = np.array([1, 2, 3, 0])
"""From MuJoCo's quaternions, w first, to x, y, z, w."""


class Quantities(NamedTuple):
    """Names and shapes of what a plant tells of one robot, in the order of its block."""

    state: Shapes
    """Position (m, world) and orientation (quaternion x, y, z, w, to world) of a free base and of objects, their linear
    velocity (m/s, world) and angular velocity (rad/s, own frame); position and velocity of each group of joints."""
    torque: Shapes
    """N m or N, of each group's drives."""
    sensed: Shapes
    """Of contact points and frames; see ``ContactPoints``, ``Frame``. Of the newest state where the mechanism has
    frames, impedances, rays or cameras, otherwise of one physics step earlier, as the torque; contact forces always of
    that."""
    rays: Shapes
    """m."""

    @property
    def all(self) -> Shapes:
        return {**self.state, **self.torque, **self.sensed, **self.rays}


def quantities(mechanism: Mechanism) -> Quantities:
    """What a plant tells of the robot."""
    free = {} if mechanism.fixed else {name: (size,) for name, size in POSE.items()}
    state: Shapes = dict(free)
    for group in mechanism.groups:
        state |= {f"{group.name}_position": (len(group.joints),), f"{group.name}_velocity": (len(group.joints),)}
    for thing in mechanism.objects:
        state |= {f"{thing.name}_{name}": (size,) for name, size in POSE.items()}
    torque: Shapes = {
        group.effort: (len(group.joints),) for group in mechanism.groups if group.law != "none" or mechanism.impedances
    }
    sensed: Shapes = {}
    for contact in mechanism.contacts:
        count = len(contact.at)
        sensed |= {f"{contact.name}_position": (3 * count,), f"{contact.name}_velocity": (3 * count,)}
        sensed |= {f"{contact.name}_force": (count,)}
    for frame in frames(mechanism):
        sensed |= {f"{frame.name}_{name}": (size,) for name, size in POSE.items()}
    return Quantities(state, torque, sensed, {rays.name: (len(rays.directions),) for rays in mechanism.rays})


def frames(mechanism: Mechanism) -> list[Frame]:
    """Those that are asked for, then those of the impedances."""
    own = [Frame(part.name, part.at, part.relative_to or mechanism.base) for part in mechanism.impedances]
    return [*mechanism.frames, *own]


def is_newest(mechanism: Mechanism) -> bool:
    """Whether contact points and frames are those of the newest state, not of one physics step before."""
    return bool(mechanism.frames or mechanism.impedances or mechanism.rays or mechanism.cameras)


def add_sensors(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Sensors of contact points and frames, and sites from which rays start."""
    for point in mechanism.points:
        _feel(spec, point)
    for frame in frames(mechanism):
        kind = _kind_of(spec, frame.at)
        for sensor_type in FRAME:
            sensor = _add_sensor(spec, frame.name, sensor_type, kind, frame.at)
            if frame.relative_to:
                sensor.reftype, sensor.refname = mujoco.mjtObj.mjOBJ_XBODY, frame.relative_to
    for rays in mechanism.rays:
        origin = f"{rays.name} origin"
        if spec.site(rays.at) is not None:
            site = spec.site(rays.at)
            start = site.parent.add_site(name=origin, pos=site.pos, quat=site.quat)
            start.alt = site.alt
            _put_into_frame(start, site)
        else:
            spec.body(rays.at).add_site(name=origin)


def _kind_of(spec: mujoco.MjSpec, name: str) -> mujoco.mjtObj:
    """Whether a name is a site's, a body's or a shape's, asked in this order."""
    if spec.site(name) is not None:
        return mujoco.mjtObj.mjOBJ_SITE
    return mujoco.mjtObj.mjOBJ_XBODY if spec.body(name) is not None else mujoco.mjtObj.mjOBJ_GEOM


def _add_sensor(spec: mujoco.MjSpec, name: str, kind: str, type_of_place: mujoco.mjtObj, place: str) -> Any:
    sensor = spec.add_sensor(name=f"{name} {kind}", type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"))
    sensor.objtype, sensor.objname = type_of_place, place
    return sensor


def _feel(spec: mujoco.MjSpec, point: str) -> None:
    """Place, velocity and load of a contact point."""
    shape, touch = spec.geom(point), point
    if shape is not None:
        touch = f"{point} touch"
        sphere = shape.type == mujoco.mjtGeom.mjGEOM_SPHERE
        size = [1.5 * shape.size[0]] * 3 if sphere else shape.size + MARGIN  # holds all points where it can touch
        if shape.type == mujoco.mjtGeom.mjGEOM_MESH:
            raise CardError(f"contact point '{point}' is a mesh; expected a primitive shape, or a site around it")
        site = shape.parent.add_site(name=touch, pos=shape.pos, size=size)
        if not sphere:
            site.type, site.quat, site.fromto = shape.type, shape.quat, shape.fromto
            site.alt = shape.alt
        _put_into_frame(site, shape)
    place = mujoco.mjtObj.mjOBJ_GEOM if shape is not None else mujoco.mjtObj.mjOBJ_SITE
    for kind in CONTACT[:2]:
        _add_sensor(spec, point, kind, place, point)
    _add_sensor(spec, point, CONTACT[2], mujoco.mjtObj.mjOBJ_SITE, touch)


def _put_into_frame(site: Any, place: Any) -> None:
    """An MJCF's <frame> moves what is in it: a site at the same place is in the same one."""
    if place.frame is not None:
        site.set_frame(place.frame)


def sensor_columns(model: mujoco.MjModel, mechanism: Mechanism) -> np.ndarray:
    """(numbers,) indices in sensordata of ``Quantities.sensed``."""

    def columns(name: str, kind: str) -> np.ndarray:
        sensor = model.sensor(f"{name} {kind}")
        found = np.arange(sensor.adr[0], sensor.adr[0] + sensor.dim[0])
        return found[W_LAST] if kind == "FRAMEQUAT" else found

    parts = [columns(p, kind) for contact in mechanism.contacts for kind in CONTACT for p in contact.at]
    parts += [columns(frame.name, kind) for frame in frames(mechanism) for kind in FRAME]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
