"""What tasks of a mobile base with a lidar share: its signals, how its motors differ, and how it is drawn in a room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Scan, Signal
from sim.drawing import ORANGE, SLATE, Line, Marker, Sphere, Trail
from sim.robots.mobile_base import MobileBaseCard
from sim.tasks import Tensors

PLANE, FAR = ("x", "y"), 1e3  # m


def measured(card: MobileBaseCard, scan: Scan, beams: int) -> tuple[Signal, ...]:
    """By lidar, wheels and gyroscope: a scan of so many beams, the pose by odometry, speed and turn rate."""
    noise, rate, delay = card.lidar_noise, card.gyroscope_range, (0.0, 0.1)
    return (
        Signal(
            "scan", (), "m", "base_scan", 0.0, scan.range_max + 10 * noise, noise=noise, delay=delay, shape=(beams,),
            layout=scan, period=card.lidar_period,
        ),
        # without noise: odometry at rest repeats, and is no frozen sensor
        Signal("position", PLANE, "m", "world", (-FAR, -FAR), (FAR, FAR)),
        Signal(
            "orientation", ("x", "y", "z", "w"), "1", "body to world", (-1.001,) * 4, (1.001,) * 4, kind="quaternion",
        ),
        Signal("wheel_speed", ("x",), "m/s", "body", (-5.0,), (5.0,)),
        Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.01,), delay=delay),
    )  # fmt: skip


def randomize_motors(plant: Any, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
    """Write lag, acceleration and scales of the wheels of the robots ``ids`` (m,), as factors on the card's figures."""
    for name in ("acceleration", "motor_time", "speed_scale", "turn_scale"):
        plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
    plant.param("turn_acceleration")[ids] = plant.nominal.turn_acceleration * drawn["acceleration"]


def room_markers(truth: Tensors, card: MobileBaseCard, reached: float) -> list[Marker]:
    """Obstacles, the goal, which is ``reached`` (m) near it, and where the robot was."""
    low = torch.full_like(truth["heading"], 0.5 * card.height)
    goal = torch.cat([truth["place"] + truth["to_goal"], low], -1)
    return [
        Line("obstacles", truth["obstacles"], SLATE),
        Sphere("goal", goal, 0.5 * reached),
        Trail("path", torch.cat([truth["place"], low], -1), seconds=None, color=ORANGE),
    ]
