"""Gymnasium's Ant-v5 and HalfCheetah-v5, many at a time: for comparing engines on the field's standard tasks.

Observation, reward, termination, time limit and start states are gymnasium's, to the last bits of double precision.
Each environment's control step is one call of a compiled function on MuJoCo's thread pool (``mjb_apply``): physics,
forces of contacts, observation and reward in one go, while the state is in the processor's cache.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from robo_rl.sim.accelerate.fuse.native import build

Array = NDArray[np.float64]

STEPS = 1000
"""Control steps until an episode times out."""
FRAME_SKIP = 5
NOISE = 0.1
"""Of start states: positions uniform within it, velocities normal with it."""


@dataclass(frozen=True)
class Definition:
    """What differs between the tasks."""

    model: str
    """File among gymnasium's."""
    hidden: int
    """First positions, which are left out of the observation."""
    contacts: bool
    """Forces of contacts are observed, and cost."""
    control_cost: float
    alive: float
    """Reward per step; episodes of tasks that have it end at other heights of the torso than ``heights``."""
    heights: tuple[float, float]
    """m."""


DEFINITIONS = {
    "Ant-v5": Definition("ant.xml", 2, True, 0.5, 1.0, (0.2, 1.0)),
    "HalfCheetah-v5": Definition("half_cheetah.xml", 1, False, 0.1, 0.0, (-np.inf, np.inf)),
}
"""gymnasium 1.x, envs/mujoco/ant_v5.py and half_cheetah_v5.py."""


class StandardStep(NamedTuple):
    """What ``StandardEnv.step`` returns: arrays that the next step overwrites."""

    observation: Array
    """(n, k); of a new episode where one ended."""
    reward: Array
    """(n,)."""
    terminated: NDArray[np.bool_]
    """(n,)."""
    truncated: NDArray[np.bool_]
    """(n,)."""
    ids: NDArray[np.int64]
    """(m,) the environments whose episode ended."""
    final_observation: Array
    """(m, k): their last observations."""


class StandardEnv:
    """n environments; those whose episode ends are reset within the same step."""

    def __init__(self, name: str, n: int, seed: int = 0, threads: int = 1) -> None:
        """``name`` is Ant-v5 or HalfCheetah-v5."""
        if name not in DEFINITIONS:
            raise ValueError(f"environment '{name}' is not known; expected one of {list(DEFINITIONS)}")
        self.n, self.definition = n, DEFINITIONS[name]
        self.model = load_model(self.definition.model)
        self.generator = np.random.default_rng(seed)
        self._native = _native()
        self._begin, self._step = (ctypes.cast(getattr(self._native, f), ctypes.c_void_p) for f in ("begin", "advance"))
        config = _Config(threads, 0)
        message = ctypes.create_string_buffer(1000)
        self._batch = self._native.mjb_makeBatch(self.model._address, n, ctypes.byref(config), message, len(message))
        if not self._batch:
            raise RuntimeError(f"MuJoCo can't make {n} simulations: {message.value.decode()}")
        self._allocate()
        self.reset()

    def _allocate(self) -> None:
        n, model, given = self.n, self.model, self.definition
        size = model.nq - given.hidden + model.nv + (6 * (model.nbody - 1) if given.contacts else 0)
        self.observation, self.reward = np.zeros((n, size)), np.zeros(n)
        self.start = np.zeros((n, model.nq + model.nv))
        self._action, self._place, self._terminated = np.zeros((n, model.nu)), np.zeros(n), np.zeros(n)
        self._age = np.zeros(n, np.int64)
        arrays = (self._action, self.start, self._place, self.observation, self.reward, self._terminated)
        self._work = _Work(
            *[array.ctypes.data for array in arrays],
            given.control_cost, given.alive, *given.heights, FRAME_SKIP, given.hidden, given.contacts, size,
        )  # fmt: skip

    def reset(self) -> Array:
        """Reset all environments; returns the observations (n, k)."""
        self.begin(np.arange(self.n))
        return self.observation

    def begin(self, ids: NDArray[np.int64], start: Array | None = None) -> None:
        """New episodes in the environments ``ids`` (m,): from drawn states, or from ``start`` (m, nq + nv)."""
        if start is None:
            model, count = self.model, len(ids)
            position = model.qpos0 + self.generator.uniform(-NOISE, NOISE, (count, model.nq))
            start = np.concatenate([position, NOISE * self.generator.standard_normal((count, model.nv))], 1)
        self.start[ids] = start
        self._age[ids] = 0
        self._apply(self._begin, ids.astype(np.int32))

    def step(self, actions: NDArray[Any]) -> StandardStep:
        """One control step under ``actions`` (n, nu)."""
        self._action[:] = actions
        self._apply(self._step, None)
        self._age += 1
        terminated = self._terminated > 0.0
        truncated = self._age >= STEPS
        ids = np.flatnonzero(terminated | truncated)
        final = self.observation[ids]
        if len(ids):
            self.begin(ids)
        return StandardStep(self.observation, self.reward, terminated, truncated, ids, final)

    def _apply(self, function: Any, ids: NDArray[np.int32] | None) -> None:
        chosen, count = (ids.ctypes.data, len(ids)) if ids is not None else (None, self.n)
        failed = self._native.mjb_apply(self._batch, chosen, count, function, ctypes.byref(self._work), 1)
        if failed:
            raise RuntimeError(f"MuJoCo failed in {failed} of {count} simulations")

    def __del__(self) -> None:
        if getattr(self, "_batch", None):
            self._native.mjb_deleteBatch(self._batch)


