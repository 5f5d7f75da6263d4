"""A stranger's file: a kind of robot of its own, with its plant and its task. A cart balances a pole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Command, Robot, Safety, Signal
from robo_rl.contract.robots import Actuator
from robo_rl.sim.drawing import Arrow, Frame, Line, Marker, Poser, Sphere, Text, Trail
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Measure, Spec, Task

PERIOD, GRAVITY = 0.02, 9.81
MODEL = """
<mujoco>
  <worldbody>
    <geom type="capsule" fromto="-1.5 0 0 1.5 0 0" size=".02" rgba=".6 .6 .65 1"/>
    <body name="cart">
      <joint type="slide" axis="1 0 0"/>
      <geom type="box" size=".12 .07 .05" rgba=".1 .2 .8 1"/>
      <body name="pole">
        <joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 .7" size=".02" rgba=".9 0 0 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


class State(NamedTuple):
    cart_position: Tensor
    cart_velocity: Tensor
    pole_angle: Tensor
    pole_velocity: Tensor


class Parameters(NamedTuple):
    mass: Tensor
    length: Tensor


@dataclass(frozen=True)
class CartCard:
    kind: ClassVar[str] = "cart"
    name: str = "cart"
    title: str = "a cart with a pole"
    sources: dict[str, str] = field(default_factory=dict)

    def facts(self) -> Robot:
        return Robot("cart", self.kind, (Actuator("wheels", "effort", "N", -20.0, 20.0, 0.0),))

    def figures(self) -> dict[str, Any]:
        return {}

    def files(self) -> tuple[Path, ...]:
        return ()

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> CartCard:
        return cls()


