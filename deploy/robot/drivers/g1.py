"""Unitree G1 (29 joints) by DDS: joint targets with gains at 500 Hz, pelvis IMU and joints back.

Never tried on hardware yet: on the emulator (``robo-rl emulate g1``) alone. The port is the network interface to the
robot, which has the address 192.168.123.161. A policy commands the legs; waist and arms are held.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.unitree.dds import config
from robo_rl.deploy.robot.drivers.unitree.family import HG
from robo_rl.deploy.robot.drivers.unitree.humanoid import Humanoid
from robo_rl.deploy.robot.drivers.unitree.link import KeeperProcess
from robo_rl.deploy.robot.drivers.unitree.mapping import Held, JointLimits

PORT = "eth0"
LEG = {
    "hip_pitch": (-2.5307, 2.8798, 88.0), "hip_roll": (-0.5236, 2.9671, 139.0), "hip_yaw": (-2.7576, 2.7576, 88.0),
    "knee": (-0.087267, 2.8798, 139.0), "ankle_pitch": (-0.87267, 0.5236, 50.0), "ankle_roll": (-0.2618, 0.2618, 50.0),
}  # fmt: skip
WAIST = {"yaw": (-2.618, 2.618, 88.0), "roll": (-0.52, 0.52, 50.0), "pitch": (-0.52, 0.52, 50.0)}
ARM = {
    "shoulder_pitch": (-3.0892, 2.6704, 25.0), "shoulder_roll": (-1.5882, 2.2515, 25.0),
    "shoulder_yaw": (-2.618, 2.618, 25.0), "elbow": (-1.0472, 2.0944, 25.0), "wrist_roll": (-1.9722, 1.9722, 25.0),
    "wrist_pitch": (-1.6144, 1.6144, 5.0), "wrist_yaw": (-1.6144, 1.6144, 5.0),
}  # fmt: skip
"""Of the left side: rad, rad, N m: unitree_ros d6f13aa, g1_29dof_rev_1_0.urdf."""
MIRRORED = ("hip_roll", "shoulder_roll")
"""Whose limits change sides and signs; those of the others are alike on both sides."""
MACHINE = 5
"""mode_machine of a G1 with 29 joints, hip pitch gear 14.3 and wrist motors 4010 (unitree_ros, g1_description)."""


def _side(side: str, parts: dict[str, tuple[float, float, float]]) -> list[JointLimits]:
    found = []
    for part, (lower, upper, effort) in parts.items():
        low, high = (-upper, -lower) if side == "right" and part in MIRRORED else (lower, upper)
        found.append(JointLimits(f"{side}_{part}_joint", low, high, effort))
    return found


JOINTS = (
    *_side("left", LEG), *_side("right", LEG),
    *(JointLimits(f"waist_{part}_joint", *limits) for part, limits in WAIST.items()),
    *_side("left", ARM), *_side("right", ARM),
)  # fmt: skip
"""In the order of the robot's motors (unitree_sdk2, G1JointIndex)."""
HELD = {
    joint.name: Held(0.0, 200.0, 5.0) if joint.name.startswith("waist") else Held(0.0, 40.0, 1.0)
    for joint in JOINTS[12:]
}
"""Where the model has them, all at 0 with the forearms ahead. Gains of the waist: unitree_rl_lab; of the arms:
unitree_sdk2, g1_23dof_example.cpp."""


def make(contract: Contract, settings: Settings) -> Humanoid:
    """The driver of a G1. DriverError where the contract is another robot's, or beyond the hardware."""
    if settings.calibration or settings.file:
        raise DriverError("a G1 takes neither --calibration nor --robot-file: its joints' zeros are in its motors")
    port = settings.port or PORT
    config(port)
    machine = contract.robot.facts.get("hardware", {}).get("mode_machine", MACHINE)

    def connect(damp: bool) -> KeeperProcess:
        return KeeperProcess(port, damp, len(JOINTS), HG)

    return Humanoid("Unitree G1", connect, contract, JOINTS, HELD, int(machine))
