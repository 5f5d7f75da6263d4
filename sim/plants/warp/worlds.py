"""Copies of a model in MuJoCo Warp, with own fields and states, and torch's views of them."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import mujoco_warp
import numpy as np
import torch
import warp
from torch import Tensor

from robo_rl.sim.plants.indices import ModelIndices
from robo_rl.sim.plants.parameters import FIELDS, WRITTEN, ArticulatedParameters, view
from robo_rl.sim.plants.physics import LONGEST_DELAY
from robo_rl.sim.plants.rays import bundle, limits
from robo_rl.sim.plants.sensing import is_newest
from robo_rl.sim.plants.warp import kernels as warp_kernels
from robo_rl.sim.robots.mechanism import Mechanism

DERIVED = ("body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0")
"""Fields of the model that follow from the parameters, by ``set_const``."""

STATE = {
    "time": "time", "qpos": "qpos", "qvel": "qvel", "act": "act", "warmstart": "qacc_warmstart",
    "qfrc_applied": "qfrc_applied", "xfrc_applied": "xfrc_applied", "eq_active": "eq_active",
}  # fmt: skip
"""Fields of Warp's data by the names of ``ArticulatedState``."""

POINTS = {mujoco.mjtGeom.mjGEOM_SPHERE: 1, mujoco.mjtGeom.mjGEOM_CAPSULE: 2}
"""Greatest number of contacts between a shape and a plane; 4 for others."""

CROWD = 6
"""Shapes of rough ground that may touch one shape of a robot at once: treads, risers and blocks that overlap."""

FACES = 8
"""Contacts of two boxes face to face."""


