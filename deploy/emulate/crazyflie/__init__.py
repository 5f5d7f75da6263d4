"""An emulated Crazyflie 2.1: the card's multirotor under the firmware's own controller and supervisor.

Its estimator is the truth with noise, its battery compensation is off by a factor. What speaks CRTP is
``robo_rl.deploy.emulate.crazyflie.crtp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from robo_rl.deploy.emulate.crazyflie.pid import STEP, Cascade, Wanted
from robo_rl.deploy.emulate.crazyflie.setpoints import Plan, towards
from robo_rl.deploy.emulate.crazyflie.supervisor import MOTORS, PERIOD, State, Supervisor
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.multirotor import CARD, GRAVITY, MultirotorCard
from robo_rl.sim.tasks.multirotor.rates import NOISE

TICK = STEP
"""s of the vehicle."""
THRUST_MAX = 0.12
"""N of a rotor at full scale: platform_defaults_cf2.h"""
FULL, EMPTY = 4.1, 0.35
"""V of a full battery, and by how many V it sags at full thrust; an estimate."""


@dataclass
class Broken:
    """What is wrong with the vehicle; faults of its line are in ``robo_rl.deploy.emulate.crazyflie.wire``."""

    voltage: float = FULL
    estimate: str = ""
    """"frozen": it repeats; "diverged": it runs away, and says so; "jumped": it set itself right by 3 m."""
    clock: bool = False
    """Its log packets have the time stamp of the first."""
    fused: bool = True
    """False: its estimator has nothing to know its place by."""


@dataclass
class Vehicle:
    """See the module's text."""

    card: MultirotorCard = field(default_factory=lambda: load_robot("crazyflie", CARD))
    seed: int = 0
    gain: float = 1.0
    """Of the thrust that the firmware means to give."""
    inertia: float = 1.0
    rise: float = 1.0
    """Factors on the card's."""
    auto: bool = True

    def __post_init__(self) -> None:
        self.plant = MultirotorPlant(self.card, 1, TICK, ground=True)
        self.plant.current.rotor_speed[:] = 0.0
        self.plant.param("thrust_scale")[:] = self.gain
        self.plant.param("inertia")[:] = self.plant.nominal.inertia * self.inertia
        self.plant.param("rise_time")[:] = self.plant.nominal.rise_time * self.rise
        self.plant.param("fall_time")[:] = self.plant.nominal.fall_time * self.rise
        self.random, self.broken = np.random.default_rng(self.seed), Broken()
        self.start()

    def start(self) -> None:
        """From power-on."""
        self.time, self.ticks = 0.0, 0
        self.supervisor, self.cascade, self.wanted = Supervisor(self.auto), Cascade(), Wanted()
        self.plan: Plan | None = None
        self.told_at = -math.inf
        """s of the newest set-point."""
        self.motors = np.zeros(4)
        self._speed, self._force = np.zeros(3), np.array([0.0, 0.0, 1.0])
        self._estimate: dict[str, np.ndarray] = {}
        self._shift = np.zeros(3)

    @property
    def truth(self) -> dict[str, np.ndarray]:
        """True quantities by name, in our frames."""
        return {name: value[0].numpy().copy() for name, value in self.plant.truth().items()}

    @property
    def voltage(self) -> float:
        """V of the battery, under the motors' load."""
        return self.broken.voltage - EMPTY * float(self.motors.mean()) / 65535

    @property
    def off(self) -> bool:
        """Whether its motors stand, by command."""
        return not self.motors.any()

    def take(self, wanted: Wanted) -> None:
        """A set-point."""
        if self.supervisor.state in MOTORS:  # others are blocked (crtpCommanderBlock)
            self.wanted, self.told_at, self.plan = wanted, self.time, None

    def follow(self, plan: Plan | None) -> None:
        """A plan of the high-level commander; None: a halt."""
        self.take(Wanted())
        self.plan = plan if self.supervisor.state in MOTORS else None

    def advance(self) -> None:
        """Move on by a tick."""
        self.time, self.ticks = self.time + TICK, self.ticks + 1
        if self.plan is not None and self.supervisor.state in MOTORS:
            self.wanted, self.told_at = self.plan.wanted(self.time), self.time
        truth = self.truth
        self._accelerometer(truth)
        if self.ticks % round(PERIOD / TICK) == 0:
            before = self.supervisor.state in MOTORS
            age = self.time - self.told_at if self.told_at > -math.inf else 0.0
            self.supervisor.update(self.time, age, bool(self.motors.any()), self._force)
            if before and self.supervisor.state not in MOTORS:
                self.wanted, self.told_at = Wanted(), -math.inf
        self._drive(truth)
        self.estimate()

    def _accelerometer(self, truth: dict[str, np.ndarray]) -> None:
        """g, body."""
        pulled = (truth["linear_velocity"] - self._speed) / TICK + (0.0, 0.0, GRAVITY)
        self._speed = truth["linear_velocity"]
        x, y, z, w = map(float, truth["orientation"])
        back = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        self._force += 0.1 * (back @ pulled / GRAVITY - self._force)

    def _drive(self, truth: dict[str, np.ndarray]) -> None:
        wanted = self.wanted
        if self.supervisor.state is State.LEVELS:
            wanted = replace(wanted, turn=(0.0, 0.0, 0.0), level=True)
            if wanted.velocity is not None:
                wanted = replace(wanted, velocity=(0.0, 0.0, wanted.velocity[2]), place=None)
        seen = self.estimated if self.broken.estimate in ("diverged", "jumped") else truth
        wanted = towards(wanted, seen["position"], truth["orientation"])
        self.motors = self.cascade(wanted, truth["orientation"], seen["linear_velocity"], truth["angular_velocity"])
        if self.supervisor.state not in MOTORS:
            self.motors = np.zeros(4)
        forces = self.motors / 65535 * THRUST_MAX
        speeds = [0.0 if f <= 0 else self.card.speed_for_thrust(float(f)) for f in forces]
        self.plant.step({"rotor_speed": torch.tensor([speeds], dtype=torch.float32)})

    def estimate(self) -> None:
        """What its filter makes of the truth."""
        if self.broken.estimate == "frozen" and self._estimate:
            return
        truth = self.truth
        self._estimate = {n: truth[n] + NOISE[n] * self.random.standard_normal(truth[n].shape) for n in NOISE}
        self._estimate["orientation"] /= np.linalg.norm(self._estimate["orientation"])
        if self.broken.estimate == "jumped":
            self._shift = np.array([3.0, 0.0, 0.0])
        elif self.broken.estimate == "diverged":
            self._shift = self._shift + np.array([0.004, 0.002, 0.0])
            self._estimate["linear_velocity"] += (2.0, 1.0, 0.0)
        self._estimate["position"] = self._estimate["position"] + self._shift

    @property
    def estimated(self) -> dict[str, np.ndarray]:
        """In our frames."""
        return self._estimate or self.truth

    @property
    def variances(self) -> tuple[float, ...]:
        """Of place and velocity, by the filter itself: m², m²/s²."""
        if not self.broken.fused or self.broken.estimate == "diverged":
            return (40.0,) * 3 + (4.0,) * 3
        return (1e-4,) * 3 + (2e-4,) * 3