def load_model(file: str) -> mujoco.MjModel:
    """The model of that name which comes with gymnasium."""
    import gymnasium

    model = mujoco.MjModel.from_xml_path(str(Path(gymnasium.__file__).parent / "envs/mujoco/assets" / file))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND  # one robot is one island; looking for more takes time
    return model


class _Config(ctypes.Structure):
    """mjBatchConfig."""

    _fields_ = [("threads", ctypes.c_int), ("persistent", ctypes.c_ubyte)]


class _Work(ctypes.Structure):
    """What the compiled functions are given; the same as in ``CODE``."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("action", "start", "place", "observation", "reward", "terminated")],
        *[(name, ctypes.c_double) for name in ("control_cost", "alive", "lowest", "highest")],
        *[(name, ctypes.c_int) for name in ("substeps", "hidden", "contacts", "size")],
    ]


CODE = r"""
#include <cmath>
#include <algorithm>
#include <mujoco/mujoco.h>
#include <mujoco/mjbatch.h>

struct Work {
  const double *action, *start;
  double *place, *observation, *reward, *terminated;
  double control_cost, alive, lowest, highest;
  int substeps, hidden, contacts, size;
};

static double torso(const Work* work, const mjData* d) {
  return work->contacts ? d->xpos[3] : d->qpos[0];
}

static double observe(const mjModel* m, const mjData* d, int i, const Work* work) {
  double* out = work->observation + (size_t)i * work->size;
  out = std::copy(d->qpos + work->hidden, d->qpos + m->nq, out);
  out = std::copy(d->qvel, d->qvel + m->nv, out);
  double squares = 0.0;
  if (work->contacts)
    for (int k = 6; k < 6 * m->nbody; k++) {
      double force = std::min(std::max(d->cfrc_ext[k], -1.0), 1.0);
      squares += force * force;
      *out++ = force;
    }
  return squares;
}

extern "C" void begin(const mjModel* m, mjData* d, int i, void* given) {
  const Work* work = (const Work*)given;
  mj_resetData(m, d);
  const double* start = work->start + (size_t)i * (m->nq + m->nv);
  std::copy(start, start + m->nq, d->qpos);
  std::copy(start + m->nq, start + m->nq + m->nv, d->qvel);
  mj_forward(m, d);
  work->place[i] = torso(work, d);
  observe(m, d, i, work);
}

extern "C" void advance(const mjModel* m, mjData* d, int i, void* given) {
  const Work* work = (const Work*)given;
  const double* action = work->action + (size_t)i * m->nu;
  std::copy(action, action + m->nu, d->ctrl);
  for (int k = 0; k < work->substeps; k++) mj_step(m, d);
  if (work->contacts) mj_rnePostConstraint(m, d);
  double effort = 0.0;
  for (int k = 0; k < m->nu; k++) effort += action[k] * action[k];
  double squares = observe(m, d, i, work), place = torso(work, d);
  bool healthy = work->lowest <= d->qpos[2] && d->qpos[2] <= work->highest;
  if (work->alive > 0.0)
    for (int k = 0; k < m->nq; k++) healthy = healthy && std::isfinite(d->qpos[k]);
  if (work->alive > 0.0)
    for (int k = 0; k < m->nv; k++) healthy = healthy && std::isfinite(d->qvel[k]);
  double speed = (place - work->place[i]) / (work->substeps * m->opt.timestep);
  work->reward[i] = speed + (healthy ? work->alive : 0.0) - work->control_cost * effort - 5e-4 * squares;
  work->terminated[i] = work->alive > 0.0 && !healthy;
  work->place[i] = place;
}
"""


def _native() -> ctypes.CDLL:
    folder = Path(mujoco.__file__).parent
    library = next(folder.glob("libmujoco.so*"))
    linked = f"-L{folder} -l:{library.name} -Wl,-rpath,{folder}"
    native = build(CODE, f"-I{folder / 'include'}", *linked.split())
    native.mjb_makeBatch.restype = ctypes.c_void_p
    native.mjb_makeBatch.argtypes = [
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int,
    ]  # fmt: skip
    native.mjb_apply.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
    ]  # fmt: skip
    native.mjb_deleteBatch.argtypes = [ctypes.c_void_p]
    return native
