"""Plans in the place of a policy: "arm-place-plans" is the robot of "arm-place", following plans from outside.

A plan is rows of targets for the robot's commands, STEPS control periods apart, from the moment that its request was
made: of a policy server, or a planner. What is on the robot is a bundle like any other, without a network: it
interpolates the newest plan at its age, begins a new one where the last command was and goes over to it within BLEND,
changes no command faster than its speed limit, and holds its last command past the plan's end. What talks to the server
is ``robo_rl.deploy.robot.plans``.

In a simulation of its own, such as that of ``robo-rl verify``, the plans are waves about the middle of the commands'
limits, a new one every RENEWED. Nothing is learnt, and no success is expected.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from robo_rl.contract import Command, ContractError, Signal, StateBlock
from robo_rl.contract.channels import feedback
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Task, Tensors

SUFFIX = "-plans"
AGE = "plan_age"
ROWS = 32
"""Of a plan."""
STEPS = 2
"""Control periods between two rows."""
HOLD = 0.5
"""s past a plan's end for which the robot holds; then it is stopped, as the plan is too old."""
BLEND = 0.06
"""s in which a plan goes over to the next."""
FULL_RANGE = 0.4
"""s that a command needs to go through all of its limits: its greatest speed."""
JUMP = 0.75
"""Of a command's limits, the most between two rows, and between the last command and a new plan. A gripper may open or
close from one row to the next."""
GRIPPER = "gripper"
"""The frame of grippers' commands."""
RENEWED, SWING, TURN = 0.6, 0.25, 1.5
"""s between the plans of the simulation, the part of the limits that they swing to either side, and rad/s."""


def plan_name(command: Command) -> str:
    """Of the signal with the plan for a command."""
    return command.name.removesuffix("_target") + "_plan"


