"""A cart on a rail: a kind of robot whose rate, sensors and team tests can choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Signal, StateBlock
from robo_rl.sim.accelerate.fuse import empty_block, fuse
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors


class RailState(NamedTuple):
    position: Any
    velocity: Any


class RailParameters(NamedTuple):
    mass: Any


class RailPlant:
    """n carts of 1 kg, pushed by a force that is constant over a period: solved exactly."""

    def __init__(self, n: int, period: float) -> None:
        self.n, self.period = n, period
        self.nominal = RailParameters(torch.ones(1))
        self._block, parts = empty_block(n, [(1,), (1,), ()])
        self.current, self.parameters = RailState(*parts[:2]), RailParameters(parts[2])
        self.parameters.mass[:] = 1.0
        self._advance = fuse(self.dynamics)

    def dynamics(self, state: RailState, commands: Mapping[str, Any], parameters: RailParameters) -> RailState:
        h, push = self.period, commands["force"] / parameters.mass[:, None]
        return RailState(state.position + h * state.velocity + 0.5 * h * h * push, state.velocity + h * push)

    def param(self, name: str) -> Tensor:
        return getattr(self.parameters, name)

    def truth(self) -> dict[str, Tensor]:
        return self.current._asdict()

    def step(self, commands: dict[str, Tensor]) -> None:
        for mine, new in zip(self.current, self._advance(self.current, commands, self.parameters), strict=True):
            mine.copy_(new)

    def state(self, ids: Tensor) -> RailState:
        return RailState(*(value[ids] for value in self.current))

    def set_state(self, ids: Tensor, state: RailState) -> None:
        for mine, value in zip(self.current, state, strict=True):
            mine[ids] = value

    def save(self) -> dict[str, Tensor]:
        return {"block": self._block}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        self._block.copy_(saved["block"])


class RailWithScan(RailPlant):
    """Also tells a scan of 1080 distances and an image of 16 x 64, which a loop over single numbers can't hold."""

    dynamics = None  # type: ignore[assignment]
    beams = torch.linspace(0.0, 1.0, 1080)

    def __init__(self, n: int, period: float) -> None:
        super().__init__(n, period)

    def truth(self) -> dict[str, Tensor]:
        place = self.current.position
        image = place[:, :, None] + torch.arange(64.0) + 100.0 * torch.arange(16.0)[:, None]
        return {**self.current._asdict(), "scan": place + self.beams, "image": image}

    def step(self, commands: dict[str, Tensor]) -> None:
        state = RailPlant.dynamics(self, self.current, commands, self.parameters)
        for mine, new in zip(self.current, state, strict=True):
            mine.copy_(new)


def distance(name: str, source: str = "sensor", **more: Any) -> Signal:
    return Signal(name, ("x",), "m", "world", (-1e6,), (1e6,), source=source, **more)  # type: ignore[arg-type]


class Rail(Task):
    """Get the cart to where it should be."""

    name = "rail"
    summary = "a cart on a rail"
    goal_size, action_size, observation_size = 1, 1, 3
    measures = (Measure("distance", "m", "mean", seconds=0.0),)
    plant_class: type[RailPlant] = RailPlant

    def __init__(
        self,
        period: float = 0.01,
        seconds: float = 1.0,
        position: Signal | None = None,
        others: tuple[Signal, ...] = (),
        ranges: Mapping[str, Range] | None = None,
        team: int = 1,
    ) -> None:
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=load_multirotor("crazyflie"),
            control_period=period,
            episode_length=seconds,
            signals=(
                position or distance("position"),
                Signal("velocity", ("x",), "m/s", "world", (-1e6,), (1e6,), noise=(0.01,)),
                distance("setpoint", source="operator"),
                *others,
            ),
            commands=(Command("force", ("x",), "N", "rail", (-10.0,), (10.0,), (0.0,)),),
            memory=(StateBlock("last", (1,), (0.0,)),),
            safety=Safety(signal_timeout=2 * period),
            reward={"near": -1.0, "still": -0.1},
            ranges={"mass": Range.fixed(0.5, 1.5), "start": Range.fixed(-1.0, 1.0), **(ranges or {})},
            team=team,
        )

    def make_plant(self, n: int, device: Any = "cpu") -> Any:
        return self.plant_class(n, self.spec.control_period)

    def goal(self, drawn: Any) -> Any:
        return drawn["start"][:, None] * 0.0

    def randomize(self, plant: Any, ids: Any, drawn: Any) -> None:
        plant.param("mass")[ids] = drawn["mass"]

    def place(self, plant: Any, ids: Any, drawn: Any, goal: Any) -> None:
        plant.current.position[ids] = drawn["start"][:, None]
        plant.current.velocity[ids] = drawn["start"][:, None] * 0.0

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"setpoint": goal * 1.0}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        return torch.cat([signals["position"] - signals["setpoint"], signals["velocity"], memory["last"]], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {"force": torch.clamp(action, -10.0, 10.0)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {"last": commands["force"] * 1.0}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error = truth["position"] - truth["setpoint"]
        return {"near": error.square().sum(-1), "still": truth["velocity"].square().sum(-1)}

    def errors(self, truth: Tensors) -> dict[str, Any]:
        return {"distance": abs(truth["position"] - truth["setpoint"])[:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return abs(truth["position"])[:, 0] > 100.0

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        return torch.cat([truth["position"], truth["velocity"], parameters.mass[:, None]], -1)


@pytest.fixture
def rail() -> type[Rail]:
    """The task's class."""
    return Rail


@pytest.fixture
def rail_with_scan() -> type[RailWithScan]:
    """A plant for it."""
    return RailWithScan


@pytest.fixture
def distance_signal() -> Callable[..., Signal]:
    """Makes a signal of one distance."""
    return distance
