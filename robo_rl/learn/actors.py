"""Robots that act beside the learning: actors of a Ray cluster collect with the policy of some moments ago.

Each has a share of the robots and is asked for chunks of control steps, one at a time. With a request go the newest
weights, which the learner puts into Ray's store once for each version; with a chunk comes back of which version it is.
By then the learner has gone on: so many steps is the chunk's lag. Chunks that lag more than ``SacConfig.lag`` are
dropped, as an off-policy learner corrects for what was done, but not for robots that only meet what an old policy
leads to. How much is learnt from each transition does not depend on the actors: the faster side waits.

Which chunk comes first depends on time, so such a training can't be repeated to the bit. Of ours, only the words of a
run's folder, numbers and arrays go to other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from robo_rl.learn.collectors import Collected
from robo_rl.learn.config import SacConfig
from robo_rl.learn.distributed import processes
from robo_rl.learn.experience.demonstrations import Transitions

CHUNK = 10
"""Control steps between two looks at the newest weights."""
LOST = 3
"""Actors in a row, without a chunk in between, after which the training ends."""

Weights = Mapping[str, np.ndarray]


class Chunk(NamedTuple):
    """What an actor has collected."""

    version: int
    """Of the weights: so many times the learner had learnt."""
    transitions: list[np.ndarray]
    """In the order of ``Transitions``, (CHUNK · robots, …)."""
    reward: float
    """Mean."""
    succeeded: int
    ended: int
    """Episodes."""
    diverged: int
    """Episodes, of those that ended."""
    levels: dict[str, float]
    seconds: float
    """It took."""


class Actor:
    """In a process of its own: robots, and a copy of the policy."""

    def __init__(self, folder: str, robots: int, seed: int) -> None:
        from robo_rl.learn import config_of
        from robo_rl.learn.collectors import Simulated
        from robo_rl.learn.experience.learning_env import LearningEnv
        from robo_rl.learn.explorer import Explorer
        from robo_rl.learn.runs.folder import Run
        from robo_rl.sim.env import VecEnv

        torch.set_num_threads(1)
        run = Run.open(Path(folder))
        policy = run.new_policy()
        policy.task.plant = run.plant
        self.explorer = Explorer(policy, config_of(run))
        self.robots = Simulated(self.explorer, LearningEnv(VecEnv(policy.task, robots, seed)))
        torch.manual_seed(seed)

    def collect(self, version: int, weights: Weights) -> Chunk:
        """CHUNK control steps of all robots."""
        state = self.explorer.state_dict()
        for name, value in weights.items():
            state[name].copy_(torch.from_numpy(value.copy()))  # Ray's are read-only
        begun = time.perf_counter()
        steps = [self.robots.collect(version) for _ in range(CHUNK)]
        seconds = time.perf_counter() - begun
        joined = [torch.cat(parts).numpy() for parts in zip(*(step.transitions[0] for step in steps), strict=True)]
        reward = sum(step.reward for step in steps) / CHUNK
        won, over, lost = (sum(getattr(step, name) for step in steps) for name in ("succeeded", "ended", "diverged"))
        return Chunk(version, joined, reward, won, over, lost, steps[-1].levels, seconds)


class Actors:
    """The learner's side: as many actors as it asked for, each at work on a chunk."""

    def __init__(self, config: SacConfig, folder: Path | None, seed: int, weights: Callable[[], Weights]) -> None:
        """``folder`` is the run's; ``weights`` gives the policy's.

        ValueError where Ray is missing, or robots can't be shared out evenly.
        """
        if folder is None or not (folder / "run.json").is_file():
            raise ValueError(f"actors is {config.actors}, without a run's folder; expected 'robo-rl train'")
        from robo_rl.learn.distributed.engines import ray as engine

        self.ray = engine.needed(f"actors is {config.actors}, which")
        engine.connect(config.actors, os.environ.get("RAY_ADDRESS", "local"))
        self.folder, self.seed, self.most = str(folder.resolve()), seed, config.lag
        self.robots, self.environments, self.steps = (
            config.environments // config.actors,
            config.environments,
            config.steps,
        )
        self.weights, self.count = weights, config.actors
        self.ahead, self.lags = 0, 0
        """Transitions that nothing was learnt for yet, and the sum of lags since the last metrics."""
        self.newest: Chunk | None = None
        self.begun, self.lost, self.dropped, self.lag = 0, 0, 0, 0
        self._version: int | None = None
        self._weights: Any = None
        self._working: dict[Any, Any] = {}
        self._free = [self._begin() for _ in range(config.actors)]

    def _begin(self) -> Any:
        seed = processes.derived(self.seed, f"actor {self.begun}")
        self.begun += 1
        return self.ray.remote(num_cpus=1)(Actor).remote(self.folder, self.robots, seed)

    def next(self, version: int, weights: Callable[[], Weights]) -> Chunk:
        """The next chunk that lags no more than it may. ``weights`` of this ``version`` are asked for once."""
        while True:
            if self._free and self._version != version:
                self._weights, self._version = self.ray.put(dict(weights())), version
            for actor in self._free:
                self._working[actor.collect.remote(version, self._weights)] = actor
            self._free = []
            (ready, *_), _ = self.ray.wait(list(self._working), num_returns=1)
            actor = self._working.pop(ready)
            try:
                chunk: Chunk = self.ray.get(ready)
            except self.ray.exceptions.RayActorError as error:
                self.lost += 1
                if self.lost == LOST:
                    reason = str(error).strip().splitlines()[-1][:200]
                    raise ValueError(f"{LOST} actors were lost; 'robo-rl resume' goes on ({reason})") from None
                self._free = [self._begin()]
                continue
            self._free, self.lost = [actor], 0
            self.lag = version - chunk.version
            if usable(version, chunk.version, self.most):
                return chunk
            self.dropped += 1

    def collect(self, version: int) -> Collected:
        """As many transitions as there are robots, in whole chunks: what is more counts for the next call."""
        chunks: list[Chunk] = []
        while self.ahead < self.environments:
            chunks.append(self.next(version, self.weights))
            self.ahead += len(chunks[-1].transitions[0])
        self.ahead -= self.environments
        self.lags += self.lag
        self.newest = newest = chunks[-1] if chunks else self.newest
        assert newest is not None
        won, over, lost = (sum(getattr(chunk, name) for chunk in chunks) for name in ("succeeded", "ended", "diverged"))
        seconds = sum(chunk.seconds for chunk in chunks) / self.count
        return Collected([tensors(chunk) for chunk in chunks], newest.reward, won, over, lost, newest.levels, seconds)

    def metrics(self) -> dict[str, float]:
        """How old the weights were that transitions were collected with, on average, and the chunks dropped."""
        lag, self.lags = self.lags / self.steps, 0
        return {"lag": lag, "dropped": float(self.dropped)}

    def close(self) -> None:
        """End them all."""
        self._working, self._free, self._weights = {}, [], None
        self.ray.shutdown()


def usable(version: int, of: int, most: int) -> bool:
    """Whether what was collected with the weights ``of`` a version may be learnt from at another."""
    return version - of <= most


def tensors(chunk: Chunk) -> Transitions:
    """The transitions of a chunk."""
    return Transitions(*(torch.from_numpy(value.copy()) for value in chunk.transitions))
