"""Following a moving set-point by body rates and a thrust, the commands that autopilots take from a computer on board.

As quadrotor-track, at 50 Hz: PX4 and ArduPilot take rates and thrust by MAVLink, and keep the rates themselves. What an
autopilot knows of its vehicle is not exact, so the thrust that it gives is randomized most: by the thrust at which it
hovers, and by how it changes about that.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, RateLaw, Safety, Signal
from robo_rl.controllers.multirotor import RatesController
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.plants.multirotor.rates import RATE_GAIN, FlyingMujocoByRates, MultirotorByRates
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard, load_multirotor
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.multirotor.quadrotor import HISTORY, XYZ, QuadrotorTrack

DELAY = (0.0, 0.04)
"""s, of the autopilot's estimate when it arrives over MAVLink."""
RATES = (3.84, 3.84, 3.49)
"""rad/s about x, y and z: PX4's MC_ROLLRATE_MAX and MC_PITCHRATE_MAX of 220 deg/s, MC_YAWRATE_MAX of 200."""
SLOW = 0.06
"""s of the rotors' rise above which a card's motors were measured in flight, and have quadrotor-track's ranges."""
USABLE = 0.9
"""Part of the greatest thrust that may be commanded: rotors need some to turn the vehicle."""
GAINS = (0.7, 2.0)
"""Of the rate loop's bandwidth in training, over the card's."""
UNKNOWN = ((0.4, 2.0), (1 / 3, 2.0))
"""As ``GAINS``, about x and y and about z, where the card says nothing of the loop: 8 to 40 1/s, and 2 to 12 1/s. The
default MC_YAWRATE_P of PX4 gave 2.3 to 2.5 in its own simulator."""
ENOUGH = 0.55
"""Of ``RATE_GAIN`` about x and y: with 11 1/s zoo:quadrotor-rates succeeds in 95.8 % of episodes, with 10 in 94.6 %."""
CALM = 0.3
"""rad/s of roll and pitch about which turning costs most per rad/s: a hover below, ways and recoveries above."""
NOSE = 0.1
"""rad that the nose may be off before another degree costs less."""
YAW = 1.0
"""1/s, of a loop about z, with which zoo:quadrotor-rates still succeeds in 98 % of episodes."""
NOISE = {"position": 0.01, "orientation": 0.003, "linear_velocity": 0.03, "angular_velocity": 0.02}
"""Standard deviations of an autopilot's estimate from one message to the next, in the signals' units."""


