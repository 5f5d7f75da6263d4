"""robo-rl plan."""

from __future__ import annotations

from typing import Annotated, Any

import tyro

from robo_rl.console import give, say

WISE = 0.5
"""Efficiency below which more seeds are the better use of more processes."""


def main(
    task: Annotated[str, tyro.conf.Positional],
    cores: int = 8,
    gpus: int = 0,
    robot: str | None = None,
    environments: int | None = None,
    latency: float | None = None,
    bandwidth: float | None = None,
    json: bool = False,
) -> int:
    """Predict how long a training by PPO takes on many processes, and what limits it.

    Measures a few updates in one process on this computer, and computes the rest by the model of docs/scale.md, for
    cores, or GPUs, like this one's. With --json: task, environments, updates, advice (seeds, processes), plans, a list
    of processes, update_seconds, train_seconds, efficiency, limit.

    Args:
        task: Name of the task, or FILE.py:CLASS.
        cores: Cores of the cluster, one for each process.
        gpus: GPUs of the cluster, one for each process, in place of cores.
        robot: Another robot: a name, or the path of a card (*.toml).
        environments: Robots of all processes together; default: the task's.
        latency: Of a message between two processes (s); default: 25 µs.
        bandwidth: Of the network (bytes/s); default: 1.25e9.
        json: Print one JSON object on the last line of stdout.
    """
    import dataclasses

    import torch

    from robo_rl.learn.config import PpoConfig
    from robo_rl.learn.distributed.scaling import BANDWIDTH, LATENCY, Network, measure, predict
    from robo_rl.sim.tasks.loading import load_task

    for name, value in (("cores", cores), ("gpus", gpus)):
        if not int(name == "cores") <= value <= 1 << 20:
            raise ValueError(f"--{name} is {value}; expected {int(name == 'cores')} to {1 << 20}")
    for name, speed in (("latency", latency), ("bandwidth", bandwidth)):
        if speed is not None and not 0 < speed < float("inf"):
            raise ValueError(f"--{name} is {speed:g}; expected a positive number")
    if gpus and not torch.cuda.is_available():
        raise ValueError(f"--gpus is {gpus}, but torch finds none here; expected a computer with one to measure on")
    loaded = load_task(task, robot)
    if "ppo" not in loaded.algorithms:
        raise ValueError(f"task '{task}' is not trained by ppo, and only its trainings run in several processes")
    config = PpoConfig(**loaded.settings.get("ppo", {}))
    if environments is not None:
        config = dataclasses.replace(config, environments=environments)
    if gpus and loaded.plants:
        loaded.plant = "warp"
    costs = measure(loaded, config, "cuda" if gpus else "cpu")
    network = Network(LATENCY if latency is None else latency, BANDWIDTH if bandwidth is None else bandwidth)
    updates, most = round(config.updates * loaded.update_scale), gpus or cores
    alone = predict(costs, config, 1, network).seconds
    plans: list[dict[str, Any]] = []
    for processes in counts(most, config.environments):
        found = predict(costs, config, processes, network)
        plans.append({
            "processes": processes, "update_seconds": found.seconds, "train_seconds": updates * found.seconds,
            "efficiency": alone / (processes * found.seconds), "limit": found.limit,
        })  # fmt: skip
    kind = "GPUs" if gpus else "cores"
    say(
        f"{task}: {updates} updates of {config.environments} robots x {config.horizon} steps, on {kind} like ours", json
    )
    for one in plans:
        line = f"  {one['processes']:>6} processes  {one['train_seconds']:10.4g} s  efficiency {one['efficiency']:5.2f}"
        say(f"{line}  limited by {one['limit']}", json)
    wise = max(one["processes"] for one in plans if one["efficiency"] >= WISE)
    advice = {"seeds": most // wise, "processes": wise}
    if advice["seeds"] > 1:
        share = "one process each" if wise == 1 else f"{wise} processes each"
        say(f"Better use of {most} {kind}: {advice['seeds']} trainings at once, seeds or settings, {share}", json)
    give(
        {"task": task, "environments": config.environments, "updates": updates, "advice": advice, "plans": plans}, json
    )
    return 0


def counts(most: int, environments: int) -> list[int]:
    """Powers of two up to ``most`` that share out the robots."""
    powers = [1 << k for k in range(most.bit_length())]
    return [n for n in powers if environments % n == 0]
