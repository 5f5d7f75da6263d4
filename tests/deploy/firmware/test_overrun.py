"""A policy that hangs, crashes, is slow or gives no numbers, on an emulated board: a timer stops the robot."""

from __future__ import annotations

import shutil

import pytest

from controllers.gate_codes import Reason, Source, State
from deploy.bundle import Bundle
from deploy.c.generate import Generated, generate
from deploy.firmware.build import COMPILER, EMULATOR, INSTALL, build_overrun
from deploy.firmware.emulate import overrun
from deploy.firmware.targets import TARGETS
from robo_rl.zoo import located

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.firmware,
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found; {INSTALL}"),
]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.read(located("zoo:quadrotor-hover"))


@pytest.fixture(scope="module")
def made(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(bundle, tmp_path_factory.mktemp("overrun"))


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7", "cortex-m33"])
@pytest.mark.parametrize("misbehaviour", ["hang", "crash", "slow", "numbers"])
def test_the_robot_is_stopped_within_two_periods(bundle: Bundle, made: Generated, name: str, misbehaviour: str) -> None:
    found = overrun(build_overrun(made, TARGETS[name], misbehaviour), TARGETS[name])
    assert found["enabled_at_power_up"] == [0]
    (after,) = found["after"]
    assert 0 <= after <= 2e6 * bundle.contract.control_period
    assert (found["state"], found["source"]) == ([State.FAULT], [Source.SAFE])
    late = (Reason.OVERRUN, Reason.COMMAND_MISSING)  # which of them depends on the contract's timeout
    assert found["reason"][0] in ((Reason.COMMAND_NOT_FINITE,) if misbehaviour == "numbers" else late)
    assert found["motor_in_1000"] == [0, 0, 0, 0]
