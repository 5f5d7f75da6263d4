"""How a motor looks: a housing, and a shaft with a mark that turns."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import DARK, ORANGE, SLATE, Poser

RADIUS, LENGTH = 0.04, 0.05
"""m, of a picture that is the same for all motors."""


def draw_motor() -> mujoco.MjModel:
    """A fixed housing, and a flange with a hinge about z."""
    spec = mujoco.MjSpec()
    round_ = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER}
    spec.worldbody.add_geom(name="housing", size=[RADIUS, LENGTH, 0], pos=[0, 0, LENGTH], rgba=DARK, **round_)
    shaft = spec.worldbody.add_body(name="shaft", pos=[0, 0, 2.05 * LENGTH])
    shaft.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    shaft.add_geom(name="flange", size=[0.7 * RADIUS, 0.08 * LENGTH, 0], rgba=SLATE, **round_)
    mark = {"size": [0.25 * RADIUS, 0.06 * RADIUS, 0.1 * LENGTH], "pos": [0.4 * RADIUS, 0, 0]}
    shaft.add_geom(name="mark", type=mujoco.mjtGeom.mjGEOM_BOX, rgba=ORANGE, **mark)
    return spec.compile()


def at_rest() -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing, and poses (bodies, 7) of a motor that stands."""
    model = draw_motor()
    return model, Poser(model).poses(np.zeros((1, 1)))[0]
