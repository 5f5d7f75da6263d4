"""Robots on legs in real time: commanded velocities, pushes, load, ground, motors, latency and noise, and who walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.evaluation import ControllerPolicy
from robo_rl.loading import Loaded
from robo_rl.viewer.live import Knob, Live, rounded, tilt, triple
from sim.pictures.walk import Poser, shapes
from sim.tasks.legged.walk import PUSH_TIME, SEGMENTS, STILL

GREATEST_PUSH = 2.0  # m/s
APART = 0.9  # m between robots that walk side by side
LOADED = 5.0  # N on a foot that counts as standing on the ground
COMMANDS = ("command/x", "command/y", "command/yaw")
VELOCITIES = {"linear_velocity_command": 2, "yaw_rate_command": 1}
"""Set-points and their sizes; tasks without any are at rest."""


class Stand:
    """Holds the robot as it stands."""

    def __init__(self, task: Any) -> None:
        self.commands = {c.name: torch.tensor([c.start]) for c in task.spec.commands}

    def initial_state(self, n: int) -> Tensor:
        return torch.zeros(n, 0)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return {name: value.expand(len(state), -1) for name, value in self.commands.items()}, state


class Walking(Live):
    """Robots of a policy at its task, side by side. Who falls begins again beside the others."""

    def own_pilots(self, loaded: Loaded) -> tuple[str, dict[str, Any]]:
        assert not isinstance(loaded.policy, ControllerPolicy)
        self.poser = Poser(loaded.task.card)  # type: ignore[attr-defined]
        return "policy", {"policy": loaded.policy, "stand": Stand(loaded.task)}

    def make_knobs(self, fixed: Mapping[str, float]) -> list[Knob]:
        ranges = self.task.spec.ranges
        table = [
            *((name, label, unit, *ranges[name].end, 0.0) for name, label, unit in zip(
                COMMANDS, ("forward", "to the left", "turn left"), ("m/s", "m/s", "rad/s"), strict=True)
              if name in ranges),
            ("payload", "payload", "kg", 0.0, 8.0, 0.0),
            ("ground_friction", "friction of the ground", "", 0.1, 1.5, 0.8),
            ("strength", "motor strength", "× nominal", 0.3, 1.0, 1.0),
            ("command_delay", "latency of the motors", "s", 0.0, 0.06, 0.0),
            ("noise", "sensor noise", "× nominal", 0.0, 10.0, 1.0),
        ]  # fmt: skip
        return [
            Knob(name, label, unit, 1.5 * low if name in COMMANDS else low, 1.5 * high if name in COMMANDS else high,
                 fixed.get(name, value), ranges[name].end)
            for name, label, unit, low, high, value in table
        ]  # fmt: skip

    def conditions(self, fixed: Mapping[str, float]) -> dict[str, float]:
        """Robots begin in one direction, on level ground, and nobody pushes them but the person."""
        usual = {"initial/yaw": 0.0, "base_mass": 1.0, "payload": 0.0, "push/x": 0.0, "push/y": 0.0}
        if ground := self.task.ground:  # type: ignore[attr-defined]
            usual |= {"ground/kind": (ground.kinds.index("flat") + 0.5) / len(ground.kinds), "initial/place": 0.0}
        return {**{name: value for name, value in usual.items() if name in self.task.spec.ranges}, **fixed}

    def begun(self, ids: Tensor) -> None:
        """Put robots that begin where the others are: ``home`` is where on the floor they think the origin is."""
        n = self.env.n
        lanes = torch.stack([torch.zeros(n), APART * (torch.arange(n) - (n - 1) / 2)], -1)
        at = self.env.plant.truth()["position"][:, :2]
        if len(ids) == n:
            self.home = lanes - at
            return
        there = torch.ones(n, dtype=torch.bool)
        there[ids] = False
        middle = (self.home + at - lanes)[there].mean(0)
        self.home[ids] = (lanes + middle - at)[ids]

    def push(self, value: Any) -> None:
        """A push is a force for a tenth of a second, in the goal of the episode."""
        speed = triple("push", value, GREATEST_PUSH, "m/s")
        force = speed[:2] * self.env.plant.param("mass").sum(1).float()[:, None] / PUSH_TIME
        start = self.task.pushed  # type: ignore[attr-defined]
        self.env.draws.goal[:, start] = self.env.episode.time - 0.5 * self.task.spec.control_period  # whole steps
        self.env.draws.goal[:, start + 1 : start + 3] = force

    def turn(self) -> None:
        env, value = self.env, {name: knob.value for name, knob in self.knobs.items()}
        velocities = [value[name] for name in COMMANDS if name in value]
        env.draws.goal[:, : len(velocities) * SEGMENTS] = torch.tensor(velocities * SEGMENTS)
        env.draws.noise[:] = value["noise"]
        plant, nominal = env.plant, env.plant.nominal
        base = plant.indices.base - 1
        wanted = {
            "mass": nominal.mass[:, base] + value["payload"],
            "ground_friction": torch.tensor(value["ground_friction"], dtype=torch.float64),
            "resistance": nominal.resistance / value["strength"],
            "command_delay": torch.tensor(value["command_delay"], dtype=torch.float64),
        }
        changed = False
        for name, number in wanted.items():
            now = plant.param(name)[:, base] if name == "mass" else plant.param(name)
            changed |= not bool((now == number).all())
            now[:] = number
        if changed:
            plant.refresh(torch.arange(env.n))

    def scene(self) -> dict[str, Any]:
        spec, measure = self.task.spec, self.task.measures[-1]
        return {
            "kind": "legged",
            "title": self.title,
            "task": spec.name,
            "summary": spec.summary,
            "robot": spec.robot.title,
            "error": f"{measure.error.replace('_', ' ')}, {measure.unit}",
            "hertz": 1 / spec.control_period,
            "offsets": self.home.tolist(),
            "pilots": list(self.pilots),
            "shapes": shapes(self.poser.model),
            "feet": [foot.removesuffix("_foot") for foot in self.task.card.feet],  # type: ignore[attr-defined]
            "knobs": [vars(knob) for knob in self.knobs.values()],
        }

    def content(self) -> dict[str, Any]:
        truth = self.env.truth(torch.arange(self.env.n))
        position = truth["position"].clone()
        position[:, :2] += self.home
        poses = self.poser.poses(*(x.numpy() for x in (position, truth["orientation"], truth["joint_position"])))
        errors = self.task.errors(truth)
        x, y, yaw = self.task._velocities(truth)  # type: ignore[attr-defined]
        wanted = torch.cat([truth.get(name, torch.zeros(self.env.n, k)) for name, k in VELOCITIES.items()], -1)
        return {
            "position": rounded(position, 4),
            "orientation": rounded(truth["orientation"], 4),
            "bodies": np.round(poses, 4).tolist(),
            "velocity": rounded(torch.stack([x, y, yaw], -1), 3),
            "wanted": rounded(wanted, 3),
            "walking": bool(wanted[0].norm() > STILL),
            "error": rounded(errors[self.task.measures[-1].error], 3),
            "contact": (truth["foot_force"] > LOADED).tolist(),
            "tilt": rounded(tilt(truth["orientation"]), 1),
        }
