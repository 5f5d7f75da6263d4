"""Bodies and joints by MuJoCo on the CPU: many robots on a pool of threads (``mujoco.batch``).

Every robot's result is what a loop of ``mj_step`` gives, to the last bit, whatever the number of robots and threads.
State and parameters are MuJoCo's own arrays; ``truth`` holds copies in float32, laid out for fused loops.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from robo_rl.sim.plants.articulated import ArticulatedPlant, ArticulatedState
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.cameras import Cameras
from robo_rl.sim.plants.impedance import References, springs, wrench
from robo_rl.sim.plants.parameters import FIELDS, WRITTEN, spread_friction, view, write_fields
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.plants.rays import RayCaster
from robo_rl.sim.plants.sensing import is_newest
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.terrain import Ground

DERIVED_FROM = {"body_mass", "body_ipos", "body_inertia", "actuator_armature"}
"""Fields that others are computed from, by ``set_const``."""

POSE = int(mujoco.mjtStage.mjSTAGE_POS)
"""What an impedance needs of the newest state between two physics steps."""

COMPONENTS = {
    "time": "TIME", "qpos": "QPOS", "qvel": "QVEL", "act": "ACT", "history": "HISTORY", "warmstart": "WARMSTART",
    "ctrl": "CTRL", "qfrc_applied": "QFRC_APPLIED", "xfrc_applied": "XFRC_APPLIED", "eq_active": "EQ_ACTIVE",
}  # fmt: skip
"""Parts of MuJoCo's state by the names of ``ArticulatedState``."""


