"""Cars: laps of classical controllers, of MPPI and, if one is given, of a policy, on the same unseen tracks.

    python benchmarks/racing.py [--policy zoo:car-race] [--episodes 200]

Three difficulties, which are widths of the track; randomized cars. The policy, follow-the-gap and MPPI have the lidar
and the speed of the wheels. Pure pursuit is told the centre line of each track, or a racing line within it, which the
others don't know, and in a third row the true friction of its car, too. The part of the friction that a controller
uses, and how far the racing line keeps from the walls, are chosen for each width on other tracks: the fastest of those
with which 98 % of laps have no contact, or else the one with the fewest.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from first_episodes import Act, by_controller, by_policy, first_episodes
from racing_line import Lines, racing_lines
from results import write
from torch import Tensor

from robo_rl.controllers.car import PurePursuit
from robo_rl.evaluate.evaluation import HELD_OUT, ControllerPolicy
from robo_rl.evaluate.proportion import wilson
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.race import AHEAD, CarRace
from robo_rl.sim.tasks.loading import load_task

WIDTHS = (2.4, 2.0, 1.6)  # m
GRIPS = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)
MARGINS = (0.25, 0.4)  # m between a car on the racing line and the walls
MPPI_GRIPS = (0.3, 0.4, 0.5, 0.6)
SAFE = 0.98
TOLD = torch.tensor((0.0, *AHEAD))
OTHER = 2 * HELD_OUT
"""Seed of the tracks on which controllers are tuned."""
TUNING = 64
"""Laps of each that is tried."""


@dataclass(frozen=True)
class Laps:
    """So many laps of unseen tracks, each with a car of its own."""

    width: float
    """m."""
    episodes: int
    seed: int

    def env(self, task: CarRace) -> VecEnv:
        fixed = {"track/width": self.width, "track/kind": 0.0}
        return VecEnv(task, self.episodes, seed=self.seed, fixed=fixed, evaluation=True)


@functools.cache
def path(laps: Laps, margin: float | None) -> Lines:
    """The centre line of each track, or a racing line that keeps a ``margin`` (m) to the walls."""
    task = CarRace()
    centre = laps.env(task).plant.tracks.centre[..., :2].clone()
    if margin is None:
        return Lines(centre, TOLD)
    half = 0.5 * laps.width - 0.5 * task.card.body[1] - margin
    return Lines(racing_lines(centre, torch.full((laps.episodes,), half)), TOLD)


Made = Callable[[Laps, VecEnv], Act]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--policy", help="a bundle or a run of car-race, to drive too")
    arguments.add_argument("--episodes", type=int, default=200, help="of every driver at every width")
    given = arguments.parse_args()
    task = load_task("car-race")
    assert isinstance(task, CarRace)
    rows = [row for width in WIDTHS for row in rows_of(task, width, given.episodes, given.policy)]
    write("racing", {"episodes": given.episodes, "laps": rows})


def rows_of(task: CarRace, width: float, episodes: int, policy: str | None) -> list[dict[str, Any]]:
    """Of every driver, in the same episodes."""
    lines = list(product(GRIPS, MARGINS))
    families: dict[str, dict[str, Made]] = {
        "pure pursuit, centre line": {f"grip {g}": told(task, g) for g in GRIPS},
        "pure pursuit, racing line": {f"grip {g}, {m} m": told(task, g, m) for g, m in lines},
        "pure pursuit, racing line, true friction": {f"{g} of it, {m} m": told(task, g, m, True) for g, m in lines},
        "MPPI": {f"grip {g}": by_mppi(task, g) for g in MPPI_GRIPS},
        "follow the gap": {"": lambda laps, env: by_controller(ControllerPolicy(task))},
    }
    if policy is not None:
        families["policy"] = {"": lambda laps, env: by_policy(load(policy, task).policy)}
    rows = []
    for name, tried in families.items():
        chosen = fastest(task, width, tried)
        row = {
            "width_m": width,
            "driver": name,
            "with": chosen,
            **drive(task, Laps(width, episodes, HELD_OUT), tried[chosen]),
        }
        rows.append(row)
        print(
            f"{width:.1f} m  {name:<40} {chosen:<16} {row['without_contact']:7.2%} without contact, "
            f"{row['finished']:7.2%} finished, lap {row['lap_time_s']:.2f} s, {row['speed_m_s']:.2f} m/s", flush=True,
        )  # fmt: skip
    return rows


def fastest(task: CarRace, width: float, tried: Mapping[str, Made]) -> str:
    """Of those that are safe on other tracks than the table's."""
    if len(tried) == 1:
        return next(iter(tried))
    found = {name: drive(task, Laps(width, TUNING, OTHER), made) for name, made in tried.items()}
    safe = [name for name, row in found.items() if row["without_contact"] >= SAFE]
    safe = safe or [max(found, key=lambda name: found[name]["without_contact"])]
    return min(safe, key=lambda name: found[name]["lap_time_s"])


def told(task: CarRace, grip: float, margin: float | None = None, friction: bool = False) -> Made:
    """Pure pursuit of the centre line, or of a racing line with a ``margin`` (m); it may know the ``friction``."""

    def made(laps: Laps, env: VecEnv) -> Act:
        line = path(laps, margin)
        driver = PurePursuit(task.card.facts(), TOLD[1:], task.top, grip)
        if friction:
            driver.grip = driver.grip * (env.plant.param("friction") / task.card.friction)[:, None]

        def act(env: VecEnv, state: Any, running: Tensor) -> tuple[Mapping[str, Tensor], Any]:
            truth = env.plant.truth()
            points = line.ahead(truth["position"], truth["heading"])[:, 1:]
            return driver({"path": points, "wheel_speed": truth["wheel_speed"]}, torch.zeros(env.n, 0))

        return act

    return made


def by_mppi(task: CarRace, grip: float) -> Made:
    """By the lidar alone."""
    return lambda laps, env: by_controller(ControllerPolicy(task, task.path_integral(grip)))


def drive(task: CarRace, laps: Laps, made: Made) -> dict[str, Any]:
    """The first episode of each of so many environments."""
    env = laps.env(task)
    lengths, act = env.plant.tracks.length.clone(), made(laps, env)
    return figures(first_episodes(env, act), lengths)


def figures(found: Any, lengths: Tensor) -> dict[str, Any]:
    """Of the first episode of each car, on a track of so many m, (n,)."""
    episodes, done = len(lengths), found.succeeded
    clean = episodes - int(found.failed.sum())
    return {
        "without_contact": clean / episodes,
        "without_contact_interval": wilson(clean, episodes),
        "finished": float(done.double().mean()),
        "lap_time_s": float(found.time[done].mean()) if done.any() else None,
        "speed_m_s": float((lengths[done] / found.time[done]).mean()) if done.any() else None,
    }


if __name__ == "__main__":
    main()
