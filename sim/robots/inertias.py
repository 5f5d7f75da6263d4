"""Masses and inertias of links as makers publish them: what is rounded is mended, what no body has is refused.

The radius of gyration, the root of inertia over mass, tells a wrong unit: of a solid body it is between a few
hundredths and 1.0 of the way from its centre of mass to its farthest point.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError

LEEWAY = 0.25
"""By which part of the others' sum a moment of inertia may be above it, and is lowered."""
SLIGHT = 0.01
"""Part of the robot's mass below which a link that is fixed to another, such as a camera, is not worth a refusal."""
PLACEHOLDER = 1e-3, 0.3
"""kg and m: a link that has no more mass, and a greater radius of gyration, is one whose author had to write something
(ROS's tutorials: 1e-6 kg and 1e-6 kg m² in all six)."""
NOTHING = 1e-9
"""kg, of which that is true whatever the inertia (CAD programs write 4e-15 kg for a frame)."""
FARTHEST = 3.0, 0.5
"""Radius of gyration over the size of a link's shapes and the way to the links on it, and over the robot's, at most the
greater of both. A solid body has 1 at most of its own size; shapes that touch can be smaller than the link, and
identified inertias larger than any (the Panda's first link: 0.38 m)."""
NEAREST = 0.03
"""The same over the link's size at least: that of a box is 0.4 or more, of a heavy motor in a long light link a
tenth, of 4,130 links of makers' models 0.064."""
DENSITY = 0.1, 20000.0
"""kg/m³ of a whole robot's mass in the sphere around it, at least and at most: tungsten has 19,300, makers' models
1 to 700 (218 of them)."""
ANY = 1e-3, 2.0
"""m, radii of gyration of links of robots, at least and at most, where they have no shapes."""
GUESSED = 1.25
"""Leeway of the bound on moments of inertia that are all alike, which are guessed as a rule: no mass is farther from an
axis than the shapes, so that of no body the radius of gyration is greater. Looked at are trunks, about the axis that
their shapes are nearest to, and whatever has 1 kg m² thrice, about which 0.82 of the way to the farthest point is the
most: the sum of the moments is twice the mass times the mean square of that way."""
LIGHT = 0.01
"""kg: of links that weigh no more, inertias are not looked at."""


def mend_inertias(spec: mujoco.MjSpec, path: Path) -> None:
    """Give a model whose links others measured, or guessed, inertias that bodies have. CardError where that fails."""
    for body in spec.bodies:
        if body.explicitinertial and _is_placeholder(body):
            if body.joints and not _is_carried(body):
                raise CardError(
                    f"{path}: body '{body.name}', which a joint moves, has a mass of {body.mass:g} kg and an inertia "
                    f"of {_greatest(body):g} kg*m^2, a placeholder; expected those of the link, or a fixed joint"
                )
            body.mass, body.explicitinertial = 0.0, False
            body.fullinertia, body.inertia = np.full(6, np.nan), np.zeros(3)
    whole = sum(float(body.mass) for body in spec.bodies if body.explicitinertial)
    if not spec.compiler.balanceinertia:
        for body in spec.bodies:
            if body.explicitinertial:
                slight = not body.joints and body.mass < SLIGHT * whole
                _trim_inertia(body, path, np.inf if slight else LEEWAY)


def require_sane_inertias(model: mujoco.MjModel, path: Path) -> None:
    """CardError for a link whose inertia a body of its mass and size can't have, such as one in kg mm².

    ``model`` is as the file ``path`` has it, with all shapes.
    """
    whole, mass = _reach(model), float(model.body_mass.sum())
    density = mass / (math.pi / 6.0 * whole**3) if whole else DENSITY[1]
    if mass and not DENSITY[0] <= density <= DENSITY[1]:
        raise CardError(
            f"{path}: its bodies weigh {mass:.3g} kg and reach over {whole:.2g} m, {density:.2g} kg/m^3 of the sphere "
            f"around them; expected {DENSITY[0]:g} to {DENSITY[1]:g}. Are masses in another unit? One of g is 1e-3 kg"
        )
    for body in range(1, model.nbody):
        mass, moments = float(model.body_mass[body]), model.body_inertia[body]
        is_point = not moments.any() and not model.body_jntnum[body]  # a mass on another link
        if mass <= LIGHT or is_point:
            continue
        radius, size = float(np.sqrt(moments.max() / mass)), _size(model, body)
        least, most = max(ANY[0], NEAREST * size), max(FARTHEST[0] * size, FARTHEST[1] * whole) or ANY[1]
        if np.ptp(moments) < 1e-6 * moments.max():
            most = min(most, _most_of_a_guess(model, body, size))
        if not least <= radius <= most:
            name = model.body(body).name
            raise CardError(
                f"{path}: body '{name}' of {mass:g} kg has an inertia of {moments.max():.3g} kg*m^2, that of a radius "
                f"of gyration of {radius:.3g} m; expected {least:.2g} to {most:.2g} m of a link of its size. Is it in "
                "another unit, or a placeholder? One of kg*mm^2 is 1e-6 kg*m^2"
            )