class MujocoPlant(ArticulatedPlant):
    """n robots with state and parameters, stepped in place at one control rate."""

    def __init__(
        self, mechanism: Mechanism, n: int, period: float, physics: Physics | None = None, threads: int | None = None,
        ground: Ground | None = None,
    ) -> None:  # fmt: skip
        """``period`` is the control period in s; ``threads`` are torch's by default, ``ground`` is a plane."""
        self.physics = physics or Physics()
        model = assemble(mechanism, self.physics, ground)
        super().__init__(mechanism, n, period, self.physics.timestep, model, ground)
        self.batch = Batch(self.model, n, threads or torch.get_num_threads())
        self._stage = int(mujoco.mjtStage.mjSTAGE_VEL if is_newest(mechanism) else mujoco.mjtStage.mjSTAGE_NONE)
        self._parts = _components(self.model)
        self._state = torch.from_numpy(self.batch.state)
        self._sensed = torch.from_numpy(_writable(self.batch.bind("sensordata")))
        self._force = [torch.from_numpy(_writable(self.batch.bind("actuator_force")))]
        if (self.indices.torque >= self._force[0].shape[1]).any():
            self._force.append(torch.from_numpy(_writable(self.batch.bind("qfrc_actuator"))))
        self._control = self._state[:, self._parts["ctrl"]]
        self._state_columns, self._torques, self._sensors = map(
            torch.from_numpy, (self._find_columns(), self.indices.torque, self.indices.sensors)
        )
        self._all_torques = np.array_equal(self.indices.torque, np.arange(self._force[0].shape[1]))
        self._references = References(mechanism.impedances, n, period, self.substeps)
        self._bind_commands(self._control, self._references.line[:, 0])
        self._rays = RayCaster(self.batch, mechanism, self.indices) if mechanism.rays else None
        self._cameras = Cameras(self.batch, mechanism, self.indices, n, ground) if mechanism.cameras else None
        self._truth |= self._cameras.images if self._cameras else {}
        self._expanded: set[str] = set()
        applied = torch.from_numpy(self.batch.bind("xfrc_applied"))[:, self.indices.base]
        self.parameters = self.nominal._replace(force=applied[:, :3], torque=applied[:, 3:])
        if mechanism.driven:
            self.param("command_delay")[:] = 0.0
        self._reset_row = torch.from_numpy(self.batch.state[:1].copy())
        self.place(torch.arange(n))

    def _find_columns(self) -> np.ndarray:
        """Columns of the state rows of ``Quantities.state``."""
        qpos, qvel = self._parts["qpos"].start, self._parts["qvel"].start
        columns = self.indices.state
        return np.where(columns < self.model.nq, qpos + columns, qvel + columns - self.model.nq)

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter. After writing, ``place`` the robot, or call ``refresh``."""
        self._require_parameter(name)
        if name not in self._expanded and name not in ("force", "torque"):
            if name in FIELDS:
                field = self.batch.expand(FIELDS[name])
                live = view(name, field, self.indices, len(self.mechanism.driven))
            else:
                live = getattr(self.nominal, name).repeat(self.n, *[1] * (getattr(self.nominal, name).ndim - 1))
                for field in WRITTEN.get(name, ()):
                    self.batch.expand(field)
            self.parameters = self.parameters._replace(**{name: live})
            self._expanded.add(name)
        return getattr(self.parameters, name)

    def state(self, ids: Tensor) -> ArticulatedState:
        rows = self._state[ids]
        parts = {name: rows[:, where] for name, where in self._parts.items()}
        references = self._references.line[ids].flatten(1)
        return ArticulatedState(**parts, references=references, sensed=self._block[len(self._state_columns) :, ids].mT)

    def set_state(self, ids: Tensor, state: ArticulatedState) -> None:
        for name, where in self._parts.items():
            self._state[ids, where] = getattr(state, name)
        self._references.line[ids] = state.references.unflatten(1, self._references.line.shape[1:])
        known = self._state[ids[:, None], self._state_columns].float()
        self._block[:, ids] = torch.cat([known, state.sensed.float()], 1).mT
        if self._stage:
            self.batch.forward(np.unique(ids.numpy()), stage=self._stage)
        self._look(ids)

    def _look(self, ids: Tensor | None = None) -> None:
        """New images of the robots ``ids``, or of all, where they have cameras."""
        if self._cameras:
            given = ("object_size", "camera_mount")
            sizes, mounts = (getattr(self.parameters, name) if name in self._expanded else None for name in given)
            self._cameras.render(sizes, mounts, ids)

    def _at_rest(self, qpos: Tensor, qvel: Tensor, targets: Tensor) -> ArticulatedState:
        rows = self._reset_row.repeat(len(qpos), 1)
        parts = {name: rows[:, where] for name, where in self._parts.items()}
        parts["ctrl"][:, : targets.shape[1]] = targets
        if self.model.nhistory:
            samples = parts["history"].unflatten(1, (targets.shape[1], -1))
            count = (samples.shape[2] - 2) // 2  # after two cursors, times and then values
            samples[:, :, 2 + count :] = targets[:, :, None]
        nothing = torch.zeros(len(qpos), self._block.shape[0] - len(self._state_columns))
        line = torch.zeros(len(qpos), self._references.line[0].numel(), dtype=torch.float64)
        return ArticulatedState(**{**parts, "qpos": qpos, "qvel": qvel}, references=line, sensed=nothing)

    def _hold_tools(self, ids: Tensor, poses: Tensor) -> None:
        self._references.line[ids] = poses.double()[:, None]

    def _tools(self) -> Tensor:
        """(n, T, 7) poses of the tools, each in the frame that it is relative to."""
        tools = self._references.tools
        columns = self._sensors[len(self._sensors) - 13 * tools :].unflatten(0, (tools, 13))[:, :7]
        return self._sensed[:, columns]

    def refresh(self, ids: Tensor) -> None:
        chosen = np.unique(ids.numpy())
        self._write_fields(ids)
        if any(field in DERIVED_FROM for field in self._fields()):
            self.batch.set_const(chosen)
        self.batch.forward(chosen)
        self._block[:, ids] = self._newest(ids).mT.float()
        self._look(ids)

    def _fields(self) -> set[str]:
        """Fields of the model that have values of their own for each robot."""
        return {field for name in self._expanded for field in (*WRITTEN.get(name, ()), FIELDS.get(name, "")) if field}

    def _write_fields(self, ids: Tensor) -> None:
        """What follows from parameters that are no views of fields."""
        if "ground_friction" in self._expanded:
            spread_friction(self.batch.expand("geom_friction"), self.indices, ids)
        own = {field for name in self._expanded & set(WRITTEN) for field in WRITTEN[name]}
        if self.mechanism.weightless and "mass" in self._expanded:
            own.add("body_gravcomp")
        if own:
            fields = {name: torch.from_numpy(self.batch.expand(name)) for name in own}
            write_fields(fields, self.parameters, self.model, self.mechanism, self.indices, ids)
        if "object_size" in self._expanded:
            boxes, field = self.batch.expand("bvh_aabb"), self.batch.expand("geom_aabb")
            for body in self.indices.objects:
                if self.model.body_bvhnum[body] == 1:
                    shape = self.model.body_geomadr[body]
                    boxes[ids.numpy(), self.model.body_bvhadr[body]] = field[ids.numpy(), shape].reshape(-1, 6)

    def _newest(self, ids: Tensor | None = None) -> Tensor:
        """(m, numbers) of the truth, as MuJoCo has them."""
        state, sensed, *force = (
            part if ids is None else part[ids] for part in (self._state, self._sensed, *self._force)
        )
        forces = force[0] if len(force) == 1 else torch.cat(force, 1)
        parts = [state.index_select(1, self._state_columns), forces.index_select(1, self._torques)]
        parts.append(sensed.index_select(1, self._sensors))
        if self._rays:
            parts.append(self._rays.ranges(ids))
        return torch.cat(parts, 1)

    def _read(self) -> None:
        rows = len(self._state_columns)
        self._block[:rows].copy_(self._state.index_select(1, self._state_columns).mT)
        torques = rows + len(self._torques)
        if self._all_torques:
            self._block[rows:torques].copy_(self._force[0].mT)
        elif torques > rows:
            forces = self._force[0] if len(self._force) == 1 else torch.cat(self._force, 1)
            self._block[rows:torques].copy_(forces.index_select(1, self._torques).mT)
        sensors = torques + len(self._sensors)
        self._block[torques:sensors].copy_(self._sensed.index_select(1, self._sensors).mT)
        if self._rays:
            self._block[sensors:].copy_(self._rays.ranges().mT)
        self._look()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        if self.mechanism.impedances:
            self._references.pass_on()
            self._tell(commands)
            self._step_with_impedances()
        else:
            self._tell(commands)
            self.batch.step(nstep=self.substeps, stage=self._stage)
        self._read()

    def _step_with_impedances(self) -> None:
        pulled = springs(self.parameters.impedance_stiffness, self.mechanism.impedances)
        control = self._control[:, len(self.mechanism.driven) :]
        targets = self._references.reaching(self.parameters.impedance_delay)
        for step, target in enumerate(targets, 1):
            control.copy_(wrench(pulled, target, self._tools()).flatten(1))
            self.batch.step(nstep=1, stage=self._stage if step == self.substeps else POSE)

    def _changed_parameters(self) -> dict[str, Tensor]:
        return {name: self.param(name) for name in sorted(self._expanded)}

    def _load_parameters(self, saved: Mapping[str, Tensor]) -> None:
        for name, value in saved.items():
            self.param(name).copy_(value)
        self._write_fields(torch.arange(self.n))
        if any(field in DERIVED_FROM for field in self._fields()):
            self.batch.set_const()


def _components(model: mujoco.MjModel) -> dict[str, slice]:
    """Columns of MuJoCo's state rows, by the names of ``ArticulatedState``. Raises ValueError for what it has not."""
    whole, bits = int(mujoco.mjtState.mjSTATE_INTEGRATION), mujoco.mjtState.__members__.items()
    single = sorted((int(bit), name) for name, bit in bits if int(bit).bit_count() == 1 and int(bit) & whole)
    names = {f"mjSTATE_{component}": name for name, component in COMPONENTS.items()}
    found, start = {}, 0
    last = start
    for bit, component in single:
        end = start + mujoco.mj_stateSize(model, bit)
        if component in names:
            found[names[component]] = slice(start, end)
            last = end
        elif end > start and last != start:
            raise ValueError(f"the model has {component[8:].lower()}, between other parts of the state")
        start = end
    return {**found, "other": slice(last, start)}


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory without numpy's note that it is read-only, which torch would warn of. It is only read."""
    shown = dict(array.__array_interface__, data=(array.__array_interface__["data"][0], False))
    return np.asarray(type("Memory", (), {"__array_interface__": shown, "kept": array})())
