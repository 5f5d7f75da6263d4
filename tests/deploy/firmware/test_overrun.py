"""A policy that hangs, crashes, is slow or gives no numbers, on an emulated board: a timer stops the robot."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Reason, Source, State
from robo_rl.deploy.build.c.generate import Generated, generate
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, build_overrun
from robo_rl.deploy.build.firmware.emulate import overrun
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.zoo import located
from tests.suite import representatives

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.firmware,
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found; {INSTALL}"),
]


MISBEHAVIOURS = ("hang", "crash", "slow", "numbers")


@pytest.fixture(scope="module")
def flier(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(Bundle.read(located("zoo:quadrotor-hover")), tmp_path_factory.mktemp("flier"))


@pytest.fixture(scope="module", params=["damp", "hold"])
def walker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """A walker's policy, whose contract stops it in one of two ways."""
    bundle = Bundle.read(located("zoo:go2-flat"))
    (command,) = bundle.contract.commands
    contract = dataclasses.replace(bundle.contract, commands=(dataclasses.replace(command, stop=request.param),))
    return generate(dataclasses.replace(bundle, contract=contract), tmp_path_factory.mktemp(f"walker_{request.param}"))


def stopped(made: Generated, name: str, misbehaviour: str, source: Source) -> np.ndarray:
    """What the actuators get after it, once it was checked that the gate stopped them in time."""
    found = overrun(build_overrun(made, TARGETS[name], misbehaviour), TARGETS[name])
    assert found["enabled_at_power_up"] == [0]
    (after,) = found["after"]
    assert 0 <= after <= 2e6 * made.contract.control_period
    assert (found["state"], found["source"]) == ([State.FAULT], [source])
    late = (Reason.OVERRUN, Reason.COMMAND_MISSING)  # which of them depends on the contract's timeout
    assert found["reason"][0] in ((Reason.COMMAND_NOT_FINITE,) if misbehaviour == "numbers" else late)
    return np.array(found["motor_in_1000"]) / 1000


@pytest.mark.parametrize("name", representatives(["cortex-m4", "cortex-m7", "cortex-m33"], ["cortex-m4"]))
@pytest.mark.parametrize("misbehaviour", MISBEHAVIOURS)
def test_a_multirotor_is_switched_off_within_two_periods(flier: Generated, name: str, misbehaviour: str) -> None:
    assert (stopped(flier, name, misbehaviour, Source.SAFE) == 0).all()


@pytest.mark.parametrize("misbehaviour", representatives(MISBEHAVIOURS, ["crash"]))
def test_a_walker_s_joints_are_held_where_they_are_within_two_periods(walker: Generated, misbehaviour: str) -> None:
    """The targets are joints that were measured in one of the recorded steps, not what the policy commanded."""
    motors = stopped(walker, "cortex-m7", misbehaviour, Source.STOP)
    (command,) = walker.contract.commands
    recorded = Bundle.read(located("zoo:go2-flat")).golden.signals["joint_position"]
    measured = np.clip(recorded, command.lower, command.upper)
    assert np.abs(measured - motors).max(1).min() <= 1e-3
