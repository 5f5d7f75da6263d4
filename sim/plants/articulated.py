"""Robots of bodies and joints, whatever their kind: what the plants of all engines have in common.

Coordinates: world z up, base x forward, y left, z up (REP-103); linear velocity in the world, angular velocity in
the base frame; joints in the mechanism's order. MuJoCo's quaternions (w first) become x, y, z, w in
``robo_rl.sim.plants.indices`` and ``robo_rl.sim.plants.sensing`` and nowhere else.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.drawing import Poser
from robo_rl.sim.plants.drawing import draw
from robo_rl.sim.plants.indices import find_indices, follow, home
from robo_rl.sim.plants.parameters import ArticulatedParameters, nominal_parameters
from robo_rl.sim.plants.physics import substeps
from robo_rl.sim.plants.sensing import quantities
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.terrain import Ground


class ArticulatedState(NamedTuple):
    """All that the future of m robots depends on, besides their parameters: exactly, in the engine that made it.

    Each is (m, k), k being 0 where there is nothing of the sort; all can be indexed and concatenated along m. Numbers
    are laid out as in MuJoCo's model of the robot, in every engine.
    """

    time: Tensor
    """s since the robot was placed."""
    qpos: Tensor
    """Positions of free bodies (m, and quaternion w, x, y, z) and joints (rad, m)."""
    qvel: Tensor
    """Velocities (m/s, world; rad/s, own frame) and joint velocities (rad/s, m/s)."""
    act: Tensor
    """Of actuators with a state."""
    history: Tensor
    """Targets on their way to the drives, with their times."""
    warmstart: Tensor
    """Accelerations from which the solver starts."""
    ctrl: Tensor
    """The last targets of the drives."""
    qfrc_applied: Tensor
    """Forces from outside on the degrees of freedom."""
    xfrc_applied: Tensor
    """Forces (N) and torques (N m) from outside on all bodies, world."""
    eq_active: Tensor
    """Whether equality constraints hold."""
    other: Tensor
    """What else the engine keeps."""
    references: Tensor
    """Targets of tools, on their way to them."""
    sensed: Tensor
    """The part of the truth that describes an earlier moment than the rest: torques, contacts, frames, rays."""


class ArticulatedPlant(ABC):
    """n robots with state and parameters, stepped in place at one control rate."""

    parameters: ArticulatedParameters
    dynamics = None
    dtype: torch.dtype = torch.float64
    """Of the engine's numbers."""

    def __init__(
        self, mechanism: Mechanism, n: int, period: float, timestep: float, model: mujoco.MjModel,
        ground: Ground | None, device: Any = "cpu",
    ) -> None:  # fmt: skip
        """``period`` is the control period, ``timestep`` that of the engine, s; without a ``ground`` it is a plane."""
        self.mechanism, self.n, self.period, self.model, self.ground = mechanism, n, period, model, ground
        self.device = torch.empty(0, device=device).device  # with its number
        self.substeps = substeps(period, timestep)
        self.indices = find_indices(model, mechanism)
        self.nominal = nominal_parameters(model, mechanism, self.indices)
        self.quantities = quantities(mechanism)
        shapes = self.quantities.all
        self._block, parts = empty_block(n, list(shapes.values()), device)
        self._truth = dict(zip(shapes, parts, strict=True))
        at_home, free = home(model, mechanism, self.indices), self.indices.free_position
        self.height = 0.0 if mechanism.fixed else float(at_home[free + 2])
        """m, of a free base above level ground when the robot stands with its joints at home."""
        self._rest = torch.from_numpy(np.concatenate([at_home, np.zeros(model.nv)])).to(device, self.dtype)[None]
        self._columns = torch.from_numpy(self.indices.state).to(device)
        ends = np.cumsum([0, *(size for (size,) in self.quantities.state.values())])
        self._slices = dict(zip(self.quantities.state, map(slice, ends[:-1], ends[1:]), strict=True))
        self._data = mujoco.MjData(model)
        driven, joint = [], 0
        for group in mechanism.groups:
            for _ in group.joints:
                if group.law != "none":
                    driven.append(int(self.indices.position[joint]) if group.law == "position" else -1)
                joint += 1
        self._held = torch.tensor(driven, dtype=torch.long, device=device)
        """(drives,) indices in qpos of what a drive holds; -1 of one that is told a velocity or a torque."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return dict(self._truth)

    def _bind_commands(self, drives: Tensor, tools: Tensor) -> None:
        """Say where commands go: targets of ``drives`` (n, drives) and poses of ``tools`` (n, T, 7)."""
        self._inputs: dict[str, Tensor] = {}
        start = 0
        for group in self.mechanism.groups:
            if group.law != "none":
                end = start + len(group.joints)
                self._inputs[group.command] = drives[:, start:end]
                start = end
        for tool, impedance in enumerate(self.mechanism.impedances):
            self._inputs[f"{impedance.name}_position_target"] = tools[:, tool, :3]
            self._inputs[f"{impedance.name}_orientation_target"] = tools[:, tool, 3:]

    def _tell(self, commands: Mapping[str, Tensor]) -> None:
        for name, where in self._inputs.items():
            if name in commands:
                where.copy_(commands[name])

    @abstractmethod
    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter. After writing, ``place`` the robot, or call ``refresh``."""

    def _require_parameter(self, name: str) -> None:
        if name not in ArticulatedParameters._fields:
            raise KeyError(f"a rigid body has no parameter '{name}'; it has {list(ArticulatedParameters._fields)}")
        if name == "ground_friction" and not len(self.indices.ground):
            raise KeyError("this robot has no ground whose friction could be set")

    @abstractmethod
    def refresh(self, ids: Tensor) -> None:
        """Compute what follows from state and parameters of the robots ``ids``: after writing to either."""

    @abstractmethod
    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``commands`` (n, k), held constant; those that are missing stay what they were."""

    @abstractmethod
    def state(self, ids: Tensor) -> ArticulatedState:
        """Copies of the states of the robots ``ids`` (m,)."""

    @abstractmethod
    def set_state(self, ids: Tensor, state: ArticulatedState) -> None:
        """Go on, in the robots ``ids`` (m,), from states that ``state`` gave, here or in another plant like this."""

    @abstractmethod
    def _at_rest(self, qpos: Tensor, qvel: Tensor, targets: Tensor) -> ArticulatedState:
        """The state (m, …) at ``qpos``, ``qvel`` of robots whose drives have been holding ``targets`` (m, drives)."""

    @abstractmethod
    def _hold_tools(self, ids: Tensor, poses: Tensor) -> None:
        """Make ``poses`` (m, T, 7) the tools' targets, as if they had been for long."""

    def place(self, ids: Tensor, *parts: Tensor, **named: Tensor) -> None:
        """Put the robots ``ids`` (m,) into a state, drives and tools holding it.

        Parts (m, k) are named as in ``truth``, or come in its order; what is missing is at home and at rest.
        """
        names = list(self.quantities.state)
        given = {**dict(zip(names, parts, strict=False)), **named}
        strange = [name for name in given if name not in names]
        if strange or len(parts) > len(names):
            raise KeyError(f"the state of '{self.mechanism.name}' has no {strange or 'more parts'}; it has {names}")
        both = self._rest.expand(len(ids), -1).clone()
        values = both[:, self._columns].float().to(both)  # home is what a task would give
        for name, value in given.items():
            values[:, self._slices[name]] = value.to(values)
        both[:, self._columns] = values
        qpos, qvel = both[:, : self.model.nq], both[:, self.model.nq :]
        self._follow(qpos, qvel)
        targets = torch.where(self._held >= 0, qpos[:, self._held.clamp(min=0)], 0.0)
        self.set_state(ids, self._at_rest(qpos, qvel, targets))
        self._derive(ids)
        if self.mechanism.impedances:
            tools = [part.name for part in self.mechanism.impedances]
            poses = [[self._truth[f"{name}_{part}"][ids] for part in ("position", "orientation")] for name in tools]
            self._hold_tools(ids, torch.stack([torch.cat(pose, 1) for pose in poses], 1))

    def _derive(self, ids: Tensor) -> None:
        """Compute what follows from states that were just set."""
        self.refresh(ids)

    def _follow(self, qpos: Tensor, qvel: Tensor) -> None:
        """Put joints that are coupled where their leaders are."""
        follow(qpos, self.model, self.indices)
        for follower, leader, ratio in self.indices.followers:
            mine, its = self.model.jnt_dofadr[follower], self.model.jnt_dofadr[leader]
            qvel[:, mine] = ratio * qvel[:, its]
        for curve in self.indices.curves:
            leader = self.model.jnt_dofadr[curve.leader]
            slope = curve.slope(qpos[:, self.model.jnt_qposadr[curve.leader]])
            qvel[:, self.model.jnt_dofadr[curve.joint]] = slope * qvel[:, leader]

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the velocity of the base, or of the tool of a fixed robot, by (3,) or (m, 3) m/s, as a blow does."""
        state = self.state(ids)
        change = velocity.to(state.qvel).expand(len(ids), 3)
        if self.mechanism.fixed:
            for row, qpos in enumerate(state.qpos.double().cpu().numpy()):
                state.qvel[row] += torch.from_numpy(self._response(qpos, change[row].double().cpu().numpy())).to(change)
        else:
            state.qvel[:, self.indices.free_velocity :][:, :3] += change
        self.set_state(ids, state)
        self.refresh(ids)

    def _response(self, qpos: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(nv,) change of qvel by the smallest blow at the tool that changes its velocity by (3,) m/s where it can."""
        model, data = self.model, self._data
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        jacobian, rates = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        handles = [*(part.at for part in self.mechanism.impedances), *(part.at for part in self.mechanism.frames)]
        sites = {model.site(i).name: i for i in range(model.nsite)}
        if handles and handles[0] in sites:
            mujoco.mj_jacSite(model, data, jacobian, None, sites[handles[0]])
        else:
            mujoco.mj_jacBodyCom(model, data, jacobian, None, self.indices.bodies.stop - 1)
        mujoco.mj_solveM(model, data, rates, jacobian)
        return rates.T @ np.linalg.pinv(jacobian @ rates.T, rcond=1e-6) @ velocity

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw(self.mechanism, self.ground))

    def drawing(self) -> mujoco.MjModel:
        """A model of how a robot, its ground and its objects look."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self._poser.poses(self.state(ids).qpos)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        state = self.state(torch.arange(self.n, device=self.device))
        return {**{f"state/{name}": value for name, value in state._asdict().items()}, **self._changed_parameters()}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        prefix = "state/"
        state = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        self._load_parameters({name: value for name, value in saved.items() if not name.startswith(prefix)})
        self.set_state(torch.arange(self.n, device=self.device), ArticulatedState(**state))

    @abstractmethod
    def _changed_parameters(self) -> dict[str, Tensor]:
        """Those that may not be the nominal ones, by name, without inputs (force, torque), which are state."""

    @abstractmethod
    def _load_parameters(self, saved: Mapping[str, Tensor]) -> None:
        """Write them back, and all that follows from them."""
