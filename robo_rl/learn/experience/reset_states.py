"""Reset states: moments on the way to success, stored by family, where episodes of a training begin.

Whoever learns from episodes that all begin far from success meets success by chance, which is rare; who begins in all
states that lie on the way knows early what is worth reaching (OmniReset 2025: anywhere, near a grasp, grasped, partly
assembled; Florensa et al. 2017). Here the states are moments of a task's script, which is disturbed so that they
differ, and a moment is kept if it holds: half a second later, in a hand that does not move, it is of the same family.

A file is a checkpoint (``robo_rl.learn.runs.checkpoint``: safetensors with a digest, nothing pickled) with a row per
state, and in
its header the task's contract and the names of the families.

    family       (m,)    number of the state's family in the header's list
    NAME         (m, …)  the parts of the state (``LearningEnv.state``): physics, what was drawn, sensors, memory

What belongs to an episode and not to a moment is not stored: the random stream, levels, time and rewards so far. An
episode that begins with a state has all of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.learn.experience.demonstrations import contract_of, digest, of_task, shown
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.runs import checkpoint
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.episode import LARGEST, within
from robo_rl.sim.tasks import Task

FILE_NAME = "reset_states.safetensors"
"""In the folder of a run that begins with them."""
START = "start"
"""The name, among those of families, of where the task's own episodes begin."""
OWN = ("stream", "levels", "episode/step", "sums")
"""Parts that belong to an episode."""
BATCH = 64
"""Episodes at once."""
EVERY = 10
"""Control steps from moment to moment of an episode, on average, and from one disturbance to another."""
DISTURBED = 0.5
"""Standard deviation of what disturbs the script in half of the episodes, in actions."""
HELD = 0.5
"""s for which a state has to hold."""
PATIENCE = 200
"""Control steps, per wanted state, after which there are none of a family."""


class ResetStateError(ValueError):
    """Reset states can't be made or used. The message says why."""


class ResetStates(NamedTuple):
    """States of m environments by family."""

    families: tuple[str, ...]
    family: Tensor
    """(m,) number of each state's family."""
    states: EnvState
    """Without the parts in ``OWN``."""


# --- making them -------------------------------------------------------------------------------------------------


def collect(
    task: Task, count: int, seed: int = 0, told: Callable[[int], None] = lambda found: None
) -> tuple[ResetStates, dict[str, float]]:
    """So many states of each family of a task, and by family the part of the moments that held.

    ``told`` is called with the number of states so far.
    """
    script = getattr(task, "script", None)
    if script is None or not task.families:
        raise ResetStateError(f"task '{task.name}' has no families of states to begin from")
    played = LearningEnv(VecEnv(task, BATCH, seed, evaluation=True))
    trial = LearningEnv(VecEnv(task, BATCH, seed, evaluation=True, episode_length=10.0 * HELD))
    generator = torch.Generator().manual_seed(seed)
    kept: list[list[EnvState]] = [[] for _ in task.families]
    found, tried = [0] * len(task.families), [0] * len(task.families)
    queue: list[EnvState] = []
    disturbance, steps = torch.zeros(BATCH, task.action_size), 0
    while min(found) < count:
        steps += BATCH
        if steps > PATIENCE * count * len(task.families) + 50_000:
            missing = task.families[found.index(min(found))]
            raise ResetStateError(f"the script of '{task.name}' gave {min(found)} states '{missing}'; gave up")
        anew = torch.rand(BATCH, generator=generator) < 1.0 / EVERY
        drawn = DISTURBED * torch.randn(BATCH, task.action_size, generator=generator)
        disturbance = torch.where(anew[:, None], drawn, disturbance)
        disturbance[::2] = 0.0
        played.step((script(played.signals, played.memory) + disturbance).clamp(-1.0, 1.0))
        family = task.family(played.env.truth())
        full = torch.tensor([*(number >= count for number in found), True])[family]  # −1, of no family, is the last
        chosen = ((torch.rand(BATCH, generator=generator) < 1.0 / EVERY) & ~full).nonzero()[:, 0]
        queue.append(played.state(chosen))
        if sum(map(len, queue)) < BATCH:
            continue
        candidates = EnvState.concatenated(queue)
        queue = [candidates.at(slice(BATCH, None))]
        candidates = without_own(candidates.at(slice(BATCH)))
        family, held = holds(task, trial, candidates)
        for number in range(len(task.families)):
            of = family == number
            good = (of & held).nonzero()[: count - found[number], 0]
            if found[number] < count:
                tried[number] += int(of.sum())
            kept[number].append(candidates.at(good))
            found[number] += len(good)
        told(sum(found))
    states = EnvState.concatenated([state for parts in kept for state in parts])
    numbers = torch.arange(len(task.families)).repeat_interleave(count)
    parts = {name: n / max(1, m) for name, n, m in zip(task.families, found, tried, strict=True)}
    return ResetStates(task.families, numbers, states), parts


