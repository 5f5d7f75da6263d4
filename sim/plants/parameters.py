"""Physical parameters of simulated robots by name, and the fields of MuJoCo's model that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.plants.assembly import inertia_per_mass
from robo_rl.sim.plants.indices import ModelIndices
from robo_rl.sim.robots.mechanism import Mechanism


class ArticulatedParameters(NamedTuple):
    """Physical parameters, (n, …) where they differ between robots and (1, …) where they don't.

    Bodies and dry friction are in the model's order, drives, objects and impedances in the mechanism's. Of slides, m
    stands for rad and N for N m.
    """

    mass: Tensor
    """(n, bodies) kg."""
    center_of_mass: Tensor
    """(n, bodies, 3) m, in each body's frame."""
    ground_friction: Tensor
    """(n,) coefficient between contact points and ground."""
    joint_friction: Tensor
    """(n, joints) N m, dry friction."""
    armature: Tensor
    """(n, J) kg m², inertia of rotors as seen by the joints."""
    stiffness: Tensor
    """(n, J) N m/rad, gain of the position control."""
    damping: Tensor
    """(n, J) N m s/rad, gain of the position or velocity control."""
    resistance: Tensor
    """(n, J) Ω, of an equivalent motor with a constant of 1 N m/A; the torque at standstill is inverse to it."""
    command_delay: Tensor
    """(n, J) s from a target's sending to its effect; at most ``LONGEST_DELAY``, whole physics steps."""
    force: Tensor
    """(n, 3) N, on the base, world."""
    torque: Tensor
    """(n, 3) N m, on the base, world."""
    object_mass: Tensor
    """(n, B) kg; the inertia follows."""
    object_size: Tensor
    """(n, B, 3) m, as in ``FreeObject``; without effect on objects given as MJCF."""
    object_friction: Tensor
    """(n, B) coefficient of sliding on whatever the object touches."""
    impedance_stiffness: Tensor
    """(n, T, 2) N/m and N m/rad."""
    impedance_damping: Tensor
    """(n, T, 2) N s/m and N m s/rad."""
    impedance_delay: Tensor
    """(n, T) s from a target's sending to its effect; at most ``LONGEST_DELAY``, whole physics steps."""
    camera_mount: Tensor
    """(n, C, 6) m and rad: by how much cameras are elsewhere, and turned (axis times angle), in their own frames."""


FIELDS = {
    "mass": "body_mass",
    "center_of_mass": "body_ipos",
    "ground_friction": "geom_friction",
    "joint_friction": "dof_frictionloss",
    "armature": "actuator_armature",
    "stiffness": "actuator_gainprm",
    "damping": "actuator_gainprm",
    "resistance": "actuator_gainprm",
}
"""Fields of MuJoCo's model of which parameters are views; force and torque are inputs."""

WRITTEN = {
    "command_delay": ("actuator_delay",),
    "object_mass": ("body_mass", "body_inertia"),
    "object_size": ("body_inertia", "geom_size", "geom_rbound", "geom_aabb"),
    "object_friction": ("geom_friction",),
    "impedance_damping": ("actuator_biasprm",),
}
"""Fields that follow from parameters which are not views: ``write_fields`` does it."""

SLACK = 1e-6
"""s, by which delays are written short. MuJoCo adds its time up in doubles and gives what was told at or before the
time less the delay: a delay of exactly two steps of 10 ms would be three from 32 s to 64 s."""


def view(name: str, field: Any, indices: ModelIndices, drives: int) -> Tensor:
    """What the parameters show of the field ``FIELDS[name]`` of MuJoCo's model, (n, …) with memory shared."""
    value = torch.as_tensor(field)
    if FIELDS[name] == "actuator_gainprm":
        return value[:, :drives, {"resistance": 0, "stiffness": 4, "damping": 6}[name]]
    if name == "ground_friction":
        return value[:, indices.ground[0], 0]
    if name == "joint_friction":
        return value[:, indices.dofs]
    return value[:, indices.bodies] if name in ("mass", "center_of_mass") else value[:, :drives]


def spread_friction(field: Any, indices: ModelIndices, ids: Any) -> None:
    """Give all of the ground the friction of its first shape, in the worlds ``ids`` (m,) of ``geom_friction``."""
    if not len(indices.ground):
        return
    first, *others = indices.ground.tolist()
    friction = torch.as_tensor(field)[:, :, 0]
    friction[ids[:, None], torch.tensor(others, dtype=torch.long, device=ids.device)] = friction[ids, first][:, None]


