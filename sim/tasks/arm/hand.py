"""How actions move a hand, by the arm's own law: as an impedance that takes poses, or by positions of the joints.

An action is a displacement of the tool (m) from where it was measured, and how far the gripper is to open. So the
reference never runs away from the arm: a tool that meets something presses on it with a bounded force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Signal, StateBlock
from robo_rl.controllers.arm import pointing_step, pose_step
from robo_rl.controllers.arm.chain import Pose
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.tasks.arm.joints import DELAY, Joints

XYZ = ("x", "y", "z")
STEP = 0.1  # of the width of the workspace, from the measured tool to its target, at an action of 1 along an axis
BESIDE = 0.02  # m, of the tool beyond the workspace: a cube is not in the middle of a gripper whose one jaw moves
LOAD_RATE = 0.15  # of the estimate of that deflection, per step
SPEED = 5.0  # m/s, far beyond what tools of such arms reach


class ToolHand:
    """An arm that takes poses of its tool; the turn of the tool stays what it was."""

    def __init__(self, card: ArmCard, lower: tuple[float, ...], upper: tuple[float, ...]) -> None:
        """``lower`` and ``upper`` (3,) m, of the box that targets are in."""
        self.card = card
        self.step = STEP * (upper[1] - lower[1])
        self.lower, self.upper = torch.tensor([lower]), torch.tensor([upper])
        at_home = tuple(float(x) for x in card.chain.pose([float(angle) for angle in card.home]).position)
        self.signals = (
            Signal("tool_position", XYZ, "m", "base", (-2.0,) * 3, (2.0,) * 3, noise=(2e-4,) * 3, delay=DELAY),
            Signal(
                "tool_linear_velocity", XYZ, "m/s", "base", (-SPEED,) * 3, (SPEED,) * 3, noise=(0.005,) * 3, delay=DELAY
            ),
            *gripper_signals(card),
        )
        self.commands = (
            Command(
                "tool_position_target", XYZ, "m", "base", lower, upper, safe="hold", stop="hold", law=card.tool_law,
                feedback="tool_position",
            ),
            *gripper_commands(card),
        )  # fmt: skip
        self.memory: tuple[StateBlock, ...] = (StateBlock("tool", (3,), at_home),)
        self.motion_size = 3

    def tool(self, signals: Mapping[str, Any]) -> Any:
        """(n, 3) m, where it is in the base frame."""
        return signals["tool_position"]

    def facing(self, signals: Mapping[str, Any]) -> None:
        """As a ``JointHand``'s: both of its jaws move."""

    def motion(self, signals: Mapping[str, Any]) -> Any:
        """(n, motion_size) how it moves, for observations."""
        return 2.0 * signals["tool_linear_velocity"]

    def command(self, action: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Commands for an action (n, 4) and the memory of the last signals."""
        target = memory["tool"] + self.step * torch.clamp(action[:, :3], -1.0, 1.0)
        target = torch.minimum(torch.maximum(target, self.lower), self.upper)
        return {"tool_position_target": target, **_grip(self.card, action)}

    def remember(
        self, memory: Mapping[str, Any], signals: Mapping[str, Any], commands: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The memory for the next step."""
        return {"tool": signals["tool_position"]}

    def change(self, commands: Mapping[str, Any], previous: Mapping[str, Any]) -> Any:
        """(n,) squared change of the tool's target, in steps."""
        change = (commands["tool_position_target"] - previous["tool_position_target"]) / self.step
        return change.square().sum(-1)


class JointHand:
    """An arm that takes positions of its joints: targets come from damped least squares, the tool pointing down,
    and with six joints or more turned as at home.

    A servo with a proportional law yields to the weight of its links, so a target that is ahead of the measured angle
    by what is left of the way ends where the two cancel: 8 mm beside its place, with an SO-101. What a servo yields is
    estimated (target − angle − D/K · speed, at rest and in slow motion) and added to the target: an integral action
    that does not wind up on the way.
    """

    def __init__(self, card: ArmCard, lower: tuple[float, ...], upper: tuple[float, ...]) -> None:
        """``lower`` and ``upper`` (3,) m, of the box that the tool's targets are in, and BESIDE on its sides."""
        self.card, self.chain = card, card.chain
        self.step = STEP * (upper[1] - lower[1])
        self.joints, count = Joints(card), len(card.joints)
        limits = tuple(j.lower for j in card.joints), tuple(j.upper for j in card.joints)
        self.stops = torch.tensor([limits[0]]), torch.tensor([limits[1]])
        wide = torch.tensor([[BESIDE, BESIDE, 0.0]])
        self.box = torch.tensor([lower]) - wide, torch.tensor([upper]) + wide
        self.signals = (*self.joints.signals(), *gripper_signals(card))
        self.commands = (*self.joints.commands(), *gripper_commands(card))
        self.memory: tuple[StateBlock, ...] = (
            StateBlock("joints", (count,), card.home),
            StateBlock("target", (count,), card.home),
            StateBlock("load", (count,), (0.0,) * count),
        )
        self.lag = torch.tensor([[j.damping / j.stiffness for j in card.joints]])
        self.motion_size, self.one_jaw = count, card.one_jaw

    def tool(self, signals: Mapping[str, Any]) -> Any:
        """(n, 3) m, where it is in the base frame."""
        return torch.stack(self._pose(signals).position, -1)

    def facing(self, signals: Mapping[str, Any]) -> Any:
        """The direction from the pad that is fixed to the one that moves, three of (n,); None where both move."""
        if not self.one_jaw:
            return None
        return self._pose(signals).y

    def _pose(self, signals: Mapping[str, Any]) -> Pose:
        return self.chain.pose(self.joints.row(signals, "position").unbind(-1))

    def motion(self, signals: Mapping[str, Any]) -> Any:
        """(n, motion_size) how it moves, for observations."""
        return self.joints.seen * self.joints.row(signals, "velocity")

    def command(self, action: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Commands for an action (n, 4) and the memory of the last signals."""
        joints = memory["joints"]
        angles = joints.unbind(-1)
        pose = self.chain.pose(angles)
        tool = torch.stack(pose.position, -1)
        target = tool + self.step * torch.clamp(action[:, :3], -1.0, 1.0)
        target = torch.minimum(torch.maximum(target, self.box[0]), self.box[1])
        if self.card.turned is None:
            step = pointing_step(self.chain, angles, (target - tool).unbind(-1))
        else:
            near = tool + torch.clamp(target - tool, -self.step, self.step)  # far from the box, one step at a time
            step = pose_step(self.chain, pose, near.unbind(-1), self.card.turned)
        turn = torch.stack(step, -1)
        target = joints + memory["load"] + torch.clamp(turn, -self.joints.step, self.joints.step)
        target = torch.minimum(torch.maximum(target, self.stops[0]), self.stops[1])
        return {**self.joints.apart(target, "position_target"), **_grip(self.card, action)}

    def remember(
        self, memory: Mapping[str, Any], signals: Mapping[str, Any], commands: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The memory for the next step."""
        angles, load = self.joints.row(signals, "position"), memory["load"]
        yielded = memory["target"] - angles - self.lag * self.joints.row(signals, "velocity")
        load = torch.clamp(load + LOAD_RATE * (yielded - load), -self.joints.loaded, self.joints.loaded)
        return {"joints": angles, "target": self.joints.row(commands, "position_target"), "load": load}

    def change(self, commands: Mapping[str, Any], previous: Mapping[str, Any]) -> Any:
        """(n,) squared change of the joints' targets, in 0.1 rad, of slides in 0.033 m."""
        now, before = (self.joints.row(told, "position_target") for told in (commands, previous))
        return (self.joints.changed * (now - before)).square().sum(-1)


Hand = ToolHand | JointHand


def hand(card: ArmCard, lower: tuple[float, ...], upper: tuple[float, ...]) -> Hand:
    """That which suits an arm."""
    return ToolHand(card, lower, upper) if card.impedance else JointHand(card, lower, upper)


def opened(jaw: Any, action: Any) -> Any:
    """(n, 1) where the gripper is to go: closed at an action of 0 and below, open at 0.5 and above.

    So hands that act at random hold what they have more often than not.
    """
    part = torch.clamp(2.0 * action, 0.0, 1.0)
    return jaw.lower + (jaw.upper - jaw.lower) * part


def _grip(card: ArmCard, action: Any) -> dict[str, Any]:
    """The gripper's command for an action (n, 4), of an arm that has one."""
    return {"gripper_position_target": opened(card.gripper.joint, action[:, 3:])} if card.fingers else {}


def gripper_signals(card: ArmCard) -> tuple[Signal, ...]:
    """How far it is open, of an arm that has one."""
    if card.fingers is None:
        return ()
    jaw, unit = card.gripper.joint, card.gripper.unit
    width = jaw.upper - jaw.lower
    limits = (jaw.lower - 0.2 * width,), (jaw.upper + 0.2 * width,)
    return (Signal("gripper_position", (jaw.name,), unit, "gripper", *limits, noise=(0.005 * width,), delay=DELAY),)


def gripper_commands(card: ArmCard) -> tuple[Command, ...]:
    """Of an arm that has one: in a stop it closes slowly, and keeps what it holds."""
    if card.fingers is None:
        return ()
    jaw, unit = card.gripper.joint, card.gripper.unit
    found = Command(
        "gripper_position_target", (jaw.name,), unit, "gripper", (jaw.lower,), (jaw.upper,), safe=(jaw.lower,),
        stop="ramp", law=card.gripper_law, feedback="gripper_position",
    )  # fmt: skip
    return (found,)


def grip(card: ArmCard, part: Tensor) -> Tensor:
    """(n, 1) position of a gripper that is open to ``part`` (n,), 0 to 1."""
    jaw = card.gripper.joint
    return (jaw.lower + (jaw.upper - jaw.lower) * part)[:, None]
