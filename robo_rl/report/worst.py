"""The worst episodes of a policy as films: those that failed, soonest first, then those with the largest errors."""

from __future__ import annotations

import base64
import dataclasses
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.console import Progress
from robo_rl.evaluate.evaluation import Conditions, Episodes, quantity, rollout
from robo_rl.sim.pictures.canvas import RenderingError
from robo_rl.sim.pictures.film import film
from robo_rl.sim.tasks import Measure, Task

COUNT = 5
SECONDS, FPS, SIZE = 5.0, 15, (320, 240)
"""Of a film: the last seconds of an episode, frames per second, and pixels."""


@dataclass(frozen=True)
class Worst:
    """An episode that was run once more, to be seen."""

    number: int
    """From 0."""
    episode: Episodes
    """It alone."""


def worst(episodes: Episodes, measure: Measure) -> list[int]:
    """Numbers of the ``COUNT`` worst episodes, from 0: failures by the time that they lasted, then by ``measure``."""
    error = -np.nan_to_num(episodes.errors[measure.error])
    order = np.lexsort((np.where(episodes.survived, error, episodes.duration), episodes.success, episodes.survived))
    return [int(i) for i in order[:COUNT]]


def rerun(task: Task, policy: Any, conditions: Conditions, episodes: Episodes) -> list[Worst]:
    """The worst of the ``episodes``, each run and recorded alone; an episode's draws follow from its number."""
    found = []
    for number in worst(episodes, task.measures[-1]):
        alone = dataclasses.replace(conditions, episodes=1, recorded=1, first=conditions.first + number)
        found.append(Worst(number, rollout(task, policy, alone, None)))
    return found


def films(found: Sequence[Worst]) -> list[dict[str, str]]:
    """Of each the film in base 64 and what it shows; none where the robots can't be drawn."""
    drawn = []
    with tempfile.TemporaryDirectory() as folder, Progress("drawing the worst", len(found)) as progress:
        for done, one in enumerate(found, 1):
            if (motion := one.episode.motion) is None:
                return []
            end = max(2, min(len(motion), round(float(one.episode.duration[0]) / motion.period)))
            begin = max(0, end - round(SECONDS / motion.period))
            file = Path(folder) / f"{done}.mp4"
            try:
                film(file, motion.part(slice(begin, end)), "", SIZE, FPS, begin=begin * motion.period)
            except RenderingError:  # the page says why above, of its other film
                return []
            drawn.append({"video": base64.b64encode(file.read_bytes()).decode(), "caption": caption(one)})
            progress.update(done)
    return drawn


def caption(one: Worst) -> str:
    """How an episode ended."""
    episode, measure = one.episode, one.episode.measures[-1]
    after = f"{episode.duration[0]:.3g} s"
    if not episode.survived[0]:
        return f"Episode {one.number + 1} fails after {after}."
    error = f"{measure.error.replace('_', ' ')} {quantity(float(episode.errors[measure.error][0]), measure.unit)}"
    return f"Episode {one.number + 1}: {error}{'' if episode.success[0] else f', no success in {after}'}."
