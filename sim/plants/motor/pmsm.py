"""A synchronous machine with permanent magnets on its inverter, in the rotor's frame, one control period at a time.

    ψ_d' = u_d − R i_d + ω ψ_q            ψ_d = L_d i_d / (1 + s |i_d| / I)
    ψ_q' = u_q − R i_q − ω (ψ_d + ψ)      ψ_q likewise

Amplitude-invariant dq, ω the electrical speed, I the card's current limit; s is the knee of magnetic saturation
(Fröhlich's equation, so that inductance falls with current). The voltage of a period is that commanded a period before:
computing takes one. The inverter keeps it within the circle u_dc / √3 of space vector modulation, and loses its dead
time: −sign(i) u_dc t / τ in each phase, weaker where a current is near zero, for its ripple changes sign there. The bus
sags by its source's resistance and the DC link's capacitor. The voltage is constant in dq over a period: modulators
advance the angle by 1.5 ω τ for that, and a stator-fixed vector then gives the same on average.

The integrator is the exponential Rosenbrock-Euler method (Hochbruck and Ostermann 2010, Exponential integrators, 2.3):
in flux linkages, exact without saturation and of second order in the period with it. Its φ₁ is a Taylor polynomial.
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
from robo_rl.sim.plants.motor.plant import MotorPlant
from robo_rl.sim.robots.motor import PmsmCard

WORST = 5.0
"""How many times as large as with the card's figures the exponent may be: 1.5 R and a saturated 0.3 L are."""
ENOUGH = 1e-7
"""Of what is left out of φ₁."""
RIPPLE = 0.01
"""Of the current limit: below it, the dead time of a phase is partly undone; an estimate of the current's ripple."""
TINY = 1e-3
"""A² or V², that no vector has the length 0; torch's exporter takes what is much smaller for nothing."""
ROUNDER = 1.5 * 2.0**23
"""Added to a float32 and taken away again, it leaves a whole number."""


class PmsmState(NamedTuple):
    """Of n machines."""

    stator_current: Tensor
    """(n, 2) A: d, q, the true ones."""
    current: Tensor
    """(n, 2) A: d, q as measured: with the offsets of phase sensors and rounded by the converter, without noise."""
    rotor: Tensor
    """(n, 2) cosine and sine of the electrical angle."""
    rotor_speed: Tensor
    """(n, 1) rad/s of the shaft."""
    bus_voltage: Tensor
    """(n, 1) V."""
    pending_voltage: Tensor
    """(n, 2) V: d, q, commanded and not yet applied."""


class PmsmParameters(NamedTuple):
    """(n, …) where they differ between machines, else (1, …)."""

    resistance: Tensor
    """ohm."""
    inductance_d: Tensor
    """H, at no current."""
    inductance_q: Tensor
    flux: Tensor
    """Wb."""
    saturation: Tensor
    """The s of the module's text; 0: none."""
    dead_time: Tensor
    """s per period."""
    supply_voltage: Tensor
    """V."""
    supply_resistance: Tensor
    """ohm."""
    acceleration: Tensor
    """rad/s² of the shaft, which a test bench drives."""
    current_offset: Tensor
    """(n, 2) A, of the sensors in phases a and b."""


class Machine(NamedTuple):
    """What is the same for all machines of a card."""

    period: float
    """s."""
    pole_pairs: float
    limit: float
    """A."""
    capacitance: float
    """F."""
    current_step: float
    """A."""
    terms: int
    """Of φ₁."""


def machine_of(card: PmsmCard, period: float) -> Machine:
    """Of a card, at a control period (s)."""
    least, most = sorted((card.inductance_d, card.inductance_q))
    omega = card.pole_pairs * card.speed_max * math.sqrt(most / least)
    size, terms = WORST * period * max(card.resistance / least, omega), 2
    while size**terms / math.factorial(terms + 1) > ENOUGH:
        terms += 1
    own = card.pole_pairs, card.current_limit, card.supply_capacitance, card.current_step
    return Machine(period, *own, terms)


def nominal_parameters(card: PmsmCard, device: Any = None) -> PmsmParameters:
    """The card's figures, (1, …); neither saturation nor dead time, which a task draws."""
    figures = (
        card.resistance, card.inductance_d, card.inductance_q, card.flux, 0.0, 0.0, card.supply_voltage,
        card.supply_resistance, 0.0, (0.0, 0.0),
    )  # fmt: skip
    return PmsmParameters(*(torch.tensor([x], dtype=torch.float32, device=device) for x in figures))


