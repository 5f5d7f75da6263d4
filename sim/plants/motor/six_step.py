"""A brushless motor with trapezoidal back-EMF and six-step commutation by Hall sensors, one PWM period at a time.

    L i_k' = v_k − v_star − e_k − R i_k        e_k = ½ k_t ω trapezoid(θ − 120° k)        J ω' = Σ e_k i_k / ω − …

L and R are those of a phase, half of a card's from phase to phase. Of the three half bridges two switch, in opposite
directions and complementary (centre-aligned, as SimpleFOC's Trapezoid_120 does): in the mean of a PWM period they are
at ±½ duty u about the middle of the bus u, so that a duty of either sign drives or brakes and the star point of an
ideal motor stays in the middle. The third half bridge is off. After a commutation the current of its phase flows on
through a diode, at the bus's rail that opposes it, until it is zero; then the phase floats, and conducts again only
where its terminal would leave the rails. Within a PWM period the switches and the back-EMF of its middle are constant,
and the currents are solved exactly, with the end of freewheeling as a decay factor and not as a time.

The Hall sensors are read where a PWM period begins; their edges, the speed between them, and their misplacement are
simulated. Not simulated: the ripple of PWM, diode voltages, cogging, and currents of the third phase within a PWM
period.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.plants.motor.drive import STUCK, speed_after
from robo_rl.sim.plants.motor.plant import MotorPlant
from robo_rl.sim.robots.motor import BldcCard

PULSE = 5e-5
"""s, a PWM period of 20 kHz."""
SIX_STEPS = ((1, -1, 0), (1, 0, -1), (0, 1, -1), (-1, 1, 0), (-1, 0, 1), (0, -1, 1))
"""By sector, counted from an electrical angle of 30°: which of the phases a, b, c is up (1), down (−1) and off with a
positive duty. The back-EMF of phase a rises through zero at 0°."""
HALLS = ("101", "100", "110", "010", "011", "001")
"""By sector: the three sensors, each high for 180°, from 30°, 150° and 270° on."""
RIPPLE = 0.01
"""Of the current limit: below it, dead time is partly undone; an estimate of the current's ripple."""
SOONEST = 1e-6
"""s between two edges of Hall sensors, at least: a timer's count."""


class SixStepState(NamedTuple):
    """Of n motors."""

    phase_current: Tensor
    """(n, 3) A, into the motor."""
    turn: Tensor
    """(n, 1) electrical angle, 0 to 1."""
    shaft_speed: Tensor
    """(n, 1) rad/s, the true one."""
    rotor_speed: Tensor
    """(n, 1) rad/s by the last two edges of the Hall sensors, and by how long there was none."""
    current: Tensor
    """(n, 1) A in the two phases that conduct, as a shunt in the bus shows it; torque is in proportion to it."""
    bus_voltage: Tensor
    """(n, 1) V."""
    since_edge: Tensor
    """(n, 1) s."""
    direction: Tensor
    """(n, 1) of the last edge: 1 or −1; 0: there was none."""
    pending_duty: Tensor
    """(n, 1), commanded and not yet applied."""
    elapsed: Tensor
    """(n, 1) s since the episode began."""


class SixStepParameters(NamedTuple):
    """(n,) where they differ between motors, else (1,)."""

    torque_factor: Tensor
    """N m/A."""
    resistance: Tensor
    """ohm, phase to phase."""
    inductance: Tensor
    """H, phase to phase."""
    inertia: Tensor
    """kg m²."""
    friction: Tensor
    """N m s/rad."""
    dry_friction: Tensor
    """N m."""
    supply_voltage: Tensor
    """V."""
    supply_resistance: Tensor
    """ohm."""
    dead_time: Tensor
    """s per PWM period."""
    hall_offset: Tensor
    """Electrical turns by which all three sensors are ahead."""
    load: Tensor
    """N m against the shaft, from ``load_time`` on."""
    load_time: Tensor
    """s."""


class SixStep(NamedTuple):
    """What is the same for all motors of a card."""

    pulses: int
    """PWM periods per control period."""
    pole_pairs: float
    limit: float
    """A."""
    slow: float
    """rad/s."""


def six_step_of(card: BldcCard, period: float) -> SixStep:
    """Of a card, at a control period (s): a whole number of PWM periods."""
    return SixStep(max(1, round(period / PULSE)), card.pole_pairs, card.current_limit, STUCK * card.speed_max)


