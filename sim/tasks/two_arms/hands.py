"""Two hands as one: signals and commands of both arms side by side, the first arm's first, and an action for each.

Each is an arm's own hand (``robo_rl.sim.tasks.arm.hand``), which is given its part of the signals and of the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from robo_rl.contract import Command, PositionLaw, Signal
from robo_rl.sim.robots.two_arms import TwoArmCard
from robo_rl.sim.tasks.arm.hand import JointHand
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.workspace import Workspace


class TwoHands:
    """Of a robot with two arms that take positions of their joints."""

    def __init__(self, card: TwoArmCard, spaces: Mapping[str, Workspace]) -> None:
        self.hands = {name: JointHand(arm, spaces[name].lower, spaces[name].upper) for name, arm in card.arms.items()}
        self.joints = {name: Joints(arm) for name, arm in card.arms.items()}
        self.signals = _joined([hand.signals for hand in self.hands.values()])
        self.commands = _joined([hand.commands for hand in self.hands.values()])
        self.memory = tuple(
            replace(block, name=f"{name}_{block.name}") for name, hand in self.hands.items() for block in hand.memory
        )
        self.motion_size = sum(hand.motion_size for hand in self.hands.values())
        self._parts = _parts({name: (*hand.signals, *hand.commands) for name, hand in self.hands.items()})

    def tools(self, signals: Mapping[str, Any]) -> dict[str, Any]:
        """Of each arm (n, 3) m, where its tool is in the base frame."""
        return {name: hand.tool(self._of(name, signals)) for name, hand in self.hands.items()}

    def motion(self, signals: Mapping[str, Any]) -> Any:
        """(n, motion_size) how both move, for observations."""
        return torch.cat([hand.motion(self._of(name, signals)) for name, hand in self.hands.items()], -1)

    def command(self, action: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Commands for an action (n, 6), three of each arm, grippers open."""
        opened = torch.ones_like(action[:, :1])
        told = [
            hand.command(torch.cat([action[:, 3 * k : 3 * k + 3], opened], -1), _memory_of(name, memory))
            for k, (name, hand) in enumerate(self.hands.items())
        ]
        return {command.name: _beside(told, command.name) for command in self.commands}

    def remember(
        self, memory: Mapping[str, Any], signals: Mapping[str, Any], commands: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The memory for the next step."""
        return {
            f"{name}_{block}": value
            for name, hand in self.hands.items()
            for block, value in hand.remember(
                _memory_of(name, memory), self._of(name, signals), self._of(name, commands)
            ).items()
        }

    def change(self, commands: Mapping[str, Any], previous: Mapping[str, Any]) -> Any:
        """(n,) squared change of both arms' targets, as of a ``JointHand``."""
        changes = [hand.change(self._of(n, commands), self._of(n, previous)) for n, hand in self.hands.items()]
        return changes[0] + changes[1]

    def positions(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Positions of joints as the plant has them, of each arm's row (n, J) from base to tool."""
        told = [joints.apart(rows[name], "position") for name, joints in self.joints.items()]
        return {key: _beside(told, key) for key in dict.fromkeys(key for one in told for key in one)}

    def _of(self, arm: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """An arm's part of signals or commands."""
        return {name: values[name][:, first:end] for name, first, end in self._parts[arm] if name in values}


def _memory_of(arm: str, memory: Mapping[str, Any]) -> dict[str, Any]:
    first = f"{arm}_"
    return {name[len(first) :]: value for name, value in memory.items() if name.startswith(first)}


def _beside(told: list[dict[str, Any]], name: str) -> Any:
    return torch.cat([one[name] for one in told if name in one], -1)


def _parts(channels: Mapping[str, tuple[Any, ...]]) -> dict[str, list[tuple[str, int, int]]]:
    """Of each arm the names of channels with the first and the end of its elements among both arms'."""
    ends: dict[str, int] = {}
    found: dict[str, list[tuple[str, int, int]]] = {}
    for arm, own in channels.items():
        found[arm] = []
        for channel in own:
            first = ends.get(channel.name, 0)
            ends[channel.name] = first + len(channel.elements)
            found[arm].append((channel.name, first, ends[channel.name]))
    return found


def _joined(channels: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Signals, or commands, of one name made one."""
    found: dict[str, Any] = {}
    for channel in (channel for own in channels for channel in own):
        known = found.get(channel.name)
        found[channel.name] = _both(known, channel) if known else channel
    return tuple(found.values())


def _both(one: Any, other: Any) -> Any:
    joined = ["elements", "lower", "upper"]
    if isinstance(one, Signal):
        return replace(one, **_both_of(one, other, [*joined, "noise"]))
    assert isinstance(one, Command)
    if one.safe != "hold":
        joined.append("safe")
    mine, its = one.law, other.law
    assert isinstance(mine, PositionLaw)
    assert isinstance(its, PositionLaw)
    law = PositionLaw((*mine.stiffness, *its.stiffness), (*mine.damping, *its.damping))
    return replace(one, law=law, **_both_of(one, other, joined))


def _both_of(one: Any, other: Any, fields: list[str]) -> dict[str, Any]:
    return {field: (*getattr(one, field), *getattr(other, field)) for field in fields}
