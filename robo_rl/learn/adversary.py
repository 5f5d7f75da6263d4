"""An adversary that chooses what a policy trains with, and grows rational as the policy grows able.

Robust adversarial reinforcement learning (RARL, Pinto et al. 2017) trains against an adversary that does its worst from
the first step on, of which a policy that can nothing yet learns little. QARL (Reddi et al. 2024, Robust Adversarial
Reinforcement Learning via Bounded Rationality Curricula) bounds its rationality: it begins at random and ends as the
worst. Here the adversary draws some of the task's ranges, once for every episode, from the quantal response

    p(c) ~ exp(-β J(c) / σ)

J is the mean reward of recent episodes near the context c, σ its standard deviation over all of them, β the
rationality: 0 is plain randomization, and a large one from the start on is RARL's adversary. β rises along a line.

What differs from theirs: their adversary is a policy that acts at every step and learns by soft actor-critic, and the
pace of its temperature follows from bounds on return and divergence. Here the game is over contexts, in which the
quantal response has a closed form.

Shapes: n environments, k ranges, e episodes remembered, c candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from robo_rl.learn.distributed import processes
from robo_rl.learn.extension import Extension
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Task

REMEMBERED = 512
"""Episodes at least, the last ones; as many as there are environments where these are more."""
CANDIDATES = 256
"""Contexts among which the next are drawn."""
WIDTH = 0.15
"""Standard deviation of the kernel about an episode's context, in parts of the ranges."""
PRIOR = 1.0
"""Episodes of mean reward that every context is thought to have seen."""
EVERY = 8
"""Updates between two looks at what was remembered."""


def undrawn(task: Task, names: Sequence[str], n: int) -> dict[str, Tensor]:
    """Values (n,) of the ranges ``names``, still NaN, for ``VecEnv``. ValueError for ranges that can't be chosen."""
    bounds = {name: bounds_of(value) for name, value in task.spec.ranges.items() if value.count is None}
    single = [name for name, (low, high) in bounds.items() if low < high]
    if wrong := [name for name in names if name not in single]:
        raise ValueError(f"adversary has {wrong}; expected some of {single}")
    if names and task.spec.team > 1:
        raise ValueError(f"adversary is {list(names)}, but '{task.name}' is for teams; expected none")
    return {name: torch.full((n,), torch.nan) for name in names}


def bounds_of(drawn: Range) -> tuple[float, float]:
    """The least and the greatest that a range gives at any level: also of one that narrows, such as where in a clip
    episodes begin."""
    return min(drawn.start[0], drawn.end[0]), max(drawn.start[1], drawn.end[1])


def response(at: Tensor, score: Tensor, candidates: Tensor, rationality: float) -> Tensor:
    """(c,) probabilities of ``candidates`` (c, k), after episodes in contexts (e, k) of mean rewards ``score`` (e,)."""
    if len(score) < 2 or not 0.0 < float(deviation := score.std()) < float("inf"):
        return torch.full((len(candidates),), 1.0 / len(candidates))
    mean, near = score.mean(), torch.exp(-0.5 * (torch.cdist(candidates, at) / WIDTH).square())
    expected = (near @ score + PRIOR * mean) / (near.sum(1) + PRIOR)
    return torch.softmax(-rationality * (expected - mean) / deviation, 0)


class Adversary(Extension):
    """Chooses the contexts of the environments' next episodes."""

    name = "adversary"

    def __init__(self, env: VecEnv, names: Sequence[str], rationality: tuple[float, float]) -> None:
        """``env`` was made with ``undrawn`` values of the ranges; ``rationality`` is at the first and last update."""
        self.env, self.names, self.rationality = env, list(names), rationality
        ends = torch.tensor([bounds_of(env.task.spec.ranges[name]) for name in names], device=env.device)
        self.low, self.span = ends[:, 0], ends[:, 1] - ends[:, 0]
        self.now = torch.zeros(env.n, len(self.names), device=env.device)
        """(n, k) of the episodes under way, in parts of the ranges."""
        self.earned = torch.zeros(env.n, device=env.device)
        remembered = max(REMEMBERED, env.n)
        self.contexts = torch.zeros(remembered, len(self.names), device=env.device)
        self.scores = torch.zeros(remembered, device=env.device)
        self.candidates = torch.rand(CANDIDATES, len(self.names), device=env.device)
        self.probability = torch.full((CANDIDATES,), 1.0 / CANDIDATES, device=env.device)
        self.heard, self.level = 0, 0.0

    def plan(self, done: int, total: int) -> None:
        """Before each update, of which so many are done: how rational to be, and by what was remembered."""
        if not self.heard:
            self._look(torch.arange(self.env.n, device=self.env.device))
        first, last = self.rationality
        self.level = first + (last - first) * done / max(1, total - 1)
        if done % EVERY == 0:
            count = min(self.heard, len(self.scores))
            self.candidates.copy_(torch.rand_like(self.candidates))
            known = self.contexts[:count], self.scores[:count]
            self.probability.copy_(response(*known, self.candidates, self.level))

    def hear(self, reward: Tensor, ids: Tensor) -> None:
        """Rewards (n,) were earned, and the episodes ``ids`` (m,) have ended, and new ones have begun there."""
        self.earned += reward
        if not len(ids):
            return
        places = (self.heard + torch.arange(len(ids), device=ids.device)) % len(self.scores)
        self.contexts[places] = self.now[ids]
        self.scores[places] = self.earned[ids] / self.env.episode_steps
        self.heard += len(ids)
        self.earned[ids] = 0.0
        self._look(ids)

    def _look(self, ids: Tensor) -> None:
        """See what the new episodes ``ids`` (m,) have drawn, and choose what comes after them."""
        drawn = self.env.drawn
        self.now[ids] = (torch.stack([drawn[name][ids] for name in self.names], 1) - self.low) / self.span
        chosen = self.candidates[torch.multinomial(self.probability, len(ids), replacement=True)]
        for column, name in enumerate(self.names):
            self.env.levels.fixed[name][ids] = self.low[column] + self.span[column] * chosen[:, column]

    def metrics(self) -> dict[str, float]:
        """Rationality, and the mean of every range that it chooses."""
        mean = self.low + self.span * self.now.mean(0)
        return {
            "rationality": self.level,
            **{f"adversary/{n}": float(x) for n, x in zip(self.names, mean, strict=True)},
        }

    def save(self) -> dict[str, Tensor]:
        """All that later choices follow from."""
        return {
            "now": self.now, "earned": self.earned, "contexts": self.contexts, "scores": self.scores,
            "candidates": self.candidates, "probability": self.probability, "heard": torch.tensor(self.heard),
            **{f"next/{name}": self.env.levels.fixed[name] for name in self.names},
        }  # fmt: skip

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from ``save``, which is of the first process's robots."""
        if processes.rank() > 0:
            return
        for name, value in self.save().items():
            value.copy_(saved[name])
        self.heard = int(saved["heard"])