def nominal_parameters(card: BldcCard, device: Any = None) -> SixStepParameters:
    """The card's figures, (1,); neither dead time nor misplaced sensors nor load, which a task draws."""
    figures = (
        card.torque_factor, card.resistance, card.inductance, card.inertia, card.friction, card.dry_friction,
        card.supply_voltage, card.supply_resistance, 0.0, 0.0, 0.0, 0.0,
    )  # fmt: skip
    return SixStepParameters(*(torch.tensor([x], dtype=torch.float32, device=device) for x in figures))


def advance(state: SixStepState, duty: Any, p: SixStepParameters, motor: SixStep) -> SixStepState:
    """The state a control period later; ``duty`` (n, 1), −1 to 1, is applied in the period after that."""
    load = torch.where(state.elapsed[:, 0] >= p.load_time, p.load, 0.0)
    applied = torch.clamp(state.pending_duty[:, 0], -1.0, 1.0)
    for _ in range(motor.pulses):
        state = _pulse(state, applied, load, p, motor)
    return state._replace(pending_duty=duty + 0.0, elapsed=state.elapsed + motor.pulses * PULSE)


def _pulse(state: SixStepState, duty: Any, load: Any, p: SixStepParameters, motor: SixStep) -> SixStepState:
    """A PWM period later."""
    currents, turn, speed = state.phase_current.unbind(-1), state.turn[:, 0], state.shaft_speed[:, 0]
    rate = motor.pole_pairs / (2.0 * math.pi)
    sector, _ = hall_sector(turn + p.hall_offset)
    gates = switched(sector)
    bus = p.supply_voltage - p.supply_resistance * duty * state.current[:, 0]
    middle = turn + (0.5 * PULSE * rate) * speed
    shapes = [trapezoid(middle - k / 3.0) for k in range(3)]
    emf = [0.5 * p.torque_factor * speed * x for x in shapes]
    after = _currents(currents, gates, 0.5 * duty * bus, bus, emf, p, motor)
    torque = (0.25 * p.torque_factor) * sum(x * (a + b) for x, a, b in zip(shapes, currents, after, strict=True))
    new_speed = speed_after(speed, torque, load, p, motor.slow, PULSE)
    new_turn = turn + (0.5 * PULSE * rate) * (speed + new_speed)
    edges = _edges(state, sector, new_turn + p.hall_offset, new_speed, motor)
    return state._replace(
        phase_current=torch.stack(after, -1),
        turn=wrapped(new_turn)[:, None],
        shaft_speed=new_speed[:, None],
        current=(0.5 * sum(g * i for g, i in zip(gates, after, strict=True)))[:, None],
        bus_voltage=bus[:, None],
        **edges,
    )


def wrapped(turn: Any) -> Any:
    """An angle (n,) of −1 to 2 turns within 0 to 1."""
    turn = torch.where(turn < 0.0, turn + 1.0, turn)
    return torch.where(turn >= 1.0, turn - 1.0, turn)


def trapezoid(turn: Any) -> Any:
    """(n,) the back-EMF's shape, −1 to 1: flat for 120°, and rising through zero at 0."""
    triangle = 1.0 - 4.0 * torch.abs(wrapped(turn + 0.25) - 0.5)
    return torch.clamp(3.0 * triangle, -1.0, 1.0)


def hall_sector(turn: Any) -> tuple[Any, Any]:
    """(n,) which of ``SIX_STEPS`` it is, 0 to 5, and how far into it, in sectors."""
    place = 6.0 * wrapped(turn - 1.0 / 12.0)
    sector = sum(torch.where(place >= float(k), 1.0, 0.0) for k in range(1, 6))
    return sector, place - sector


def switched(sector: Any) -> list[Any]:
    """(n,) each of the phases a, b, c: 1 at the upper rail with a positive duty, −1 at the lower one, 0 off."""
    found = []
    for k in range(3):
        gate = torch.where(sector < 4.5, float(SIX_STEPS[4][k]), float(SIX_STEPS[5][k]))
        for place in range(3, -1, -1):
            gate = torch.where(sector < place + 0.5, float(SIX_STEPS[place][k]), gate)
        found.append(gate)
    return found