def nominal_parameters(model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices) -> ArticulatedParameters:
    """Those of the robot's card, (1, …); no push, no delay."""
    drives = len(mechanism.driven)
    fields = {name: field for name, field in FIELDS.items() if name != "ground_friction" or len(indices.ground)}
    values = {
        name: view(name, np.array(getattr(model, field))[None], indices, drives) for name, field in fields.items()
    }
    values.setdefault("ground_friction", torch.zeros(1, dtype=torch.float64))
    nothing = torch.zeros(1, 3, dtype=torch.float64)
    delay = torch.zeros(1, drives, dtype=torch.float64)
    return ArticulatedParameters(
        **values, command_delay=delay, force=nothing, torque=nothing.clone(), **_own(model, mechanism, indices)
    )


def _own(model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices) -> dict[str, Tensor]:
    """Parameters of objects, impedances and cameras, (1, …)."""
    objects, count = indices.objects, len(mechanism.impedances)
    first = model.body_geomadr[objects]
    gains = [[[*part.stiffness], [*part.damping]] for part in mechanism.impedances]
    stiffness, damping = torch.tensor(gains, dtype=torch.float64).reshape(count, 2, 2).unbind(1)
    return {
        "object_mass": torch.from_numpy(model.body_mass[objects])[None],
        "object_size": torch.from_numpy(model.geom_size[first])[None],
        "object_friction": torch.from_numpy(model.geom_friction[first, 0])[None],
        "impedance_stiffness": stiffness.clone()[None],
        "impedance_damping": damping.clone()[None],
        "impedance_delay": torch.zeros(1, count, dtype=torch.float64),
        "camera_mount": torch.zeros(1, len(mechanism.cameras), 6, dtype=torch.float64),
    }


def write_fields(
    fields: Mapping[str, Tensor], parameters: ArticulatedParameters, model: mujoco.MjModel, mechanism: Mechanism,
    indices: ModelIndices, ids: Tensor,
) -> None:  # fmt: skip
    """Write what follows from the parameters of ``WRITTEN`` into those ``fields`` (n, …) there are, worlds ``ids``."""
    for k, (thing, body) in enumerate(zip(mechanism.objects, indices.objects.tolist(), strict=True)):
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        shapes = slice(first, first + count)
        mass, size = (_of(value, ids)[:, k] for value in (parameters.object_mass, parameters.object_size))
        if "geom_friction" in fields:
            fields["geom_friction"][ids, shapes, 0] = _of(parameters.object_friction, ids)[:, k : k + 1].to(
                fields["geom_friction"]
            )
        if "body_mass" in fields:
            fields["body_mass"][ids, body] = mass.to(fields["body_mass"])
        if "body_inertia" in fields:
            one = inertia_per_mass(thing.shape, size)
            if thing.mjcf is not None:
                one = torch.from_numpy(model.body_inertia[body] / model.body_mass[body]).to(size)
            fields["body_inertia"][ids, body] = (mass[:, None] * one).to(fields["body_inertia"])
        if "geom_size" in fields and thing.mjcf is None:
            bounds, reach = _bounds(thing.shape, size)
            for name, value in (("geom_size", size), ("geom_rbound", reach)):
                fields[name][ids, first] = value.to(fields[name])
            extent = fields["geom_aabb"].reshape(*fields["geom_aabb"].shape[:2], 6)
            extent[ids, first, 3:] = bounds.to(extent)
    if "actuator_delay" in fields:
        delay = (_of(parameters.command_delay, ids) - SLACK).clamp(min=0.0)
        fields["actuator_delay"][ids, : delay.shape[1]] = delay.to(fields["actuator_delay"])
    if "body_gravcomp" in fields:  # a weightless robot's controller carries what its links weigh by the card, no more
        bodies, mass = indices.bodies, _of(parameters.mass, ids)
        carried = torch.from_numpy(model.body_mass[bodies] * model.body_gravcomp[bodies]).to(mass)
        part = torch.where(mass > 0.0, carried / mass, 0.0)  # frames of a URDF have no mass
        fields["body_gravcomp"][ids, bodies] = part.to(fields["body_gravcomp"])
    if "actuator_biasprm" in fields:
        damping = _of(parameters.impedance_damping, ids).repeat_interleave(3, 2).flatten(1)  # (m, 6 T)
        start = len(mechanism.driven)
        fields["actuator_biasprm"][ids, start:, 2] = -damping.to(fields["actuator_biasprm"])


def _of(value: Tensor, ids: Tensor) -> Tensor:
    return value[ids] if len(value) > 1 else value.expand(len(ids), *value.shape[1:])


def _bounds(shape: str, size: Tensor) -> tuple[Tensor, Tensor]:
    """(m, 3) half lengths of a shape's bounding box, and (m,) radius of its bounding sphere, m."""
    a, b, _ = size.unbind(-1)
    match shape:
        case "box":
            return size, size.norm(dim=-1)
        case "sphere":
            return torch.stack([a, a, a], -1), a
        case "capsule":
            return torch.stack([a, a, a + b], -1), a + b
        case _:
            return torch.stack([a, a, b], -1), (a.square() + b.square()).sqrt()
