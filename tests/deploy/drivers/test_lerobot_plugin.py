"""The package for LeRobot on an emulated SO-101 in virtual time, and a gated robot that is commanded step by step.

LeRobot is not needed: where it is not installed, classes with the same abstract methods and properties stand in for its
own (release 0.4.4). Units are held against numbers that LeRobot's own bus gave for the same calibration.
"""

from __future__ import annotations

import abc
import functools
import importlib.util
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Request
from robo_rl.deploy.emulate.servos.arm_virtual import ArmTime, Line
from robo_rl.deploy.emulate.servos.feetech_wire import Wire
from robo_rl.deploy.emulate.so101 import Arm
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.bus_servos.calibration import JointCalibration, write_calibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import Joint
from robo_rl.deploy.robot.drivers.bus_servos.lerobot_units import from_lerobot, to_lerobot
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile
from robo_rl.deploy.robot.drivers.feetech.arm import FeetechArm
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.so101 import JOINTS
from robo_rl.deploy.robot.gated import Gated, GateError, own_contract

CONTRACT = Bundle.read("zoo:arm-place-so101").contract
PACKAGE = Path(__file__).parents[3] / "plugins" / "lerobot_robot_robo_rl"
SPEED = 3.0  # rad/s
PATIENCE = 60.0  # s


class Emulated:
    """An arm, its driver and the clock of both."""

    def __init__(self) -> None:
        self.arm = Arm()
        self.wire, self.clock = Wire(self.arm.bus), ArmTime(self.arm)
        bus = Bus(Line(self.wire), self.clock.now)
        self.driver = FeetechArm(bus, CONTRACT, self.arm.calibration, RobotFile(), JOINTS, self.clock.now)

    def gated(self) -> Gated:
        self.driver.connect()
        made = Gated(self.driver, own_contract(CONTRACT, self.driver), SPEED, self.clock, PATIENCE)
        made.start()
        return made


def send_often(gated: Gated) -> None:
    for _ in range(100):
        gated.send(gated.target.here(gated.signals()))


