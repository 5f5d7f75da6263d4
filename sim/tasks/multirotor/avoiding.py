"""ORCA within a policy's graph: the velocity nearest to what a network asks for that collides with nothing.

Where the network asks for nothing it is that of ``OrcaController`` in ``controllers/multirotor/avoidance.py``. In ONNX
it is arithmetic alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from robo_rl.controllers.multirotor.avoidance import SWEEPS, Pace, reciprocal
from robo_rl.sim.plants.multirotor.swarm import bounds_of
from robo_rl.sim.tasks.multirotor.room import COLUMN, ROOM, SEEN, STALE, TEAM

PACE = Pace()  # what is flown where nothing is learnt
PUSH = (1.0, 1.0, 0.6)  # m/s, what an action of 1 adds to the wanted velocity at most
CAUTION = 0.5  # what part of the horizon, and of the buffer between robots, an action of 1 adds at most
TRAINED = 6  # sweeps over all half-spaces in training: in half the time, and what is left over teaches to stay away


def avoiding(ask: Any, signals: Mapping[str, Any], turn: tuple[Any, Any], reach: float, sweeps: int = SWEEPS) -> Any:
    """(n, 3) m/s, world, for what is asked for beside the straight way to the goal: ``ask`` (n, 4), from -1 to 1, is a
    velocity in the heading frame, and the caution towards other robots. ``turn`` is the cosine and the sine of the
    heading, (n, 1) each; ``reach`` a robot's radius, m."""
    here, speed = signals["position"], signals["linear_velocity"]
    way = signals["position_setpoint"] - here
    wanted = way * torch.clamp(PACE.fast / torch.sqrt(way.square().sum(-1, keepdim=True) + 1e-6), max=PACE.pull)
    a, b, c = (push * ask[:, i : i + 1] for i, push in enumerate(PUSH))
    cosine, sine = turn
    wanted = wanted + torch.cat([cosine * a - sine * b, sine * a + cosine * b, c], -1)
    more, still = 1.0 + CAUTION * ask[:, 3:], 0.0 * here[:, :1]
    apart, velocity, known, size, horizon = [], [], [], [], []
    for k in range(1, TEAM):
        track, age = signals[f"peer{k}"], signals[f"peer{k}_age"]
        velocity.append(track[:, 1] - track[:, 0])
        apart.append(track[:, 0] + velocity[-1] * age - here)
        known.append(age < STALE)
        size.append(2 * reach + PACE.buffer * more)
        horizon.append(PACE.horizon * more)
    for k in range(SEEN):
        apart.append(torch.cat([signals["column_position"][:, k] - here[:, :2], still], -1))
        velocity.append(torch.cat([still, still, speed[:, 2:]], -1))
        known.append(still < 1.0)
        size.append(reach + COLUMN + PACE.column_buffer + still)
        horizon.append(PACE.horizon + still)
    places, speeds, sure, sizes, ahead = (torch.stack(parts, 1) for parts in (apart, velocity, known, size, horizon))
    flies = torch.tensor([1.0] * (TEAM - 1) + [0.0] * SEEN)[None, :, None]
    margin = reach + PACE.column_buffer
    least, most = (
        torch.cat([PACE.pull * (end[i] + side * margin - here[:, i : i + 1]) for i in range(3)], -1)
        for side, end in zip((1.0, -1.0), zip(*bounds_of(ROOM), strict=True), strict=True)
    )
    return reciprocal(wanted, speed, (places, speeds, sure), sizes, flies, ahead, (least, most), torch, sweeps)
