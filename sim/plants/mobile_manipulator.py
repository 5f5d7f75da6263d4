"""Arms on mobile bases: MuJoCo for arm and objects, and for the base the wheels of ``robo_rl.sim.plants.mobile_base``.

The base takes a forward speed and a turn rate, on mecanum or omni wheels (``robo_rl.sim.plants.omni_wheels``) a lateral
speed, too. Every 10 ms its wheels follow with their lag, limits and slip, and the
three joints that stand for them in the model get the velocity that results; so the base moves as a mobile base does,
and carries the arm, which does not move it. What the odometry makes of the wheels drifts.

Beside what ``MujocoPlant`` tells: ``position`` (m) and ``orientation``, the pose by odometry; ``base_position`` and
``heading_position``, the true one; and of every object X, ``X_position``, its true place (m) in the frame of the base,
as a camera on the robot sees it, and ``X_place``, that in the world. ``place`` takes places in the world.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.plants.articulated import ArticulatedState
from robo_rl.sim.plants.mobile_base import STEP, BaseParameters, BaseState, advance, nominal_parameters
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.omni_wheels import OmniParameters, OmniState, contacts
from robo_rl.sim.plants.omni_wheels import fused_advance as fused_omni_advance
from robo_rl.sim.plants.omni_wheels import nominal_parameters as omni_parameters
from robo_rl.sim.plants.parameters import ArticulatedParameters
from robo_rl.sim.plants.physics import Physics, substeps
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.robots.mobile_manipulator import Drive, OmniDrive

AXES, ALL_AXES = ("forward_speed", "turn_rate"), ("forward_speed", "lateral_speed", "turn_rate")
"""What a base is commanded, in the order of its step."""
BASES: Mapping[type, tuple[Any, Any, list[tuple[int, ...]]]] = {
    Drive: (BaseState, BaseParameters, [(2,), (1,), (1,), (1,), (3,)]),
    OmniDrive: (OmniState, OmniParameters, [(2,), (1,), (2,), (1,), (3,), (3,)]),
}
"""By kind of drive: state, parameters, and how many numbers each part of the state has. The first two, the true pose,
are MuJoCo's; the others are kept beside it."""


