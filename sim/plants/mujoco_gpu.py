"""Rigid bodies by MuJoCo Warp: thousands of robots on one GPU, the same model, names and frames as ``MujocoPlant``.

State and parameters are Warp's arrays, seen by torch without a copy. A control period is one CUDA graph. It runs on
the CPU too, slowly: for tests. Differences to the plant on the CPU:

- Numbers are float32 there and float64 here, so trajectories part slowly; tests say how far.
- Warp's clock is float32 too, with which its own delay of controls would be wrong by a step after some seconds, so
  targets wait in a line of physics steps here.
- What follows from a robot's mass, centre of mass and armature (``DERIVED``), and from its first state, is computed
  in a small batch of its own, so that robots that begin don't cost or change anything for those under way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import mujoco_warp
import numpy as np
import torch
import warp
from torch import Tensor

from sim.drawing import Poser
from sim.fuse import empty_block
from sim.plants.rigid import (
    FIELDS,
    LONGEST_DELAY,
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

DERIVED = ("body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0")
"""Fields of the model that follow from the parameters, by ``set_const``."""

BEGINNERS = 256
"""Robots that can begin at once; more do so one batch after the other."""

POINTS = {mujoco.mjtGeom.mjGEOM_SPHERE: 1, mujoco.mjtGeom.mjGEOM_CAPSULE: 2}
"""Greatest number of contacts between a shape and a plane; 4 for others."""

CROWD = 6
"""Shapes of rough ground that may touch one shape of a robot at once: treads, risers and blocks that overlap."""


class WarpPlant:
    """n robots with state and parameters, stepped in place at one control rate."""

    def __init__(
        self, card: LeggedCard, n: int, period: float, physics: Physics | None = None, device: Any = "cuda",
        ground: Ground | None = None,
    ) -> None:  # fmt: skip
        """``period`` is the control period in s; without a ``ground`` it is a plane."""
        self.card, self.n, self.period, self.physics = card, n, period, physics or Physics()
        self.ground = ground
        self.device = torch.empty(0, device=device).device  # with its number
        warp.config.log_level = warp.LOG_WARNING  # it would list its devices and kernels
        warp.init()
        self.model = assemble(card, self.physics, ground)
        self.indices, self.height = find_indices(self.model, card), standing_height(self.model, card)
        self.substeps = substeps(period, self.physics)
        nominal = nominal_parameters(self.model, self.indices)
        self.nominal = RigidParameters(*(value.to(self.device, torch.float32) for value in nominal))
        self._all = _Worlds(self, n)
        self._few = _Worlds(self, min(n, BEGINNERS))
        self.parameters = self._all.parameters()
        self._run = self._all.record(self._all.advance, self.substeps)
        self._begin = self._few.record(self._few.derive, 1)
        self._block, parts = empty_block(n, shapes(card), self.device)
        self._truth = RigidTruth(*parts)
        self._stand_all()

    def _stand_all(self) -> None:
        self.param("command_delay").zero_()
        everyone = torch.arange(self.n, device=self.device)
        self.place(everyone, *standing(self.card, self.height, self.n, self.device))

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter. After writing, ``place`` the robot, or call ``refresh``."""
        if name not in RigidParameters._fields:
            raise KeyError(f"a rigid body has no parameter '{name}'; it has {list(RigidParameters._fields)}")
        return getattr(self.parameters, name)

    def place(
        self, ids: Tensor, position: Tensor, orientation: Tensor, linear_velocity: Tensor, angular_velocity: Tensor,
        joint_position: Tensor, joint_velocity: Tensor,
    ) -> None:  # fmt: skip
        """Put the robots ``ids`` (m,) into a state, (m, k) each as in ``RigidTruth``, their motors holding it."""
        self._require_here(ids=ids, position=position, joint_position=joint_position)
        worlds = self._all
        positions = torch.cat([position, orientation, joint_position], 1)
        velocities = torch.cat([linear_velocity, angular_velocity, joint_velocity], 1)
        worlds.state["qpos"][ids[:, None], worlds.position_columns] = positions.float()
        worlds.state["qvel"][ids[:, None], worlds.velocity_columns] = velocities.float()
        worlds.state["line"][ids] = joint_position.float()[:, :, None]
        worlds.state["target"][ids] = joint_position.float()
        for name in ("qacc_warmstart", "xfrc_applied"):
            worlds.state[name][ids] = 0.0
        self.refresh(ids)

    def refresh(self, ids: Tensor) -> None:
        """Compute what follows from state and parameters of the robots ``ids``: after writing to either."""
        spread_friction(self._all.fields["geom_friction"], self.indices, ids)
        for some in ids.split(self._few.n):
            count = len(some)
            for name, value in self._few.inputs.items():
                value[:count] = self._all.inputs[name][some]
            self._begin()
            for name, value in self._all.derived.items():
                value[some] = self._few.derived[name][:count]
            self._block[:, some] = self._few.read()[:, :count]

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self._truth._asdict()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``joint_position_target`` commands (n, J), rad, held constant."""
        self._require_here(**commands)
        self._all.state["target"].copy_(commands["joint_position_target"])
        self._run()
        self._block.copy_(self._all.read())

    def _require_here(self, **given: Tensor) -> None:
        for name, value in given.items():
            if value.device != self.device:
                raise ValueError(f"{name} is on {value.device}; expected {self.device}, where the plant is")

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the velocity of the bases of the robots ``ids`` by ``velocity`` (3,) m/s, world."""
        worlds = self._all
        worlds.state["qvel"][ids[:, None], worlds.velocity_columns[:3]] += velocity.to(self.device)
        self.refresh(ids)

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_rigid(self.card, self.ground))

    def drawing(self) -> mujoco.MjModel:
        """A model of how a robot and its ground look."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self._poser.poses(self._all.state["qpos"][ids])

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {**self._all.inputs, **self._all.derived, "truth": self._block}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit on a CPU."""
        for name, value in self.save().items():
            value.copy_(saved[name])