def holds(task: Task, env: LearningEnv, states: EnvState) -> tuple[Tensor, Tensor]:
    """The families (m,) of states, one for each environment, and whether they still are after a while of holding."""
    ids = torch.arange(env.n)
    begin_with(env, ids, states)
    before = task.family(env.env.truth())
    ended = torch.zeros(env.n, dtype=torch.bool)
    for _ in range(max(1, round(HELD / task.spec.control_period))):
        ended[env.step(task.hold(env.signals, env.memory)).ids] = True
    return before, (task.family(env.env.truth()) == before) & ~ended


def without_own(states: EnvState) -> EnvState:
    """What a file holds of complete states."""
    return EnvState({name: value for name, value in states.tensors.items() if name not in OWN})


def begin_with(env: LearningEnv, ids: Tensor, states: EnvState) -> None:
    """Let new episodes of ``ids`` (m,) begin with states (m) of ``without_own``."""
    inner = env.env
    step, sums = torch.zeros_like(inner.episode.step[ids]), torch.zeros_like(inner.kept.sums[ids])
    own = dict(zip(OWN, (inner.stream[ids], inner.levels.level[ids], step, sums), strict=True))
    env.set_state(ids, EnvState({**states.tensors, **own}))


# --- files ---------------------------------------------------------------------------------------------------------


def write(path: Path, task: Task, states: ResetStates) -> None:
    """Write reset states with the task's contract. CheckpointError if one is not finite."""
    checkpoint.require_finite(path, states.states.tensors, "nothing was written")
    told = {"task": task.name, "contract": contract_of(task).to_json(), "families": list(states.families)}
    checkpoint.save(path, {"family": states.family, **states.states.tensors}, told)


def read(path: Path, task: Task, env: LearningEnv | None = None) -> ResetStates:
    """The reset states in a file; ResetStateError if they do not fit the task. ``env`` is one of it, if there is."""
    tensors, told = of_task(path, task, "reset states", "robo-rl reset-states", ResetStateError)
    if told.get("families") != list(task.families):
        raise ResetStateError(f"{path}: families is {str(told.get('families'))[:200]}; expected {list(task.families)}")
    family = tensors.pop("family", None)
    if family is None or family.ndim != 1 or len(family) == 0 or family.dtype != torch.int64:
        raise ResetStateError(f"{path}: family is {shown(family)}; expected one int64 per state, and some")
    numbers = range(len(task.families))
    if bool((family < 0).any()) or bool((family >= len(numbers)).any()):
        raise ResetStateError(f"{path}: family has numbers that are no family's; expected 0 to {len(numbers) - 1}")
    env = env or LearningEnv(VecEnv(task, 1, evaluation=True))
    expected = without_own(env.state(torch.arange(1))).tensors
    for name in sorted(expected.keys() | tensors.keys()):
        value, like = tensors.get(name), expected.get(name)
        if like is None:
            raise ResetStateError(f"{path}: {name[:100]} is no part of a state of '{task.name}'")
        shape = (len(family), *like.shape[1:])
        if value is None or tuple(value.shape) != shape or value.dtype != like.dtype:
            raise ResetStateError(f"{path}: {name} is {shown(value)}; expected {shape} numbers of {like.dtype}")
        if value.dtype != torch.bool and not bool(within(value.reshape(len(value), -1)).all()):
            raise ResetStateError(f"{path}: {name} has numbers that are not finite, or beyond {LARGEST:g}")
    return ResetStates(task.families, family, EnvState(tensors))


