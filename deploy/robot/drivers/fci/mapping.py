"""What of a contract a Franka arm does, and what it is refused for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robo_rl.contract import Command, Contract
from robo_rl.contract.laws import ImpedanceLaw
from robo_rl.controllers.arm.chain import Chain, orientation_at_home
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.drivers.fci.states import ArmState

TOOL, HAND = "tool_position_target", "gripper_position_target"
JOINTS = 7
WIDEST = 0.04
"""m, of a finger's travel: franka_description, hand.xacro."""
STIFFEST = (3000.0, 300.0)
"""N/m and N m/rad: the bounds of libfranka's setCartesianImpedance, taken for the one at 1 kHz too."""
FASTEST = 1000.0
"""Hz, of libfranka's control loop."""
FLANGE = 0.107
"""m, from the frame of joint 7 to the flange: franka_description."""
NEAR, TURNED = 0.002, 0.01
"""m and rad by which frames may differ that are taken to be the same."""


class Names:
    """A contract's names, as far as an arm has them."""

    def __init__(self, contract: Contract, file: FrankaFile) -> None:
        """DriverError where the contract is another robot's, or beyond the hardware."""
        by_name = {command.name: command for command in contract.commands}
        if contract.robot.kind != "arm" or set(by_name) != {TOOL, HAND}:
            names = [f"{c.name} in {c.unit}" for c in contract.commands]
            raise DriverError(f"the policy commands {names}; a Franka takes {TOOL} and {HAND}, both in m")
        joints = len(contract.robot.facts.get("chain", ()))
        if joints != JOINTS:
            raise DriverError(f"the policy's robot '{contract.robot.name}' has {joints} joints; a Franka has {JOINTS}")
        self.law = impedance(by_name[TOOL], file)
        hand = by_name[HAND]
        if hand.unit != "m" or len(hand.elements) != 1 or hand.upper[0] > WIDEST + 1e-6 or hand.lower[0] < 0:
            raise DriverError(
                f"'{HAND}' is {hand.lower} to {hand.upper} {hand.unit}; a finger of the Franka hand moves from 0 to "
                f"{WIDEST} m"
            )
        rate = 1 / contract.control_period
        if rate > FASTEST:
            raise DriverError(f"the policy runs at {rate:g} Hz; a Franka is commanded at {FASTEST:g} Hz")
        self.chain, self.turn = Chain.from_facts(contract.robot.facts), np.array(orientation_at_home(contract.robot))
        arm = [a.name for a in contract.robot.actuators][:JOINTS]
        self.measured = tuple(
            signal.name
            for signal in contract.signals
            if signal.source == "sensor" and fits(signal.name, tuple(signal.elements), arm)
        )

    def same_tool(self, state: ArmState) -> None:
        """DriverError unless the robot's end effector is the law's tool, and its kinematics are the policy's."""
        tool = self.chain.tool
        position = np.array(tool.position) - [0.0, 0.0, FLANGE]
        off = float(np.linalg.norm(state.tool_position - position))
        turned = between(state.tool_orientation, np.array(tool.orientation))
        if off > NEAR or turned > TURNED:
            raise DriverError(
                f"the robot's end effector is at {rounded(state.tool_position)} m from its flange, turned by "
                f"{rounded(state.tool_orientation)} (F_T_EE); the policy's tool '{self.law.tool}' is at "
                f"{rounded(position)} m, {rounded(tool.orientation)}: choose the Franka hand as end effector in Desk"
            )
        pose = self.chain.pose(state.q.tolist())
        off = float(np.linalg.norm(state.position - np.array(pose.position)))
        if off > NEAR:
            raise DriverError(
                f"the robot says that its tool is at {rounded(state.position)} m; the policy's robot with these joint "
                f"angles has it at {rounded(pose.position)} m: they are not the same robot"
            )

    def velocity(self, state: ArmState) -> np.ndarray:
        """(3,) m/s of the tool, in the base frame."""
        linear, _ = self.chain.pose(state.q.tolist()).jacobian()
        return np.array(linear).T @ state.dq


def impedance(command: Command, file: FrankaFile) -> ImpedanceLaw:
    """Its law. DriverError where the arm can't have it."""
    law = command.law
    if command.unit != "m" or command.frame != "base" or not isinstance(law, ImpedanceLaw):
        raise DriverError(f"'{command.name}' is in {command.unit}, {command.frame}; expected m, base, and an impedance")
    for first, most, unit in ((0, STIFFEST[0], "N/m"), (3, STIFFEST[1], "N m/rad")):
        greatest = max(law.stiffness[first : first + 3])
        if greatest > most:
            raise DriverError(f"the law's stiffness is {greatest:g} {unit}; a Franka takes at most {most:g}")
        force = max(law.stiffness[axis] * law.clip[axis] for axis in range(first, first + 3))
        if force > file.force_threshold:
            raise DriverError(
                f"the law pushes with up to {force:g} {unit.split('/')[0]}; force_threshold, {file.force_threshold:g}, "
                "lets the robot stop before that"
            )
    return law


def fits(name: str, elements: tuple[str, ...], joints: Sequence[str]) -> bool:
    """Whether a signal of the contract is one that the driver measures."""
    if name in ("tool_position", "tool_linear_velocity"):
        return elements == ("x", "y", "z")
    if name in ("joint_position", "joint_velocity"):
        return elements == tuple(joints)
    if name == "tool_orientation":
        return elements == ("x", "y", "z", "w")
    return name == "gripper_position" and len(elements) == 1


def between(one: np.ndarray, other: np.ndarray) -> float:
    """rad between two orientations (4,) x, y, z, w."""
    return 2.0 * math.acos(
        min(1.0, abs(float(np.dot(one, other))) / float(np.linalg.norm(one) * np.linalg.norm(other)))
    )


def rounded(values: Sequence[float] | np.ndarray) -> list[float]:
    """To three decimals, for sentences."""
    return [round(float(value), 3) + 0.0 for value in values]