class QuadrotorRates(QuadrotorTrack):
    """See the module's text."""

    name = "quadrotor-rates"
    summary = "follow a moving set-point by body rates and thrust, as PX4 and ArduPilot take them"
    perturbed: tuple[str, ...] = (
        "mass", "thrust", "thrust_slope", "rate_gain", "yaw_rate_gain", "inertia", "rise_time", "delay", "wind", "noise"
    )  # fmt: skip
    period = 0.02
    update_scale = 36.0
    weights = {**QuadrotorTrack.weights, "calm": -0.03, "nose": -0.03}

    def __init__(self, card: MultirotorCard | None = None) -> None:
        card = card or load_multirotor("x500")
        if card.rate_gain:  # with both, a Crazyflie falls on its emulator in 2 of 100 flights, without in none
            self.weights = {**self.weights, "calm": 0.0, "nose": 0.0}
        super().__init__(card)
        self.observation_size += (4 - self.action_size) * HISTORY
        self.action_size = 4
        self.most = min(2.0, USABLE * card.thrust_to_weight) * GRAVITY
        self.offset = math.atanh(2 * GRAVITY / self.most - 1)
        drawn = {**self.spec.ranges, **changed_ranges(self.card)}
        self.spec = dataclasses.replace(
            self.spec,
            signals=tuple(map(_estimated, self.spec.signals)),
            commands=(
                Command(
                    "body_rate", XYZ, "rad/s", "body", tuple(-r for r in RATES), RATES, (0.0,) * 3,
                    law=rate_law(card, drawn),
                ),
                Command("thrust", ("z",), "m/s^2", "body", (0.0,), (self.most,), (0.0,)),
            ),
            memory=self.memory_blocks(4),
            safety=Safety(signal_timeout=0.2, on_fault="controller"),
            ranges=drawn,
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        thrust = "what the rotors are asked for per mass, along body z: hovering at 9.80665, whatever the true mass"
        loop = "torque = inertia * bandwidth * (asked - measured rate), about body x, y and z"
        return {**super().facts(), "thrust": {"meaning": thrust}, "rate_loop": {"meaning": loop}}

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> MultirotorByRates:
        return MultirotorByRates(self.card, n, self.period, device)

    def engines(self) -> list[Engine]:
        return [Engine("mujoco", "MuJoCo at 1 ms", lambda n: FlyingMujocoByRates(self.card, n, self.period))]

    def controller(self) -> RatesController:
        return RatesController(self.card.airframe, self.period, (*RATES, self.most))

    def randomize(self, plant: MultirotorPlant, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        tilt, yaw = drawn["rate_gain"], drawn["yaw_rate_gain"]
        plant.param("rate_gain")[ids] = plant.nominal.rate_gain * torch.stack([tilt, tilt, yaw], -1)
        plant.param("thrust_slope")[ids] = drawn["thrust_slope"]

    def command(self, action: Any, memory: Tensors | None = None) -> dict[str, Any]:
        told = torch.tanh(action)
        most = (0.5 * self.most) * (1 + torch.tanh(action[:, 3:] + self.offset))
        rates = torch.cat([told[:, i : i + 1] * limit for i, limit in enumerate(RATES)], -1)
        return {"body_rate": rates, "thrust": torch.clamp(most, 0.0, self.most)}

    def scaled(self, commands: Tensors) -> Any:
        x, y, z = commands["body_rate"].split(1, -1)
        thrust = (commands["thrust"] - GRAVITY) * (2 / self.most)
        return torch.cat([x * (1 / RATES[0]), y * (1 / RATES[1]), z * (1 / RATES[2]), thrust], -1)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        """And what a square does not weigh where it is small: a hover that trembles, a nose that is somewhat off.

        The estimate's noise makes a policy tremble that has nothing to lose by it: 0.4 rad/s rms and a nose within
        19 degrees, at any gain of the loop, without these two; 0.15 rad/s and 1 degree with them.
        """
        _, _, z, w = truth["orientation"].unbind(-1)
        turning, off = truth["angular_velocity"][:, :2].square().sum(-1), z * z / (z * z + w * w + 1e-4)
        calm, nose = torch.log(1 + turning / CALM**2), torch.log(1 + off * (2 / NOSE) ** 2)
        return {**super().reward(truth, commands, previous), "calm": calm, "nose": nose}

    def command_change(self, commands: Tensors, previous: Tensors) -> Any:
        return 0.5 * (self.scaled(commands) - self.scaled(previous))


def rate_law(card: MultirotorCard, ranges: Mapping[str, Range]) -> RateLaw:
    """What the autopilot's rate loop has to be, as seen from outside, and the range of gains in training.

    A loop of the gain g behind rotors of the time constant t follows at 1 / (1 / g + t). x500: 7.9 1/s about x and y,
    with a gain of 11. Crazyflie: 7.5 (in logs ``robo_rl.deploy.robot.rate_loop`` finds 8.4; 98 % of episodes).
    """
    gain, rise = card.rate_gain or RATE_GAIN, card.rise_time * sum(ranges["rise_time"].end) / 2.0
    tilt, yaw = gains(card)
    parts = (tilt, tilt, yaw)
    slow, fast = (tuple(round(part[end] * x, 3) for part, x in zip(parts, gain, strict=True)) for end in (0, 1))
    least = [max(part[0], 0.0 if card.rate_gain else ENOUGH) * x for part, x in zip(parts, gain, strict=True)]
    seen = [1.0 / (1.0 / x + rise) for x in least]
    return RateLaw((round(seen[0], 1), round(seen[1], 1), round(min(seen[2], YAW), 1)), (slow, fast))


def gains(card: MultirotorCard) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the bandwidth in training, over the card's or ``RATE_GAIN``'s: about x and y, and about z."""
    return (GAINS, GAINS) if card.rate_gain else UNKNOWN


def _estimated(signal: Signal) -> Signal:
    """With the delay and the noise of an autopilot's estimate."""
    if signal.source == "operator":
        return signal
    return dataclasses.replace(signal, noise=(NOISE[signal.name],) * signal.size, delay=DELAY)


def changed_ranges(card: MultirotorCard) -> dict[str, Range]:
    """Those that differ from quadrotor-track's, and those of the rate loop."""
    motors = {
        "inertia": Range.fixed(0.7, 1.4, unit="×"),
        "rise_time": Range.fixed(0.8, 5.0, unit="×"),  # to 0.06 s: an estimate for propellers of this size
        "fall_time": Range.fixed(0.8, 3.0, unit="×"),
    }
    tilt, yaw = gains(card)
    return {
        **({} if card.rise_time > SLOW else motors),
        "thrust": Range.fixed(0.8, 1.2, unit="×"),
        "thrust_slope": Range.fixed(
            0.8, 1.7, unit="×"
        ),  # 1 where the autopilot knows the curve, 1.6 of a quadratic one
        "rate_gain": Range.fixed(*tilt, unit="×"),  # about x and y
        "yaw_rate_gain": Range.fixed(*yaw, unit="×"),
        "delay": Range.fixed(*DELAY, unit="s"),
        "initial/tilt": Range((0.0, math.pi / 12), (0.0, math.pi / 4), unit="rad"),
        "initial/linear_velocity": Range.fixed(-0.5, 0.5, count=3, unit="m/s"),
    }