class MobileManipulatorPlant(MujocoPlant):
    """n robots with state and parameters, stepped in place at one control rate."""

    def __init__(
        self, drive: Drive | OmniDrive, mechanism: Mechanism, n: int, period: float, physics: Physics | None = None,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        """``mechanism`` is a card's, with objects; ``period`` (s) of control is a multiple of 10 ms."""
        physics = physics or Physics()
        self.looks, self.between = substeps(period, STEP), substeps(STEP, physics.timestep)
        state, figures_type, shapes = BASES[type(drive)]
        self._own, parts = empty_block(n, shapes)
        self.base = state(*parts)
        """Live, but for the true pose, which is MuJoCo's."""
        self._of_base: tuple[str, ...] = figures_type._fields
        self.drive, self.kept = drive, sum(size for (size,) in shapes[2:])
        self.commanded = ALL_AXES if isinstance(drive, OmniDrive) else AXES
        _, self._wanted = empty_block(n, [(1,)] * len(self.commanded))
        names = [thing.name for thing in mechanism.objects]
        _, (self._orientation, *seen) = empty_block(n, [(4,), *[(3,)] * len(names)])
        self._seen: list[tuple[Tensor, Tensor]] = []
        """Of every object its place in the world and in the base's frame, (n, 3) m each."""
        super().__init__(mechanism, n, period, physics, threads)
        joints = [self.model.joint(joint.name) for joint in mechanism.joints[-3:]]
        self._pose = torch.tensor([self._parts["qpos"].start + int(joint.qposadr[0]) for joint in joints])
        self._speed = torch.tensor([self._parts["qvel"].start + int(joint.dofadr[0]) for joint in joints])
        _, parts = empty_block(n, [()] * len(figures_type._fields))
        nominal = omni_parameters(drive) if isinstance(drive, OmniDrive) else nominal_parameters(drive)
        figures, self._wheels = nominal, figures_type(*parts)
        for mine, figure in zip(parts, figures, strict=True):
            mine[:] = figure
        both: Any = _both(figures_type)
        self.nominal = both(*self.nominal, *figures)
        self.parameters = both(*self.parameters, *parts)
        if isinstance(drive, OmniDrive):
            fused = fused_omni_advance(contacts(drive))
            self._advance = fused.bind(self.base, self._wanted, self._wheels, out=self.base)
        else:
            self._advance = _fused_advance().bind(self.base, *self._wanted, self._wheels, out=self.base)
        self._truth |= {"position": self.base.odometer[:, :2], "orientation": self._orientation}
        for name, part in zip(names, seen, strict=True):
            world = self._truth[f"{name}_position"]
            self._truth |= {f"{name}_place": world, f"{name}_position": part}
            self._seen.append((world, part))
        self._look_around()

    def param(self, name: str) -> Tensor:
        return getattr(self._wheels, name) if name in self._of_base else super().param(name)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period. Beside the arm's commands: ``forward_speed`` (n, 1) m/s, ``turn_rate`` (n, 1) rad/s, and
        where the drive has it ``lateral_speed`` (n, 1) m/s."""
        self._tell(commands)
        for name, buffer in zip(self.commanded, self._wanted, strict=True):
            if name in commands:
                buffer.copy_(commands[name])
        base = self.base
        for _ in range(self.looks):
            pose, rate = self._state[:, self._pose].float(), self._turn_rate.clone()
            base.position.copy_(pose[:, :2])
            base.heading.copy_(pose[:, 2:])
            self._advance()
            turning = 0.5 * (rate + self._turn_rate)
            if not isinstance(base, OmniState):  # whose own is the true one
                turning = 0.5 * self._wheels.turn_scale[:, None] * (rate + self._turn_rate)
            self._state[:, self._speed] = torch.cat([(base.position - pose[:, :2]) / STEP, turning], 1).double()
            self.batch.step(nstep=self.between, stage=self._stage)
        self._read()
        self._look_around()

    def state(self, ids: Tensor) -> ArticulatedState:
        found = super().state(ids)
        own = torch.cat(list(self.base[2:]), 1)[ids]
        return found._replace(other=torch.cat([found.other, own.to(found.other)], 1))

    def set_state(self, ids: Tensor, state: ArticulatedState) -> None:
        own = state.other[:, -self.kept :].float()
        super().set_state(ids, state._replace(other=state.other[:, : -self.kept]))
        kept = list(self.base[2:])
        for mine, given in zip(kept, own.split([part.shape[1] for part in kept], 1), strict=True):
            mine[ids] = given
        self._look_around()

    def refresh(self, ids: Tensor) -> None:
        super().refresh(ids)
        self._look_around()

    def _at_rest(self, qpos: Tensor, qvel: Tensor, targets: Tensor) -> ArticulatedState:
        """Odometry begins with the true pose."""
        found = super()._at_rest(qpos, qvel, targets)
        x, y, yaw = (qpos[:, self.model.joint(joint.name).qposadr[0]] for joint in self.mechanism.joints[-3:])
        still = torch.zeros(len(x), self.kept - 3).to(x)
        return found._replace(other=torch.cat([found.other, still, torch.stack([x, y, yaw], 1)], 1))

    @property
    def _turn_rate(self) -> Tensor:
        """(n, 1) rad/s, live: as it turns, or of two wheels, which do not slip, as they do."""
        return self.base.velocity[:, 2:] if isinstance(self.base, OmniState) else self.base.turn_rate

    def _look_around(self) -> None:
        """What follows from the newest state: the orientation by odometry, and objects in the base's frame."""
        half = 0.5 * self.base.odometer[:, 2]
        self._orientation[:, 2], self._orientation[:, 3] = torch.sin(half), torch.cos(half)
        truth = self._truth
        heading, base = truth["heading_position"][:, 0], truth["base_position"]
        cosine, sine = torch.cos(heading), torch.sin(heading)
        for world, seen in self._seen:
            x, y = world[:, 0] - base[:, 0], world[:, 1] - base[:, 1]
            seen[:, 0], seen[:, 1] = cosine * x + sine * y, cosine * y - sine * x
            seen[:, 2] = world[:, 2]

    def _changed_parameters(self) -> dict[str, Tensor]:
        return {**super()._changed_parameters(), **{name: self.param(name) for name in self._of_base}}


@functools.cache
def _both(figures: Any) -> Any:
    """Parameters of the arm and of a base."""
    return namedtuple("Parameters", (*ArticulatedParameters._fields, *figures._fields))


@functools.cache
def _fused_advance() -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def base_step(state: BaseState, speed: Tensor, turn: Tensor, parameters: BaseParameters) -> BaseState:
        return advance(state, speed, turn, parameters, STEP)

    return fuse(base_step)
