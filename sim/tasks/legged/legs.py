"""How a robot on four legs is built: found in its model, whatever its joints are called and wherever they count from.

A leg is a hip that swings sideways, a thigh and a calf that swing forwards. A robot's computer may have the joints in
any order, and either direction of a joint may be its positive one; knees may be behind the leg or in front of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np

from robo_rl.sim.plants.assembly import assemble, lowest
from robo_rl.sim.plants.indices import find_indices, standing_height
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.limbs import find_limbs

PARTS = ("hip", "thigh", "calf")
SIDES = ("FL", "FR", "RL", "RR")
ABOUT = (0, 1, 1)
"""The base's axis, of x (forward) and y (left), that each of them turns about."""
ALIGNED = 0.9  # cosine between a joint's axis and the base's
BENT = 0.05  # of a leg's length, that a knee is away from the straight line at least: on which side has to be sure


class Legs(NamedTuple):
    """Of a robot that stands. Lengths and mass have two digits: what a gait takes from them is rough."""

    sides: tuple[str, ...]
    """FL, FR, RL or RR, of each foot in the card's order."""
    order: tuple[int, ...]
    """(12,) places among the card's joints: hip, thigh and calf of each foot in turn."""
    turns: tuple[float, ...]
    """(12,) likewise: 1 where the joint turns about the base's x (hips) or y axis (others), -1 where against it."""
    knees: tuple[float, ...]
    """(4,) 1 where the knee is behind the line from the thigh's joint to the foot, -1 where in front."""
    place: tuple[float, float]
    """m, of the feet in front of or behind and beside their middle."""
    length: float
    """m, from the thigh's joint down to the foot's centre."""
    radius: float
    """m, of the largest foot."""
    mass: float
    """kg, of the robot."""


def find_legs(card: LeggedCard) -> Legs:
    """The legs of the robot of ``card``. Raises CardError where they are not four of three joints each."""
    if len(card.feet) != len(SIDES):
        raise CardError(
            f"{card.model}: {card.name} has {len(card.feet)} feet; expected four legs of three joints each. The tasks "
            "g1-stand and g1-walk take another number of legs (--robot)"
        )
    model = assemble(card.mechanism, Physics())
    shapes = {model.geom(i).name for i in range(model.ngeom)}
    for foot in card.feet:
        shape = mujoco.mjtGeom(int(model.geom(foot).type[0])) if foot in shapes else mujoco.mjtGeom.mjGEOM_SPHERE
        if shape != mujoco.mjtGeom.mjGEOM_SPHERE:
            is_a = shape.name.partition("_")[2].lower()
            raise CardError(
                f"{card.model}: foot '{foot}' is of type {is_a}; expected a sphere, or a site on the ground"
            )
    indices, data = find_indices(model, card.mechanism), mujoco.MjData(model)
    data.qpos[indices.free_position :][:7] = [0, 0, 0, 1, 0, 0, 0]
    data.qpos[indices.position] = [joint.stand for joint in card.joints]
    mujoco.mj_kinematics(model, data)
    chains = [_chain(model, card, foot) for foot in card.feet]
    places = {foot: (data.geom(foot) if foot in shapes else data.site(foot)).xpos for foot in card.feet}
    turns = [_turn(card, model, data, joint, part) for chain in chains for part, joint in enumerate(chain)]
    feet = np.array([places[foot] for foot in card.feet])
    away = feet[:, :2] - feet[:, :2].mean(0)
    sides = tuple(("F" if x > 0 else "R") + ("L" if y > 0 else "R") for x, y in away)
    if sorted(sides) != sorted(SIDES):
        found = dict(zip(card.feet, feet.round(2).tolist(), strict=True))
        raise CardError(f"{card.model}: feet are at {found}; expected four, one on each side in front and behind")
    spare = sorted(set(card.joint_names) - {model.joint(joint).name for chain in chains for joint in chain})
    if spare:
        raise CardError(f"{card.model}: joints {spare} move no foot; expected a hip, a thigh and a calf for each")
    return Legs(
        sides=sides,
        order=tuple(card.joint_names.index(model.joint(joint).name) for chain in chains for joint in chain),
        turns=tuple(turns),
        knees=tuple(_knee(card, model, data, *leg) for leg in zip(chains, places.items(), strict=True)),
        place=(_roughly(abs(away[:, 0]).mean()), _roughly(abs(away[:, 1]).mean())),
        length=_roughly(np.mean([data.xanchor[chain[1], 2] for chain in chains]) - feet[:, 2].mean()),
        radius=max(_radius(model, data, foot, foot in shapes) for foot in card.feet),
        mass=_roughly(model.body_subtreemass[indices.base]),
    )


def _roughly(x: float) -> float:
    """To two digits."""
    return float(f"{x:.2g}")


