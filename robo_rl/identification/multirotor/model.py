"""A simulated multirotor that follows recorded flights: the prediction of its sensors under given parameters.

As for legged robots (``observer``): between control steps the simulation runs as ever, and at each a part of the
prediction's error is added to its state. Rotor speeds are not measured; they follow from the commands.

A flight tells forces per mass and torques per mass, nothing else: a robot twice as heavy, with twice the thrust,
inertia and drag, flies alike. So the mass is the card's, and all else that is found is per mass.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from robo_rl.controllers.rotation import multiply
from robo_rl.identification.estimate import Unknown
from robo_rl.identification.multirotor.flight import Flights
from robo_rl.sim.plants.multirotor import MultirotorParameters, MultirotorState, advance, nominal_parameters
from robo_rl.sim.plants.physics import LONGEST_DELAY
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard

POSITION, ATTITUDE, VELOCITY, RATE = 0.05, 0.05, 0.05, 0.05
"""Parts of the errors that are corrected at each control step."""
WARMING = 40
"""Control steps for which the record is followed before a prediction counts."""
SPINNING, LEAST = 200, 80
"""Control steps before those, of which commands set the rotors' speeds, and how many of them a piece has at least. A
motor's lag may be 0.3 s, commands jump with the sensors' noise, and one percent of a rotor's thrust shows."""
FIRST = 20
"""Control steps at a part's beginning whose mean stands for the commands before."""
ROTOR = "thrust_of_one_rotor"
DELAY = "command_delay"
AIR = ("force", "torque")
"""What is of the air of a flight, such as wind, and not of the robot."""


def unknowns(card: MultirotorCard) -> tuple[Unknown, ...]:
    """What is looked for. The rotors' differences are (R − 1) patterns whose sum is 0, named ROTOR/k."""
    weight = card.mass * GRAVITY
    pull = weight * card.arm / 100
    return (
        Unknown("thrust", "× nominal", 1.0, 0.3, 3.0, spread=0.3, step=0.03, bias=0.005, enough=0.1),
        Unknown("inertia", "× nominal", 1.0, 0.1, 10.0, spread=0.7, step=0.1, bias=0.02, enough=0.2),
        Unknown("torque_ratio", "× nominal", 1.0, 0.1, 10.0, spread=0.5, step=0.1, bias=0.03, enough=0.2),
        Unknown("rise_time", "× nominal", 1.0, 0.05, 10.0, spread=0.5, step=0.1, bias=0.03, enough=0.2),
        Unknown("fall_time", "× nominal", 1.0, 0.05, 10.0, spread=0.5, step=0.1, bias=0.03, enough=0.2),
        Unknown("rotor_inertia", "× nominal", 1.0, 0.0, 10.0, 0.6, 0.2, bias=0.05, enough=0.3, factor=False),
        Unknown(DELAY, "s", 0.0, 0.0, LONGEST_DELAY, 0.02, 0.002, bias=0.0005, enough=0.004, factor=False),
        *(
            Unknown(f"{ROTOR}/{k}", "× nominal", 0.0, -1.0, 1.0, 0.05, 0.01, bias=0.002, enough=0.03, factor=False)
            for k in range(len(card.rotors) - 1)
        ),
        *(
            Unknown(f"force/{axis}", "N", 0.0, -weight, weight, 0.03 * weight, 0.01 * weight, 0.0, weight, factor=False)
            for axis in "xyz"
        ),
        *(
            Unknown(f"torque/{axis}", "N*m", 0.0, -pull, pull, 0.2 * pull, 0.1 * pull, 0.0, pull, factor=False)
            for axis in "xyz"
        ),
    )


