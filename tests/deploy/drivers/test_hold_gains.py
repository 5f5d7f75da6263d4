"""Gains that hold a stance, of a robot that falls with those of its policy: in contract and simulated robot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from robo_rl.contract import ContractError
from robo_rl.contract.robots import hold_gains
from robo_rl.deploy.emulate.driver import SimulatedRobot
from robo_rl.deploy.robot.drivers.driver import Mode
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.legs_stand import LegsStand

CALM = {f"initial/{name}": 0.0 for name in ("joint_position", "linear_velocity", "angular_velocity")}
CALM |= {"push/speed": 0.0, "payload": 0.0, "center_of_mass": 0.0, "stiffness": 1.0, "damping": 1.0}


class StandSoftly(LegsStand):
    """With the gains of the gait, as a policy that walks has them."""

    @staticmethod
    def driven(card: LeggedCard) -> LeggedCard:
        return card


@pytest.fixture
def robot() -> SimulatedRobot:
    return SimulatedRobot(StandSoftly(), 0, CALM)


def stand(robot: SimulatedRobot) -> dict[str, np.ndarray]:
    return {command.name: np.array(command.start, np.float32) for command in robot.task.spec.commands}


def gains(robot: SimulatedRobot) -> np.ndarray:
    return robot.env.plant.param("stiffness")[0].numpy()


def test_the_contract_tells_the_gains_of_the_hold_in_the_order_of_the_joints() -> None:
    card = load_legged("g1")
    held = hold_gains(card.facts())
    assert held is not None
    assert held.stiffness == tuple(joint.hold_stiffness for joint in card.joints)
    assert held.stiffness[:6] == (350.0, 200.0, 200.0, 300.0, 300.0, 150.0)
    assert hold_gains(load_legged("go2").facts()) is None


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"stiffness": [1.0] * 12}, r"facts\.hold is .*; expected an object with \['damping', 'stiffness'\]"),
        ({"stiffness": [1.0] * 12, "damping": [1.0] * 11}, r"facts\.hold\.damping is .*; expected 12 numbers"),
        (
            {"stiffness": [1.0] * 11 + [-1.0], "damping": [1.0] * 12},
            r"facts\.hold\.stiffness is .*; expected numbers of 0",
        ),
        ("stiff", r"facts\.hold is 'stiff'; expected an object"),
    ],
)
def test_gains_that_are_none_are_refused(told: object, sentence: str) -> None:
    facts = load_legged("g1").facts()
    with pytest.raises(ContractError, match=sentence):
        hold_gains(dataclasses.replace(facts, facts={**facts.facts, "hold": told}))


def test_it_stands_until_a_policy_takes_over_and_while_the_gate_moves_it_to_its_start(robot: SimulatedRobot) -> None:
    for step in range(150):
        robot.read(step * 20_000)
    for step in range(150, 300):
        robot.read(step * 20_000)
        robot.write(stand(robot), Mode.HOLD)
        assert robot.ended is None
    held = hold_gains(robot.task.card.facts())
    assert held is not None
    np.testing.assert_allclose(gains(robot), held.stiffness, rtol=1e-6)
    assert float(robot.env.plant.truth()["position"][0, 2]) > 0.77


def test_a_policy_has_the_gains_of_its_training_after_half_a_second(robot: SimulatedRobot) -> None:
    robot.read(0)
    own, seen = np.array([joint.stiffness for joint in robot.task.card.joints]), []
    for step in range(25):
        robot.write(stand(robot), Mode.POLICY)
        seen.append(gains(robot).copy())
        robot.read(step * 20_000)
    ankle = np.array(seen)[:, 4]
    np.testing.assert_allclose(seen[-1], own, rtol=1e-6)
    assert 0 < ankle[12] - own[4] < 260  # on its way from 300 N m/rad
    assert (np.diff(ankle) < 1e-9).all()


def test_a_stop_damps_with_the_gains_of_the_policy_at_once(robot: SimulatedRobot) -> None:
    robot.read(0)
    robot.write(stand(robot), Mode.HOLD)
    height = float(robot.env.plant.truth()["position"][0, 2])
    for step in range(1, 100):
        measured = robot.read(step * 20_000)["joint_position"][0]
        robot.write({"joint_position_target": measured.astype(np.float32)}, Mode.DAMP)
        if step == 1:
            np.testing.assert_allclose(gains(robot), [joint.stiffness for joint in robot.task.card.joints], rtol=1e-6)
        if robot.ended is not None:
            break
        height = float(robot.env.plant.truth()["position"][0, 2])
    assert robot.ended is not None  # it sinks, which ends the episode
    assert height < 0.7
