"""Reaching with both arms: each tool goes to a place in its own workspace, and both stay there for a fifth of a second.

What ``arm-reach`` is for one arm, in one policy for both.
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
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.two_arms import TwoArmCard
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import XYZ
from robo_rl.sim.tasks.arm.physical import arm_facts, arm_ranges, randomize_arm, simulated
from robo_rl.sim.tasks.arm.reach import GAIN, HELD, NEAR, PERIOD, Reach
from robo_rl.sim.tasks.scripted import Scripted
from robo_rl.sim.tasks.two_arms.apart import workspaces
from robo_rl.sim.tasks.two_arms.hands import TwoHands


class ReachBoth(Task[Articulated]):
    """Bring both tools to their set-points, within 1 cm."""

    name = "arms-reach"
    summary = "bring both tools of a robot with two arms to their set-points"
    card_type = TwoArmCard
    plants = ("mujoco", "warp")
    solving: Mapping[str, float] = MappingProxyType({})
    measures = (Measure("tool_position_error", "m", "end", 0.1),)
    perturbed = Reach.perturbed
    action_size = 6
    goal_size = 7
    algorithms = ("ppo", "bc", "sac")
    settings = MappingProxyType({"ppo": {**Reach.settings["ppo"], "updates": 150, "hidden": (64, 64)}})

    weights = MappingProxyType({**Reach.weights, "success": 30.0})
    """An end in success is worth more than what ``near`` gives in 20 steps beside it, 1 / (1 - gamma)."""

    def __init__(self, card: TwoArmCard | None = None) -> None:
        card = card or load_robot("bi_so101", TwoArmCard)
        self.card, self.spaces = card, workspaces(card)
        self.hands = TwoHands(card, self.spaces)
        self.observation_size = 12 + self.hands.motion_size
        self.goals = {name: f"{name}_tool_position_setpoint" for name in card.arms}
        setpoints = (
            Signal(goal, XYZ, "m", "base", (-2.0,) * 3, (2.0,) * 3, source="operator") for goal in self.goals.values()
        )
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=4.0,
            signals=(*self.hands.signals, *setpoints),
            commands=self.hands.commands,
            memory=self.hands.memory,
            safety=Safety(signal_timeout=0.06),
            reward=dict(self.weights),
            ranges={
                "initial/pose": Range.fixed(0.0, 1.0, count=2),
                "goal/place": Range.fixed(0.0, 1.0, count=6, unit="× workspace"),
                **arm_ranges(),
            },
            facts={
                "arms": {name: arm_facts(arm, self.spaces[name]) for name, arm in card.arms.items()},
                "references": dict.fromkeys(self.goals.values(), "where the tool is to be, in nine tenths of its box"),
                "success": {"tools_within_m": NEAR, "for_s": HELD * PERIOD},
            },
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n robots in an engine, a class of ``robo_rl.sim.plants``."""
        return engine(self.card.mechanism, n, PERIOD, **settings)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.tasks.arm import engines

        return engines.engines(self)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for arm in self.card.arms.values():  # alike for all joints, and a payload in each hand
            randomize_arm(arm, plant, ids, drawn)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 7): both set-points (m), and the steps for which both tools are there."""
        places = []
        for part, space in zip(drawn["goal/place"].split(3, -1), self.spaces.values(), strict=True):
            low, high = torch.tensor(space.lower), torch.tensor(space.upper)
            places.append(low + (high - low) * (0.05 + 0.9 * part))
        return torch.cat([*places, torch.zeros(len(places[0]), 1)], -1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        rows = {}
        for part, (name, space) in zip(drawn["initial/pose"].unbind(-1), self.spaces.items(), strict=True):
            count = len(space.places)
            rows[name] = space.angles[(part * count).long().clamp(max=count - 1)]
        plant.place(ids, **self.hands.positions(rows))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        first, second = self.goals.values()
        return {first: goal[:, :3], second: goal[:, 3:6], "there": goal[:, 6:]}

    def advance(self, truth: Tensors, goal: Any) -> Any:
        there = torch.where(self._near(truth)[:, None], truth["there"] + 1.0, 0.0)
        return torch.cat([goal[:, :6], there], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        seen = []
        for name, tool in self.hands.tools(signals).items():
            away = 1.0 / self.hands.hands[name].step * (signals[self.goals[name]] - tool)
            seen += [8.0 * (tool - self.spaces[name].origin), torch.clamp(away, -4.0, 4.0)]
        return torch.cat([*seen, self.hands.motion(signals)], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return self.hands.command(action, memory)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return self.hands.remember(memory, signals, commands)

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 6) actions of a script: each ahead of its tool by a part of the way that is left."""
        parts = [
            torch.clamp(GAIN / self.hands.hands[name].step * (signals[self.goals[name]] - tool), -1.0, 1.0)
            for name, tool in self.hands.tools(signals).items()
        ]
        return torch.cat(parts, -1)

    def controller(self) -> Scripted:
        """Damped least squares of each arm by its chain, towards its set-point."""
        return Scripted(self, self.script)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the farther of the tools is from its set-point, (n,) m."""
        first, second = (self._away(truth, name) for name in self.goals)
        return {"tool_position_error": torch.maximum(first, second)}

    def _away(self, truth: Tensors, arm: str) -> Any:
        return torch.sqrt((truth[f"{arm}_tool_position"] - truth[self.goals[arm]]).square().sum(-1))

    def _near(self, truth: Tensors) -> Any:
        return self.errors(truth)["tool_position_error"] < NEAR

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        first, second = (self._away(truth, name) for name in self.goals)
        return {
            "distance": first + second,
            "near": torch.exp(-10000.0 * first.square()) + torch.exp(-10000.0 * second.square()),
            "success": torch.where(self.succeeded(truth), 1.0, 0.0),
            "change": self.hands.change(commands, previous),
        }

    def failed(self, truth: Tensors) -> Any:
        """Nothing that tools in their workspaces can do is a failure."""
        first, second = (truth[f"{name}_tool_position"][:, 2] for name in self.goals)
        return torch.minimum(first, second) < -1.0

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"tool below the base": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return self._near(truth) & (truth["there"][:, 0] > HELD - 1.5)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        seen = []
        for name, goal in self.goals.items():
            tool = truth[f"{name}_tool_position"]
            seen += [8.0 * (tool - self.spaces[name].origin), 10.0 * (truth[goal] - tool)]
            seen += [2.0 * truth[f"{name}_tool_linear_velocity"]]
        return torch.cat([*seen, 0.1 * truth["there"], 50.0 * parameters.command_delay[:, :1]], -1)

    def markers(self, truth: Tensors) -> list[Marker]:
        return [Sphere(f"{name} set-point", truth[goal], radius=0.018) for name, goal in self.goals.items()]
