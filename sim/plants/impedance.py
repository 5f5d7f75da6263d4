"""The spring of a Cartesian impedance, whose deflection is cut before it is multiplied; targets on their way to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.plants.physics import LONGEST_DELAY
from robo_rl.sim.robots.mechanism import Impedance


class Springs(NamedTuple):
    """Figures of T springs."""

    stiffness: Tensor
    """(n or 1, T, 2) N/m and N m/rad."""
    clip: Tensor
    """(T, 2) m and rad, the longest deflection that counts."""


def springs(stiffness: Tensor, impedances: Sequence[Impedance]) -> Springs:
    """Springs of a ``stiffness`` (n or 1, T, 2) that stays the tensor that it is."""
    clips = [impedance.clip for impedance in impedances]
    return Springs(stiffness, torch.tensor(clips, dtype=stiffness.dtype, device=stiffness.device).reshape(-1, 2))


def wrench(of: Springs, target: Tensor, pose: Tensor) -> Tensor:
    """(n, T, 6) N and N m on tools at ``pose`` (n, T, 7) that are pulled to ``target`` (n, T, 7).

    Poses are m and quaternions x, y, z, w, of any length, in one frame, and so is the result.
    """
    away = target[..., :3] - pose[..., :3]
    turn = rotation_vector(target[..., 3:], pose[..., 3:])
    force = of.stiffness[..., :1] * cut(away, of.clip[..., :1])
    return torch.cat([force, of.stiffness[..., 1:] * cut(turn, of.clip[..., 1:])], -1)


def cut(vector: Tensor, longest: Tensor) -> Tensor:
    """``vector`` (…, 3), shortened to the length ``longest`` (…, 1) where it is longer."""
    length = vector.norm(dim=-1, keepdim=True)
    return vector * (longest / length.clamp(min=1e-30)).clamp(max=1.0)


def rotation_vector(target: Tensor, orientation: Tensor) -> Tensor:
    """(…, 3) rad: the shortest turn from ``orientation`` to ``target`` (…, 4), along axes of the frame they are in."""
    a, w = target[..., :3], target[..., 3:]
    b, v = orientation[..., :3], orientation[..., 3:]
    axis = v * a - w * b - torch.linalg.cross(a, b)  # of target times the inverse of orientation
    cosine = w * v + (a * b).sum(-1, keepdim=True)
    sine = axis.norm(dim=-1, keepdim=True)
    angle = 2.0 * torch.atan2(sine, cosine.abs())
    return axis * torch.where(sine > 0, angle / sine.clamp(min=1e-30), 0.0) * torch.where(cosine < 0, -1.0, 1.0)


class References:
    """Targets of the tools of n robots: those of the last control periods, so that they can reach the tools late."""

    def __init__(self, impedances: Sequence[Impedance], n: int, period: float, substeps: int) -> None:
        self.tools, self.substeps, self.timestep = len(impedances), substeps, period / substeps
        kept = math.ceil(LONGEST_DELAY / period) + 1
        self.line = torch.zeros(n, kept, self.tools, 7, dtype=torch.float64)
        """(n, periods, T, 7) m and quaternions x, y, z, w, newest first."""

    def pass_on(self) -> None:
        """Begin a control period, in which ``line[:, 0]`` can be told; what is not stays what it was."""
        self.line[:, 1:] = self.line[:, :-1].clone()

    def reaching(self, delay: Tensor) -> list[Tensor]:
        """(n, T, 7) of each physics step of the period: what reaches the tools then, ``delay`` (n or 1, T) s late."""
        if not delay.any():
            return [self.line[:, 0]] * self.substeps
        late = (delay / self.timestep).round()[..., None] - torch.arange(self.substeps)
        age = (late / self.substeps).ceil().long().clamp(0, self.line.shape[1] - 1)
        robots, tools = torch.arange(len(self.line))[:, None, None], torch.arange(self.tools)[:, None]
        return list(self.line[robots, age, tools].unbind(2))