@pytest.mark.parametrize(
    ("in_percent", "drive_mode", "steps", "value"),  # FeetechMotorsBus._normalize of LeRobot 0.4.4
    [
        (False, 0, 1000, -90.15384615384616), (False, 0, 2048, 1.978021978021978), (False, 1, 3290, 111.16483516483517),
        (True, 0, 1000, 9.546351084812624), (True, 1, 2048, 49.112426035502956), (True, 1, 3290, 0.11834319526626302),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("sign", "zero"), [(1, 0.0), (-1, 0.3)])
def test_units_are_those_of_lerobots_own_bus(
    in_percent: bool, drive_mode: int, steps: int, value: float, sign: int, zero: float
) -> None:
    joint = Joint("a", JointCalibration(1, drive_mode, -1470, 758, 3293), sign, zero, 17.8, 0.6)
    assert to_lerobot(joint, joint.angle(steps), in_percent) == pytest.approx(value, abs=1e-9)
    assert joint.steps(from_lerobot(joint, value, in_percent)) == steps


def test_a_far_target_is_approached_at_the_speed_and_within_limits() -> None:
    emulated = Emulated()
    gated = emulated.gated()
    gated.arm()
    before = gated.signals()["joint_position"]
    target = {"joint_position_target": np.array([9.0, *before[1:]])}
    sent = [gated.send(target)["joint_position_target"][0] for _ in range(60)]
    upper = CONTRACT.command("joint_position_target").upper[0]
    assert abs(sent[0] - before[0]) <= SPEED * CONTRACT.control_period + 1e-3  # the first is from where the arm is
    assert np.diff(sent).max() > 0
    assert sent[-1] == pytest.approx(upper, abs=1e-6)
    assert gated.signals()["joint_position"][0] == pytest.approx(upper, abs=0.05)
    for strange in (
        {"joint_position_target": np.full(5, np.nan)},
        {"joint_position_target": np.zeros(4)},
        {"joints": [0]},
    ):
        with pytest.raises(ValueError, match="expected finite numbers of"):
            gated.send(strange)
    gated.close()
    assert emulated.arm.position[0] == pytest.approx(upper, abs=0.05)  # it holds


def test_what_the_gate_finds_ends_the_session_with_its_reason() -> None:
    emulated = Emulated()
    gated = emulated.gated()
    gated.arm()
    gated.send(gated.target.here(gated.signals()))
    emulated.wire.begin("unplugged")
    with pytest.raises(GateError, match=r"stopped: .*too old.*the port is gone"):
        send_often(gated)
    gated.close()


def test_a_stop_of_somebody_else_is_told() -> None:
    emulated = Emulated()
    gated = emulated.gated()
    gated.arm()
    gated.send(gated.target.here(gated.signals()))
    gated._loop.request(Request.STOP)
    with pytest.raises(GateError):
        send_often(gated)
    gated.close()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package, with LeRobot or what stands in for it."""
    before = set(sys.modules)
    if importlib.util.find_spec("lerobot") is None:
        for name, module in _standing_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield importlib.import_module("lerobot_robot_robo_rl")
    for name in set(sys.modules) - before:
        if name.startswith("lerobot_robot_robo_rl"):
            del sys.modules[name]


def test_lerobot_records_and_commands_the_arm(plugin: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    emulated = Emulated()
    module = sys.modules["lerobot_robot_robo_rl.so101"]
    monkeypatch.setattr(module, "make", lambda name, contract, settings: emulated.driver)
    monkeypatch.setattr(module, "Gated", functools.partial(Gated, clock=emulated.clock, patience=PATIENCE))
    write_calibration(tmp_path / "left.json", emulated.arm.calibration)
    robot = plugin.RoboRlSo101(plugin.RoboRlSo101Config(id="left", calibration_dir=tmp_path, port="/dev/null"))
    with pytest.raises(ConnectionError, match="call connect"):
        robot.get_observation()
    assert robot.is_calibrated
    robot.connect()
    assert robot.is_connected
    seen = robot.get_observation()
    assert set(seen) == set(robot.observation_features) == set(robot.action_features)
    true = dict(zip(JOINTS, emulated.arm.position, strict=True))
    for joint in emulated.driver.joints:
        assert from_lerobot(joint, seen[f"{joint.name}.pos"], joint.name == "gripper") == pytest.approx(
            true[joint.name], abs=0.02
        )
    for _ in range(60):
        sent = robot.send_action({"wrist_roll.pos": 30.0, "gripper.pos": 50.0})
    assert sent["wrist_roll.pos"] == pytest.approx(30.0, abs=1e-3)
    assert sent["gripper.pos"] == pytest.approx(50.0, abs=1e-3)
    reached = robot.get_observation()
    assert reached["wrist_roll.pos"] == pytest.approx(30.0, abs=2.0)
    assert reached["gripper.pos"] == pytest.approx(50.0, abs=2.0)
    assert reached["shoulder_pan.pos"] == pytest.approx(seen["shoulder_pan.pos"], abs=2.0)
    with pytest.raises(ValueError, match=r"elbow_flex.pos is nan; expected a finite number"):
        robot.send_action({"elbow_flex.pos": float("nan")})
    with pytest.raises(ValueError, match=r"the action has \['elbow'\]"):
        robot.send_action({"elbow": 1.0})
    robot.disconnect()
    assert not robot.is_connected


def _standing_in() -> dict[str, types.ModuleType]:
    """What the package takes from LeRobot."""

    @dataclass(kw_only=True)
    class RobotConfig:
        id: str | None = None
        calibration_dir: Path | None = None

        @staticmethod
        def register_subclass(name: str) -> Any:
            return lambda cls: cls

    class Robot(abc.ABC):  # noqa: B024 (they are added below)
        def __init__(self, config: Any) -> None:
            self.id, self.calibration_dir = config.id, config.calibration_dir
            self.calibration_fpath = config.calibration_dir / f"{config.id}.json"

    for name in ("connect", "calibrate", "configure", "get_observation", "send_action", "disconnect"):
        setattr(Robot, name, abc.abstractmethod(lambda self: None))
    for name in ("observation_features", "action_features", "is_connected", "is_calibrated"):
        setattr(Robot, name, property(abc.abstractmethod(lambda self: None)))
    abc.update_abstractmethods(Robot)
    given = {
        "lerobot": {}, "lerobot.cameras": {"CameraConfig": object}, "lerobot.utils": {},
        "lerobot.cameras.utils": {"make_cameras_from_configs": lambda configs: {}},
        "lerobot.robots": {"Robot": Robot, "RobotConfig": RobotConfig},
        "lerobot.utils.constants": {"HF_LEROBOT_CALIBRATION": Path("calibration"), "ROBOTS": "robots"},
    }  # fmt: skip
    modules = {name: types.ModuleType(name) for name in given}
    for name, attributes in given.items():
        vars(modules[name]).update(attributes)
    return modules
