"""A simulated robot that follows a record: the prediction of its sensors under given parameters.

Between control steps the simulation runs as ever; at each, a part of the prediction's error is added to its state
(a Luenberger observer). So neither unknown first states nor the chaos of contacts add up, and what the parameters do to
every step stays. The parts are small: what they let in of the sensors' noise biases the parameters.

A target that reaches the motors a delay late is, in each physics step, the mean of what it was in that time: so the
delay need not be a whole number of steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from robo_rl.identification.estimate import Unknown
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import LONGEST_DELAY, Physics
from robo_rl.sim.robots.mechanism import Mechanism

ANGLE, SPEED = 0.05, 0.01
"""Parts of the errors of joint angles and speeds that are corrected at each control step."""
FACTORS = ("joint_friction", "armature", "stiffness", "damping")


class Recorded(Protocol):
    """What is followed, one row per control step, steps one period apart."""

    @property
    def name(self) -> str: ...
    @property
    def period(self) -> float: ...
    @property
    def joint_position(self) -> np.ndarray: ...
    @property
    def joint_velocity(self) -> np.ndarray: ...
    @property
    def target(self) -> np.ndarray: ...
    @property
    def age(self) -> float: ...
    def __len__(self) -> int: ...


class Following(ABC):
    """Simulated robots that follow one record."""

    groups: Mapping[str, int]
    """How many of the errors are of which kind of sensor, in order."""
    noise: np.ndarray
    """Standard deviation of each."""

    def __init__(self, mechanism: Mechanism, record: Any, physics: Physics, unknowns: tuple[Unknown, ...]) -> None:
        """``record`` is a ``Recorded`` of the kind that the class follows."""
        self.mechanism, self.record, self.physics, self.unknowns = mechanism, record, physics, unknowns
        self.first = math.ceil(LONGEST_DELAY / record.period) + 1
        """The first step with all targets that may still be on their way."""
        begin = np.zeros((1, record.target.shape[1]))
        self._sent = np.concatenate([begin, np.cumsum(record.target, 0) * record.period])
        self._plant: MujocoPlant | None = None

    @property
    def age_in_delay(self) -> float:
        """s, by which measurements are late, if that is a part of what is found as ``command_delay``."""
        return self.record.age

    @abstractmethod
    def _guess(self, plant: MujocoPlant, step: np.ndarray) -> None:
        """Put the robots where the sensors say that they are at the steps (n,)."""

    @abstractmethod
    def _compare(self, plant: MujocoPlant, step: np.ndarray, corrected: bool) -> np.ndarray:
        """(n, errors) what was measured less what the robots feel, of which a part is added to their states."""

    @abstractmethod
    def _load(self, plant: MujocoPlant, values: Mapping[str, Tensor]) -> None:
        """Give the robots what they carry, and what else is not a motor's, of ``values`` (n,) by name."""

    def ways(self) -> np.ndarray:
        """(P, P) independent ways, one in each row, in which the parameters are varied to see what that does."""
        return np.diag([unknown.step for unknown in self.unknowns])

    def usable(self, begins: np.ndarray, steps: int) -> np.ndarray:
        """(n,) whether the model has what happens in each piece of the record, of so many steps from ``begins`` on."""
        return np.ones(len(begins), bool)

    def kind_of(self, errors: np.ndarray, group: str) -> np.ndarray:
        """Those of one kind of sensor, of the last axis."""
        begin = 0
        for name, count in self.groups.items():
            if name == group:
                return errors[..., begin : begin + count]
            begin += count
        raise KeyError(group)

    def follow(
        self, inner: np.ndarray, starts: np.ndarray, steps: int, states: np.ndarray | None = None,
        corrected: bool = True, keep: np.ndarray | None = None,
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:  # fmt: skip
        """Follow the record from each of ``starts`` (n,) on, under the parameters ``inner`` (m, P).

        ``states`` (n, S) are where to start, as ``keep`` gave them; without, they are guessed. Returns errors of the
        prediction, (m, n, steps + 1, errors) in the order of ``groups``; and, of the first parameters, the states at
        the steps ``keep`` (of several runs, that of the one longest on its way).
        """
        m, n, period, h = len(inner), len(starts), self.record.period, self.physics.timestep
        plant = self._sized(m * n)
        step = np.tile(starts, m)
        late = self._set(plant, np.repeat(inner, n, 0))
        if states is None:
            self._guess(plant, step)
        else:
            plant.refresh(torch.arange(m * n))
            plant.batch.state[:] = np.tile(states, (m, 1))
        control, substeps = plant.batch.bind("ctrl"), round(period / h)
        errors, kept = np.empty((m * n, steps + 1, len(self.noise))), {}
        wanted = set() if keep is None else {int(k) for k in keep}
        for k in range(steps + 1):
            for row in range(n if wanted else 0):
                if int(step[row]) + k in wanted:
                    kept[int(step[row]) + k] = plant.batch.state[row].copy()
            errors[:, k] = self._compare(plant, step + k, corrected)
            if k == steps:
                break
            for j in range(substeps):
                begin = (step + k) * period + j * h - late
                control[:] = (self._until(begin + h) - self._until(begin)) / h
                plant.batch.step(nstep=1)
        return errors.reshape(m, n, steps + 1, -1), kept

    def _sized(self, rows: int) -> MujocoPlant:
        """Robots that are stepped once per physics step."""
        if self._plant is None or self._plant.n != rows:
            self._plant = MujocoPlant(self.mechanism, rows, self.physics.timestep, self.physics)
        return self._plant

    def _set(self, plant: MujocoPlant, inner: np.ndarray) -> np.ndarray:
        """Give the robots their parameters; returns how late targets reach their motors, (n,) s."""
        values = {
            u.name: torch.from_numpy(np.exp(column) if u.factor else column.copy())
            for u, column in zip(self.unknowns, inner.T, strict=True)
        }
        nominal = plant.nominal
        for name in FACTORS:
            if name in values:
                plant.param(name)[:] = getattr(nominal, name) * values[name][:, None]
        if "strength" in values:
            plant.param("resistance")[:] = nominal.resistance / values["strength"][:, None]
        self._load(plant, values)
        late = values.get("command_delay", torch.zeros(plant.n, dtype=torch.float64))
        return late.clamp(0.0, LONGEST_DELAY).numpy()

    def _until(self, time: np.ndarray) -> np.ndarray:
        """∫ target dt to a time (n,) in s since the record's first target."""
        period, target = self.record.period, self.record.target
        i = np.clip(np.floor(time / period + 1e-9).astype(int), 0, len(target) - 1)
        return self._sent[i] + (time - i * period)[:, None] * target[i]
