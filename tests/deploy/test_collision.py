"""The gate stops a robot before a wall that its scan sees, and lets it pass where there is a way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.commands.exporting.export import main as export_command
from robo_rl.contract import Collision, Contract, ContractError
from robo_rl.controllers.gate.codes import Reason, Request, State, explain
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.race import CarRace

HALF, FRONT = 0.155, 0.186  # m, of the F1TENTH: half of its width; its front ahead of its lidar


def watched(least: float, **changes: Any) -> Contract:
    contract = Bundle.read("zoo:car-race").contract
    limit = Collision("scan", "wheel_speed", least, HALF, FRONT, "yaw_rate")
    safety = dataclasses.replace(contract.safety, collision=dataclasses.replace(limit, **changes))
    return dataclasses.replace(contract, safety=safety)


class Gated:
    """The gate of a car, armed and active, in steps of its control period."""

    def __init__(self, contract: Contract) -> None:
        self.config = GateConfig.from_contract(contract)
        self.gate, self.time = initial(self.config), 0
        for request in (Request.NONE, Request.ARM, Request.ACTIVATE):
            self.step({"scan": np.full(64, 10.0 - 0.01 * request), "wheel_speed": 0.0, "yaw_rate": 0.0}, 0.0, request)
        assert self.gate.state == State.ACTIVE

    def step(self, signals: dict[str, Any], speed: float, request: Request = Request.NONE) -> np.ndarray:
        """What is sent where a policy wants to drive straight on at a speed."""
        self.time += self.config.period
        given = {name: (np.atleast_1d(np.asarray(value, np.float32)), self.time) for name, value in signals.items()}
        values, stamps = self.config.flat_signals(given)
        command = np.array([0.0, speed], np.float32)
        inputs = Inputs(self.time, values, stamps, command, self.time, bundle_intact=True, requests=request)
        self.gate, output = step(self.config, self.gate, inputs)
        return output.command


@pytest.mark.parametrize(("speed", "time"), [(1.5, 0.3), (3.0, 0.45), (4.5, 0.6)])
def test_a_policy_that_drives_at_a_wall_is_stopped_before_it(speed: float, time: float) -> None:
    task = CarRace()
    for seed in range(4):
        env = VecEnv(task, 1, seed, fixed={"initial/turn": 0.0, "initial/speed": 0.0, "friction": 0.8})
        gated, stood = Gated(watched(time)), 0
        for _ in range(400):
            signals = {name: value[0].numpy() for name, value in env.signals().items()}
            sent = torch.from_numpy(gated.step(signals, speed).copy())
            done = env.step({"steering_angle": sent[None, :1], "speed": sent[None, 1:]})
            assert not done.failed.item()
            stood += gated.gate.state == State.FAULT
            if stood > 60:
                break
        assert gated.gate.problem.reason == Reason.COLLISION
        assert abs(env.plant.truth()["wheel_speed"].item()) < 0.05
        assert explain(gated.config, gated.gate.problem).startswith("signal 'scan'")


def gap(ahead: float, half: float) -> np.ndarray:
    """(64,) m: ranges to a wall across the way, with a gap in it of that half width."""
    scan = CarRace().scan
    angles = scan.angle_min + scan.angle_increment * np.arange(64)
    facing = np.abs(angles) < 1.5
    across = ahead * np.tan(np.where(facing, angles, 0.0))
    met = facing & (np.abs(across) > half)
    return np.where(met, np.minimum(ahead / np.cos(np.where(facing, angles, 0.0)), 10.0), 10.0)


@pytest.mark.parametrize(("half", "passes"), [(0.2, True), (0.12, False)])
def test_a_gap_is_passed_if_the_robot_fits_through_it(half: float, passes: bool) -> None:
    gated, speed = Gated(watched(0.3)), 3.0
    for k in range(60):
        ahead = 4.0 - k * 0.025 * speed
        ranges = gap(ahead, half) if ahead > 0.02 else np.full(64, 10.0)
        gated.step({"scan": ranges + 1e-4 * (k % 2), "wheel_speed": speed, "yaw_rate": 1e-4 * (k % 2)}, speed)
    assert (gated.gate.state == State.ACTIVE) == passes


def test_contracts_without_it_keep_their_text_and_digest() -> None:
    text = Bundle.read("zoo:car-race").contract.to_json()
    assert "collision" not in text
    assert Contract.from_json(text).to_json() == text


def test_a_contract_with_it_is_read_back_and_a_null_is_refused() -> None:
    contract = watched(0.25)
    assert Contract.from_json(contract.to_json()) == contract
    told = json.loads(contract.to_json())
    told["safety"]["collision"] = None
    with pytest.raises(ContractError, match=r"safety\.collision is null"):
        Contract.from_json(json.dumps(told))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scan": "wheel_speed"}, "collision: scan is 'wheel_speed'; expected one of the sensors' scans"),
        ({"speed": "yaw_rate"}, "collision: speed is 'yaw_rate'; expected one of"),
        ({"yaw_rate": "nothing"}, "collision: yaw_rate is 'nothing'; expected one of"),
        ({"time": 0.0}, "collision: time is 0.0; expected a positive number"),
        ({"half_width": -1.0}, "collision: half_width is -1.0; expected a positive number"),
        ({"front": float("nan")}, "collision: front is nan"),
    ],
)
def test_what_can_not_be_watched_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        watched(0.25, **changes)


def test_a_file_is_given_the_limit_by_the_command(tmp_path: Path, robo: Callable[..., dict[str, Any]]) -> None:
    out = tmp_path / "careful.onnx"
    robo("export", "zoo:car-race", "--out", out, "--collision", 0.2, HALF, FRONT)
    found, before = Bundle.read(out), Bundle.read("zoo:car-race")
    assert found.contract.safety.collision == Collision("scan", "wheel_speed", 0.2, HALF, FRONT, "yaw_rate")
    assert dataclasses.replace(found.contract.safety, collision=None) == before.contract.safety
    with pytest.raises(ContractError, match="expected a scan"):
        export_command(Path("zoo:quadrotor-hover"), tmp_path / "hover.onnx", collision=(0.2, HALF, FRONT))
