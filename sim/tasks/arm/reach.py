"""Reaching: an arm brings its tool to a place in its workspace, and holds it there for a fifth of a second.

The smallest task of an arm: what it learns is how its own low level moves, with gains, delays and noise that differ
between episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Safety, Signal
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ, hand
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.physical import arm_envelope, arm_facts, arm_ranges, randomize_arm, simulated
from robo_rl.sim.tasks.arm.workspace import workspace

PERIOD = 0.02  # s
NEAR = 0.01  # m
HELD = 10  # control steps
GAIN = 0.6  # of the way that is left, how much the script's target is ahead of the tool


class Reach(Task[Articulated]):
    """Bring the tool to a set-point, within 1 cm."""

    name = "arm-reach"
    summary = "bring the tool to a set-point"
    card_type = ArmCard
    plants = ("mujoco", "warp")
    solving: Mapping[str, float] = MappingProxyType({})
    measures = (Measure("tool_position_error", "m", "end", 0.1),)
    perturbed = ("stiffness", "damping", "command_delay", "noise")
    action_size = 3
    goal_size = 4
    algorithms = ("ppo", "bc", "sac")
    settings = MappingProxyType(
        {
            "ppo": {
                "updates": 60,
                "environments": 256,
                "horizon": 16,
                "gamma": 0.95,
                "hidden": (32, 32),
                "critic_hidden": (64, 64),
                "activation": "elu",
                "initial_deviation": 0.5,
                "anneal": 0.4,
            }
        }
    )

    weights = {"distance": -1.0, "near": 0.5, "success": 5.0, "change": -0.002}

    def __init__(self, card: ArmCard | None = None) -> None:
        card = card or load_arm("panda")
        self.card, self.space = card, workspace(card)
        self.hand = hand(card, self.space.lower, self.space.upper)
        self.observation_size = 6 + self.hand.motion_size
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=4.0,
            signals=(
                *self.hand.signals,
                Signal("tool_position_setpoint", XYZ, "m", "base", (-2.0,) * 3, (2.0,) * 3, source="operator"),
            ),
            commands=self.hand.commands,
            memory=self.hand.memory,
            safety=Safety(signal_timeout=0.06, envelope=arm_envelope(card, self.space)),
            reward=dict(self.weights),
            ranges={
                "initial/pose": Range.fixed(0.0, 1.0),
                "goal/place": Range.fixed(0.0, 1.0, count=3, unit="× workspace"),
                **arm_ranges(),
            },
            facts={
                **arm_facts(card, self.space),
                "references": {"tool_position_setpoint": "where the tool is to be, in nine tenths of the box"},
                "success": {"tool_within_m": NEAR, "for_s": HELD * PERIOD},
            },
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n arms in an engine, a class of ``robo_rl.sim.plants``."""
        return engine(self.card.mechanism, n, PERIOD, **settings)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.arm import engines

        return engines.engines(self)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        randomize_arm(self.card, plant, ids, drawn)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 4): the set-point (m), and the steps for which the tool is there."""
        low, high = torch.tensor(self.space.lower), torch.tensor(self.space.upper)
        place = low + (high - low) * (0.05 + 0.9 * drawn["goal/place"])
        return torch.cat([place, torch.zeros(len(place), 1)], -1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        count = len(self.space.places)
        pose = (drawn["initial/pose"] * count).long().clamp(max=count - 1)
        plant.place(ids, **Joints(self.card).apart(self.space.angles[pose], "position"))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"tool_position_setpoint": goal[:, :3], "there": goal[:, 3:]}

    def advance(self, truth: Tensors, goal: Any) -> Any:
        there = torch.where(self._near(truth)[:, None], truth["there"] + 1.0, 0.0)
        return torch.cat([goal[:, :3], there], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        tool = self.hand.tool(signals)
        away = 1.0 / self.hand.step * (signals["tool_position_setpoint"] - tool)
        return torch.cat(
            [8.0 * (tool - self.space.origin), torch.clamp(away, -4.0, 4.0), self.hand.motion(signals)], -1
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self.hand.command(torch.cat([action, torch.ones_like(action[:, :1])], -1), memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return self.hand.remember(memory, signals, commands)

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 3) actions of a script: ahead of the tool by a part of the way that is left."""
        away = signals["tool_position_setpoint"] - self.hand.tool(signals)
        return torch.clamp(GAIN / self.hand.step * away, -1.0, 1.0)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the tool is from its set-point, (n,) m."""
        away = truth["tool_position"] - truth["tool_position_setpoint"]
        return {"tool_position_error": torch.sqrt(away.square().sum(-1))}

    def _near(self, truth: Tensors) -> Any:
        return self.errors(truth)["tool_position_error"] < NEAR

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error = self.errors(truth)["tool_position_error"]
        return {
            "distance": error,
            "near": torch.exp(-10000.0 * error.square()),
            "success": torch.where(self.succeeded(truth), 1.0, 0.0),
            "change": self.hand.change(commands, previous),
        }

    def failed(self, truth: Tensors) -> Any:
        """Nothing that a tool in its workspace can do is a failure."""
        return truth["tool_position"][:, 2] < -1.0

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"tool below the base": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return self._near(truth) & (truth["there"][:, 0] > HELD - 1.5)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        tool = truth["tool_position"]
        return torch.cat(
            [
                8.0 * (tool - self.space.origin),
                10.0 * (truth["tool_position_setpoint"] - tool),
                2.0 * truth["tool_linear_velocity"],
                0.1 * truth["there"],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere("set-point", truth["tool_position_setpoint"], radius=0.018)]
