"""Grippers whose fingers a linkage moves, as xArm's and Robotiq's: posed with their loops closed, and grasping."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices, follow, home
from robo_rl.sim.plants.linkages import linkage_curves
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup, Mechanism

# A four-bar parallelogram with sides of 50 mm and 30 mm: the coupler stays parallel to the base; its angle
# is minus the crank's, and the rocker's is the crank's. (x, z) plane.
PARALLELOGRAM = """<mujoco><worldbody><body name="base"><geom size="0.01" mass="1"/>
<body name="crank"><joint name="crank" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .05" size=".003" mass=".02"/>
<body name="coupler" pos="0 0 .05"><joint name="coupler" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .03 0 0" size=".003" mass=".02"/></body></body>
<body name="rocker" pos=".03 0 0"><joint name="rocker" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .05" size=".003" mass=".02"/></body></body></worldbody>
<equality><connect body1="coupler" body2="rocker" anchor=".03 0 0"/></equality></mujoco>"""


def parallelogram(folder: Path, text: str = PARALLELOGRAM, upper: float = 1.2) -> Mechanism:
    (folder / "linkage.xml").write_text(text)
    crank = DrivenJoint("crank", 0.4, -0.5, upper, 1.0, 5.0, 5.0, 0.2)
    return Mechanism("linkage", folder / "linkage.xml", "base", True, (JointGroup("joint", (crank,)),))


def test_joints_of_a_loop_are_where_geometry_has_them(tmp_path: Path) -> None:
    mechanism = parallelogram(tmp_path)
    model = assemble(mechanism, Physics())
    curves = {model.joint(curve.joint).name: curve for curve in linkage_curves(model, mechanism)}
    angles = np.linspace(-0.5, 1.2, 301)
    assert curves["coupler"].at(angles) == pytest.approx(-angles, abs=1e-6)
    assert curves["rocker"].at(angles) == pytest.approx(angles, abs=1e-6)
    assert curves["rocker"].at(torch.from_numpy(angles)).numpy() == pytest.approx(angles, abs=1e-6)
    assert curves["rocker"].slope(angles[2:-2]) == pytest.approx(1.0, abs=1e-4)


def test_every_pose_that_a_plant_is_put_into_has_its_loops_closed(tmp_path: Path) -> None:
    mechanism = parallelogram(tmp_path)
    model = assemble(mechanism, Physics())
    data, indices = mujoco.MjData(model), find_indices(model, mechanism)
    for qpos in (home(model, mechanism), np.array([1.0, 0.0, 0.0])):
        data.qpos[:] = qpos
        follow(data.qpos[None], model, indices)
        mujoco.mj_fwdPosition(model, data)
        assert np.abs(data.efc_pos[: data.ne]).max() < 1e-6
    plant = MujocoPlant(mechanism, 3, 0.02)
    plant.place(torch.arange(3), torch.tensor([[0.0], [0.5], [1.0]]))
    for _ in range(20):
        plant.step({"joint_position_target": torch.tensor([[0.0], [0.5], [1.0]])})
    state = plant.state(torch.arange(3)).qpos
    assert torch.allclose(state[:, 1], -state[:, 0], atol=0.04)  # constraints are springs


def test_a_linkage_that_can_t_close_is_refused(tmp_path: Path) -> None:
    short = PARALLELOGRAM.replace('<joint name="rocker" axis="0 1 0"/>', '<joint name="rocker" axis="1 0 0"/>')
    mechanism = parallelogram(tmp_path, short)
    with pytest.raises(CardError, match="stays open"):
        home(assemble(mechanism, Physics()), mechanism)
