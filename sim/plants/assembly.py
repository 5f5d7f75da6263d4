"""A robot, ground and free objects as one MuJoCo model.

The robot's bodies come first, objects last, so that both are slices of MuJoCo's arrays. Drives are in
``robo_rl.sim.plants.drives``, what is sensed in ``robo_rl.sim.plants.sensing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.models import read_model, what_to_do
from robo_rl.sim.plants.base import fix_base, free_base
from robo_rl.sim.plants.drives import add_drives
from robo_rl.sim.plants.held_joints import hold_joints
from robo_rl.sim.plants.linkages import loose_joints
from robo_rl.sim.plants.own_contacts import overlapping
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.plants.replaced import keep_bodies
from robo_rl.sim.plants.sensing import add_sensors, frames
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import FreeObject, Mechanism
from robo_rl.sim.scenes.terrain import Ground, add_ground

GROUND = "ground"
"""Names of the ground's shapes begin so; the first has the friction of all."""

OUTSIDE = 1 << 30
"""Bit by which ground and objects touch shapes whose own bits, in their file, are for one another."""

WHOLE = 1.0
"""m, radius of a site that feels all contacts of its link."""

ORANGE = (0.90, 0.62, 0.0, 1.0)
"""Colour of objects in pictures, of Okabe and Ito 2008."""


def assemble(mechanism: Mechanism, physics: Physics, ground: Ground | None = None) -> mujoco.MjModel:
    """The robot on a ground, or on a plane. Raises CardError where model file and mechanism don't fit."""
    spec = read_model(mechanism.model)
    prepare(spec, mechanism)
    _set_options(spec, physics)
    bits = _set_contacts(spec, mechanism, physics)
    if ground is not None or mechanism.floor:
        _lay(spec, physics, ground, bits)
    add_drives(spec, mechanism, physics)
    add_sensors(spec, mechanism)
    for thing in mechanism.objects:
        for shape in add_object(spec, thing).geoms:  # an object's own surface holds in every contact
            shape.contype, shape.conaffinity, shape.priority = bits, 1, 2
            _set_surface(shape, physics)
    try:
        model = spec.compile()
        if physics.contacts in ("self", "model"):
            for pair in sorted(overlapping(model, mechanism)):
                first, second = (spec.bodies[body] for body in pair)
                spec.add_exclude(bodyname1=first.name, bodyname2=second.name)
            model = spec.compile()
    except CardError:
        raise
    except ValueError as error:
        said = " ".join(str(error).partition("The visual elements")[0].split())
        raise CardError(
            f"{mechanism.model}: MuJoCo can't compile it ({said}){what_to_do(said, mechanism.model)}"
        ) from None
    if mechanism.complete and (loose := loose_joints(model, mechanism)):
        raise CardError(
            f"{mechanism.model}: what no motor moves is {loose}; expected each in the card's joints, or in its table "
            "[held] with the position where it stays"
        )
    return model


