"""What tasks of a mobile base with a lidar share: its signals, how its motors differ, and how it is drawn in a room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Scan, Signal
from sim.drawing import ORANGE, SLATE, Line, Marker, Sphere, Trail
from sim.robots.mobile_base import MobileBaseCard
from sim.tasks import Task, Tensors

PLANE, FAR = ("x", "y"), 1e3  # m
REACHED = 0.3  # m to the goal, for a robot of TurtleBot3's size: Nav2's goal checker takes 0.25 m of the odometry's


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


def last_command(commands: Tensors, top: float, turn: float) -> Tensor:
    """(n, 2): speed and turn rate, over the greatest ones."""
    return torch.cat([commands["forward_speed"] / top, commands["turn_rate"] / turn], -1)


class ToGoal(Task):
    """An episode ends at a goal in a room, or with the first contact."""

    card: MobileBaseCard
    wide: float
    """The robot's size over TurtleBot3's."""

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The length of the way that is left (m), and how long the robot has been under way (s)."""
        return {"path_left": truth["path"][:, 0], "arrival_time": truth["time"][:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return (truth["clearance"] <= 0.0)[:, 0]

    def succeeded(self, truth: Tensors) -> Any:
        return (truth["to_goal"].square().sum(-1) <= (REACHED * self.wide) ** 2) & (truth["clearance"][:, 0] > 0.0)

    def markers(self, truth: Tensors) -> list[Marker]:
        """Obstacles, the goal, and where the robot was."""
        low = torch.full_like(truth["heading"], 0.5 * self.card.height)
        goal = torch.cat([truth["place"] + truth["to_goal"], low], -1)
        return [
            Line("obstacles", truth["obstacles"], SLATE),
            Sphere("goal", goal, 0.5 * REACHED * self.wide),
            Trail("path", torch.cat([truth["place"], low], -1), seconds=None, color=ORANGE),
        ]