def advance(state: PmsmState, voltage: Any, p: PmsmParameters, machine: Machine) -> PmsmState:
    """The state one period later; ``voltage`` (n, 2) V is applied in the period after that."""
    period = machine.period
    current, (cosine, sine) = state.stator_current.unbind(-1), state.rotor.unbind(-1)
    speed, bus = state.rotor_speed[:, 0], state.bus_voltage[:, 0]
    change = period * p.acceleration
    turned = period * machine.pole_pairs * (speed + 0.5 * change)
    middle, end = (_turned(cosine, sine, part * turned) for part in (0.5, 1.0))
    d, q = state.pending_voltage.unbind(-1)
    given = within_circle((d, q), bus / math.sqrt(3.0))
    lost = _dead_time(current, middle, bus * p.dead_time / period, RIPPLE * machine.limit)
    applied = (given[0] - lost[0], given[1] - lost[1])
    after = _currents(current, applied, turned / period, p, machine)
    power = 0.75 * sum(u * (a + b) for u, a, b in zip(applied, current, after, strict=True))
    sag = bus - (p.supply_voltage - p.supply_resistance * power / bus)
    decay = 1.0 - torch.exp(-period / torch.clamp(p.supply_resistance * machine.capacitance, min=1e-9))
    return PmsmState(
        torch.stack(after, -1),
        torch.stack(measured(after, end, p, machine), -1),
        torch.stack(end, -1),
        (speed + change)[:, None],
        (bus - decay * sag)[:, None],
        voltage + 0.0,
    )


def begin(state: PmsmState, ids: Any, speed: Any, angle: Any, bus: Any) -> None:
    """Let the machines ``ids`` (m,) turn with ``speed`` (m,) rad/s, at an electrical ``angle`` (m,) rad and a bus
    voltage (m,) V, without current."""
    nothing = 0.0 * torch.stack([speed, speed], -1)
    for name in ("stator_current", "current", "pending_voltage"):
        getattr(state, name)[ids] = nothing
    state.rotor[ids] = torch.stack([torch.cos(angle), torch.sin(angle)], -1)
    state.rotor_speed[ids], state.bus_voltage[ids] = speed[:, None], bus[:, None]


def within_circle(vector: tuple[Any, Any], radius: Any) -> tuple[Any, Any]:
    """(n,) each: a vector, shortened to ``radius`` (n,) where it is longer."""
    x, y = vector
    scale = torch.clamp(radius * torch.rsqrt(x * x + y * y + TINY), max=1.0)
    return x * scale, y * scale


def linked_flux(current: Any, inductance: Any, saturation: Any, limit: float) -> tuple[Any, Any]:
    """(n,) Wb that a current (n,) links, and by how much a current changes with it, (n,) A/Wb."""
    more = 1.0 + saturation * torch.abs(current) * (1.0 / limit)
    flux = inductance * current / more
    return flux, more * more / inductance


def torque(state: PmsmState, p: PmsmParameters, machine: Machine) -> Any:
    """(n,) N m at the shaft."""
    i_d, i_q = state.stator_current.unbind(-1)
    flux_d, _ = linked_flux(i_d, p.inductance_d, p.saturation, machine.limit)
    flux_q, _ = linked_flux(i_q, p.inductance_q, p.saturation, machine.limit)
    return 1.5 * machine.pole_pairs * ((flux_d + p.flux) * i_q - flux_q * i_d)


def _currents(now: tuple, applied: tuple, omega: Any, p: PmsmParameters, machine: Machine) -> tuple[Any, Any]:
    """d and q, (n,) A, a period later. Their flux is then ψ + τ φ₁(τ J) ψ', by Horner's rule."""
    (i_d, i_q), period = now, machine.period
    flux_d, a = linked_flux(i_d, p.inductance_d, p.saturation, machine.limit)
    flux_q, b = linked_flux(i_q, p.inductance_q, p.saturation, machine.limit)
    f_d = applied[0] - p.resistance * i_d + omega * flux_q
    f_q = applied[1] - p.resistance * i_q - omega * (flux_d + p.flux)
    a, b, turn = period * p.resistance * a, period * p.resistance * b, period * omega
    x, y = f_d, f_q
    for k in range(machine.terms, 1, -1):
        x, y = f_d + (turn * y - a * x) * (1.0 / k), f_q - (turn * x + b * y) * (1.0 / k)
    found = []
    for flux, inductance in ((flux_d + period * x, p.inductance_d), (flux_q + period * y, p.inductance_q)):
        left = inductance - p.saturation * torch.abs(flux) * (1.0 / machine.limit)
        found.append(flux / torch.maximum(left, 0.05 * inductance))
    return found[0], found[1]


