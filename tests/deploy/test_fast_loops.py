"""Policies of motors, every 100 us: what microcontrollers do, and where a computer says that it can't."""

from __future__ import annotations

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.cli import main
from robo_rl.contract import Provenance
from robo_rl.controllers.gate.codes import Reason, Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, build
from robo_rl.deploy.build.firmware.emulate import measure
from robo_rl.deploy.build.firmware.faults import try_faults
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.realtime import require_period
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session
from robo_rl.policy import PolicyGraph
from robo_rl.ros.twins import make_twin
from robo_rl.sim.tasks.loading import load_task

PERIOD = 100  # us
SENTENCE = r"control_period is 100 us; .*'robo-rl firmware' makes C"


@pytest.fixture(scope="module")
def motor_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """An untrained policy, which is nearly deadbeat control."""
    policy = PolicyGraph(load_task("pmsm-current"), (32, 32))
    last = policy.network[-1]
    assert isinstance(last.bias, torch.Tensor)
    torch.nn.init.normal_(last.bias, std=1e-3)
    return export(policy, Provenance("apg", 0, 0, "0" * 64), tmp_path_factory.mktemp("motor") / "motor.onnx")


def test_a_program_on_a_computer_refuses(motor_bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        Session(Policy(motor_bundle))
    with pytest.raises(SystemExit):
        main(["run", str(motor_bundle.path), "--driver", "simulated"])
    assert "control_period is 100 us" in capsys.readouterr().err


def test_so_does_a_simulated_robot_in_real_time() -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        make_twin("pmsm-current", delay=0.0)


def test_a_franka_s_millisecond_is_no_such_case() -> None:
    require_period(1e-3)


def test_faults_of_a_wire_are_not_tried_where_there_is_none(motor_bundle: Bundle) -> None:
    with pytest.raises(ValueError, match=r"--faults is for policies at the end of a wire.* is 100 us"):
        try_faults(motor_bundle, None)  # type: ignore[arg-type]


def test_the_gate_works_in_microseconds(motor_bundle: Bundle) -> None:
    contract, golden = motor_bundle.contract, motor_bundle.golden
    config = GateConfig.from_contract(contract)
    assert (config.period, config.timeout) == (PERIOD, 3 * PERIOD)
    gate, command = initial(config), np.zeros(2, np.float32)

    def now(
        k: int, late: int = 0, request: Request = Request.NONE, current: float | None = None, old: int = 0
    ) -> Inputs:
        time = PERIOD * (k + 1) + late
        signals = np.concatenate([golden.signals[s.name][k].ravel() for s in contract.signals]).astype(np.float32)
        if current is not None:
            signals[0] = current
        return Inputs(
            time,
            signals,
            (time - old, *(time,) * (len(contract.signals) - 1)),
            command,
            time,
            bundle_intact=True,
            requests=request,
        )

    for k in range(20):
        request = {0: Request.ARM, 1: Request.ACTIVATE}.get(k, Request.NONE)
        gate, _ = step(config, gate, now(k, late=k % 2, request=request))
    assert gate.state == State.ACTIVE
    _, late = step(config, gate, now(20, late=4 * PERIOD))
    assert late.problem.reason == Reason.OVERRUN
    for given, reason in (
        (now(20, current=430.0), Reason.ENVELOPE),
        (now(20, current=math.nan), Reason.SIGNAL_NOT_FINITE),
        (now(20, old=4 * PERIOD), Reason.SIGNAL_STALE),
        (dataclasses.replace(now(20), command=np.full(2, math.nan, np.float32)), Reason.COMMAND_NOT_FINITE),
    ):
        after, out = step(config, gate, given)
        assert (after.state, out.problem.reason) == (State.FAULT, reason)
        np.testing.assert_array_equal(out.command, 0.0)  # V


@pytest.mark.firmware
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in (COMPILER, EMULATOR)), reason="no Arm compiler or QEMU")
def test_step_and_gate_fit_20_khz_on_a_small_microcontroller(motor_bundle: Bundle, tmp_path: Path) -> None:
    """8,500 cycles are 50 us at 170 MHz, an STM32G4's clock; instructions are a lower bound of cycles."""
    made = generate(motor_bundle, tmp_path, Options(precision="int16", tolerance=0.01))
    target = TARGETS["cortex-m4"]
    found = measure(build(made, target).measure, target)
    assert found.passed
    assert found.gate_state == State.ACTIVE
    assert min(found.gate_instructions) > 0
    assert max(found.instructions) + max(found.gate_instructions) < 8_500
