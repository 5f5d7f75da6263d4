"""Collision replay: episodes that begin shortly before a mishap of an earlier one.

What a policy already does well fills most of a training, and what it fails in is rare. So the state of a team before a
mishap is kept, exactly (``VecEnv.state``: physics, what was drawn, sensors), and some of the next episodes begin there
(Huang et al. 2024, who begin 1.5 s before; a state is used ten times at most). What has been learnt by then shows
whether the mishap is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.learn.experience.reset_states import OWN, without_own
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState

ROOM, USES = 64, 10
"""Teams that are kept, the newest; and how often one of them begins an episode."""


class Moment(NamedTuple):
    """A team, before its mishap."""

    state: EnvState
    """(team), without what belongs to the episode."""
    kept: Tensor
    """(numbers, team), what a learner keeps besides."""


class CollisionReplay:
    """The moments, and which episodes begin with them."""

    def __init__(self, chance: float, seed: int) -> None:
        """``chance``: part of the episodes that begin with a moment, as long as there are some."""
        self.chance, self.random = chance, torch.Generator().manual_seed(seed)
        self.moments: list[tuple[Moment, int]] = []

    def keep(self, state: EnvState, kept: Tensor, mishap: Tensor, team: int) -> None:
        """Keep teams with a ``mishap`` (n,): their ``state`` (n) before it, and what a learner keeps (numbers, n)."""
        for number in mishap.unflatten(0, (-1, team)).any(1).nonzero()[:, 0].tolist():
            rows = slice(number * team, (number + 1) * team)
            self.moments.append((Moment(without_own(state.at(rows)), kept[:, rows].clone()), 0))
        self.moments = self.moments[-ROOM:]

    def draw(self) -> Moment | None:
        """What an episode begins with; None: as the task's own do."""
        if not self.moments or float(torch.rand((), generator=self.random)) >= self.chance:
            return None
        place = int(torch.randint(len(self.moments), (), generator=self.random))
        moment, uses = self.moments.pop(place)
        if uses + 1 < USES:
            self.moments.insert(place, (moment, uses + 1))
        return moment

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        tensors = {"random": self.random.get_state()}
        if self.moments:
            moments, uses = zip(*self.moments, strict=True)
            states = EnvState.concatenated([moment.state for moment in moments])
            tensors |= {f"state/{name}": value for name, value in states.tensors.items()}
            tensors |= {"kept": torch.stack([moment.kept for moment in moments]), "uses": torch.tensor(uses)}
        return tensors

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from ``save``."""
        self.random.set_state(saved["random"])
        self.moments = []
        states, uses = EnvState(dict(saved)).part("state/"), saved.get("uses", torch.zeros(0)).tolist()
        for number, used in enumerate(uses):
            kept = saved["kept"][number]
            rows = slice(number * kept.shape[1], (number + 1) * kept.shape[1])
            self.moments.append((Moment(EnvState(states).at(rows), kept), int(used)))


def begin(env: VecEnv, ids: Tensor, state: EnvState) -> None:
    """Let new episodes of a team's robots ``ids`` (team,) begin with a moment's state; they have all of their time."""
    step, sums = torch.zeros_like(env.episode.step[ids]), torch.zeros_like(env.kept.sums[ids])
    own = dict(zip(OWN, (env.stream[ids], env.levels.level[ids], step, sums), strict=True))
    env.set_state(ids, EnvState({**state.tensors, **own}))