def patterns(rotors: int) -> np.ndarray:
    """(R − 1, R) orthonormal rows, each of sum 0: Helmert's."""
    rows = np.zeros((rotors - 1, rotors))
    for k in range(1, rotors):
        rows[k - 1, :k], rows[k - 1, k] = 1.0, -float(k)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Follower:
    """Simulated multirotors that follow pieces of flights."""

    def __init__(self, card: MultirotorCard, flights: Flights, pieces: np.ndarray, length: int) -> None:
        """``pieces`` (n, 2): which part, and its step at which to begin; each is followed for ``length`` steps."""
        self.card, self.period, self.length = card, flights.period, length
        self.unknowns = unknowns(card)
        self.session = np.array([flights.parts[i].session for i, _ in pieces])
        """(n,)."""
        self.lead = lead(flights)
        self.noise = np.repeat(flights.noise, 3)
        parts, ends = flights.parts, range(length + 1)
        rows = [(parts[i], [start + k for k in ends]) for i, start in pieces]
        self.measured = [
            torch.from_numpy(np.stack([getattr(part, name)[steps] for part, steps in rows], 1))
            for name in ("position", "orientation", "linear_velocity", "angular_velocity")
        ]
        """(length + 1, n, k) each."""
        sent = [_sent(parts[i].command, start - self.lead, start + length + 1) for i, start in pieces]
        self.sent = torch.from_numpy(np.stack(sent, 1))
        """(lead + length + 1, n, R)."""
        self.age = torch.tensor([parts[i].age for i, _ in pieces], dtype=torch.float64)

    def errors(self, inner: np.ndarray, free: int | None = None) -> np.ndarray:
        """(m, n, length − WARMING, 12) what sensors told less what was predicted, under parameters (m, n, P).

        m, rad, m/s and rad/s. From the step ``free`` on nothing is corrected.
        """
        m, n = len(inner), self.sent.shape[1]
        measured = [value.repeat(1, m, 1) for value in self.measured]
        sent, age = self.sent.repeat(1, m, 1), self.age.repeat(m)
        parameters, delay = self._parameters(inner.reshape(m * n, -1))
        late = (age + delay) / self.period
        speed = sent[0]
        for k in range(self.lead - SPINNING, self.lead):
            target = self._command(sent, k, late)
            lag = torch.where(target > speed, parameters.rise_time[:, None], parameters.fall_time[:, None])
            speed = target + (speed - target) * torch.exp(-self.period / lag)
        position, orientation, velocity, rates = (value[0] for value in measured)
        state = MultirotorState(position, orientation, velocity, rates, speed)
        told = []
        for k in range(self.length):
            state = advance(state, self._command(sent, self.lead + k, late), parameters, self.period)
            now = [value[k + 1] for value in measured]
            apart = _apart(state, now)
            if k >= WARMING:
                told.append(torch.cat(apart, 1))
            if free is None or k < free:
                state = _corrected(state, apart)
        return torch.stack(told, 1).reshape(m, n, len(told), 12).numpy()

    def _command(self, sent: Tensor, k: int, late: Tensor) -> Tensor:
        """(rows, R): the mean of what acts in the interval after the measurement of row k, so many steps late."""
        whole = torch.floor(late).long()
        part, rows = (late - whole)[:, None], torch.arange(len(late))
        return part * sent[k - whole - 1, rows] + (1 - part) * sent[k - whole, rows]

    def _parameters(self, inner: np.ndarray) -> tuple[MultirotorParameters, Tensor]:
        """Those of the rows of ``inner`` (rows, P), and their command delays (rows,) s."""
        value = {
            u.name: torch.from_numpy(np.exp(column) if u.factor else column.copy())
            for u, column in zip(self.unknowns, inner.T, strict=True)
        }
        nominal = MultirotorParameters(*(one.double() for one in nominal_parameters(self.card)))
        rotors, rows = len(self.card.rotors), len(inner)
        apart = torch.stack([value[f"{ROTOR}/{k}"] for k in range(rotors - 1)], 1)
        own = 1 + apart @ torch.from_numpy(patterns(rotors))
        changed = {
            "thrust_scale": value["thrust"][:, None] * own,
            "inertia": nominal.inertia * value["inertia"][:, None],
            "torque_ratio": nominal.torque_ratio * value["torque_ratio"][:, None],
            "rise_time": nominal.rise_time * value["rise_time"],
            "fall_time": nominal.fall_time * value["fall_time"],
            "rotor_inertia": nominal.rotor_inertia * value["rotor_inertia"],
            **{name: torch.stack([value[f"{name}/{axis}"] for axis in "xyz"], 1) for name in AIR},
        }
        whole = {name: one.expand(rows, *one.shape[1:]) for name, one in nominal._replace(**changed)._asdict().items()}
        return MultirotorParameters(**whole), value[DELAY].clamp(0.0, LONGEST_DELAY)


def earliest(flights: Flights) -> int:
    """The step of a part at which its first piece may begin."""
    return lead(flights) - SPINNING + LEAST


def lead(flights: Flights) -> int:
    """Control steps of commands that go into a piece before it begins."""
    oldest = max(part.age for part in flights.parts)
    return math.ceil((LONGEST_DELAY + oldest) / flights.period) + 2 + SPINNING


def _sent(command: np.ndarray, begin: int, end: int) -> np.ndarray:
    """(end − begin, R) the rows of ``command`` (T, R), which begin may lie before."""
    before = np.tile(command[:FIRST].mean(0), (max(0, -begin), 1))
    return np.concatenate([before, command[max(0, begin) : end]])


def _apart(state: MultirotorState, measured: list[Tensor]) -> list[Tensor]:
    """Four (rows, 3): position, attitude as a rotation vector in the body frame, velocity, body rates."""
    position, orientation, velocity, rates = measured
    x, y, z, w = state.orientation.unbind(-1)
    turn = torch.stack(multiply((-x, -y, -z, w), tuple(orientation.unbind(-1))), -1)
    angle = 2 * turn[:, :3] * torch.sign(turn[:, 3:])
    return [position - state.position, angle, velocity - state.linear_velocity, rates - state.angular_velocity]


def _corrected(state: MultirotorState, apart: list[Tensor]) -> MultirotorState:
    position, angle, velocity, rates = apart
    part = torch.cat([0.5 * ATTITUDE * angle, torch.ones_like(angle[:, :1])], 1)
    turned = torch.stack(multiply(tuple(state.orientation.unbind(-1)), tuple(part.unbind(-1))), -1)
    return state._replace(
        position=state.position + POSITION * position,
        orientation=turned / turned.norm(dim=-1, keepdim=True),
        linear_velocity=state.linear_velocity + VELOCITY * velocity,
        angular_velocity=state.angular_velocity + RATE * rates,
    )
