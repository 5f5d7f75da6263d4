"""Population-based training (Jaderberg et al. 2017) with a barrier after every generation.

    [population]
    members = 8
    generations = 3          # each is a whole training, with the updates of [options]
    measure = "success"      # of 'robo-rl evaluate --json'
    lower_is_better = false
    seed = 0

All members train; then the worst quarter of them goes on from the networks of one of the best quarter, drawn at random,
with settings near that one's. Every member of a generation is an ordinary run that begins from one of the generation
before. What is drawn follows from (seed, generation, member), so the result is the same for any number of processes,
and after a kill.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.sweeps import space
from robo_rl.sweeps.rounds import Outcome, Rounds, new_round
from robo_rl.sweeps.sweep import Job
from robo_rl.sweeps.sweep_file import MOST_JOBS, Description, Measured, require

QUARTER = 4
SHAPE = ("hidden", "critic-hidden", "activation", "recurrent", "normalize")
"""Settings that networks which are handed on can't differ in."""


@dataclass(frozen=True)
class Member:
    """What a member trains with in a generation."""

    seed: int
    settings: dict[str, Any]
    parent: int | None
    """The member of the generation before that it begins from; None in the first."""


def plan(description: Description, folder: Path) -> tuple[int, Rounds]:
    """How many jobs there are, and their rounds: the generations."""
    table = "population"
    description.only(table, "members", "generations", "measure", "lower_is_better", "seed")
    members = description.count(table, "members", 8, QUARTER, MOST_JOBS)
    generations = description.count(table, "generations", 4, 1, MOST_JOBS // members)
    seed = description.count(table, "seed", 0, 0, HELD_OUT - 1)
    alone = len(description.tasks) == len(description.robots) == len(description.seeds) == 1
    asked = (description.tasks, description.robots, description.seeds)
    require(alone, description.file, "task, robot, seeds", asked, "one task and robot, no seeds: [population] has one")
    (fixed,) = description.settings
    require("begin-from" not in fixed, description.file, "options.begin-from", "given", "none: generations use it")
    known = space.read_space(description)
    positive = all(isinstance(x, space.Choice) or x.low > 0 for x in known.values())
    require(positive, description.file, "space", "a range with numbers below 0", "positive ones: they are multiplied")
    shape = {name for name in known if name.rpartition(".")[2] in SHAPE}
    require(not shape, description.file, "space", sorted(shape), "no shape of networks, which members hand on")
    return members * generations, _generations(
        description, folder, known, members, generations, seed, description.measure(table)
    )


def _generations(
    description: Description, folder: Path, known: space.Space, members: int, generations: int, seed: int,
    measure: Measured,
) -> Rounds:  # fmt: skip
    population = [first(known, seed, member) for member in range(members)]
    jobs: list[Job] = []
    history = []
    for generation in range(generations):
        before = f"../generation-{generation - 1}"
        jobs = [
            description.jobs(
                [space.words(description, one.settings)],
                [one.seed],
                None if one.parent is None else f"{before}/{jobs[one.parent].name}",
            )[0]
            for one in population
        ]
        part = new_round(folder / f"generation-{generation}", jobs)
        yield part
        scores = [measure.score(part.folder, job) for job in jobs]
        history.append({
            "members": [
                {"run": str(part.folder / job.name), "settings": one.settings, "parent": one.parent,
                 measure.name: measure.value(score)}
                for one, job, score in zip(population, jobs, scores, strict=True)
            ]
        })  # fmt: skip
        if generation + 1 < generations:
            population = offspring(known, population, scores, seed, generation + 1)
    best = max(range(members), key=lambda member: (scores[member], -member))
    lines = [
        f"generation {number}: {measure.name} of the best {_best(one['members'], measure)}"
        for number, one in enumerate(history)
    ]
    run = history[-1]["members"][best]["run"]
    return Outcome([*lines, f"The best of the last generation: {run}"], {"best": run, "generations": history})


def _best(members: list[dict[str, Any]], measure: Measured) -> str:
    values = [one[measure.name] for one in members if one[measure.name] is not None]
    return f"{(min if measure.lower_is_better else max)(values):.4g}" if values else "none"


def first(known: space.Space, seed: int, member: int) -> Member:
    """A member of the first generation."""
    generator = np.random.default_rng([seed, 0, member])
    return Member(int(generator.integers(HELD_OUT)), space.draw(known, generator), None)


def offspring(
    known: space.Space, population: list[Member], scores: list[float], seed: int, generation: int
) -> list[Member]:
    """The next generation: the worst quarter goes on from members of the best quarter, the others from themselves."""
    quarter = len(population) // QUARTER
    ranked = sorted(range(len(population)), key=lambda member: (-scores[member], member))
    best, worst = ranked[:quarter], set(ranked[-quarter:])
    following = []
    for member, one in enumerate(population):
        generator = np.random.default_rng([seed, generation, member])
        own = int(generator.integers(HELD_OUT))
        if member in worst:
            parent = best[int(generator.integers(quarter))]
            settings = space.perturbed(known, population[parent].settings, generator)
            following.append(Member(own, settings, parent))
        else:
            following.append(Member(own, one.settings, member))
    return following
