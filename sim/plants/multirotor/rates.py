"""Multirotors that are told body rates and a thrust, as autopilots (PX4, ArduPilot, Betaflight, Crazyflie) take them.

The autopilot's rate loop runs ``STEP`` by ``STEP`` within a control period: it asks for a torque J K (wanted − measured
rate), and mixes it with the thrust to rotor speeds by the airframe's nominal figures. It knows neither the true mass
nor the true thrust curve: a vehicle that is told to hover rises or sinks, and its thrust changes by ``thrust_slope``
times what is wanted.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robo_rl.controllers.multirotor import Mixer
from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.plants.multirotor import MultirotorParameters, MultirotorPlant, MultirotorState, advance, stack
from robo_rl.sim.plants.multirotor.mujoco import FlyingMujoco
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard

STEP = 0.005
"""s between two steps of the rate loop. Those of autopilots run at 400 to 1000 Hz; the rotors that they command follow
in tens of milliseconds."""
RATE_GAIN = (20.0, 20.0, 6.0)
"""1/s: how fast the body rates follow, about x, y and z, where the card does not say. An estimate, of the order of
PX4's multicopters with their default gains; tasks draw from 0.7 to twice of it."""
YAW_SHARE = 0.15
"""Of a rotor's greatest thrust: the most that yaw may take (PX4, ControlAllocation, MINIMUM_YAW_MARGIN)."""
LEAST = 1e-3
"""Of a rotor's greatest thrust, below which it is not commanded."""

FIELDS = (*MultirotorParameters._fields, "rate_gain", "thrust_slope")
RateParameters: Any = namedtuple("RateParameters", FIELDS)  # type: ignore[misc]
"""Those of ``MultirotorParameters``; ``rate_gain`` (n, 3) 1/s; ``thrust_slope`` (n,), the change of the real thrust
over that which is wanted, about hovering."""


@dataclass(frozen=True)
class Autopilot:
    """What an autopilot takes its airframe to be."""

    mass: float
    inertia: tuple[float, ...]
    curve: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    """Of thrust, roll, pitch and yaw, for each rotor."""
    top: float
    """N, a rotor's greatest thrust."""

    @classmethod
    def of(cls, card: MultirotorCard) -> Autopilot:
        """That knows the card's figures."""
        m = Mixer.of(card.airframe)
        shares = tuple(tuple(map(float, column)) for column in (m.thrust, m.roll, m.pitch, m.yaw))
        return cls(card.mass, card.inertia, card.thrust, shares, m.top)

    def rotor_speeds(self, rates: Any, body_rate: Any, thrust: Any, p: Any) -> Any:
        """(n, R) rad/s, for measured and wanted rates (n, 3) rad/s and the wanted thrust per mass (n, 1) m/s²."""
        error = p.rate_gain * (body_rate - rates)
        roll, pitch, yaw = (self.inertia[i] * error[:, i] for i in range(3))
        wanted = GRAVITY + p.thrust_slope * (thrust[:, 0] - GRAVITY)
        collective = self.mass * torch.clamp(wanted, min=0.0)
        margin, least = YAW_SHARE * self.top, max(0.0, self.curve[0]) + LEAST * self.top
        speeds = []
        for of_thrust, of_roll, of_pitch, of_yaw in zip(*self.shares, strict=True):
            turning = torch.clamp(of_yaw * yaw, -margin, margin)
            force = of_thrust * collective + of_roll * roll + of_pitch * pitch + turning
            speeds.append(self._speed(torch.clamp(force, least, self.top)))
        return stack(speeds)

    def _speed(self, force: Any) -> Any:
        c0, c1, c2 = self.curve
        return (torch.sqrt(c1 * c1 + 4 * c2 * (force - c0)) - c1) / (2 * c2) if c2 else (force - c0) / c1


class MultirotorByRates(MultirotorPlant):
    """As ``MultirotorPlant``, with commands ``body_rate`` (n, 3) rad/s and ``thrust`` (n, 1) m/s², along body z."""

    def __init__(
        self, card: MultirotorCard, n: int, period: float, device: str | torch.device = "cpu", ground: bool = False
    ) -> None:
        """``period`` is the control period in s, a multiple of ``STEP``."""
        super().__init__(card, n, period, device, ground)
        self.autopilot = Autopilot.of(card)
        self.nominal, self.parameters = with_loop(self.nominal, card), with_loop(self.parameters, card)
        self.advance = _fused(self.autopilot, period, ground)
        _, (self._rates, self._thrust) = empty_block(n, [(3,), (1,)], device, packed=False)

    def dynamics(self, state: MultirotorState, commands: Mapping[str, Any], parameters: Any) -> Any:
        return _steps(state, commands["body_rate"], commands["thrust"], parameters, self.autopilot, self.period,
                      self.ground)  # fmt: skip

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``body_rate`` and ``thrust``, held constant."""
        self._rates.copy_(commands["body_rate"])
        self._thrust.copy_(commands["thrust"])
        if self._run is None:
            self._run = self.advance.bind(self.current, self._rates, self._thrust, self.parameters, out=self.current)
        self._run()


class FlyingMujocoByRates(FlyingMujoco):
    """The same rate loop, over rigid bodies that MuJoCo moves."""

    def __init__(self, card: MultirotorCard, n: int, period: float) -> None:
        """As ``MultirotorByRates``."""
        super().__init__(card, n, STEP)
        self.autopilot, self._steps = Autopilot.of(card), steps_in(period)
        self.nominal, self.parameters = with_loop(self.nominal, card), with_loop(self.parameters, card)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``body_rate`` and ``thrust``, held constant."""
        for _ in range(self._steps):
            rates = self.current.angular_velocity
            speeds = self.autopilot.rotor_speeds(rates, commands["body_rate"], commands["thrust"], self.parameters)
            super().step({"rotor_speed": speeds})


def with_loop(parameters: MultirotorParameters, card: MultirotorCard) -> Any:
    """And those of the rate loop."""
    like = parameters.mass
    return RateParameters._make([*parameters, like.new_tensor([card.rate_gain or RATE_GAIN]), like.new_ones(1)])


def steps_in(period: float) -> int:
    """Of the rate loop in a control period. ValueError unless they are a whole number."""
    count = round(period / STEP)
    if count < 1 or abs(count * STEP - period) > 1e-9:
        raise ValueError(f"the control period is {period} s; expected a multiple of the rate loop's {STEP} s")
    return count


def _steps(
    state: MultirotorState, body_rate: Any, thrust: Any, p: Any, autopilot: Autopilot, period: float, ground: bool
) -> MultirotorState:
    for _ in range(steps_in(period)):
        speeds = autopilot.rotor_speeds(state.angular_velocity, body_rate, thrust, p)
        state = advance(state, speeds, p, STEP, ground)
    return state


@functools.cache
def _fused(autopilot: Autopilot, period: float, ground: bool) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def multirotor_by_rates(state: MultirotorState, body_rate: Tensor, thrust: Tensor, parameters: Any) -> Any:
        return _steps(state, body_rate, thrust, parameters, autopilot, period, ground)

    return fuse(multirotor_by_rates)
