"""Rigid bodies by MuJoCo on the CPU: many robots on a pool of threads (``mujoco.batch``).

Every robot's result is what a loop of ``mj_step`` gives, to the last bit, whatever the number of robots and threads.
State and parameters are MuJoCo's own arrays; ``truth`` holds copies in float32, laid out for fused loops.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from sim.drawing import Poser
from sim.fuse import empty_block
from sim.plants.rigid import (
    FIELDS,
    Physics,
    RigidParameters,
    RigidTruth,
    assemble,
    draw_rigid,
    find_indices,
    nominal_parameters,
    shapes,
    spread_friction,
    standing,
    standing_height,
    substeps,
    view,
)
from sim.robots.legged import LeggedCard
from sim.terrain import Ground

DERIVED_FROM = {"body_mass", "body_ipos", "actuator_armature"}
"""Fields that others are computed from, by ``set_const``."""


class MujocoPlant:
    """n robots with state and parameters, stepped in place at one control rate."""

    def __init__(
        self, card: LeggedCard, n: int, period: float, physics: Physics | None = None, threads: int | None = None,
        ground: Ground | None = None,
    ) -> None:  # fmt: skip
        """``period`` is the control period in s; ``threads`` are torch's by default, ``ground`` is a plane."""
        self.card, self.n, self.period, self.physics = card, n, period, physics or Physics()
        self.ground = ground
        self.model = assemble(card, self.physics, ground)
        self.indices = find_indices(self.model, card)
        self.height = standing_height(self.model, card)
        self.substeps = substeps(period, self.physics)
        self.batch = Batch(self.model, n, threads or torch.get_num_threads())
        self._state = torch.from_numpy(self.batch.state)
        self._sensed = torch.from_numpy(_writable(self.batch.bind("sensordata")))
        self._torque = torch.from_numpy(_writable(self.batch.bind("actuator_force")))
        self._control = torch.from_numpy(self.batch.bind("ctrl"))
        self._columns = torch.from_numpy(self._state_columns())
        self._sensors = torch.from_numpy(self.indices.sensors)
        self._block, parts = empty_block(n, shapes(card))
        self._truth = RigidTruth(*parts)
        self._expanded: set[str] = set()
        self.nominal = nominal_parameters(self.model, self.indices)
        applied = torch.from_numpy(self.batch.bind("xfrc_applied"))[:, self.indices.base]
        self.parameters = self.nominal._replace(force=applied[:, :3], torque=applied[:, 3:])
        self.param("command_delay")[:] = 0.0
        self.place(torch.arange(n), *standing(card, self.height, n))

    def _state_columns(self) -> np.ndarray:
        """Columns of the state rows, in the order of the first six fields of ``RigidTruth``."""
        qpos, qvel = (self._offset(name) for name in ("qpos", "qvel"))
        self._first = qpos
        place, speed = qpos + self.indices.free_position, qvel + self.indices.free_velocity
        quaternion = place + np.array([4, 5, 6, 3])  # MuJoCo has w first
        joints = (qpos + self.indices.position, qvel + self.indices.velocity)
        return np.concatenate([place + np.arange(3), quaternion, speed + np.arange(6), *joints]).astype(np.int64)

    def _offset(self, name: str) -> int:
        """First column of a field in the state rows."""
        view, rows = self.batch.bind(name), self.batch.state
        return (view.__array_interface__["data"][0] - rows.__array_interface__["data"][0]) // rows.itemsize

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter. After writing, ``place`` the robot, or call ``refresh``."""
        if name not in RigidParameters._fields:
            raise KeyError(f"a rigid body has no parameter '{name}'; it has {list(RigidParameters._fields)}")
        if name in FIELDS and name not in self._expanded:
            live = view(name, self.batch.expand(FIELDS[name]), self.indices)
            self.parameters = self.parameters._replace(**{name: live})
            self._expanded.add(name)
        return getattr(self.parameters, name)

    def place(
        self, ids: Tensor, position: Tensor, orientation: Tensor, linear_velocity: Tensor, angular_velocity: Tensor,
        joint_position: Tensor, joint_velocity: Tensor,
    ) -> None:  # fmt: skip
        """Put the robots ``ids`` (m,) into a state, (m, k) each as in ``RigidTruth``, their motors holding it."""
        self.batch.reset(ids.numpy(), stage=0)
        parts = (position, orientation, linear_velocity, angular_velocity, joint_position, joint_velocity)
        self._state[ids[:, None], self._columns] = torch.cat(parts, 1).double()
        self._control[ids] = joint_position.double()
        if self.model.nhistory:
            _, _, samples = self._history()
            samples[ids] = joint_position.double()[:, :, None]
        self.refresh(ids)

    def _history(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of the targets on their way: cursors (n, J), times (n, J, samples) and values (n, J, samples)."""
        rows = torch.from_numpy(self.batch.bind("history")).unflatten(1, (len(self.card.joints), -1))
        samples = (rows.shape[2] - 2) // 2
        return rows[:, :, 1], rows[:, :, 2 : 2 + samples], rows[:, :, 2 + samples :]

    def refresh(self, ids: Tensor) -> None:
        """Compute what follows from state and parameters of the robots ``ids``: after writing to either."""
        chosen = ids.numpy()
        if "ground_friction" in self._expanded:
            spread_friction(self.batch.expand("geom_friction"), self.indices, ids)
        if any(FIELDS[name] in DERIVED_FROM for name in self._expanded):
            self.batch.set_const(chosen)
        self.batch.forward(chosen)
        parts = (self._state[ids[:, None], self._columns], self._torque[ids], self._sensed[ids[:, None], self._sensors])
        self._block[:, ids] = torch.cat(parts, 1).mT.float()

    def _read(self) -> None:
        rows = len(self._columns)
        self._block[:rows].copy_(self._state.index_select(1, self._columns).mT)
        joints = len(self.card.joints)
        self._block[rows : rows + joints].copy_(self._torque.mT)
        self._block[rows + joints :].copy_(self._sensed.index_select(1, self._sensors).mT)

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self._truth._asdict()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``joint_position_target`` commands (n, J), rad, held constant."""
        self._control.copy_(commands["joint_position_target"])
        self.batch.step(nstep=self.substeps)
        self._read()

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the velocity of the bases of the robots ``ids`` by ``velocity`` (3,) m/s, world."""
        self._state[ids[:, None], self._columns[7:10]] += velocity.double()
        self.refresh(ids)

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_rigid(self.card, self.ground))

    def drawing(self) -> mujoco.MjModel:
        """A model of how a robot and its ground look."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self._poser.poses(self._state[ids, self._first : self._first + self.model.nq])

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        parameters = {name: self.param(name) for name in sorted(self._expanded)}  # pushes are part of the state
        return {"state": self._state, "truth": self._block, **parameters}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        for name, value in saved.items():
            if name not in ("state", "truth"):
                self.param(name).copy_(value)
        if "ground_friction" in self._expanded:
            spread_friction(self.batch.expand("geom_friction"), self.indices, torch.arange(self.n))
        self._state.copy_(saved["state"])
        if any(FIELDS[name] in DERIVED_FROM for name in self._expanded):
            self.batch.set_const()
        self._block.copy_(saved["truth"])


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory without numpy's note that it is read-only, which torch would warn of. It is only read."""
    shown = dict(array.__array_interface__, data=(array.__array_interface__["data"][0], False))
    return np.asarray(type("Memory", (), {"__array_interface__": shown, "kept": array})())
