"""How a multirotor looks: body, arms, and per rotor a motor, a translucent disc and two blades.

The card gives all sizes. Front rotors are orange.
"""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import DARK, ORANGE, SLATE, Color, Poser
from robo_rl.sim.robots.multirotor import CardRotor, MultirotorCard

REAR: Color = (0.33, 0.38, 0.46, 1.0)
ARM: Color = (0.28, 0.31, 0.36, 1.0)
DISC = 0.38
"""Opacity of a disc."""
SLOWDOWN = 40
"""Blades at their true speed would only flicker."""


def draw_multirotor(card: MultirotorCard) -> mujoco.MjModel:
    """A free body, and a body with a hinge per rotor, in the card's order."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="body")
    body.add_freejoint()
    height, plate = 0.25 * card.body_size[2], 0.32 * card.arm
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX}
    body.add_geom(name="plate", size=[1.2 * plate, plate, height], rgba=DARK, **box)
    nose = [0.25 * plate, 0.5 * plate, 0.7 * height]
    body.add_geom(name="nose", size=nose, pos=[1.3 * plate, 0, 0], rgba=ORANGE, **box)
    for rotor in card.rotors:
        _add_rotor(body, card, rotor, height)
    return spec.compile()


def at_rest(card: MultirotorCard) -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing, and poses (1 + R, 7) of a level vehicle at the origin."""
    model = draw_multirotor(card)
    level = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *[0.4] * len(card.rotors)]
    return model, Poser(model).poses([level])[0]


def _add_rotor(body: mujoco.MjsBody, card: MultirotorCard, rotor: CardRotor, height: float) -> None:
    """Arm and motor on the body, and what turns on them."""
    x, y, z = rotor.position
    thick, radius, hub = 0.045 * card.arm, card.propeller_radius, z + 1.6 * height
    color = ORANGE if x > 0.3 * card.arm else REAR
    capsule, cylinder = {"type": mujoco.mjtGeom.mjGEOM_CAPSULE}, {"type": mujoco.mjtGeom.mjGEOM_CYLINDER}
    body.add_geom(fromto=[0, 0, 0, x, y, z], size=[thick, 0, 0], rgba=ARM, **capsule)
    body.add_geom(fromto=[x, y, z - height, x, y, hub], size=[1.7 * thick, 0, 0], rgba=SLATE, **cylinder)
    propeller = body.add_body(name=rotor.name, pos=[x, y, hub])
    propeller.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    disc = [0, 0, 0, 0, 0, 0.02 * radius]
    propeller.add_geom(name=f"{rotor.name} disc", fromto=disc, size=[radius, 0, 0], rgba=(*color[:3], DISC), **cylinder)
    blades = [0.96 * radius, 0.09 * radius, 0.02 * radius]
    propeller.add_geom(
        name=f"{rotor.name} blades", type=mujoco.mjtGeom.mjGEOM_BOX, size=blades, pos=[0, 0, 0.03 * radius], rgba=color
    )
