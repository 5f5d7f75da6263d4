"""Multirotors in real time: pushes, set-points that move, mass, wind, latency and noise, and who flies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.evaluation import ControllerPolicy
from robo_rl.loading import Loaded
from robo_rl.viewer.live import Knob, Live, rounded, tilt, triple
from sim.pictures.camera import spread

LONGEST_DELAY = 0.06  # s
GREATEST_PUSH = 3.0  # m/s
GREATEST_SHIFT = 0.6  # m; a flight fails one metre away from where the set-point was


class Flying(Live):
    """``flights`` vehicles of a loaded at its task."""

    shift = torch.zeros(3)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.actions["shift"] = self._shift

    def own_pilots(self, loaded: Loaded) -> tuple[str, dict[str, Any]]:
        if isinstance(loaded.policy, ControllerPolicy):
            return "geometric", {"geometric": loaded.policy}
        return "policy", {"policy": loaded.policy, "geometric": ControllerPolicy(loaded.task)}

    def make_knobs(self, fixed: Mapping[str, float]) -> list[Knob]:
        table = [
            ("mass", "mass", "× nominal", 0.6, 1.6, 1.0),
            ("wind", "wind along x", "m/s", -4.0, 4.0, 0.0),
            ("delay", "latency", "s", 0.0, LONGEST_DELAY, 0.01),
            ("noise", "sensor noise", "× nominal", 0.0, 10.0, 1.0),
        ]
        return [
            Knob(
                name, label, unit, min(low, fixed.get(name, low)), max(high, fixed.get(name, high)),
                fixed.get(name, value), self.task.spec.ranges[name].end,
            )
            for name, label, unit, low, high, value in table
        ]  # fmt: skip

    def conditions(self, fixed: Mapping[str, float]) -> dict[str, float]:
        return {**fixed, "delay": max(LONGEST_DELAY, fixed.get("delay", 0.0))}

    def perceived(self, signals: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**signals, "position_setpoint": signals["position_setpoint"] + self.shift}

    def push(self, value: Any) -> None:
        self.env.plant.truth()["linear_velocity"] += triple("push", value, GREATEST_PUSH, "m/s")

    def _shift(self, value: Any) -> None:
        self.shift = triple("shift", value, GREATEST_SHIFT, "m")

    def turn(self) -> None:
        plant, draws = self.env.plant, self.env.draws
        plant.param("mass")[:] = plant.nominal.mass * self.knobs["mass"].value
        plant.param("wind")[:] = torch.tensor([self.knobs["wind"].value, 0.0, 0.0])
        draws.delay[:] = self.knobs["delay"].value
        draws.noise[:] = self.knobs["noise"].value

    def scene(self) -> dict[str, Any]:
        spec, card = self.task.spec, self.task.card  # type: ignore[attr-defined]
        every = torch.arange(self.env.n)
        moments = torch.arange(0.0, 10.0, 0.1)
        goal = self.env.draws.goal
        setpoints = torch.stack(
            [self.task.reference(moment.expand(len(every)), goal)["position_setpoint"] for moment in moments]
        )
        return {
            "kind": "multirotor",
            "title": self.title,
            "task": spec.name,
            "summary": spec.summary,
            "robot": card.title,
            "hertz": 1 / spec.control_period,
            "offsets": spread(setpoints.numpy(), card.arm).tolist(),
            "pilots": list(self.pilots),
            "top": card.rotor_speed_max,
            "arm": card.arm,
            "height": card.body_size[2],
            "propeller": card.propeller_radius,
            "rotors": [{"name": r.name, "at": r.position, "spin": 1 if r.spin == "ccw" else -1} for r in card.rotors],
            "knobs": [vars(knob) for knob in self.knobs.values()],
            "shift": GREATEST_SHIFT,
        }

    def content(self) -> dict[str, Any]:
        truth = self.env.truth(torch.arange(self.env.n))
        setpoint = truth["position_setpoint"] + self.shift
        return {
            "position": rounded(truth["position"], 4),
            "orientation": rounded(truth["orientation"], 4),
            "velocity": rounded(truth["linear_velocity"], 3),
            "rotor_speed": rounded(truth["rotor_speed"], 0),
            "setpoint": rounded(setpoint, 4),
            "error": rounded((truth["position"] - setpoint).norm(dim=-1), 4),
            "tilt": rounded(tilt(truth["orientation"]), 1),
        }
