"""A task whose policy sees a scan, a depth image and a table of neighbours besides the usual signals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from robo_rl.contract import Encoder, Image, Provenance, Scan, Signal
from robo_rl.policy import PolicyGraph
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

SCAN = Signal(
    "scan", (), "m", "lidar", 0.0, 10.0, shape=(64,), layout=Scan(-math.pi, 2 * math.pi / 64, 0.1, 10.0), period=0.1
)
DEPTH = Signal("depth", (), "m", "camera", 0.0, 5.0, shape=(32, 32), layout=Image("depth", 1.5), period=0.05)
NEIGHBOURS = Signal("neighbours", ("x", "y"), "m", "body", (-8.0, -8.0), (8.0, 8.0), shape=(8, 2))
AGE = Signal("neighbours_age", ("age",), "s", "none", (0.0,), (1.0,), source="runtime", age_of="neighbours")
SEEN = (SCAN, DEPTH, NEIGHBOURS, AGE)
PROVENANCE = Provenance("none", 0, 0, "0" * 64)


class QuadrotorSee(QuadrotorHover):
    """Hovering, with eyes."""

    encoders = (
        Encoder("scan", (64,), "convolution", (8, 16), 12, kernel=5),
        Encoder("depth", (32, 32), "convolution", (8, 16), 20),
        Encoder("neighbours", (8, 2), "attention", (12, 10), 6),
    )

    def observe(self, signals: Mapping[str, Any], memory: Mapping[str, Any]) -> Any:
        own = super().observe(signals, memory)
        return {
            "policy": torch.cat([own, signals["neighbours_age"]], 1),
            "scan": signals["scan"] / 10.0,
            "depth": signals["depth"] / 5.0,
            "neighbours": signals["neighbours"] / 8.0,
        }


def seeing_task() -> QuadrotorSee:
    """The task, for the quadrotor that hover is for."""
    task = QuadrotorSee(load_robot("crazyflie"))
    task.spec = dataclasses.replace(task.spec, signals=(*task.spec.signals, *SEEN))
    task.observation_size += 1
    return task


def seeing_policy(recurrent: int = 0) -> PolicyGraph:
    """An untrained policy whose commands depend on all that it sees."""
    torch.manual_seed(0)
    policy = PolicyGraph(seeing_task(), (24,), "elu", normalize=True, recurrent=recurrent).requires_grad_(False).eval()
    policy.network[-1].weight.mul_(60.0)
    return policy


def drawn_signals(policy: PolicyGraph, steps: int, episodes: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Any valid signals (steps, episodes, *dimensions) by name."""
    random = np.random.default_rng(seed)
    found = {}
    for signal in policy.task.spec.signals:
        lower, upper = (limits.reshape(signal.dimensions) for limits in signal.bounds)
        low, high = np.maximum(lower, -3.0), np.minimum(upper, 3.0)
        value = random.uniform(low, high, (steps, episodes, *signal.dimensions))
        if signal.kind == "quaternion":
            value = random.normal(size=value.shape) * 0.1 + np.array([0.0, 0.0, 0.0, 1.0])
            value /= np.linalg.norm(value, axis=-1, keepdims=True)
        found[signal.name] = value.astype(np.float32)
    return found