def weights_of(words: Sequence[str], families: Sequence[str]) -> dict[str, float]:
    """Weight by family, of words NAME:WEIGHT; all the same without any, and 0 for those that are not among them."""
    if not words:
        return dict.fromkeys((START, *families), 1.0)
    found = dict.fromkeys((START, *families), 0.0)
    for word in words:
        name, _, text = word.rpartition(":")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if name not in found or not 0.0 <= weight <= 1e6:
            raise ResetStateError(f"reset weight is {word[:100]!r}; expected NAME:WEIGHT, NAME one of {list(found)}")
        found[name] = weight
    if not any(found.values()):
        raise ResetStateError(f"reset weights are {list(words)}; expected one above 0")
    return found


# --- beginning with them -------------------------------------------------------------------------------------------


class Starts:
    """Draws where the episodes of an environment begin, and counts how many succeed from there."""

    def __init__(self, env: LearningEnv, states: ResetStates, weights: Mapping[str, float]) -> None:
        self.env, self.states = env, states.states
        self.names = (START, *states.families)
        absent = [name for i, name in enumerate(states.families) if not bool((states.family == i).any())]
        chance = torch.tensor([weights[name] * (name not in absent) for name in self.names])
        if not bool(chance.any()):
            raise ResetStateError(f"there are no states of the families with a weight; there are none of {absent}")
        self.chance = chance / chance.sum()
        self.rows = [(states.family == i).nonzero()[:, 0] for i in range(len(states.families))]
        self.begun = torch.zeros(env.n, dtype=torch.int64)
        """(n,) where each episode began: 0 as the task's own do, then the families in order."""
        self.success = dict.fromkeys(self.names, 0.0)
        """Part of the episodes that succeeded, of the last hundred or so, by where they began."""
        self.ended = dict.fromkeys(self.names, 0)
        env.starts = self
        self.begin(torch.arange(env.n))

    def begin(self, ids: Tensor) -> None:
        """Let episodes of ``ids`` (m,), which have begun as the task's own do, begin where is drawn."""
        if len(ids) == 0:
            return
        family = torch.multinomial(self.chance, len(ids), replacement=True)
        self.begun[ids.cpu()] = family
        others = (family > 0).nonzero()[:, 0]
        if len(others) == 0:
            return
        rows = [self.rows[k - 1] for k in family[others].tolist()]
        picked = torch.stack([row[torch.randint(len(row), ())] for row in rows])
        begin_with(self.env, ids[others.to(ids.device)], self.states.at(picked))

    def count(self, ids: Tensor, succeeded: Tensor) -> None:
        """Episodes of ``ids`` (m,) are over, and some succeeded (m,)."""
        for start, won in zip(self.begun[ids.cpu()].tolist(), succeeded.tolist(), strict=True):
            name = self.names[start]
            self.ended[name] += 1
            self.success[name] += max(0.01, 1.0 / self.ended[name]) * (won - self.success[name])

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        success = torch.tensor([self.success[name] for name in self.names], dtype=torch.float64)
        ended = torch.tensor([self.ended[name] for name in self.names])
        return {"begun": self.begun, "starts/success": success, "starts/ended": ended}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from ``save``; a checkpoint of an earlier release has only where episodes began."""
        self.begun.copy_(saved["begun"])
        if "starts/success" in saved:
            self.success = dict(zip(self.names, saved["starts/success"].tolist(), strict=True))
            self.ended = dict(zip(self.names, saved["starts/ended"].tolist(), strict=True))

    def metrics(self) -> dict[str, float]:
        """Success by where episodes began."""
        return {f"success/{name}": part for name, part in self.success.items()}


def starts(folder: Path | None, wanted: str, words: Sequence[str], env: LearningEnv) -> Starts | None:
    """Begin episodes with the states in a run's folder, of which the run knows the digest ``wanted``; "" for none."""
    if not wanted:
        return None
    path = (folder or Path()) / FILE_NAME
    if not path.is_file() or digest(path) != wanted:
        raise ResetStateError(f"{path}: not the reset states that the run began with; expected SHA-256 {wanted}")
    return Starts(env, read(path, env.task, env), weights_of(words, env.task.families))