class BlindPlant:
    """A mass on a rail with a pendulum that is upside down, by semi-implicit Euler steps; it can't be drawn."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.current = State(*(torch.zeros(n, 1) for _ in State._fields))
        self.nominal = Parameters(torch.ones(1), torch.full((1,), 0.7))
        self.parameters = Parameters(torch.ones(n), torch.full((n,), 0.7))

    def param(self, name: str) -> Tensor:
        return getattr(self.parameters, name)

    def truth(self) -> dict[str, Tensor]:
        return self.current._asdict()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        x, v, angle, rate = self.current
        mass, length = self.parameters.mass[:, None], self.parameters.length[:, None]
        push = commands["force"] / mass
        v += PERIOD * push
        rate += PERIOD * (GRAVITY * torch.sin(angle) - push * torch.cos(angle)) / length
        x += PERIOD * v
        angle += PERIOD * rate

    def save(self) -> dict[str, Tensor]:
        return self.current._asdict()

    def load(self, saved: Mapping[str, Tensor]) -> None:
        for name, value in saved.items():
            getattr(self.current, name).copy_(value)


class CartPlant(BlindPlant):
    """As above, and it can be drawn and pushed."""

    def drawing(self) -> mujoco.MjModel:
        return mujoco.MjModel.from_xml_string(MODEL)

    def poses(self, ids: Tensor) -> np.ndarray:
        return Poser(self.drawing()).poses(torch.cat([self.current.cart_position, self.current.pole_angle], 1)[ids])

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        self.current.cart_velocity[ids] += velocity[0]


class Feedback:
    """Linear state feedback."""

    def first_state(self, n: int) -> np.ndarray:
        return np.zeros((n, 1), np.float32)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        x = signals["cart_position"] - signals["cart_setpoint"]
        force = (
            40.0 * signals["pole_angle"] + 11.0 * signals["pole_velocity"] + 2.0 * x + 4.0 * signals["cart_velocity"]
        )
        return {"force": torch.clamp(force, -20.0, 20.0)}, state


def signal(name: str, unit: str, source: str = "sensor") -> Signal:
    return Signal(name, ("x",), unit, "rail", (-50.0,), (50.0,), source=source)  # type: ignore[arg-type]


class Balance(Task):
    name = "balance"
    summary = "balance a pole on a cart"
    card_type = CartCard
    observation_size, action_size, goal_size = 4, 1, 1
    measures = (Measure("cart_error", "m", "mean"), Measure("angle_error", "rad", "mean"))

    def __init__(self, card: CartCard | None = None) -> None:
        ranges = {
            "mass": Range.fixed(0.9, 1.1, unit="×"),
            "delay": Range.fixed(0.0, 0.0, unit="s"),
            "noise": Range.fixed(0.0, 0.0),
            "initial/angle": Range.fixed(-0.2, 0.2, unit="rad"),
        }
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card or CartCard(),
            control_period=PERIOD,
            episode_length=4.0,
            signals=(
                signal("cart_position", "m"),
                signal("cart_velocity", "m/s"),
                signal("pole_angle", "rad"),
                signal("pole_velocity", "rad/s"),
                signal("cart_setpoint", "m", "operator"),
            ),
            commands=(Command("force", ("wheels",), "N", "rail", (-20.0,), (20.0,), (0.0,)),),
            memory=(),
            safety=Safety(signal_timeout=0.1),
            reward={"upright": 1.0},
            ranges=ranges,
        )

    def make_plant(self, n: int, device: Any) -> Any:
        return CartPlant(n)

    def controller(self) -> Feedback:
        return Feedback()

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        return torch.zeros(len(drawn["mass"]), 1)

    def randomize(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        plant.param("mass")[ids] = drawn["mass"]

    def place(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for part in plant.current:
            part[ids] = 0.0
        plant.current.pole_angle[ids] = drawn["initial/angle"][:, None]

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"cart_setpoint": goal}

    def observe(self, signals: Mapping[str, Any], memory: Mapping[str, Any]) -> Any:
        return torch.cat([signals[name] for name in State._fields], -1)

    def command(self, action: Any, memory: Mapping[str, Any]) -> dict[str, Any]:
        return {"force": torch.clamp(10.0 * action, -20.0, 20.0)}

    def remember(self, memory: Any, signals: Any, commands: Any) -> dict[str, Any]:
        return {}

    def privileged(self, truth: Mapping[str, Any], parameters: Any) -> Any:
        return truth["cart_position"]

    def reward(self, truth: Mapping[str, Any], commands: Any, previous: Any) -> dict[str, Any]:
        return {"upright": torch.cos(truth["pole_angle"][:, 0])}

    def errors(self, truth: Mapping[str, Any]) -> dict[str, Any]:
        error = (truth["cart_position"] - truth["cart_setpoint"]).abs()[:, 0]
        return {"cart_error": error, "angle_error": truth["pole_angle"].abs()[:, 0]}

    def failed(self, truth: Mapping[str, Any]) -> Any:
        return (truth["pole_angle"].abs() > 1.0)[:, 0]

    def markers(self, truth: Mapping[str, Any]) -> list[Marker]:
        """One of every kind."""
        x, angle = truth["cart_position"], truth["pole_angle"]
        nothing = 0.0 * x
        tip = torch.cat([x + 0.7 * torch.sin(angle), nothing, 0.7 * torch.cos(angle)], -1)
        there = torch.cat([truth["cart_setpoint"], nothing, nothing], -1)
        speed = torch.cat([truth["cart_velocity"], nothing, nothing], -1)
        level = torch.tensor([[0.0, 0.0, 0.0, 1.0]]).expand(len(x), -1)
        return [
            Sphere("where to be", there, 0.06, (0.0, 0.7, 0.2, 1.0)),
            Trail("way of the tip", tip),
            Arrow("velocity", torch.cat([x, nothing, nothing + 0.2], -1), speed, 0.02),
            Line("pole", torch.stack([torch.cat([x, nothing, nothing], -1), tip], 1)),
            Frame("tip", tip, level, 0.1),
            Text("angle", tip, [f"{float(value):.2f} rad" for value in angle[:, 0]]),
        ]


class Blind(Balance):
    """The same with a plant that can't be drawn, and without markers."""

    name = "balance-blind"

    def make_plant(self, n: int, device: Any) -> Any:
        return BlindPlant(n)

    def markers(self, truth: Mapping[str, Any]) -> list[Marker]:
        return []