class _Worlds:
    """n copies of the model with own fields and states, and torch's views of them."""

    def __init__(self, plant: WarpPlant, n: int) -> None:
        self.n, self.indices, self.joints = n, plant.indices, len(plant.card.joints)
        self.device, self.timestep = warp.device_from_torch(plant.device), plant.physics.timestep
        batched = [*{field for name, field in FIELDS.items() if name != "command_delay"}, *DERIVED]
        model = plant.model
        model.actuator_delay[:] = 0.0
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)  # Warp never resets
        with warp.ScopedDevice(self.device):
            self.model = mujoco_warp.put_model(model, dict.fromkeys(batched, n))
            contacts, rows = _room(model)
            self.data = mujoco_warp.make_data(model, n, nconmax=contacts, njmax=rows)
            self.late = warp.zeros((n, self.joints), dtype=float)
            self.target = warp.zeros((n, self.joints), dtype=float)
            self.line = warp.zeros((n, self.joints, round(LONGEST_DELAY / self.timestep) + 1), dtype=float)
        names = ("qpos", "qvel", "qacc_warmstart", "xfrc_applied")
        self.state = {name: warp.to_torch(getattr(self.data, name)) for name in names}
        self.state |= {"target": warp.to_torch(self.target), "line": warp.to_torch(self.line)}
        self.fields = {name: warp.to_torch(getattr(self.model, name)) for name in batched if name not in DERIVED}
        self.inputs = {**self.state, **self.fields, "command_delay": warp.to_torch(self.late)}
        self.derived = {name: warp.to_torch(getattr(self.model, name)) for name in DERIVED}
        self.derived["qacc_warmstart"] = self.state["qacc_warmstart"]
        self._torque, self._sensed = (warp.to_torch(x) for x in (self.data.actuator_force, self.data.sensordata))
        place, speed = plant.indices.free_position, plant.indices.free_velocity
        turn = [place + i for i in (4, 5, 6, 3)]  # MuJoCo's quaternions have w first
        columns = [place, place + 1, place + 2, *turn, *plant.indices.position.tolist()]
        self.position_columns = torch.tensor(columns, device=plant.device)
        columns = [*range(speed, speed + 6), *plant.indices.velocity.tolist()]
        self.velocity_columns = torch.tensor(columns, device=plant.device)
        self._sensors = torch.from_numpy(plant.indices.sensors).to(plant.device)

    def parameters(self) -> RigidParameters:
        """Live views of the parameters, (n, …)."""
        own = {name: field for name, field in FIELDS.items() if field in self.fields}
        values = {name: view(name, self.fields[field], self.indices) for name, field in own.items()}
        applied = self.state["xfrc_applied"][:, self.indices.base]
        delay = self.inputs["command_delay"]
        return RigidParameters(**values, command_delay=delay, force=applied[:, :3], torque=applied[:, 3:])

    def advance(self) -> None:
        """One physics step."""
        given = [self.target, self.late, 1.0 / self.timestep]
        warp.launch(_pass_on, dim=(self.n, self.joints), inputs=given, outputs=[self.line, self.data.ctrl])
        mujoco_warp.step(self.model, self.data)

    def derive(self) -> None:
        """All that follows from state and parameters."""
        warp.copy(self.data.ctrl, self.target)
        mujoco_warp.set_const(self.model, self.data)
        mujoco_warp.forward(self.model, self.data)

    def record(self, work: Callable[[], None], times: int) -> Callable[[], None]:
        """A call that does ``work`` so many times: on a GPU in the order of torch's own work, as one CUDA graph."""

        def run() -> None:
            with warp.ScopedDevice(self.device):
                for _ in range(times):
                    work()

        run()  # compiles; the state that it leaves is overwritten by ``place``
        if not self.device.is_cuda:
            return run
        with warp.ScopedDevice(self.device), warp.ScopedCapture(self.device) as capture:
            for _ in range(times):
                work()
        torch_device = warp.device_to_torch(self.device)
        warp.synchronize_device(self.device)

        def launch() -> None:
            stream = warp.stream_from_torch(torch.cuda.current_stream(torch_device))
            warp.capture_launch(capture.graph, stream=stream)

        return launch

    def read(self) -> Tensor:
        """What ``RigidTruth`` shows, (numbers, n)."""
        positions = self.state["qpos"].index_select(1, self.position_columns)
        velocities = self.state["qvel"].index_select(1, self.velocity_columns)
        sensed = self._sensed.index_select(1, self._sensors)
        parts = (positions[:, :7], velocities[:, :6], positions[:, 7:], velocities[:, 6:], self._torque, sensed)
        return torch.cat(parts, 1).mT


