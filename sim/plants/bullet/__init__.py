"""Bodies and joints by Bullet, to see whether a policy depends on the engine that it was trained in.

Contacts, friction and integration are Bullet's own; the drives' law is that of ``robo_rl.sim.actuators``, at 1 kHz.
Each robot
is a world of its own, made anew from a URDF with its own parameters whenever it is placed, so this is slow: for tests
of tens of robots, which several processes share. Differences to MuJoCo's plants:

- Bullet has no armature: a rotor turns beside every joint, geared so high that its inertia tells nowhere else.
- Bullet multiplies the friction of two bodies: robots have 1, ground and objects their own.
- Contact forces are told by body: where a body has several contact points, a contact counts for the nearest.
- A state has no contacts of the step before, from which Bullet's solver starts: robots that touch something go on from
  it nearly, not exactly.
"""

from __future__ import annotations

import multiprocessing
import os
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.files.interpreter import safe_path
from robo_rl.sim.plants.articulated import ArticulatedPlant, ArticulatedState
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.bullet.world import SAMPLES, TIMESTEP, World, WorldState
from robo_rl.sim.plants.cameras import require_no_camera
from robo_rl.sim.plants.linkages import has_loops
from robo_rl.sim.plants.parameters import ArticulatedParameters
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.terrain import Ground

NEAR = 10.0
"""m, that a robot can walk in its longest episode on rough ground."""


