"""Motions that tests of pictures share, and a skip where nothing can be drawn."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from robo_rl.sim.drawing import Motion, Poser, Sphere
from robo_rl.sim.pictures.canvas import RenderingError, open_context
from robo_rl.sim.plants.multirotor.drawing import draw_multirotor
from robo_rl.sim.robots import load_robot

PERIOD = 0.01
CART_AND_POLE = """
<mujoco>
  <worldbody>
    <geom name="rail" type="capsule" fromto="-1 0 0 1 0 0" size=".02"/>
    <body name="cart">
      <joint type="slide" axis="1 0 0"/>
      <geom type="box" size=".1 .06 .05" rgba="0 .6 .1 1"/>
      <body name="pole">
        <joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .6" size=".02" rgba=".9 0 0 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="session")
def graphics() -> None:
    try:
        open_context((32, 32)).free()
    except RenderingError as error:
        pytest.skip(str(error))


@pytest.fixture
def falling():
    """Vehicles that fall freely and turn about body x, from 90 degrees to level, in that time."""

    def make(seconds: float = 1.0, robots: int = 2) -> Motion:
        time = np.arange(round(seconds / PERIOD)) * PERIOD
        half = np.radians(45) * (1 - time / seconds)
        rows = np.zeros((len(time), 11))
        rows[:, 2], rows[:, 3], rows[:, 4] = 0.4 - 0.6 * time**2, np.cos(half), np.sin(half)
        model = draw_multirotor(load_robot("crazyflie"))
        poses = Poser(model).poses(rows)[:, None].repeat(robots, 1)
        target = Sphere("set-point", np.zeros((len(time), robots, 3)), 0.01)
        return Motion(model, poses, (target,), PERIOD)

    return make


@pytest.fixture
def swinging():
    """A stranger's robots: poles that fall over on carts that stand, by their exact angles."""

    def make(robots: int = 2, steps: int = 60) -> Motion:
        model = mujoco.MjModel.from_xml_string(CART_AND_POLE)
        rows = np.zeros((steps, 2))
        rows[:, 1] = np.linspace(0.0, 1.5, steps)
        poses = Poser(model).poses(rows)[:, None].repeat(robots, 1)
        return Motion(model, poses, (), 0.02)

    return make