class Worlds:
    """n copies of a model."""

    def __init__(
        self, model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices, n: int, substeps: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        self.n, self.mechanism, self.indices, self.substeps = n, mechanism, indices, substeps
        self.device, self.timestep = warp.device_from_torch(device), model.opt.timestep
        drives = len(mechanism.driven)
        samples = round(LONGEST_DELAY / self.timestep) + 1
        batched = self._batched()
        model.actuator_delay[:] = 0.0
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)  # Warp never resets
        with warp.ScopedDevice(self.device):
            self.model = mujoco_warp.put_model(model, dict.fromkeys(batched, n))
            contacts, rows = room(model)
            self.data = mujoco_warp.make_data(model, n, nconmax=contacts, njmax=rows)
            self.late = warp.zeros((n, drives), dtype=float)
            self.target = warp.zeros((n, drives), dtype=float)
            self.line = warp.zeros((n, drives, samples), dtype=float)
            self._tools = _Tools(model, mechanism, n, samples)
            self._rays = _Rays(model, mechanism, indices, n) if mechanism.rays else None
        self.state = {name: warp.to_torch(getattr(self.data, field)) for name, field in STATE.items()}
        self.state["time"] = self.state["time"][:, None]
        self.state |= {"ctrl": warp.to_torch(self.target), "history": warp.to_torch(self.line)}
        self.state["references"] = warp.to_torch(self._tools.references)
        self.first_active = torch.from_numpy(model.eq_active0.astype(bool)).to(device)
        self.fields = {name: warp.to_torch(getattr(self.model, name)) for name in batched if name not in DERIVED}
        own = {"impedance_delay": self._tools.late, "impedance_stiffness": self._tools.stiffness}
        self.own = {name: warp.to_torch(value) for name, value in {"command_delay": self.late, **own}.items()}
        self.inputs = {**self.state, **self.fields, **self.own}
        self.derived = {name: warp.to_torch(getattr(self.model, name)) for name in DERIVED}
        self.derived["warmstart"] = self.state["warmstart"]
        self._force, self._sensed = [warp.to_torch(self.data.actuator_force)], warp.to_torch(self.data.sensordata)
        if (indices.torque >= self._force[0].shape[1]).any():
            self._force.append(warp.to_torch(self.data.qfrc_actuator))
        self.columns, self._torques, self._sensors = (
            torch.from_numpy(found).to(device) for found in (indices.state, indices.torque, indices.sensors)
        )
        self._newest = is_newest(mechanism)

    def _batched(self) -> list[str]:
        """Fields of the model that have values of their own in each world."""
        there = {"object": self.mechanism.objects, "impedance": self.mechanism.impedances}
        written = [field for name, fields in WRITTEN.items() for field in fields if there.get(name.partition("_")[0])]
        carried = ["body_gravcomp"] if self.mechanism.weightless else []
        return sorted({*FIELDS.values(), *written, *carried, *DERIVED})

    def parameters(self, nominal: ArticulatedParameters) -> ArticulatedParameters:
        """Live views of parameters, (n, …), those of objects, impedances and cameras at their ``nominal`` values."""
        drives = len(self.mechanism.driven)
        values = {
            name: view(name, self.fields[field], self.indices, drives)
            for name, field in FIELDS.items()
            if field in self.fields and (name != "ground_friction" or len(self.indices.ground))
        }
        applied = self.state["xfrc_applied"][:, self.indices.base]
        own = {
            name: getattr(nominal, name).repeat(self.n, *[1] * (getattr(nominal, name).ndim - 1))
            for name in ArticulatedParameters._fields
            if name.startswith(("object_", "impedance_", "camera_")) and name not in self.own
        }
        self.own["impedance_stiffness"][:] = nominal.impedance_stiffness
        return nominal._replace(**values, **own, **self.own, force=applied[:, :3], torque=applied[:, 3:])

    def advance(self) -> None:
        """One control period."""
        for _ in range(self.substeps):
            if self.late.shape[1]:
                given = [self.target, self.late, 1.0 / self.timestep]
                outputs = [self.line, self.data.ctrl]
                warp.launch(warp_kernels.pass_on, dim=self.late.shape, inputs=given, outputs=outputs)
            if self.mechanism.impedances:
                mujoco_warp.kinematics(self.model, self.data)
                self._tools.pull(self.data, 1.0 / self.timestep, self.late.shape[1])
            mujoco_warp.step(self.model, self.data)
        if self._newest:
            self._look()

    def _look(self) -> None:
        """Sensors of the newest state."""
        mujoco_warp.kinematics(self.model, self.data)
        mujoco_warp.com_pos(self.model, self.data)
        mujoco_warp.sensor_pos(self.model, self.data)
        mujoco_warp.com_vel(self.model, self.data)
        mujoco_warp.sensor_vel(self.model, self.data)
        if self._rays:
            self._rays.cast(self.model, self.data)

    def derive(self) -> None:
        """All that follows from state and parameters."""
        if self.late.shape[1]:
            warp.launch(warp_kernels.tell, dim=self.late.shape, inputs=[self.target], outputs=[self.data.ctrl])
        mujoco_warp.set_const(self.model, self.data)
        mujoco_warp.forward(self.model, self.data)
        if self._rays:
            self._rays.cast(self.model, self.data)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """A call that does ``work``: on a GPU in the order of torch's own work, as one CUDA graph."""

        def run() -> None:
            with warp.ScopedDevice(self.device):
                work()

        run()  # compiles; the state that it leaves is overwritten by ``place``
        if not self.device.is_cuda:
            return run
        with warp.ScopedDevice(self.device), warp.ScopedCapture(self.device) as capture:
            work()
        torch_device = warp.device_to_torch(self.device)
        warp.synchronize_device(self.device)

        def launch() -> None:
            stream = warp.stream_from_torch(torch.cuda.current_stream(torch_device))
            warp.capture_launch(capture.graph, stream=stream)

        return launch

    def read(self) -> Tensor:
        """The truth, (numbers, n)."""
        state = torch.cat([self.state["qpos"], self.state["qvel"]], 1).index_select(1, self.columns)
        forces = torch.cat(self._force, 1).index_select(1, self._torques)
        parts = [state, forces, self._sensed.index_select(1, self._sensors)]
        if self._rays:
            parts.append(self._rays.ranges())
        return torch.cat(parts, 1).mT


