"""How a motor looks: a housing, and a shaft with a disc, the mark of which turns."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import DARK, ORANGE, STONE, Poser

RADIUS, LENGTH = 0.04, 0.03
"""m, of a picture that is the same for all motors."""
DISC, ABOVE = 1.6 * RADIUS, 2.2 * LENGTH
"""m: radius of the disc on the shaft, over which tasks show what it is to do, and the height of its upper side."""


def draw_motor() -> mujoco.MjModel:
    """A fixed housing, and a disc with a hinge about z."""
    spec = mujoco.MjSpec()
    round_ = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER}
    spec.worldbody.add_geom(name="housing", size=[RADIUS, LENGTH, 0], pos=[0, 0, LENGTH], rgba=DARK, **round_)
    shaft = spec.worldbody.add_body(name="shaft", pos=[0, 0, 2.05 * LENGTH])
    shaft.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    shaft.add_geom(name="disc", size=[DISC, 0.08 * LENGTH, 0], rgba=STONE, **round_)
    mark = {"size": [0.2 * RADIUS, 0.08 * RADIUS, 0.1 * LENGTH], "pos": [1.35 * RADIUS, 0, 0]}
    shaft.add_geom(name="mark", type=mujoco.mjtGeom.mjGEOM_BOX, rgba=ORANGE, **mark)
    return spec.compile()


def at_rest() -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing, and poses (bodies, 7) of a motor that stands."""
    model = draw_motor()
    return model, Poser(model).poses(np.zeros((1, 1)))[0]
