"""How a robot of bodies and joints looks, with its ground and objects."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import Poser, drawn, read_shapes
from robo_rl.sim.plants.assembly import add_object, assemble, prepare
from robo_rl.sim.plants.indices import home
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.solids import add_solids
from robo_rl.sim.scenes.terrain import Ground, add_ground, visible_solids


def draw(mechanism: Mechanism, ground: Ground | None = None) -> mujoco.MjModel:
    """The robot, its ground and its objects, with the bodies and joints of ``robo_rl.sim.plants.assembly.assemble``."""
    spec = read_shapes(mechanism.model)
    prepare(spec, mechanism)
    if ground is not None:
        add_solids(spec, visible_solids(ground))
    elif mechanism.floor:
        add_ground(spec, None)
    for thing in mechanism.objects:
        add_object(spec, thing)
    return drawn(spec, mechanism.points)


def at_rest(mechanism: Mechanism) -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing on a plane, and poses (bodies, 7) of the robot with its joints at home."""
    drawing = draw(mechanism)
    places = home(assemble(mechanism, Physics()), mechanism)
    return drawing, Poser(drawing).poses(places[None])[0]
