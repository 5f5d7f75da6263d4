"""A shaft on a drive that keeps the current it is told, one control period of a speed controller at a time.

    J ω' = k i − b ω − T_dry sat(ω / ω₀) − T_load      T i' = i* − i

For machines with and without brushes alike: k is N m per A of armature or of q, and T the time constant of the current
loop. A command acts a period after it was given, and no current is above what the supply can drive against the
back-EMF, (±U − e ω) / R. The current is solved exactly, the shaft with the period's mean of it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.plants.motor.plant import MotorPlant
from robo_rl.sim.robots.motor import DcCard, MotorCard, PmsmCard

STUCK = 0.005
"""Of the top speed: below it, dry friction is in proportion to speed."""


class DriveState(NamedTuple):
    """Of n drives, (n, 1) each."""

    rotor_speed: Tensor
    """rad/s of the motor's shaft."""
    current: Tensor
    """A, of the armature or of q."""
    pending_current: Tensor
    """A, commanded and not yet in effect."""
    elapsed: Tensor
    """s since the episode began."""


class DriveParameters(NamedTuple):
    """(n,) where they differ between drives, else (1,)."""

    torque_factor: Tensor
    """N m/A."""
    inertia: Tensor
    """kg m²."""
    friction: Tensor
    """N m s/rad."""
    dry_friction: Tensor
    """N m."""
    current_time: Tensor
    """s."""
    supply_voltage: Tensor
    """V, that can be given to the winding."""
    load: Tensor
    """N m against the shaft, from ``load_time`` on."""
    load_time: Tensor
    """s."""


class Winding(NamedTuple):
    """What is the same for all drives of a card."""

    period: float
    resistance: float
    back_emf: float
    """V s/rad."""
    slow: float
    """rad/s."""


def nominal_parameters(card: MotorCard, current_time: float, device: Any = None) -> DriveParameters:
    """The card's figures, (1,); no load."""
    dry = card.dry_friction if isinstance(card, DcCard) else 0.0
    figures = (card.torque_factor, card.inertia, card.friction, dry, current_time, card.voltage_max, 0.0, 0.0)
    return DriveParameters(*(torch.tensor([x], dtype=torch.float32, device=device) for x in figures))


def winding_of(card: PmsmCard | DcCard, period: float) -> Winding:
    """Of a card, at a control period (s)."""
    back = card.pole_pairs * card.flux if isinstance(card, PmsmCard) else card.torque_constant
    return Winding(period, card.resistance, back, STUCK * card.speed_max)


def advance(state: DriveState, command: Any, p: DriveParameters, winding: Winding) -> DriveState:
    """The state a period later; ``command`` (n, 1) A acts in the period after that."""
    speed, current, target, elapsed = (part[:, 0] for part in state)
    period, per = winding.period, 1.0 / winding.resistance
    back = winding.back_emf * speed
    target = torch.minimum(torch.maximum(target, (-p.supply_voltage - back) * per), (p.supply_voltage - back) * per)
    decay = torch.exp(-period / p.current_time)
    mean = target + (current - target) * (1.0 - decay) * p.current_time * (1.0 / period)
    load = torch.where(elapsed >= p.load_time, p.load, 0.0)
    return DriveState(
        speed_after(speed, p.torque_factor * mean, load, p, winding.slow, period)[:, None],
        (target + (current - target) * decay)[:, None],
        command + 0.0,
        (elapsed + period)[:, None],
    )


def speed_after(speed: Any, torque: Any, load: Any, p: Any, slow: float, period: float) -> Any:
    """rad/s (n,) of a shaft with the friction and inertia of ``p``, a period (s) of a torque and a load (n,) N m later;
    below ``slow`` rad/s, dry friction is in proportion to speed."""
    dry = p.dry_friction * torch.clamp(speed * (1.0 / slow), -1.0, 1.0)
    rate = (torque - dry - load - p.friction * speed) / p.inertia
    slower = 1.0 + 0.5 * period * p.friction / p.inertia
    return speed + period * rate / slower


class CurrentDrive(MotorPlant):
    """n drives, stepped in place at one control rate."""

    def __init__(
        self, card: PmsmCard | DcCard, n: int, period: float, current_time: float, device: Any = "cpu"
    ) -> None:
        """``period`` is the control period, and ``current_time`` the time constant of the current loop, in s."""
        super().__init__(n, nominal_parameters(card, current_time, device), DriveState, [(1,)] * 4, device)
        self.card, self.period, self.winding = card, period, winding_of(card, period)
        _, (self._command,) = empty_block(n, [(1,)], device)
        self._run = _fused(self.winding).bind(self.current, self._command, self.parameters, out=self.current)

    def dynamics(self, current: DriveState, commands: Mapping[str, Any], parameters: DriveParameters) -> DriveState:
        """The state one control period later, as a pure, differentiable function."""
        return advance(current, commands["current_target"], parameters, self.winding)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period; ``current_target`` (n, 1) A acts in the next."""
        self._command.copy_(commands["current_target"])
        self._run()

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, 1, 7): place (m) and quaternion x, y, z, w of the shaft, as it would turn at its present speed."""
        turned = self.current.rotor_speed[ids] * self.current.elapsed[ids]
        return self._poser.poses(turned.numpy())


@functools.cache
def _fused(winding: Winding) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def drive_step(state: DriveState, command: Tensor, parameters: DriveParameters) -> DriveState:
        return advance(state, command, parameters, winding)

    return fuse(drive_step)
