"""Eight Crazyflies change places: policies with and without attention and collision replay, and what does not learn.

Each variant is trained by the settings of swarm-swap, `crowded` with 10 to 20 % of the cells as columns; then it flies
the same held-out episodes as the baselines with 10 %, and three tenths as many with 20 %. The network of `no-messages`
knows nothing of the others. Intervals are of 95 %: Wilson's of episodes, and those of robots by the spread of the
teams' means, since robots of a team share their luck.

    python benchmarks/swarm.py                     # all variants, seed 0, 1,000 episodes
    python benchmarks/swarm.py baselines           # or one: attention, crowded, replay, table, no-messages
    python benchmarks/swarm.py swarm-formation     # the baselines of another task, or swarm-goals
    python benchmarks/swarm.py attention 3 200     # and another seed, and so many episodes
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import Any

import torch
from results import FOLDER, words, write

from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, GraphPolicy, rollout
from robo_rl.learn.apg import Learner
from robo_rl.learn.config import ApgConfig
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import VECTOR
from robo_rl.sim.ranges import replaced
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.room import STALE, TEAM
from robo_rl.sim.tasks.multirotor.swarm import SwarmSwap

EPISODES = 1000
CROWDED = {"columns": (0.1, 0.2)}
VARIANTS = ("attention", "crowded", "replay", "table", "no-messages")


class Table(SwarmSwap):
    """The rows one after the other, in place of attention: 26 + 7 · 19 + 4 · 13 numbers."""

    encoders = ()

    def __init__(self) -> None:
        super().__init__()
        self.observation_size += sum(encoder.shape[0] * encoder.shape[1] for encoder in SwarmSwap.encoders)

    def observe(self, signals: Any, memory: Any) -> Any:
        groups = super().observe(signals, memory)
        return torch.cat([groups[VECTOR], *(groups[e.group].flatten(1) for e in SwarmSwap.encoders)], -1)


class Alone(SwarmSwap):
    """Every message is too old to tell anything."""

    def observe(self, signals: Any, memory: Any) -> Any:
        old = {f"peer{k}_age": 0.0 * signals[f"peer{k}_age"] + 2 * STALE for k in range(1, TEAM)}
        return super().observe({**signals, **old}, memory)


def flown(task: Any, policy: Any, episodes: int) -> dict[str, Any]:
    """What became of the held-out episodes, with 10 % and with 20 % of the cells as columns."""
    told = {}
    for name, count, columns in (("columns 10 %", episodes, 0.1), ("columns 20 %", -(-3 * episodes // 10), 0.2)):
        flights = rollout(task, policy, Conditions(episodes=count, fixed={"columns": columns}), None)
        found = flights.summary()
        kept = ("episodes", "success", "success_low", "success_high", "formation_mean_m")
        told[name] = {key: found[key] for key in kept if key in found} | {
            "robots_without_fault": 1 - found["lost_mean_1"],
            "robots_within": 1.96 * float(flights.errors["lost"].std()) / math.sqrt(count),
            "robots_that_hit": found["hit_mean_1"],
            "distance_m": found["distance_mean_m"],
            "seconds_on_the_way": found["away_mean_1"] * task.spec.episode_length,
        }
    return told


def trained(variant: str, seed: int) -> tuple[SwarmSwap, PolicyGraph, dict[str, Any]]:
    """A policy by the task's settings."""
    task = {"table": Table, "no-messages": Alone}.get(variant, SwarmSwap)()
    if variant == "crowded":
        task.spec = dataclasses.replace(task.spec, ranges=replaced(task.spec.ranges, CROWDED))
    config = ApgConfig(**{**task.settings["apg"], "replay": 0.5 if variant == "replay" else 0.0})
    torch.manual_seed(seed)
    learner = Learner(task, PolicyGraph(task, config.hidden, config.activation), config, seed)
    begun, cpu = time.perf_counter(), time.process_time()
    while learner.done < learner.total:
        learner.update()
    used = {"train_seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    return task, learner.policy, {**used, "environment_steps": learner.environment_steps}


def which(row: dict[str, Any]) -> tuple[str, str, int]:
    """What tells rows apart."""
    return row.get("task", ""), row["policy"], row.get("seed", 0)


def main(variants: tuple[str, ...], seed: int, episodes: int) -> None:
    known = FOLDER / "swarm.json"
    rows = json.loads(known.read_text())["rows"] if known.exists() else []
    for variant in variants:
        if variant not in VARIANTS:
            task = load_task("swarm-swap" if variant == "baselines" else variant)
            about = {} if variant == "baselines" else {"task": variant}
            both = (task.controller(), *task.controllers())
            new = [{"policy": c.name, **about, **flown(task, ControllerPolicy(task, c), episodes)} for c in both]
        else:
            task, policy, used = trained(variant, seed)
            new = [{"policy": variant, "seed": seed, **used, **flown(task, GraphPolicy(policy), episodes)}]
        for row in new:
            rows = [other for other in rows if which(other) != which(row)] + [row]
            print(row["policy"], json.dumps(row["columns 10 %"]), flush=True)
        write("swarm", {"rows": sorted(rows, key=which)})


if __name__ == "__main__":
    given = words(__doc__, 3)
    chosen = (given[0],) if given else (*VARIANTS, "baselines")
    seed, count = (int(word) for word in (*given[1:], *("0", str(EPISODES))[len(given[1:]) :]))
    main(chosen, seed, count)