def _most_of_a_guess(model: mujoco.MjModel, body: int, size: float) -> float:
    """m, the greatest radius of gyration that a body can have whose moments of inertia are all alike."""
    found, joints = np.inf, model.jnt_type[model.jnt_bodyid == body]
    slides = len(joints) and (joints == mujoco.mjtJoint.mjJNT_SLIDE).all() and model.body_parentid[body] == 0
    if not model.body_geomnum[body] or slides:  # what never turns may have any
        return found
    if np.allclose(model.body_inertia[body], 1.0, atol=1e-6):
        found = float(np.sqrt(2.0 / 3.0)) * size
    if model.body_parentid[body] == 0 and (model.body_parentid == body).any():
        found = min(found, _nearest_axis(model, body))
    return GUESSED * found


def _nearest_axis(model: mujoco.MjModel, body: int) -> float:
    """m, how far at most a body's shapes, and the bodies on it, are from that of the axes through its centre of mass,
    along its frame's, to which they are nearest."""
    farthest = np.zeros(3)
    for shape in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body]):
        numbers = np.zeros(9)
        mujoco.mju_quat2Mat(numbers, model.geom_quat[shape])
        middle, half = model.geom_aabb[shape, :3], model.geom_aabb[shape, 3:]
        turn = numbers.reshape(3, 3)
        place = np.abs(model.geom_pos[shape] + turn @ middle - model.body_ipos[body])
        farthest = np.maximum(farthest, place + np.abs(turn) @ half)
    for child in np.flatnonzero(model.body_parentid == body):
        farthest = np.maximum(farthest, np.abs(model.body_pos[child] - model.body_ipos[body]))
    return min(float(np.hypot(*np.delete(farthest, axis))) for axis in range(3))


def _size(model: mujoco.MjModel, body: int) -> float:
    """m, from a body's centre of mass to the farthest of its shapes and of the bodies on it; 0 if there is none."""
    center, found = model.body_ipos[body], [0.0]
    for shape in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body]):
        found.append(float(np.linalg.norm(model.geom_pos[shape] - center) + model.geom_rbound[shape]))
    for child in range(body + 1, model.nbody):
        if model.body_parentid[child] == body:
            found.append(float(np.linalg.norm(model.body_pos[child] - center)))
    return max(found)


def _reach(model: mujoco.MjModel) -> float:
    """m, the longest side of a box around the middles of all moving bodies, and their shapes, in the file's pose."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    if model.nbody < 2:
        return 0.0  # a file without bodies, which is told where a robot is read
    points = np.concatenate([data.xipos[1:], data.xpos[1:], data.geom_xpos[model.geom_bodyid > 0]])
    return float(np.ptp(points, axis=0).max())


def _greatest(body: Any) -> float:
    numbers = np.concatenate([np.nan_to_num(body.fullinertia), body.inertia])
    return float(np.abs(numbers).max())


def _is_placeholder(body: Any) -> bool:
    mass, radius = PLACEHOLDER
    return 0 < body.mass <= NOTHING or (0 < body.mass <= mass and _greatest(body) >= body.mass * radius**2)


def _is_carried(body: Any) -> bool:
    """Whether a body that is fixed to this one has a mass."""
    return any(not part.joints and (part.mass > PLACEHOLDER[0] or _is_carried(part)) for part in body.bodies)


def _trim_inertia(body: Any, path: Path, leeway: float) -> None:
    """None of a body's principal moments of inertia may be greater than the sum of the others.

    Published URDFs break that by rounding, or by as much as 16 % (UFACTORY's xArm 6).
    The greatest is lowered to the sum.
    """
    full, diagonal = np.array(body.fullinertia), np.array(body.inertia)
    if np.isfinite(full).all() and full.any():
        xx, yy, zz, xy, xz, yz = full
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    elif diagonal.any():
        matrix = np.diag(diagonal)
    else:
        return  # what MuJoCo refuses
    moments, axes = np.linalg.eigh(matrix)
    if moments[0] <= 0.0 and leeway == np.inf:  # a slight link: whatever MuJoCo takes
        moments = np.maximum(moments, max(1e-3 * float(moments[2]), 1e-12))
    elif moments[2] <= moments[0] + moments[1]:
        return
    most = moments[0] + moments[1]
    if moments[0] <= 0.0 < moments[2] or moments[2] < 0.0:
        raise CardError(
            f"{path}: body '{body.name}' has the principal moments of inertia {', '.join(f'{x:.4g}' for x in moments)} "
            "kg*m^2; expected positive ones, as of every distribution of mass: correct the link's"
        )
    if moments[2] > (1.0 + leeway) * most:
        raise CardError(
            f"{path}: body '{body.name}' has the principal moments of inertia {', '.join(f'{x:.4g}' for x in moments)} "
            "kg*m^2; expected none greater than the sum of the others, as of every distribution of mass. Correct it, "
            'or let MuJoCo take their mean: <compiler balanceinertia="true"/>, in a URDF within <mujoco>'
        )
    moments[2] = min(moments[2], most * (1.0 - 1e-6))
    matrix = axes @ np.diag(moments) @ axes.T
    if np.isfinite(full).all() and full.any():
        body.fullinertia = matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    else:
        body.inertia = np.diag(matrix)