class _Tools:
    """Springs that pull at tools, and targets on their way: of each tool the last told, then one per physics step."""

    def __init__(self, model: mujoco.MjModel, mechanism: Mechanism, n: int, samples: int) -> None:
        parts = mechanism.impedances
        sites = [[model.site(part.at).id, model.site(f"{part.name} reference").id] for part in parts]
        self.sites: warp.array = warp.array(np.array(sites, np.int32).reshape(-1, 2), dtype=int)
        self.clip: warp.array = warp.array(
            np.array([part.clip for part in parts], np.float32).reshape(-1, 2), dtype=float
        )
        self.late = warp.zeros((n, len(parts)), dtype=float)
        self.stiffness = warp.zeros((n, len(parts), 2), dtype=float)
        self.references = warp.zeros((n, len(parts), samples + 1, 7), dtype=float)

    def pull(self, data: mujoco_warp.Data, rate: float, first: int) -> None:
        """Write the springs' forces into the controls from ``first`` on."""
        sites = [self.sites, data.site_xpos, data.site_xmat]
        given = [*sites, self.late, rate, self.stiffness, self.clip, first]
        outputs = [self.references, data.ctrl]
        warp.launch(warp_kernels.pull, dim=self.late.shape, inputs=given, outputs=outputs)


class _Rays:
    """All rays of n robots."""

    def __init__(self, model: mujoco.MjModel, mechanism: Mechanism, indices: ModelIndices, n: int) -> None:
        bundles = [bundle(rays) for rays in mechanism.rays]
        counts = [len(directions) for _, directions in bundles]
        sites = np.repeat(np.array(indices.origins), counts)
        origins, directions = (np.concatenate(part).astype(np.float32) for part in zip(*bundles, strict=True))
        self._sites: warp.array = warp.array(sites.astype(np.int32), dtype=int)
        self._own: warp.array = warp.array(model.site_bodyid[sites].astype(np.int32), dtype=int)
        self._origins: warp.array = warp.array(origins, dtype=warp.vec3)
        self._directions: warp.array = warp.array(directions, dtype=warp.vec3)
        self._from, self._along, self._normal = (warp.zeros((n, len(sites)), dtype=warp.vec3) for _ in range(3))
        self._found, self._shape = warp.zeros((n, len(sites)), dtype=float), warp.zeros((n, len(sites)), dtype=int)
        found = warp.to_torch(self._found)
        self._longest, self._miss = (torch.tensor(part, device=found.device) for part in limits(mechanism))

    def cast(self, model: mujoco_warp.Model, data: mujoco_warp.Data) -> None:
        """Distances from where the places that the rays start from are."""
        given = [self._sites, self._origins, self._directions, data.site_xpos, data.site_xmat]
        warp.launch(warp_kernels.aim, dim=self._from.shape, inputs=given, outputs=[self._from, self._along])
        every = warp_kernels.EVERY_GROUP
        mujoco_warp.rays(
            model, data, self._from, self._along, every, True, self._own, self._found, self._shape, self._normal
        )

    def ranges(self) -> Tensor:
        """(n, rays) m."""
        found = warp.to_torch(self._found)
        return torch.where((found >= 0) & (found <= self._longest), found, self._miss)


def room(model: mujoco.MjModel) -> tuple[int, int]:
    """Greatest numbers of contacts and of rows of constraints in one world."""
    moves = model.body_weldid[model.geom_bodyid] != 0
    accepts, offers = model.geom_conaffinity, model.geom_contype
    still = np.flatnonzero(~moves & ((offers | accepts) > 0))
    contacts = 0
    moving = np.flatnonzero(moves & ((offers | accepts) > 0))
    for shape in moving:
        touched = still[((offers[still] & accepts[shape]) | (offers[shape] & accepts[still])) > 0]
        contacts += (
            POINTS.get(mujoco.mjtGeom(model.geom_type[shape]), 4)
            * (1 if len(touched) == 1 else CROWD)
            * (len(touched) > 0)
        )
    meeting = sum(
        FACES
        for k, one in enumerate(moving)
        for other in moving[k + 1 :]
        if (offers[one] & accepts[other]) | (offers[other] & accepts[one])
        and model.body_weldid[model.geom_bodyid[one]] != model.body_weldid[model.geom_bodyid[other]]
    )
    contacts += min(meeting, 2 * FACES * len(moving))
    size = {1: 4, 3: 4, 4: 6, 6: 10}[int(model.geom_condim.max(initial=3))]
    held = {mujoco.mjtEq.mjEQ_CONNECT: 3, mujoco.mjtEq.mjEQ_WELD: 6}
    rows = int((model.dof_frictionloss > 0).sum()) + int(model.jnt_limited.sum()) + int(model.tendon_limited.sum())
    rows += sum(held.get(mujoco.mjtEq(kind), 1) for kind in model.eq_type)
    return max(contacts, 1), max(rows + size * contacts, 1)  # without any row Warp's solver moves nothing
