"""An SO-101 as a LeRobot robot: positions in degrees, the gripper from 0 to 100, as those of LeRobot's own follower."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lerobot.cameras.utils import make_cameras_from_configs
from lerobot.robots import Robot
from lerobot.utils.constants import HF_LEROBOT_CALIBRATION, ROBOTS

from lerobot_robot_robo_rl.config import RoboRlSo101Config
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.bus_servos.joints import Joint
from robo_rl.deploy.robot.drivers.bus_servos.lerobot_units import from_lerobot, to_lerobot
from robo_rl.deploy.robot.drivers.driver import Settings
from robo_rl.deploy.robot.drivers.so101 import JOINTS
from robo_rl.deploy.robot.gated import Gated, own_contract

GRIPPER = "gripper"


class RoboRlSo101(Robot):
    """See the module's text. Whatever the gate or the driver finds wrong ends the session, with the reason."""

    config_class = RoboRlSo101Config
    name = "robo_rl_so101"

    def __init__(self, config: RoboRlSo101Config) -> None:
        if config.calibration_dir is None:
            config.calibration_dir = (
                HF_LEROBOT_CALIBRATION / ROBOTS / "so_follower"
            )  # where lerobot-calibrate writes it
        super().__init__(config)
        self.config = config
        self.cameras = make_cameras_from_configs(config.cameras)
        self._gated: Gated | None = None
        self._joints: dict[str, Joint] = {}
        self._places: dict[str, list[tuple[str, int]]] = {}
        """By joint: the signal of its position and its place there, then the same of its command."""
        self._targets: dict[str, np.ndarray] = {}

    @property
    def action_features(self) -> dict[str, type]:
        """Positions of all joints."""
        return {f"{joint}.pos": float for joint in JOINTS}

    @property
    def observation_features(self) -> dict[str, Any]:
        """Positions of all joints, and images."""
        shapes = {name: (camera.height, camera.width, 3) for name, camera in self.config.cameras.items()}
        return {**self.action_features, **shapes}

    @property
    def is_connected(self) -> bool:
        """Whether the loop runs, and all cameras are there."""
        return self._gated is not None and all(camera.is_connected for camera in self.cameras.values())

    @property
    def is_calibrated(self) -> bool:
        """Whether there is a calibration; that it is the arm's own is checked when the arm is connected."""
        return self.calibration_fpath.is_file()

    def calibrate(self) -> None:
        """LeRobot's own calibration of this arm, at the terminal; not while it is connected."""
        from lerobot.robots.so_follower import SO101Follower, SO101FollowerConfig

        if self._gated is not None:
            raise RuntimeError("the arm is connected; disconnect it before it is calibrated")
        theirs = SO101Follower(
            SO101FollowerConfig(id=self.id, calibration_dir=self.calibration_dir, port=self.config.port)
        )
        theirs.bus.connect()
        try:
            theirs.calibrate()
        finally:
            theirs.bus.disconnect()
        self._load_calibration()

    def connect(self, calibrate: bool = True) -> None:
        """Find the arm, check it against contract and calibration, and let it hold where it is."""
        if self._gated is not None:
            raise RuntimeError(f"{self} is connected already")
        if calibrate and not self.is_calibrated:
            self.calibrate()
        contract = Bundle.read(self.config.policy).contract
        driver: Any = make(
            "so101", contract, Settings(self.config.port, self.config.robot_file, str(self.calibration_fpath))
        )
        try:
            driver.connect()
            gated = Gated(driver, own_contract(contract, driver), self.config.speed)
        except Exception:
            driver.close()
            raise
        self._gated, self._joints = gated, {joint.name: joint for joint in driver.joints}
        self._find_places()
        try:
            gated.start()
            for camera in self.cameras.values():
                camera.connect()
            self.configure()
        except Exception:
            self.disconnect()
            raise

    def configure(self) -> None:
        """Gains are set and compared when the arm is connected; what is left is to let it hold where it is."""
        self._running().arm()
        self._targets = {}

    def get_observation(self) -> dict[str, Any]:
        """The newest positions, and images."""
        signals = self._running().signals()
        found: dict[str, Any] = {}
        for name, ((signal, i), _) in self._places.items():
            found[f"{name}.pos"] = to_lerobot(self._joints[name], float(signals[signal][i]), name == GRIPPER)
        return {**found, **{name: camera.read_latest() for name, camera in self.cameras.items()}}

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Follow these positions; joints that are left out keep their last. What was sent, within limits and speed."""
        gated = self._running()
        unknown = sorted(set(action) - set(self.action_features))
        if unknown:
            raise ValueError(f"the action has {unknown}; expected {list(self.action_features)}")
        if not self._targets:  # until the first one, where the arm is
            self._targets = gated.target.here(gated.signals())
        for name, value in action.items():
            if not math.isfinite(float(value)):
                raise ValueError(f"the action's {name} is {value}; expected a finite number")
        targets = {name: target.copy() for name, target in self._targets.items()}
        for name, (_, (command, i)) in self._places.items():
            if f"{name}.pos" in action:
                targets[command][i] = from_lerobot(self._joints[name], float(action[f"{name}.pos"]), name == GRIPPER)
        sent = gated.send(targets)
        self._targets = targets
        return {
            f"{name}.pos": to_lerobot(self._joints[name], float(sent[command][i]), name == GRIPPER)
            for name, (_, (command, i)) in self._places.items()
        }

    def disconnect(self) -> None:
        """Stop where it is; it holds, or falls if the configuration says so."""
        gated, self._gated = self._gated, None
        try:
            if gated is not None:
                gated.close(release=self.config.disable_torque_on_disconnect)
        finally:
            for camera in self.cameras.values():
                if camera.is_connected:
                    camera.disconnect()

    # ----------------------------------------------------------------------------------------------------------------

    def _running(self) -> Gated:
        if self._gated is None:
            raise ConnectionError(f"{self} is not connected; call connect() first")
        return self._gated

    def _find_places(self) -> None:
        assert self._gated is not None
        contract = self._gated.contract
        self._places = {
            name: [
                (channel.name, channel.elements.index(name))
                for channels in (contract.signals, contract.commands)
                for channel in channels
                if channel.unit == "rad" and name in channel.elements
            ]
            for name in JOINTS
        }