def _radius(model: mujoco.MjModel, data: Any, foot: str, is_shape: bool) -> float:
    """m, of a foot; of a site, how far below it the lowest shape of its body is."""
    if is_shape:
        return float(model.geom(foot).size[0])
    body = int(model.site(foot).bodyid[0])
    first, count = model.body_geomadr[body], model.body_geomnum[body]
    below = min((lowest(model, data, shape) for shape in range(first, first + count)), default=0.0)
    return max(float(data.site(foot).xpos[2]) - below, 0.0)


def _chain(model: mujoco.MjModel, card: LeggedCard, foot: str) -> list[int]:
    """The joints between base and foot, which are a hip, a thigh and a calf that the card drives."""
    named = {model.site(i).name: int(model.site_bodyid[i]) for i in range(model.nsite)}
    named |= {model.geom(i).name: int(model.geom_bodyid[i]) for i in range(model.ngeom)}
    body, base = named[foot], model.body(card.base).id
    joints: list[int] = []
    while body not in (0, base):
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        joints = [*range(first, first + count), *joints]
        body = model.body_parentid[body]
    names = [model.joint(joint).name for joint in joints]
    if len(joints) != len(PARTS) or not set(names) <= set(card.joint_names):
        raise CardError(f"{card.model}: foot '{foot}' hangs on the joints {names}; expected three that motors drive")
    return joints


def _turn(card: LeggedCard, model: mujoco.MjModel, data: Any, joint: int, part: int) -> float:
    """1 where a joint turns about the axis that this part of a leg should, -1 where against it."""
    axis = data.xaxis[joint]
    if abs(axis[ABOUT[part]]) < ALIGNED:
        raise CardError(
            f"{card.model}: joint '{model.joint(joint).name}' turns about {axis.round(2).tolist()} in the base's frame "
            f"when the robot stands; expected {'xy'[ABOUT[part]]}, as the {PARTS[part]} of a leg"
        )
    return float(np.sign(axis[ABOUT[part]]))


def _knee(card: LeggedCard, model: mujoco.MjModel, data: Any, chain: list[int], foot: tuple[str, np.ndarray]) -> float:
    """1 where the knee is behind the line from the thigh's joint to the foot, -1 where in front of it."""
    thigh, knee, end = data.xanchor[chain[1]], data.xanchor[chain[2]], foot[1]
    length = thigh[2] - end[2]
    ahead = knee[0] - thigh[0] - (thigh[2] - knee[2]) / length * (end[0] - thigh[0]) if length > 0 else 0.0
    if abs(ahead) <= BENT * length or length <= 0:
        raise CardError(
            f"{card.model}: joint '{model.joint(chain[2]).name}' is {ahead:.3f} m in front of the line from thigh to "
            f"foot '{foot[0]}', which is {length:.3f} m below; expected 'stand' angles of legs that are bent, feet down"
        )
    return -1.0 if ahead > 0 else 1.0


def describe(card: LeggedCard) -> dict[str, Any]:
    """Mass, standing height, feet, and what each joint moves; ``no_walk``: why no walking task can have it."""
    model = assemble(card.mechanism, Physics())
    facts: dict[str, Any] = {
        "mass_kg": float(model.body_mass.sum()),
        "height_m": standing_height(model, card.mechanism),
        "feet": list(card.feet),
        "joints": dict.fromkeys(card.joint_names, ""),
        "no_walk": None,
    }
    if len(card.feet) != len(SIDES):
        return facts | _describe_limbs(card)
    try:
        legs = find_legs(card)
    except CardError as error:
        return facts | {"no_walk": str(error)}
    sides = {"FL": "front left", "FR": "front right", "RL": "rear left", "RR": "rear right"}
    for place, (joint, turn) in enumerate(zip(legs.order, legs.turns, strict=True)):
        leg, part = divmod(place, len(PARTS))
        axis = f"{'+' if turn > 0 else '-'}{'xy'[ABOUT[part]]}"
        knee = f", knee {'behind' if legs.knees[leg] > 0 else 'in front'}" if part else ""
        moved = f"{sides[legs.sides[leg]]} {PARTS[part]}, about {axis}{knee}"
        facts["joints"][card.joint_names[joint]] = moved
    return facts


def _describe_limbs(card: LeggedCard) -> dict[str, Any]:
    """What the joints of a robot of another number of legs move, or why no walking task can have it."""
    try:
        limbs = find_limbs(card)
    except CardError as error:
        return {"no_walk": str(error)}
    moved = dict.fromkeys(card.joint_names, "waist, arm or other, moves no foot")
    for foot, leg in zip(card.feet, limbs.legs, strict=True):
        for place, joint in enumerate(leg, 1):
            image = card.joint_names[limbs.opposite[joint]]
            way = "same" if limbs.signs[joint] > 0 else "opposite"
            moved[card.joint_names[joint]] = f"{foot}, {place} of {len(leg)}; mirror image {image}, {way} sign"
    return {"joints": moved}