def _turned(cosine: Any, sine: Any, angle: Any) -> tuple[Any, Any]:
    """Cosine and sine after a turn by a small angle (n,), of unit length."""
    square = angle * angle
    c = 1.0 - square * (0.5 - square * (1.0 / 24.0))
    s = angle * (1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0)))
    x, y = cosine * c - sine * s, sine * c + cosine * s
    length = 1.5 - 0.5 * (x * x + y * y)
    return x * length, y * length


def _phases(vector: tuple, angle: tuple) -> tuple[Any, Any, Any]:
    """a, b, c (n,) of d, q, at an angle that is given by cosine and sine."""
    (d, q), (c, s) = vector, angle
    alpha, beta = d * c - q * s, d * s + q * c
    return alpha, -0.5 * alpha + (0.5 * math.sqrt(3.0)) * beta, -0.5 * alpha - (0.5 * math.sqrt(3.0)) * beta


def _park(alpha: Any, beta: Any, angle: tuple) -> tuple[Any, Any]:
    c, s = angle
    return alpha * c + beta * s, beta * c - alpha * s


def _dead_time(current: tuple, angle: tuple, loss: Any, ripple: float) -> tuple[Any, Any]:
    """d, q (n,) V that the dead time takes, ``loss`` (n,) in each phase."""
    a, b, c = (torch.clamp(phase * (1.0 / ripple), -1.0, 1.0) for phase in _phases(current, angle))
    alpha, beta = (2.0 / 3.0) * (a - 0.5 * (b + c)), (b - c) * (1.0 / math.sqrt(3.0))
    d, q = _park(alpha, beta, angle)
    return loss * d, loss * q


def measured(current: tuple, angle: tuple, p: PmsmParameters, machine: Machine) -> tuple[Any, Any]:
    """d, q (n,) A as the converter gives them."""
    a, b = p.current_offset.unbind(-1)
    d, q = _park(a, (a + 2.0 * b) * (1.0 / math.sqrt(3.0)), angle)
    step = machine.current_step
    if not step:
        return current[0] + d, current[1] + q
    return tuple(((i * (1.0 / step) + ROUNDER) - ROUNDER) * step for i in (current[0] + d, current[1] + q))


class PmsmOnBench(MotorPlant):
    """n machines whose shafts a test bench turns, stepped in place at one control rate."""

    def __init__(self, card: PmsmCard, n: int, period: float, device: Any = "cpu") -> None:
        """``period`` is the control period in s."""
        shapes = [(2,), (2,), (2,), (1,), (1,), (2,)]
        super().__init__(n, nominal_parameters(card, device), PmsmState, shapes, device)
        self.card, self.period, self.machine = card, period, machine_of(card, period)
        still = torch.zeros(n, device=device)
        begin(self.current, torch.arange(n), still, still, self.parameters.supply_voltage)
        _, (self._voltage,) = empty_block(n, [(2,)], device)
        self._run = _fused(self.machine).bind(self.current, self._voltage, self.parameters, out=self.current)

    def dynamics(self, current: PmsmState, commands: Mapping[str, Any], parameters: PmsmParameters) -> PmsmState:
        """The state one control period later, as a pure, differentiable function."""
        return advance(current, commands["voltage"], parameters, self.machine)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period; ``voltage`` (n, 2) V is that of the next."""
        self._voltage.copy_(commands["voltage"])
        self._run()

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, 1, 7): place (m) and quaternion x, y, z, w of the shaft."""
        c, s = self.current.rotor[ids].unbind(-1)
        return self._poser.poses(torch.atan2(s, c)[:, None].numpy())


@functools.cache
def _fused(machine: Machine) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def pmsm_step(state: PmsmState, voltage: Tensor, parameters: PmsmParameters) -> PmsmState:
        return advance(state, voltage, parameters, machine)

    return fuse(pmsm_step)
