"""Robots for tests that are no quadruped: a cart with a pole, an arm with turned frames, a gripper on a slide."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.mechanism import (
    ContactPoints,
    Coupling,
    DrivenJoint,
    Frame,
    FreeObject,
    Impedance,
    JointGroup,
    Mechanism,
    Rays,
)

CART_POLE = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <geom name="cart" type="box" size="0.1 0.05 0.05"/>
      <body name="pole">
        <joint name="pivot" axis="0 1 0"/>
        <inertial pos="0 0 0.5" mass="0.1" diaginertia="0.01 0.01 0.0001"/>
        <geom name="pole" type="capsule" size="0.02" fromto="0 0 0 0 0 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="link0">
      <geom name="link0" type="cylinder" size="0.05 0.04"/>
      <body name="link1" pos="0 0 0.1" euler="0.7 0.3 0.6">
        <joint name="joint1" axis="0 0 1" pos="0.02 -0.01 0.03"/>
        <inertial pos="0.05 0.02 0.1" quat="0.9 0.1 -0.3 0.2" mass="2" diaginertia="0.02 0.03 0.012"/>
        <geom name="link1" type="capsule" size="0.04" fromto="0 0 0 0 0 0.3"/>
        <body name="link2" pos="0 0 0.3" euler="-1.1 0.2 0.7">
          <joint name="joint2" axis="0 0.6 0.8"/>
          <inertial pos="0.15 0.01 0" quat="0.7 -0.2 0.4 0.1" mass="1.5" diaginertia="0.011 0.014 0.006"/>
          <geom name="link2" type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
          <body name="link3" pos="0.3 0 0" euler="0.2 1.3 0.1">
            <joint name="joint3" axis="1 0 0"/>
            <inertial pos="0.02 0.06 0.05" quat="0.5 0.5 0.1 -0.4" mass="0.8" diaginertia="0.004 0.003 0.0025"/>
            <geom name="link3" type="box" size="0.03 0.03 0.06" pos="0 0 0.06"/>
            <site name="tool" pos="0.01 0.02 0.15" euler="0.5 0.1 0.2"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

SIX_AXES = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="foot">
      <geom name="foot" type="cylinder" size="0.06 0.05"/>
      <body name="shoulder" pos="0 0 0.2">
        <joint name="a1" axis="0 0 1" damping="0.5"/>
        <geom name="shoulder" type="capsule" size="0.05" fromto="0 0 0 0 0 0.1" mass="3"/>
        <body name="upper" pos="0 0 0.1">
          <joint name="a2" axis="0 1 0" damping="0.5"/>
          <geom name="upper" type="capsule" size="0.04" fromto="0 0 0 0.35 0 0" mass="3"/>
          <body name="lower" pos="0.35 0 0">
            <joint name="a3" axis="0 1 0" damping="0.5"/>
            <geom name="lower" type="capsule" size="0.04" fromto="0 0 0 0.3 0 0" mass="2"/>
            <body name="wrist" pos="0.3 0 0">
              <joint name="a4" axis="1 0 0" damping="0.3"/>
              <geom name="wrist" type="capsule" size="0.03" fromto="0 0 0 0.05 0 0" mass="1"/>
              <body name="hand" pos="0.05 0 0">
                <joint name="a5" axis="0 1 0" damping="0.3"/>
                <geom name="hand" type="capsule" size="0.03" fromto="0 0 0 0.05 0 0" mass="0.8"/>
                <body name="flange" pos="0.05 0 0">
                  <joint name="a6" axis="1 0 0" damping="0.3"/>
                  <geom name="flange" type="sphere" size="0.03" pos="0.06 0 0" mass="0.5"/>
                  <site name="tool" pos="0.06 0 0" euler="0 1.5707963 0"/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

GRIPPER = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom name="table" type="box" size="0.3 0.3 0.01" pos="0 0 -0.011"/>
    <body name="gantry">
      <body name="hand" pos="0 0 0.12">
        <joint name="lift" type="slide" axis="0 0 1"/>
        <joint name="swing" axis="0 1 0" pos="0 0 0.2"/>
        <geom name="palm" type="box" size="0.02 0.06 0.02" pos="0 0 0.06" mass="0.6"/>
        <body name="left" pos="0 0 0">
          <joint name="left" type="slide" axis="0 1 0"/>
          <geom name="left pad" type="box" size="0.009 0.004 0.009" pos="0 0.004 0" mass="0.03"/>
        </body>
        <body name="right" pos="0 0 0">
          <joint name="right" type="slide" axis="0 -1 0"/>
          <geom name="right pad" type="box" size="0.009 0.004 0.009" pos="0 -0.004 0" mass="0.03"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


WATCHER = """
<mujoco>
  <worldbody>
    <body name="eye">
      <freejoint/>
      <geom name="eye" type="box" size="0.05 0.05 0.05" mass="1"/>
      <site name="lens" pos="0.1 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.xml"
    path.write_text(text)
    return path