class Planned(Task):
    """What ``planned`` adds to a task."""

    algorithms = ()
    action_size, observation_size = 0, 1
    encoders = ()
    student, families, settings = None, (), {}
    expected = 0.0

    def __init__(self, card: Any = None) -> None:
        super().__init__() if card is None else super().__init__(card)  # type: ignore[call-arg]
        before = self.spec
        self.own_goal, self.goal_size = self.goal_size, self.goal_size + 2
        self.action_size, self.observation_size = 0, 1
        self.dt = STEPS * before.control_period
        length = (ROWS - 1) * self.dt
        self.length = length
        self.measured = [(c, feedback(before.signals, c)) for c in before.commands if _feeds(before.signals, c)]
        if len(self.measured) < len(before.commands):
            lacking = [c.name for c in before.commands if not _feeds(before.signals, c)]
            raise ContractError(
                f"'{before.name}' measures nothing like its commands {lacking}: no plan can be held there"
            )
        plans = tuple(
            Signal(
                plan_name(c), c.elements, c.unit, c.frame, c.lower, c.upper, source="operator", shape=(ROWS, c.size),
                timeout=length + HOLD,
            )
            for c in before.commands
        )  # fmt: skip
        age = Signal(AGE, ("age",), "s", "plan", (0.0,), (2.0 * length,), source="operator")
        size = sum(c.size for c in before.commands)
        memory = (
            StateBlock("command", (size,), (0.0,) * size), StateBlock("offset", (size,), (0.0,) * size),
            StateBlock("blend", (3,), (0.0, 0.0, 2.0 * length)),
        )  # fmt: skip
        self.spec = dataclasses.replace(
            before,
            name=self.name,
            summary=self.summary,
            signals=(*before.signals, *plans, age),
            memory=memory,
            ranges={**before.ranges, "plan/phase": Range.fixed(0.0, math.tau), "plan/age": Range.fixed(0.0, RENEWED)},
            rules=(),
            facts={**before.facts, "plan": self._plan_facts(before.commands)},
        )

    def _plan_facts(self, commands: tuple[Command, ...]) -> dict[str, Any]:
        """What the client needs to know besides the signals."""
        spans = {c.name: [high - low for low, high in zip(c.lower, c.upper, strict=True)] for c in commands}
        jump = {c.name: [(1.0 if c.frame == GRIPPER else JUMP) * x for x in spans[c.name]] for c in commands}
        speed = {name: [x / FULL_RANGE for x in span] for name, span in spans.items()}
        names = {c.name: plan_name(c) for c in commands}
        return {"rows": ROWS, "dt": self.dt, "signals": names, "age": AGE, "jump": jump, "speed": speed,
                "blend": BLEND, "hold": HOLD}  # fmt: skip

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        return signals[AGE]

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self._commands_apart(memory["command"])

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return dict(memory)

    def act(
        self, action: Any, signals: Tensors, memory: Tensors, limit: Callable[[str, Any], Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        period = self.spec.control_period
        plan = torch.cat([signals[plan_name(c)] for c in self.spec.commands], -1)
        age, (begun, left, before) = signals[AGE], memory["blend"].split(1, 1)
        measured = torch.cat([signals[s][:, i : i + 1] for _, pairs in self.measured for s, i in pairs], -1)
        last = torch.where(begun > 0.5, memory["command"], self._within_limits(measured))
        fresh = (age < before + 0.5 * period) | (begun < 0.5)
        offset = torch.where(fresh, last - self._plan_at(plan, age - period), memory["offset"])
        left = torch.clamp(torch.where(fresh, torch.ones_like(left), left) - period / BLEND, min=0.0)
        change = self._plan_at(plan, age) + offset * left - last
        most = period * self._limits_row([x for c in self.spec.commands for x in self._most_speed(c)])
        command = self._within_limits(last + torch.minimum(torch.maximum(change, -most), most))
        command = torch.where(age < self.length + 1e-4, command, last)
        commands = self._commands_apart(command)
        if limit is not None:
            commands = {name: limit(name, value) for name, value in commands.items()}
        blend = torch.cat([torch.ones_like(left), left, age], -1)
        return commands, {"command": command, "offset": offset, "blend": blend}

    def _plan_at(self, plan: Any, age: Any) -> Any:
        """(n, D) the plan (n, ROWS, D) at an age (n, 1) s, in a straight line between two rows."""
        place = torch.clamp(age / self.dt, 0.0, ROWS - 1.0)
        weights = torch.clamp(1.0 - (place - torch.arange(ROWS, dtype=torch.float32)[None]).abs(), min=0.0)
        return (weights[:, :, None] * plan).sum(1)

    def _most_speed(self, command: Command) -> list[float]:
        return [(high - low) / FULL_RANGE for low, high in zip(command.lower, command.upper, strict=True)]

    def _limits_row(self, values: list[float]) -> Any:
        return torch.tensor([values], dtype=torch.float32)

    def _within_limits(self, value: Any) -> Any:
        lower, upper = (
            self._limits_row([x for c in self.spec.commands for x in getattr(c, side)]) for side in ("lower", "upper")
        )
        return torch.minimum(torch.maximum(value, lower), upper)

    def _commands_apart(self, row: Any) -> dict[str, Any]:
        parts = row.split([c.size for c in self.spec.commands], 1)
        return {c.name: part for c, part in zip(self.spec.commands, parts, strict=True)}

    # --- simulation ----------------------------------------------------------------------------------------------

    def goal(self, drawn: Mapping[str, Any]) -> Any:
        own = super().goal(drawn)  # type: ignore[safe-super]
        return torch.cat([own, drawn["plan/phase"][:, None], drawn["plan/age"][:, None]], -1)

    def place(self, plant: Any, ids: Any, drawn: Mapping[str, Any], goal: Any) -> None:
        super().place(plant, ids, drawn, goal[:, : self.own_goal])  # type: ignore[safe-super]

    def advance(self, truth: Tensors, goal: Any) -> Any:
        found = super().advance(truth, goal[:, : self.own_goal])
        return None if found is None else torch.cat([found, goal[:, self.own_goal :]], -1)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        phase, ahead = goal[:, self.own_goal :].split(1, 1)
        passed = time[:, None] + ahead
        beginnings = RENEWED * torch.arange(1.0, 2.0 + 2.0 * self.spec.episode_length / RENEWED)[None]
        age = passed - RENEWED * torch.where(passed >= beginnings, 1.0, 0.0).sum(-1, keepdim=True)
        rows = (passed - age)[:, :, None] + self.dt * torch.arange(ROWS, dtype=torch.float32)[None, :, None]
        found = {AGE: age}
        for c in self.spec.commands:
            lower, upper = torch.tensor(c.lower), torch.tensor(c.upper)
            turn = TURN * rows + phase[:, :, None] + torch.arange(c.size, dtype=torch.float32)[None, None]
            found[plan_name(c)] = 0.5 * (lower + upper) + SWING * (upper - lower) * torch.sin(turn)
        own: dict[str, Any] = super().reference(time, goal[:, : self.own_goal])  # type: ignore[safe-super]
        return {**own, **found}


def _feeds(signals: tuple[Signal, ...], command: Command) -> bool:
    try:
        return bool(feedback(signals, command))
    except ContractError:
        return False


def planned(base: type[Task]) -> type[Task]:
    """The task whose robot is that of ``base`` and follows plans."""
    told = {"name": base.name + SUFFIX, "summary": f"follow plans from outside, with the robot of {base.name}"}
    return type(f"{base.__name__}Plans", (Planned, base), told)