class BulletPlant(ArticulatedPlant):
    """n robots at one control rate, several in processes of their own; names and frames as of ``MujocoPlant``."""

    def __init__(
        self, mechanism: Mechanism, n: int, period: float, processes: int | None = None, ground: Ground | None = None
    ) -> None:
        """``period`` is the control period in s; ``processes`` are as many as torch's threads by default.

        Without a ``ground`` it is a plane; with one, robots have what is within ``NEAR`` of where they begin.
        """
        require_no_camera(mechanism, "Bullet")
        super().__init__(mechanism, n, period, TIMESTEP, assemble(mechanism, Physics(contacts="all")), ground)
        if has_loops(self.model):
            raise CardError(
                f"{mechanism.model}: it has a closed linkage (<connect> or <weld>), which Bullet does not have; "
                "expected an open chain, or the plant 'mujoco'"
            )
        self.parameters = ArticulatedParameters(*(value.repeat(n, *[1] * (value.ndim - 1)) for value in self.nominal))
        self._told = torch.zeros(n, len(mechanism.driven), dtype=torch.float64)
        self._told_tools = torch.zeros(n, len(mechanism.impedances), 7, dtype=torch.float64)
        self._bind_commands(self._told, self._told_tools)
        count = min(n, torch.get_num_threads() if processes is None else processes)
        self._shares = [np.arange(n)[k::count] for k in range(count)]
        self._hosts: list[_Worlds | _Worker]
        if n == 1:
            self._hosts = [_Worlds(mechanism, n, ground)]
        else:
            self._hosts = [_Worker(mechanism, len(share), ground) for share in self._shares]
        self.place(torch.arange(n))

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter; all but pushes hold from the next ``place`` on."""
        self._require_parameter(name)
        return getattr(self.parameters, name)

    def _ask(self, what: str, ids: np.ndarray, *rows: Any) -> list[tuple[np.ndarray, Any]]:
        """Ask the hosts of the robots ``ids`` (m,), each about its own of ``rows`` (lists of arrays (m, …)).

        Returns, of each host, the places in ``ids`` of its robots, and its answer.
        """
        asked = []
        for share, host in zip(self._shares, self._hosts, strict=True):
            places = np.flatnonzero(np.isin(ids, share))
            if len(places):
                own = [[value[places] for value in row] for row in rows]
                host.ask(what, np.searchsorted(share, ids[places]), *own)
                asked.append((places, host))
        return [(places, host.answer()) for places, host in asked]

    def state(self, ids: Tensor) -> ArticulatedState:
        chosen = ids.numpy()
        rows: list[Any] = [None] * len(chosen)
        for places, answer in self._ask("state", chosen):
            for place, row in zip(places, answer, strict=True):
                rows[place] = row
        parts = [torch.from_numpy(np.array(part)).reshape(len(chosen), -1) for part in zip(*rows, strict=True)]
        time, qpos, qvel, history, references = parts if parts else [torch.empty(0, 0)] * 5
        nothing, m = torch.empty(len(chosen), 0, dtype=torch.float64), len(chosen)
        applied = torch.zeros(m, self.model.nbody, 6, dtype=torch.float64)
        applied[:, self.indices.base] = torch.cat([self.parameters.force, self.parameters.torque], 1)[ids]
        own = {
            "time": time, "qpos": qpos, "qvel": qvel, "history": history, "ctrl": self._told[ids],
            "references": torch.cat([self._told_tools[ids].flatten(1), references], 1),
            "xfrc_applied": applied.flatten(1), "sensed": self._block[len(self.indices.state) :, ids].mT,
        }  # fmt: skip
        return ArticulatedState(**{name: own.get(name, nothing) for name in ArticulatedState._fields})

    def set_state(self, ids: Tensor, state: ArticulatedState) -> None:
        tools = self._told_tools[0].numel()
        self._told[ids], self._told_tools[ids] = (
            state.ctrl,
            state.references[:, :tools].unflatten(1, (-1, 7)).reshape(len(ids), -1, 7),
        )
        applied = state.xfrc_applied.unflatten(1, (-1, 6))[:, self.indices.base]
        self.parameters.force[ids], self.parameters.torque[ids] = applied[:, :3], applied[:, 3:]
        parameters = [value[ids].double().numpy() for value in self.parameters]
        world = (state.time, state.qpos, state.qvel, state.history, state.references[:, tools:])
        self._ask("set", ids.numpy(), parameters, [part.double().numpy() for part in world])
        known = torch.cat([state.qpos, state.qvel], 1)[:, self._columns]
        self._block[:, ids] = torch.cat([known.float(), state.sensed.float()], 1).mT

    def _at_rest(self, qpos: Tensor, qvel: Tensor, targets: Tensor) -> ArticulatedState:
        m = len(qpos)
        own = {
            "time": qpos.new_zeros(m, 1), "qpos": qpos, "qvel": qvel, "ctrl": targets,
            "history": targets[:, None].expand(-1, SAMPLES, -1).flatten(1),
            "references": qpos.new_zeros(m, (1 + SAMPLES) * self._told_tools[0].numel()),
            "xfrc_applied": qpos.new_zeros(m, 6 * self.model.nbody),
            "sensed": qpos.new_zeros(m, self._block.shape[0] - len(self.indices.state)),
        }  # fmt: skip
        return ArticulatedState(**{name: own.get(name, qpos.new_zeros(m, 0)) for name in ArticulatedState._fields})

    def _derive(self, ids: Tensor) -> None:
        """Read the truth; worlds that were just set have no more that follows."""
        for places, answer in self._ask("truth", ids.numpy()):
            self._block[:, ids[places]] = torch.from_numpy(answer).float().mT

    def _hold_tools(self, ids: Tensor, poses: Tensor) -> None:
        state = self.state(ids)
        line = poses.double()[:, None].expand(-1, 1 + SAMPLES, -1, -1)
        self.set_state(ids, state._replace(references=line.flatten(1)))

    def refresh(self, ids: Tensor) -> None:
        self.set_state(ids, self.state(ids))
        self._derive(ids)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        self._tell(commands)
        inputs = (self._told, self._told_tools, self.parameters.force, self.parameters.torque)
        given = [value.numpy() for value in inputs]
        for places, answer in self._ask("step", np.arange(self.n), given, [np.full(self.n, self.substeps)]):
            self._block[:, torch.from_numpy(places)] = torch.from_numpy(answer).float().mT

    def save(self) -> dict[str, Tensor]:
        raise ValueError("Bullet's worlds can't be saved exactly; train with MuJoCo")

    def load(self, saved: Mapping[str, Tensor]) -> None:
        raise ValueError("Bullet's worlds can't be saved exactly; train with MuJoCo")

    def _changed_parameters(self) -> dict[str, Tensor]:
        return {}

    def _load_parameters(self, saved: Mapping[str, Tensor]) -> None:
        pass


class _Worlds:
    """Some robots, stepped one after the other."""

    def __init__(self, mechanism: Mechanism, n: int, ground: Ground | None) -> None:
        self.mechanism, self.ground = mechanism, ground
        self.model = assemble(mechanism, Physics(contacts="all"))
        self.worlds: list[World | None] = [None] * n
        self._answer: Any = None

    def ask(self, what: str, ids: np.ndarray, *rows: list[np.ndarray]) -> None:
        self._answer = getattr(self, f"_{what}")(ids, *rows)

    def answer(self) -> Any:
        return self._answer

    def _set(self, ids: np.ndarray, parameters: list[np.ndarray], states: list[np.ndarray]) -> None:
        for row, i in enumerate(ids):
            old = self.worlds[i]
            if old is not None:
                old.close()
            own: list[Any] = [value[row] for value in parameters]
            state = WorldState(*(part[row] for part in states))
            below = None
            if self.ground is not None:
                below = self.ground.solids.near(state.qpos[:2], NEAR)
            world = self.worlds[i] = World(self.mechanism, self.model, ArticulatedParameters(*own), below)
            world.set(state)

    def _step(self, ids: np.ndarray, inputs: list[np.ndarray], counts: list[np.ndarray]) -> np.ndarray:
        for row, i in enumerate(ids):
            own: list[Any] = [value[row] for value in inputs]
            self._world(i).step(int(counts[0][row]), *own)
        return self._truth(ids)

    def _truth(self, ids: np.ndarray) -> np.ndarray:
        """(m, numbers)."""
        return np.array([self._world(i).truth() for i in ids])

    def _state(self, ids: np.ndarray) -> list[WorldState]:
        return [self._world(i).state() for i in ids]

    def _world(self, i: int) -> World:
        world = self.worlds[i]
        assert world is not None
        return world


class _Worker:
    """``_Worlds`` in a process of its own, which ends with this object.

    It is a fork of one that has imported what it needs, and does nothing else: seconds less for each.
    """

    def __init__(self, mechanism: Mechanism, n: int, ground: Ground | None) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, mechanism, n, ground), daemon=True)
        with safe_path():
            self._process.start()
        theirs.close()
        weakref.finalize(self, self._pipe.close)

    def ask(self, what: str, ids: np.ndarray, *rows: Sequence[np.ndarray]) -> None:
        try:
            self._pipe.send((what, ids, *rows))
        except OSError:
            raise self._lost() from None

    def answer(self) -> Any:
        try:
            found = self._pipe.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(found, Exception):
            raise found
        return found

    def _lost(self) -> ChildProcessError:
        self._process.join(timeout=1)
        return ChildProcessError(f"a process that simulates robots by Bullet ended, exit code {self._process.exitcode}")


def _serve(pipe: Connection, mechanism: Mechanism, n: int, ground: Ground | None) -> None:
    """Answer until the other end closes. Bullet's greeting at every connection is of no interest there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    worlds = _Worlds(mechanism, n, ground)
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            worlds.ask(*asked)
            pipe.send(worlds.answer())
        except Exception as error:  # told where it was asked for
            pipe.send(error)
