"""How fast a car becomes that practises on one track without being set back by hand.

`car-practice`, 20 minutes of simulated time (recoveries included), five seeds, each on a track of its own; beside it
the same without the rule that recovers the car, and without the demonstrations. The demonstrations are slow laps of
other tracks. Afterwards the policy, without exploration, and pure pursuit on a racing line drive the track from 50
places, and the second of two laps is timed. Pursuit decides 40 times a second, and knows the line; the part of the
friction that it uses, and how far the line keeps from the walls, are the fastest with 98 % of laps without contact. A
run takes some minutes; what is in results/practice.json is not run again, so that it goes on where it was stopped.

    python benchmarks/practice.py                          # all; the practice itself before what lacks something
    python benchmarks/practice.py practice                 # or "without recovery", or "without demonstrations"
    python benchmarks/practice.py "without recovery" 3     # of one seed
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from first_episodes import Act, by_policy
from racing_line import Lines, racing_lines
from results import FOLDER, words, write

from robo_rl.controllers.car import PurePursuit
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience import demonstrations
from robo_rl.learn.sac import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.practising import STEP, PractisingCar
from robo_rl.sim.ranges import Range, replaced
from robo_rl.sim.tasks.car.practice import BEAMS, DECISIONS, PERIOD, CarPractice

SEEDS = 5
STARTS = 50
EPISODES = 20  # demonstrated, on as many tracks
OTHERS = (1000.0, 2000.0)  # numbers of those tracks
GRIPS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MARGINS = (0.25, 0.4)  # m between a car on the racing line and the walls
SAFE = 0.98
MOST = 60.0  # s for two laps
TOLD = torch.arange(17) * 0.5  # m ahead along the line
PURSUIT = "pure pursuit"
VARIANTS = {"practice": {}, "without recovery": {"recovery": (0.0, 0.0)}, "without demonstrations": {}}


def main(variants: Sequence[str], seeds: Sequence[int]) -> None:
    for variant in variants:
        for seed in seeds:
            if not known("pursuit", seed, PURSUIT):
                keep("pursuit", {"seed": seed, "variant": PURSUIT, **by_pursuit(seed)})
            if not known("runs", seed, variant):
                keep("runs", {"seed": seed, "variant": variant, **practised(seed, variant)})


def rows_of(table: str) -> list[dict[str, Any]]:
    """What is in the file of results."""
    file = FOLDER / "practice.json"
    return json.loads(file.read_text())[table] if file.exists() else []


def known(table: str, seed: int, variant: str) -> bool:
    """Whether the file of results has this row."""
    return any((row["seed"], row["variant"]) == (seed, variant) for row in rows_of(table))


def keep(table: str, row: dict[str, Any]) -> None:
    """Add a row to the file of results."""
    told = {name: rows_of(name) for name in ("pursuit", "runs")}
    order = [PURSUIT, *VARIANTS]
    told[table] = sorted([*told[table], row], key=lambda row: (order.index(row["variant"]), row["seed"]))
    write("practice", {"starts": STARTS, **told})
    print({name: value for name, value in row.items() if name != "laps"}, flush=True)


def on_track(number: int, **bounds: tuple[float, float]) -> CarPractice:
    """The task on a track."""
    task = CarPractice()
    given = {"track/number": (float(number), float(number)), **bounds}
    task.spec = dataclasses.replace(task.spec, ranges=replaced(task.spec.ranges, given))
    return task


def practised(seed: int, variant: str, **settings: Any) -> dict[str, Any]:
    """20 minutes of practice, and what came of it."""
    task = on_track(seed, **VARIANTS[variant])
    with tempfile.TemporaryDirectory() as folder:
        told = ""
        if variant != "without demonstrations":
            shown = CarPractice()
            shown.spec = dataclasses.replace(
                shown.spec, ranges={**shown.spec.ranges, "track/number": Range.fixed(*OTHERS)}
            )
            tensors, _ = demonstrations.demonstrate(shown, EPISODES, seed)
            file = Path(folder) / demonstrations.FILE_NAME
            demonstrations.write(file, shown, tensors)
            told = demonstrations.digest(file)
        chosen = {**task.settings["sac"], "steps": 1, "updates": DECISIONS, "demonstrations": told, **settings}
        config = SacConfig(**chosen)
        torch.manual_seed(seed)
        policy = PolicyGraph(task, config.hidden, config.activation)
        learner = Learner(task, policy, config, seed, folder=Path(folder))
        begun, log = time.perf_counter(), [(0.0, 0.0, 0.0)]
        assert learner.env is not None
        plant = learner.env.env.plant
        while log[-1][0] < DECISIONS * PERIOD and learner.done < learner.total:
            learner.update()
            truth = plant.truth()
            log.append((float(truth["clock"]), float(truth["progress"]), float(truth["recoveries"])))
        seconds = time.perf_counter() - begun
    laps = laps_of(log, float(plant.tracks.length))
    return {
        "seconds": seconds,
        "decisions": learner.done,
        "recoveries": log[-1][2],
        "first_lap_ended_s": laps[0][0] if laps else None,
        "laps": laps,
        **flying(task, by_policy(policy)),
    }


def laps_of(log: Sequence[tuple[float, float, float]], length: float) -> list[tuple[float, float, float]]:
    """When each lap ended (s of simulated time), how long it took (s), and how many recoveries it had."""
    ends, furthest = [(0.0, 0.0)], 0
    for (t, a, _), (u, b, recoveries) in pairwise(log):
        if b >= (furthest + 1) * length:
            furthest += 1
            ends.append((t + (u - t) * (furthest * length - a) / max(b - a, 1e-6), recoveries))
    return [(round(u, 2), round(u - t, 2), n - m) for (t, m), (u, n) in pairwise(ends)]


def flying(task: CarPractice, act: Act, period: float = PERIOD) -> dict[str, Any]:
    """The second of two laps from each of some places on the centre line, with a decision in each ``period`` (s)."""
    fixed = {"attended": 0.0, "recovery": 0.0, "initial/offset": 0.0, "initial/turn": 0.0}

    def plant(n: int) -> PractisingCar:
        return PractisingCar(task.card, n, period, task.scan, BEAMS)

    env = VecEnv(task, STARTS, 10_000, fixed=fixed, evaluation=True, make_plant=plant)
    length, state = env.plant.tracks.length, None
    ends, contact = torch.full((2, STARTS), torch.inf), torch.zeros(STARTS)
    for k in range(round(MOST / period)):
        with torch.no_grad():
            given, state = act(env, state, torch.ones(STARTS, dtype=torch.bool))
        env.step(given)
        truth = env.plant.truth()
        passed = truth["progress"][:, 0]
        contact += truth["contact"][:, 0] * (passed < 2 * length)
        for lap in (0, 1):
            over = passed - (lap + 1) * length  # m since the end of the lap
            late = torch.clamp(over / truth["velocity"][:, 0].clamp(min=0.1), 0.0, period)
            ends[lap] = torch.where((over >= 0) & ends[lap].isinf(), (k + 1) * period - late, ends[lap])
        if not ends.isinf().any():
            break
    clean = (contact == 0) & ends[1].isfinite()
    times = (ends[1] - ends[0])[clean]
    return {"without_contact": float(clean.float().mean()), "lap_s": float(times.mean()) if len(times) else None}


def by_pursuit(seed: int) -> dict[str, Any]:
    """The fastest of those that are safe."""
    task = on_track(seed)
    env = VecEnv(task, 1, seed, evaluation=True)
    centre, width = env.plant.tracks.centre[..., :2].clone(), float(env.plant.param("track_width"))
    rows = []
    for margin in MARGINS:
        half = 0.5 * width - 0.5 * task.card.body[1] - margin
        points = racing_lines(centre, torch.tensor([half])).expand(STARTS, -1, -1).contiguous()
        line = Lines(points, TOLD)
        for grip in GRIPS:
            driver = PurePursuit(task.card.facts(), TOLD[1:], task.top, grip)
            found = flying(task, _pursuing(driver, line), STEP)
            rows.append({"grip": grip, "margin_m": margin, **found})
            if found["without_contact"] < 0.5:  # more is worse
                break
    safe = [row for row in rows if row["without_contact"] >= SAFE]
    return min(safe, key=lambda row: row["lap_s"]) | {"length_m": float(env.plant.tracks.length)}


def _pursuing(driver: PurePursuit, line: Lines) -> Act:
    def act(env: VecEnv, state: Any, running: Any) -> Any:
        truth = env.plant.truth()
        points = line.ahead(truth["position"], truth["heading"])[:, 1:]
        return driver({"path": points, "wheel_speed": truth["wheel_speed"]}, torch.zeros(env.n, 0))

    return act


if __name__ == "__main__":
    given = words(__doc__, 2)
    if given and given[0] not in VARIANTS:
        raise SystemExit(f"'{given[0]}' is not one of {list(VARIANTS)}")
    main(given[:1] or list(VARIANTS), [int(word) for word in given[1:]] or range(SEEDS))