@warp.kernel
def _pass_on(
    target: warp.array2d[float],
    delay: warp.array2d[float],
    rate: float,
    line: warp.array3d[float],
    control: warp.array2d[float],
) -> None:
    """Targets wait in a line, (n, J, samples), newest first, as many physics steps as fit their delay (s)."""
    robot, joint = warp.tid()  # type: ignore[misc]
    last = line.shape[2] - 1  # type: ignore[attr-defined]
    for i in range(last):
        line[robot, joint, last - i] = line[robot, joint, last - i - 1]  # type: ignore[index]
    line[robot, joint, 0] = target[robot, joint]  # type: ignore[index]
    steps = int(warp.ceil(delay[robot, joint] * rate - 1.0e-4))  # type: ignore[index]
    control[robot, joint] = line[robot, joint, warp.clamp(steps, 0, last)]  # type: ignore[index]


def _room(model: mujoco.MjModel) -> tuple[int, int]:
    """Greatest numbers of contacts and of rows of constraints in one world."""
    touching = [mujoco.mjtGeom(kind) for kind in model.geom_type[model.geom_conaffinity > 0]]
    most = 1 if (model.geom_contype > 0).sum() == 1 else CROWD
    contacts = sum(POINTS.get(kind, 4) * most for kind in touching)
    rows = int((model.dof_frictionloss > 0).sum()) + int(model.jnt_limited.sum()) + 4 * contacts
    return contacts, rows