def _currents(
    currents: Any, gates: list, voltage: Any, bus: Any, emf: list, p: SixStepParameters, motor: SixStep
) -> list[Any]:
    """A, (n,) of each phase, a PWM period later; ``voltage`` is that of the upper phase about the middle of the bus."""
    per, decay = 2.0 / p.resistance, torch.exp(-PULSE * p.resistance / p.inductance)
    lost, ripple = bus * p.dead_time * (1.0 / PULSE), 1.0 / (RIPPLE * motor.limit)
    on = [torch.abs(g) > 0.5 for g in gates]
    driven = [g * voltage - lost * torch.clamp(i * ripple, -1.0, 1.0) for g, i in zip(gates, currents, strict=True)]
    driven = [torch.where(o, v, 0.0) for o, v in zip(on, driven, strict=True)]
    off_current: Any = sum(torch.where(o, 0.0, i) for o, i in zip(on, currents, strict=True))
    off_emf: Any = sum(torch.where(o, 0.0, e) for o, e in zip(on, emf, strict=True))
    total = sum(driven) - sum(emf)
    rail = 0.5 * bus
    floating = 1.5 * off_emf + 0.5 * total  # where the current of the third phase stays zero
    floating = torch.minimum(torch.maximum(floating, -rail), rail)
    diode = torch.where(off_current > 0.0, -rail, torch.where(off_current < 0.0, rail, floating))

    end = (diode - (total + diode) * (1.0 / 3.0) - off_emf) * per
    returns = off_current * end < 0.0
    zero = torch.maximum(end / torch.where(returns, end - off_current, 1.0), decay)
    # the decay factor until the third phase's current is zero, or that of the whole period
    first = torch.where(returns, zero, torch.where(torch.abs(off_current) > 0.0, decay, 1.0))
    ended = first > decay
    found = []
    stars = [(total + third) * (1.0 / 3.0) for third in (diode, floating)]
    for o, v, e, i in zip(on, driven, emf, currents, strict=True):
        for star, third, factor in zip(stars, (diode, floating), (first, decay / first), strict=True):
            target = (torch.where(o, v, third) - star - e) * per
            i = target + (i - target) * factor
            if third is diode:
                i = torch.where(o, i, torch.where(ended, 0.0, i))
        found.append(i)
    return found


def _edges(state: SixStepState, sector: Any, turn: Any, speed: Any, motor: SixStep) -> dict[str, Any]:
    """What a timer makes of the Hall sensors at the end of a PWM period: speed, time since the last edge, direction."""
    held, since, direction = state.rotor_speed[:, 0], state.since_edge[:, 0] + PULSE, state.direction[:, 0]
    new_sector, past = hall_sector(turn)
    moved = new_sector - sector
    step = torch.where(moved > 3.0, -1.0, torch.where(moved < -3.0, 1.0, torch.clamp(moved, -1.0, 1.0)))
    edge = torch.abs(step) > 0.5
    per_second = torch.clamp((6.0 * motor.pole_pairs / (2.0 * math.pi)) * torch.abs(speed), min=1e-3)
    ago = torch.clamp(torch.where(step > 0.0, past, 1.0 - past) / per_second, 0.0, PULSE)
    sixth = 2.0 * math.pi / (6.0 * motor.pole_pairs)
    between = step * sixth / torch.clamp(since - ago, min=SOONEST)
    held = torch.where(edge, torch.where(step * direction > 0.5, between, 0.0), held)
    since = torch.where(edge, ago, since)
    most = sixth / torch.clamp(since, min=SOONEST)
    return {
        "rotor_speed": torch.minimum(torch.maximum(held, -most), most)[:, None],
        "since_edge": since[:, None],
        "direction": torch.where(edge, step, direction)[:, None],
    }


class SixStepDrive(MotorPlant):
    """n motors, stepped in place at one control rate."""

    def __init__(self, card: BldcCard, n: int, period: float, device: Any = "cpu") -> None:
        """``period`` is the control period in s."""
        shapes = [(3,), *[(1,)] * 9]
        super().__init__(n, nominal_parameters(card, device), SixStepState, shapes, device)
        self.card, self.period, self.motor = card, period, six_step_of(card, period)
        _, (self._command,) = empty_block(n, [(1,)], device)
        self._run = _fused(self.motor).bind(self.current, self._command, self.parameters, out=self.current)

    def dynamics(
        self, current: SixStepState, commands: Mapping[str, Any], parameters: SixStepParameters
    ) -> SixStepState:
        """The state one control period later, as a pure, differentiable function."""
        return advance(current, commands["duty"], parameters, self.motor)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period; ``duty`` (n, 1) is that of the next."""
        self._command.copy_(commands["duty"])
        self._run()

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, 1, 7): place (m) and quaternion x, y, z, w of the shaft, as it would turn at its present speed."""
        return self._poser.poses((self.current.shaft_speed[ids] * self.current.elapsed[ids]).numpy())


@functools.cache
def _fused(motor: SixStep) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def six_step(state: SixStepState, duty: Tensor, parameters: SixStepParameters) -> SixStepState:
        return advance(state, duty, parameters, motor)

    return fuse(six_step)
