"""Bodies and joints by MuJoCo Warp: thousands of robots on one GPU; model, names and frames of ``MujocoPlant``.

State and parameters are Warp's arrays, seen by torch without a copy. A control period is one CUDA graph. It runs on
the CPU too, slowly: for tests. Differences to the plant on the CPU:

- Numbers are float32 there and float64 here, so trajectories part slowly; tests say how far.
- Warp's clock is float32 too, with which its own delay of controls would be wrong by a step after some seconds, so
  targets wait in a line of physics steps here.
- What follows from a robot's mass, centre of mass and armature (``DERIVED``), and from its first state, is computed
  in a small batch of its own, so that robots that begin don't cost or change anything for those under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import warp
from torch import Tensor

from robo_rl.sim.plants.articulated import ArticulatedPlant, ArticulatedState
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.cameras import require_no_camera
from robo_rl.sim.plants.parameters import ArticulatedParameters, spread_friction, write_fields
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.plants.warp.worlds import Worlds
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.terrain import Ground

BEGINNERS = 256
"""Robots that can begin at once; more do so one batch after the other."""


class WarpPlant(ArticulatedPlant):
    """n robots with state and parameters, stepped in place at one control rate."""

    dtype = torch.float32

    def __init__(
        self, mechanism: Mechanism, n: int, period: float, physics: Physics | None = None, device: Any = "cuda",
        ground: Ground | None = None,
    ) -> None:  # fmt: skip
        """``period`` is the control period in s; without a ``ground`` it is a plane."""
        require_no_camera(mechanism, "MuJoCo Warp")
        self.physics = physics or Physics()
        warp.config.log_level = warp.LOG_WARNING  # it would list its devices and kernels
        warp.init()
        model = assemble(mechanism, self.physics, ground)
        super().__init__(mechanism, n, period, self.physics.timestep, model, ground, device)
        self.nominal = ArticulatedParameters(*(value.to(self.device, torch.float32) for value in self.nominal))
        worlds = (model, mechanism, self.indices)
        self._all = Worlds(*worlds, n, self.substeps, self.device)
        self._few = Worlds(*worlds, min(n, BEGINNERS), self.substeps, self.device)
        self._bind_commands(self._all.state["ctrl"], self._all.state["references"][:, :, 0])
        self.parameters = self._all.parameters(self.nominal)
        self._few.parameters(self.nominal)
        self._run = self._all.record(self._all.advance)
        self._begin = self._few.record(self._few.derive)
        if mechanism.driven:
            self.param("command_delay").zero_()
        self.place(torch.arange(n, device=self.device))

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter. After writing, ``place`` the robot, or call ``refresh``."""
        self._require_parameter(name)
        return getattr(self.parameters, name)

    def state(self, ids: Tensor) -> ArticulatedState:
        parts = {name: value[ids].flatten(1) for name, value in self._all.state.items()}
        nothing = torch.empty(len(ids), 0, device=self.device)
        own = {name: nothing for name in ArticulatedState._fields if name not in parts}
        sensed = self._block[len(self.indices.state) :, ids].mT
        return ArticulatedState(**{**own, **parts, "sensed": sensed})

    def set_state(self, ids: Tensor, state: ArticulatedState) -> None:
        self._require_here(ids=ids, **state._asdict())
        for name, value in self._all.state.items():
            value[ids] = getattr(state, name).unflatten(1, value.shape[1:]).to(value.dtype)
        known = torch.cat([state.qpos, state.qvel], 1)[:, self._all.columns]
        self._block[:, ids] = torch.cat([known, state.sensed], 1).mT.float()

    def _at_rest(self, qpos: Tensor, qvel: Tensor, targets: Tensor) -> ArticulatedState:
        m, worlds = len(qpos), self._all.state
        parts = {name: worlds[name].new_zeros(m, worlds[name][0].numel()) for name in worlds}
        parts["eq_active"][:] = self._all.first_active
        rest = {"qpos": qpos.float(), "qvel": qvel.float(), "ctrl": targets.float()}
        rest["history"] = targets.float()[:, :, None].expand(-1, -1, worlds["history"].shape[2]).flatten(1)
        nothing = qpos.new_zeros(m, 0)
        sensed = qpos.new_zeros(m, self._block.shape[0] - len(self.indices.state))
        own = {name: nothing for name in ArticulatedState._fields if name not in parts}
        return ArticulatedState(**{**own, **parts, **rest, "sensed": sensed})

    def _hold_tools(self, ids: Tensor, poses: Tensor) -> None:
        self._all.state["references"][ids] = poses[:, :, None]

    def refresh(self, ids: Tensor) -> None:
        worlds = self._all
        spread_friction(worlds.fields["geom_friction"], self.indices, ids)
        write_fields(worlds.fields, self.parameters, self.model, self.mechanism, self.indices, ids)
        for some in ids.split(self._few.n):
            count = len(some)
            for name, value in self._few.inputs.items():
                value[:count] = worlds.inputs[name][some]
            self._begin()
            for name, value in worlds.derived.items():
                value[some] = self._few.derived[name][:count]
            self._block[:, some] = self._few.read()[:, :count]

    def step(self, commands: Mapping[str, Tensor]) -> None:
        self._require_here(**commands)
        self._tell(commands)
        self._run()
        self._block.copy_(self._all.read())

    def _require_here(self, **given: Tensor) -> None:
        for name, value in given.items():
            if value.device != self.device:
                raise ValueError(f"{name} is on {value.device}; expected {self.device}, where the plant is")

    def _changed_parameters(self) -> dict[str, Tensor]:
        state = {id(value) for value in self._all.state.values()}
        inputs = {name: value for name, value in self._all.inputs.items() if id(value) not in state}
        return {**inputs, **{name: value for name, value in self._all.derived.items() if id(value) not in state}}

    def _load_parameters(self, saved: Mapping[str, Tensor]) -> None:
        for name, value in self._changed_parameters().items():
            value.copy_(saved[name])
