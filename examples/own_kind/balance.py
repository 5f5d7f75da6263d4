"""Balance a pole on a cart that goes where it is told.

    robo-rl train examples/own_kind/balance.py:Balance

The policy sees place, speed, angle and rate, and what it last commanded. An episode fails when the pole falls or the
cart reaches the end of its track.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from cartpole import CartPoleCard
from cartpole_controller import Regulator
from cartpole_plant import CartPolePlant, Parameters, State
from torch import Tensor

from robo_rl.contract import Command, Safety, Signal, StateBlock
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors

PERIOD = 0.02  # s
DELAY = (0.0, 0.02)  # s
FALLEN = 0.7  # rad


class Balance(Task[CartPolePlant]):
    """Keep the pole up and the cart at its set-point."""

    name = "balance"
    summary = "balance a pole on a cart that goes where it is told"
    card_type = CartPoleCard
    files = ("lab_cart.toml",)
    algorithms = ("apg", "ppo", "sac")
    measures = (Measure("cart_position_error", "m", "end"), Measure("pole_angle", "rad", "rms"))
    perturbed = ("pole_mass", "friction", "gain", "delay", "noise")
    observation_size = 6
    action_size = 1
    goal_size = 3
    weights = {"alive": 1.0, "place": -4.0, "angle": -2.0, "rate": -0.01, "force_change": -0.05}

    def __init__(self, card: CartPoleCard | None = None) -> None:
        card = card or load_robot(str(Path(__file__).with_name("lab_cart.toml")), CartPoleCard)
        self.card = card
        reach, force = 1.5 * card.track, (card.force,)
        one = ("cart",)
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=6.0,
            signals=(
                Signal("cart_position", one, "m", "track", (-reach,), (reach,), noise=(0.0005,), delay=DELAY),
                Signal("cart_velocity", one, "m/s", "track", (-10.0,), (10.0,), noise=(0.01,), delay=DELAY),
                Signal("pole_angle", ("pole",), "rad", "upright", (-3.2,), (3.2,), noise=(0.002,), delay=DELAY),
                Signal("pole_rate", ("pole",), "rad/s", "upright", (-40.0,), (40.0,), noise=(0.03,), delay=DELAY),
                Signal("cart_position_setpoint", one, "m", "track", (-reach,), (reach,), source="operator"),
            ),
            commands=(Command("cart_force", one, "N", "track", (-card.force,), force, safe=(0.0,)),),
            memory=(StateBlock("last_force", (1,), (0.0,)),),
            safety=Safety(signal_timeout=0.05, on_fault="stop"),
            reward=dict(self.weights),
            ranges={
                "initial/angle": Range((-0.1, 0.1), (-0.25, 0.25)),  # rad
                "initial/position": Range.fixed(-0.1, 0.1),  # m
                "initial/velocity": Range.fixed(-0.2, 0.2),  # m/s
                "goal/from": Range.fixed(-0.2, 0.2),  # m
                "goal/to": Range.fixed(-0.2, 0.2),  # m
                "goal/time": Range.fixed(1.0, 3.0),  # s, of the step from one to the other
                "cart_mass": Range.fixed(0.9, 1.2),
                "pole_mass": Range.fixed(0.7, 1.3),
                "pole_length": Range.fixed(0.9, 1.1),
                "friction": Range.fixed(0.5, 1.5),
                "gain": Range.fixed(0.85, 1.1),
                "push": Range.fixed(-0.3, 0.3),  # N
                "delay": Range.fixed(*DELAY),  # s
                "noise": Range.fixed(1.0, 1.0),
            },
            rules=(Rule("initial/angle", "survived", up=0.5, down=0.5, step=0.25),),
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> CartPolePlant:
        return CartPolePlant(self.card, n, PERIOD, device)

    def controller(self) -> Regulator:
        return Regulator(self.card.facts(), PERIOD)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        return torch.stack([drawn["goal/from"], drawn["goal/to"], drawn["goal/time"]], -1)

    def randomize(self, plant: CartPolePlant, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for name in ("cart_mass", "pole_mass", "pole_length", "friction", "gain"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
        plant.param("push")[ids] = drawn["push"]

    def place(self, plant: CartPolePlant, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        parts = ("position", "velocity", "angle")
        x, v, angle = (drawn[f"initial/{name}"][:, None] for name in parts)
        plant.set_state(ids, State(x, v, angle, torch.zeros_like(x)))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        first, second, moment = goal.unbind(-1)
        return {"cart_position_setpoint": torch.where(time > moment, second, first)[:, None]}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        error = torch.clamp(signals["cart_position"] - signals["cart_position_setpoint"], -0.5, 0.5)
        return torch.cat(
            [
                4.0 * error,
                signals["cart_velocity"],
                4.0 * signals["pole_angle"],
                0.5 * signals["pole_rate"],
                signals["cart_position"] / self.card.track,
                memory["last_force"],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {"cart_force": self.card.force * torch.tanh(action)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {"last_force": commands["cart_force"] / self.card.force}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error = truth["cart_position"] - truth["cart_position_setpoint"]
        change = (commands["cart_force"] - previous["cart_force"]) / self.card.force
        return {
            "alive": torch.ones_like(error)[:, 0],
            "place": error.square()[:, 0],
            "angle": truth["pole_angle"].square()[:, 0],
            "rate": truth["pole_rate"].square()[:, 0],
            "force_change": change.square()[:, 0],
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the cart is from its set-point (m), and the pole from upright (rad)."""
        error = truth["cart_position"] - truth["cart_position_setpoint"]
        return {"cart_position_error": error.abs()[:, 0], "pole_angle": truth["pole_angle"].abs()[:, 0]}

    def failed(self, truth: Tensors) -> Any:
        fallen = truth["pole_angle"].abs() > FALLEN
        return (fallen | (truth["cart_position"].abs() > self.card.track))[:, 0]

    def privileged(self, truth: Tensors, parameters: Parameters) -> Any:
        factors = [
            parameters.cart_mass / self.card.cart_mass - 1,
            parameters.pole_mass / self.card.pole_mass - 1,
            parameters.pole_length / self.card.pole_length - 1,
            parameters.friction / self.card.friction - 1,
            parameters.gain - 1,
            parameters.push,
        ]
        seen = [truth[name] for name in (*State._fields, "cart_position_setpoint")]
        return torch.cat([*seen, torch.stack(factors, -1)], -1)

    def markers(self, truth: Tensors) -> list[Marker]:
        place = torch.cat([truth["cart_position_setpoint"], torch.zeros(len(truth["cart_position"]), 2)], -1)
        return [Sphere("set-point", place, radius=0.015)]