def prepare(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Leave of a model file what the mechanism does not say itself, and let the base move or not."""
    model = mechanism.model
    spec.compiler.fusestatic = False  # a URDF's bodies keep their names
    _require_names(spec, mechanism)
    for group in mechanism.groups:
        for name in group.names:
            is_a = spec.joint(name).type.name.partition("_")[2].lower()
            expected = "slide" if group.slides else "hinge"
            if is_a != expected:
                raise CardError(
                    f"{model}: joint '{name}' is of type {is_a}; expected a {expected}. An arm's joint that slides has "
                    "slides = true in the table of its motor. One that stays where it is, such as a torso's, is fixed "
                    "in the model, or in the table [held] of an arm's card"
                )
    for point in mechanism.points:
        if spec.geom(point) is None and spec.site(point) is None:
            _name_shape(spec.body(point))
    hold_joints(spec, mechanism)
    keep_bodies(spec, mechanism)
    for tool in (*(part.at for part in mechanism.impedances), *(part.at for part in mechanism.frames)):
        if spec.site(tool) is None and spec.body(tool) is not None:
            spec.body(tool).add_site(name=tool)  # a URDF has no sites, its tools are links
    if mechanism.fixed:
        fix_base(spec, mechanism)
    else:
        free_base(spec, mechanism)


def _name_shape(body: Any) -> None:
    """Of a link that is a contact point, its one primitive shape that touches has its name; of others a site does."""
    shapes = [shape for shape in body.geoms if shape.contype or shape.conaffinity]
    if len(shapes) == 1 and shapes[0].type != mujoco.mjtGeom.mjGEOM_MESH:
        shapes[0].name = body.name
    else:
        body.add_site(name=body.name, size=[WHOLE] * 3)


def _require_names(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    bodies, shapes, sites = ([part.name for part in parts] for parts in (spec.bodies, spec.geoms, spec.sites))
    followers = [name for coupling in mechanism.couplings for name, _ in coupling.followers]
    references = [frame.relative_to for frame in frames(mechanism) if frame.relative_to]
    for what, wanted, found in (
        ("base", (mechanism.base,), bodies),
        ("joints", (*mechanism.joint_names, *followers), [joint.name for joint in spec.joints]),
        ("held joints", [name for name, _ in mechanism.held], [joint.name for joint in spec.joints]),
        *((f"points '{contact.name}'", contact.at, shapes + sites + bodies) for contact in mechanism.contacts),
        ("tools", [impedance.at for impedance in mechanism.impedances], sites + bodies),
        ("frames", [frame.at for frame in mechanism.frames], sites + bodies + shapes),
        ("rays", [rays.at for rays in mechanism.rays], sites + bodies),
        ("cameras", [camera.at for camera in mechanism.cameras], sites + bodies),
        ("frames of reference", references, bodies),
    ):
        missing = sorted(set(wanted) - set(found))
        if missing:
            named = [name for name in found if name] or "none with a name"
            how = (
                ""
                if what[:6] != "points"
                else "; expected shapes (<geom name=...> of MJCF, <collision name=...> of a URDF), sites, or links"
            )
            how += what_to_do("", mechanism.model)
            raise CardError(f"{mechanism.model}: {missing} of the robot's {what} are not in it; it has {named}{how}")


def _set_options(spec: mujoco.MjSpec, physics: Physics) -> None:
    option = spec.option
    option.timestep = physics.timestep
    option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{physics.integrator.upper()}")
    option.solver = getattr(mujoco.mjtSolver, f"mjSOL_{physics.solver.upper()}")
    option.cone = getattr(mujoco.mjtCone, f"mjCONE_{physics.cone.upper()}")
    option.jacobian = getattr(mujoco.mjtJacobian, f"mjJAC_{physics.jacobian.upper()}")
    option.tolerance = physics.tolerance
    option.impratio = physics.impratio
    option.noslip_iterations = physics.noslip
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a state that diverged must be seen
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND  # one robot is one island; looking for more takes time
    if physics.solver == "newton":  # it is as soon there without, and need not find out which start is the better one
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    spec.compiler.discardvisual = True  # no step moves shapes that touch nothing


def _set_contacts(spec: mujoco.MjSpec, mechanism: Mechanism, physics: Physics) -> int:
    """Which shapes of the model file can touch what. All that does not move is touched by all that does.

    Returns the contype of ground and objects.
    """
    bits, points = 1, set(mechanism.points)
    for body in spec.bodies:
        own = [shape for shape in body.geoms if shape.contype or shape.conaffinity] or list(body.geoms)
        felt = own if any(site.name in points for site in body.sites) else []
        for shape in body.geoms:
            point = shape.name in points or shape in felt
            if physics.contacts != "model":
                touches = point or physics.contacts != "points"
                shape.contype, shape.conaffinity = int(physics.contacts == "self"), int(touches)
            elif point:
                shape.conaffinity |= 1
            elif (masks := shape.contype | shape.conaffinity) and not masks & 1 and body != spec.worldbody:
                shape.conaffinity |= OUTSIDE
                bits = 1 | OUTSIDE
            _set_surface(shape, physics)
    if physics.contacts != "model":
        for pair in list(spec.pairs):
            spec.delete(pair)  # they touch whatever their shapes' own bits say
        for body in _surroundings(spec, mechanism):
            for shape in body.geoms:
                shape.contype, shape.conaffinity = 1, 0
    return bits


def _surroundings(spec: mujoco.MjSpec, mechanism: Mechanism) -> Iterable[Any]:
    """The world, and bodies on it that can't move and are not the robot's."""
    yield spec.worldbody
    for body in spec.worldbody.bodies:
        tree = [body, *body.find_all("body")]
        if all(not part.joints and part.name != mechanism.base for part in tree):
            yield from tree


def _set_surface(shape: Any, physics: Physics) -> None:
    if physics.condim is not None:
        shape.condim = physics.condim
    if physics.solref is not None:
        shape.solref = physics.solref
    if physics.solimp is not None:
        shape.solimp = physics.solimp


def _lay(spec: mujoco.MjSpec, physics: Physics, ground: Ground | None, bits: int) -> None:
    """The ground, named so that it can be found."""
    for below in add_ground(spec, ground):
        below.contype, below.conaffinity, below.condim = bits, 0, 3
        below.priority = 1  # its friction holds in every contact
        _set_surface(below, physics)


def add_object(spec: mujoco.MjSpec, thing: FreeObject) -> mujoco.MjsBody:
    """A free body, its shapes as they come."""
    x, y, z, w = thing.orientation
    pose = {"pos": thing.position, "quat": [w, x, y, z]}
    if thing.mjcf is not None:
        own = _only_body(thing)  # of a document that lives as long as this
        body = spec.worldbody.add_frame(**pose).attach_body(own.worldbody.bodies[0], f"{thing.name} ", "")
        body.name = thing.name
        for joint in body.joints:
            spec.delete(joint)
    else:
        body = spec.worldbody.add_body(name=thing.name, **pose)
        size = np.zeros(3)
        size[: len(thing.size)] = thing.size
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{thing.shape.upper()}")
        body.add_geom(name=thing.name, type=kind, size=size, friction=thing.friction, condim=3, rgba=ORANGE)
        body.mass, body.inertia = thing.mass, thing.mass * inertia_per_mass(thing.shape, size[None])[0]
        body.ipos, body.iquat, body.explicitinertial = np.zeros(3), [1, 0, 0, 0], True
    body.add_freejoint()
    return body


def _only_body(thing: FreeObject) -> mujoco.MjSpec:
    told = thing.mjcf
    where = f"{told}: object '{thing.name}'" if isinstance(told, Path) else f"object '{thing.name}'"
    read = mujoco.MjSpec.from_file if isinstance(told, Path) else mujoco.MjSpec.from_string
    try:
        own = read(str(told))
    except ValueError as error:
        raise CardError(f"{where}: MuJoCo can't read it ({error}); expected MJCF") from None
    if isinstance(told, Path):
        for mesh in own.meshes:
            file = told.parent.absolute() / own.meshdir / mesh.file
            if not file.is_file():
                raise CardError(f"{where}: {mesh.file} is missing; expected a mesh at {file}")
            mesh.file = str(file)
    if len(own.worldbody.bodies) != 1 or own.worldbody.bodies[0].bodies:
        raise CardError(f"{where}: expected MJCF of one body without others on it")
    return own


def inertia_per_mass(shape: str, size: Any) -> Any:
    """(n, 3) m², principal moments over mass, of full shapes of ``size`` (n, 3) m (numpy or torch)."""
    a, b, c = size[:, 0], size[:, 1], size[:, 2]
    if shape == "box":
        moments = (b * b + c * c) / 3, (a * a + c * c) / 3, (a * a + b * b) / 3
    elif shape == "sphere":
        moments = (0.4 * a * a,) * 3
    else:
        about = 0.5 * a * a
        across = 0.25 * a * a + b * b / 3
        if shape == "capsule":  # a cylinder, and a sphere cut in two
            ball = (4 / 3) * a / (2 * b + (4 / 3) * a)
            about = (1 - ball) * about + ball * 0.4 * a * a
            across = (1 - ball) * across + ball * (0.4 * a * a + b * b + 0.75 * a * b)
        moments = (across, across, about)
    return _columns(moments)


def _columns(parts: tuple[Any, ...]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.stack(parts, 1)
    import torch

    return torch.stack(parts, 1)


def lowest(model: mujoco.MjModel, data: mujoco.MjData, shape: int) -> float:
    """Height (m, world) of the lowest point of a shape, exact but for ellipsoids' and height fields' bounding boxes."""
    place, turn = data.geom_xpos[shape], data.geom_xmat[shape].reshape(3, 3)
    size, down = model.geom_size[shape], np.abs(turn[2])
    match mujoco.mjtGeom(model.geom_type[shape]):
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return float(place[2] - size[0])
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return float(place[2] - size[0] - size[1] * down[2])
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return float(place[2] - size[0] * math.sqrt(max(0.0, 1 - down[2] ** 2)) - size[1] * down[2])
        case mujoco.mjtGeom.mjGEOM_MESH:
            mesh = model.geom_dataid[shape]
            first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
            return float(place[2] + (model.mesh_vert[first : first + count] @ turn[2]).min())
        case _:
            middle, half = model.geom_aabb[shape, :3], model.geom_aabb[shape, 3:]
            return float(place[2] + turn[2] @ middle - down @ half)