def cart_pole(folder: Path, **changes) -> Mechanism:
    """A force on a cart of 1 kg, with a pole of 0.1 kg that swings about y: no motor in its joint."""
    rail = DrivenJoint("rail", lower=-2.0, upper=2.0, effort=20.0)
    usual = {
        "groups": (
            JointGroup("cart", (rail,), law="torque", slides=True),
            JointGroup("pole", (DrivenJoint("pivot"),), law="none"),
        ),
        "floor": False,
    }
    model = _file(folder, "cart_pole", CART_POLE)
    return Mechanism("cart_pole", model, "cart", True, **{**usual, **changes})  # type: ignore[arg-type]


def arm(folder: Path, law: str = "none", **changes) -> Mechanism:
    """Three links, every frame turned against the one before."""
    joints = tuple(
        DrivenJoint(f"joint{i}", lower=-3.0, upper=3.0, effort=40.0, velocity=5.0, stiffness=60.0, damping=4.0)
        for i in (1, 2, 3)
    )
    usual = {"groups": (JointGroup("joint", joints, law=law),), "floor": False}  # type: ignore[arg-type]
    return Mechanism("arm", _file(folder, "arm", ARM), "link0", True, **{**usual, **changes})  # type: ignore[arg-type]


def six_axes(folder: Path, clip: tuple[float, float] = (0.01, 0.1), **changes) -> Mechanism:
    """An arm whose tool is held by a spring and a damper."""
    homes = {"a1": 0.0, "a2": -0.6, "a3": 1.2, "a4": 0.0, "a5": 0.97, "a6": 0.0}
    joints = tuple(DrivenJoint(name, home=home, armature=0.05) for name, home in homes.items())
    usual = {
        "groups": (JointGroup("joint", joints, law="none"),),
        "impedances": (Impedance("tool", "tool", (1000.0, 30.0), (80.0, 3.0), clip),),
        "weightless": True,
    }
    return Mechanism("six", _file(folder, "six", SIX_AXES), "foot", True, **{**usual, **changes})  # type: ignore[arg-type]


def gripper(folder: Path, thing: FreeObject | None = None, **changes) -> Mechanism:
    """Two coupled fingers on a hand that rises, and swings about an axis 0.2 m above."""
    lift = DrivenJoint("lift", lower=-0.2, upper=0.5, effort=200.0, stiffness=4000.0, damping=200.0)
    swing = DrivenJoint("swing", lower=-2.0, upper=2.0, effort=100.0, stiffness=200.0, damping=10.0)
    finger = DrivenJoint(
        "left", home=0.03, lower=0.0, upper=0.04, effort=40.0, stiffness=4000.0, damping=400.0, armature=0.1
    )
    cube = thing or FreeObject("cube", "box", (0.02, 0.02, 0.02), 0.05, position=(0.0, 0.0, 0.02))
    usual = {
        "groups": (
            JointGroup("lift", (lift,), slides=True),
            JointGroup("swing", (swing,)),
            JointGroup("finger", (finger,), slides=True),
        ),
        "couplings": (Coupling("left", (("right", 1.0),)),),
        "contacts": (ContactPoints("pad", ("left pad", "right pad")),),
        "objects": (cube,),
        "floor": False,
    }
    model = _file(folder, "gripper", GRIPPER)
    return Mechanism("gripper", model, "gantry", True, **{**usual, **changes})  # type: ignore[arg-type]


def watcher(folder: Path, **changes) -> Mechanism:
    """A box in the air that looks around: down, ahead and askew."""
    slant = (math.sin(0.4), 0.0, -math.cos(0.4))
    usual = {
        "rays": (Rays("scan", "lens", ((0, 0, -1), (1, 0, 0), slant, (0, 1, 0)), longest=5.0, miss=6.0),),
        "objects": (FreeObject("wall", "box", (0.1, 0.5, 0.5), 1.0, position=(1.2, 0.0, 1.0)),),
        "frames": (Frame("lens", "lens"),),
    }
    model = _file(folder, "watcher", WATCHER)
    return Mechanism("watcher", model, "eye", False, **{**usual, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The robots of this file, as functions of what is to be different."""
    folder, made = tmp_path_factory.mktemp("machines"), (cart_pole, arm, six_axes, gripper, watcher)
    return SimpleNamespace(**{make.__name__: partial(make, folder) for make in made})


@pytest.fixture(params=["mujoco", pytest.param("warp", marks=pytest.mark.release), "bullet"])
def engine(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """From a mechanism, a number of robots, a control period and physics to a plant, in each engine in turn.

    Warp, which is compiled for every robot, before a release: with every change it agrees with MuJoCo
    (test_agreement.py).
    """
    if request.param == "mujoco":
        return partial(MujocoPlant, threads=1)
    if request.param == "warp":
        pytest.importorskip("mujoco_warp", reason="mujoco_warp is missing: pip install 'robo-rl[dev]'")
        from robo_rl.sim.plants.warp import WarpPlant

        return partial(WarpPlant, device="cpu")
    pytest.importorskip("pybullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    from robo_rl.sim.plants.bullet import BulletPlant

    def make(mechanism: Mechanism, n: int, period: float, physics: Physics | None = None) -> BulletPlant:
        return BulletPlant(mechanism, n, period, processes=1)

    return make
