"""The torques that franky sends for a contract's impedance, against the contract's law with pinocchio's Jacobian."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("franky", reason="franky is missing: pip install 'robo-rl[franka]'")
pytest.importorskip("franky_sim", reason="franky_sim is missing: pip install 'robo-rl[franka-sim]'")

import pinocchio
from franky_sim.urdf import URDF_PATH

sys.path.append(str(Path(__file__).parent))
from emulated_franka import Session, ended

from robo_rl.controllers.rotation import multiply
from robo_rl.deploy.emulate.franka import START
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile

OFFSETS = ((0.005, -0.01, 0.015), (0.05, -0.03, 0.01), (0.0, 0.0, 0.0))
"""m from the tool to its reference: within the clip, beyond it, none."""
TURN = np.array([0.0, np.sin(0.03), 0.0, np.cos(0.03)])
"""0.06 rad about the base's y axis."""
SPEEDS = np.array([0.1, -0.2, 0.15, 0.3, -0.1, 0.2, -0.25])
"""rad/s"""


def jacobian() -> tuple[np.ndarray, np.ndarray]:
    """(6, 7) of the tool in the base frame, and the torques of Coriolis, by pinocchio."""
    model = pinocchio.buildModelFromUrdf(str(URDF_PATH))
    flange = model.frames[model.getFrameId("link8")]
    tool = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, 0.1034]))
    model.addFrame(pinocchio.Frame("tool", flange.parentJoint, flange.placement * tool, pinocchio.FrameType.OP_FRAME))
    data, q = model.createData(), np.array(START)
    found = pinocchio.computeFrameJacobian(
        model, data, q, model.getFrameId("tool"), pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    )
    return found, pinocchio.nonLinearEffects(model, data, q, SPEEDS) - pinocchio.computeGeneralizedGravity(
        model, data, q
    )


@pytest.fixture(scope="module")
def held() -> Iterator[Session]:
    """An arm that is commanded and held in place, once its gains have risen."""
    with ended(Session(file=FrankaFile(posture_stiffness=0.0))) as session:
        session.driver.connect()
        session.driver.enable()
        session.station.simulator._step = lambda: None  # all but the physics goes on
        torques(session, 2.4)
        yield session


def torques(
    of: Session, seconds: float = 0.2, offset: tuple[float, ...] = (0.0,) * 3, speeds: Any = None, turn: Any = None
) -> np.ndarray:
    """(7,) N m that are commanded to the arm, while it says that its joints move with these speeds."""
    for _ in range(round(seconds / 0.02)):
        of.station.simulator.data.qvel[:7] = 0.0 if speeds is None else speeds
        of.driver.motion.refer(of.station.tool + offset, of.driver.names.turn if turn is None else turn)
        of.world.sleep(0.02)
    return np.array(of.station.server.torques)


@pytest.mark.parametrize("offset", OFFSETS)
def test_the_spring_and_its_clip_are_the_laws(held: Session, offset: tuple[float, ...]) -> None:
    wrench = np.append(1000.0 * np.clip(offset, -0.02, 0.02), np.zeros(3))
    assert np.allclose(torques(held, offset=offset), jacobian()[0].T @ wrench, atol=0.05)


def test_the_spring_turns_about_the_axes_of_the_base(held: Session) -> None:
    with_turn = np.array(multiply(tuple(TURN), (1.0, 0.0, 0.0, 0.0)))  # pointing down, then turned
    wrench = np.array([0.0, 0.0, 0.0, 0.0, 50.0 * 0.06, 0.0])
    assert np.allclose(torques(held, turn=with_turn), jacobian()[0].T @ wrench, atol=0.05)


def test_the_damper_is_the_laws_beside_the_compensation_of_coriolis(held: Session) -> None:
    forward, coriolis = jacobian()
    damping = np.array([80.0, 80.0, 80.0, 5.0, 5.0, 5.0])
    expected = -forward.T @ (damping * (forward @ SPEEDS)) + coriolis
    assert np.allclose(torques(held, speeds=SPEEDS), expected, atol=0.25)
