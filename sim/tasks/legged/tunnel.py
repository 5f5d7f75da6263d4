"""Walk through tight rooms: a robot on four legs follows the path that a planner has made on a map.

Every episode has a room full of obstacles of its own (``robo_rl.sim.scenes.rooms``), whose narrowest ways are two or
three cells wide,
and a robot that is four circles large (``robo_rl.sim.plants.legged_in_room``). It is told the points of the path
that come
next, and sees obstacles by a planar lidar. An episode ends at the path's end, with a contact, or with a fall.

Two can do it. A policy of the task goes from scan, points and what ``FlatWalk`` sees to joint targets, end to end: its
trot heads for the next points, its network adds the rest. Or a planner (``planner``) commands velocities to a policy of
``FlatWalk``, such as zoo:go2-flat: ``robo_rl.policy.led``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Scan, Signal
from robo_rl.controllers.mobile_base.footprint_window import FootprintWindow
from robo_rl.sim.drawing import GREEN, ORANGE, SLATE, Line, Marker, Sphere, Trail, raised
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.legged_in_room import LeggedInRoom, circles
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.scenes.rooms import COLUMNS, ends
from robo_rl.sim.tasks import Measure, Task, Tensors
from robo_rl.sim.tasks.legged.walk import PERIOD, FlatWalk

BODY = (0.70, 0.31)  # m, length and width of a standing Go2: Unitree's specification
CELL = 0.22  # m, of rooms for a Go2: ways are 0.66 m wide, and 0.44 m where that is much shorter
BEAMS = 60
REACH = (0.05, 5.0)  # m; Unitree's L1 lidar on the Go2 measures from 0.05 m
SCANNED = 0.1  # s; L1 turns 11 times a second
AHEAD = (0.2, 0.4, 0.6, 0.8, 1.0)  # m along the path, the points that are told
AIMED = 2  # the point of them that the trot heads for
EVERY = 5  # control steps between choices of the planner
REACHED = 0.3  # m to the goal
NEAR = 0.1  # m, a clearance below which a place costs
FASTEST = (0.5, 0.25, 0.8)  # m/s, m/s, rad/s, at which the trot heads for a point: as the planner does


class TunnelWalk(FlatWalk):
    """Walk along a planned path through a room, end to end."""

    name = "tunnel-walk"
    summary = "walk along a planned path through a tight room, by lidar"
    plants = ("mujoco",)
    devices = ("cpu",)
    measures = (Measure("path_left", "m", "end", PERIOD), Measure("arrival_time", "s", "end", PERIOD))
    perturbed = ("room/fill", "payload", "ground_friction", "strength", "delay", "noise")
    goal_size = 2
    expected = 0.5
    cell = CELL
    disturb = Task.disturb  # nobody pushes
    weights = {
        **FlatWalk.weights,
        "linear_velocity": 1.0,
        "yaw_rate": 0.5,
        "progress": 4.0 / PERIOD,
        "arrival": 5.0 / PERIOD,
        "contact": -5.0 / PERIOD,
        "near": -0.5,
    }
    """Per second: of progress, 4 for a metre of the path, at most as for the speed FASTEST, else it learns to run; of
    arrival and contact, 5 for each."""

    def __init__(self, card: LeggedCard | None = None) -> None:
        super().__init__(card)
        self.cell = self.cell * self.size
        self.body = BODY[0] * self.size, BODY[1] * self.size
        self.scan = Scan(-math.pi, 2 * math.pi / BEAMS, REACH[0], REACH[1] * self.size)
        self.ahead = tuple(self.size * x for x in AHEAD)
        self.fastest = torch.tensor([FASTEST])
        self.observation_size += 2 * BEAMS + 2 * len(AHEAD)
        spec = self.spec
        measured = tuple(signal for signal in spec.signals if signal.source != "operator")
        ranges = {name: value for name, value in spec.ranges.items() if not name.startswith(("command/", "push/"))}
        self.spec = dataclasses.replace(
            spec,
            episode_length=60.0,
            signals=(
                *measured,
                Signal(
                    "scan", (), "m", "base_scan", 0.0, self.scan.range_max + 0.2, noise=0.01, delay=(0.0, 0.02),
                    shape=(BEAMS,), layout=self.scan, period=SCANNED,
                ),
                Signal("path_points", ("x", "y"), "m", "heading", -1e3, 1e3, source="operator", shape=(len(AHEAD), 2)),
            ),
            ranges={
                **ranges,
                "initial/yaw": Range.fixed(-0.25, 0.25, unit="rad"),  # from the direction to the room's middle
                "initial/linear_velocity": Range.fixed(-0.1, 0.1, count=3, unit="m/s"),
                "initial/angular_velocity": Range.fixed(-0.1, 0.1, count=3, unit="rad/s"),
                "initial/across": Range.fixed(0.1, 0.9, unit="× width"),  # it has room behind it
                "room/seed": Range.fixed(0.0, 1.0, count=2),
                "room/fill": Range.fixed(0.15, 0.35, unit="× cells"),
                "goal/across": Range.fixed(0.1, 0.9, unit="× width"),
            },
        )  # fmt: skip

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        if torch.device(settings.get("device", "cpu")).type != "cpu":
            raise ValueError(f"device is {settings['device']}; robots in rooms are simulated on the cpu")
        plant = super().simulate(engine, n, **settings)
        return LeggedInRoom(plant, self.cell, self.body, self.scan, BEAMS, self.ahead)

    def planner(self) -> FootprintWindow:
        return FootprintWindow(self.scan, BEAMS, circles(*self.body), EVERY)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 2) m: the path's end."""
        return ends(drawn["goal/across"], drawn["goal/across"], self.cell)[1]

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        assert isinstance(plant, LeggedInRoom)
        start = ends(drawn["initial/across"], drawn["goal/across"], self.cell)[0]
        plant.enter(ids, torch.cat([drawn["room/seed"], drawn["room/fill"][:, None], start, goal], 1))
        away = torch.where(start[:, 0] > COLUMNS / 2 * self.cell, math.pi, 0.0)
        super().place(plant, ids, {**drawn, "initial/yaw": drawn["initial/yaw"] + away, "start": start}, goal)

    def start(self, drawn: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([drawn["start"], torch.zeros(len(drawn["start"]), 1)], 1)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None], "clock": self.clock(time)}

    def commanded(self, signals: Tensors) -> Any:
        """(n, 3) m/s, m/s, rad/s: towards the point AIMED, turning to where it is."""
        point = signals["path_points"][:, AIMED]
        wanted = torch.cat([1.5 * point, 3.0 * point[:, 1:]], -1) / self.size
        return torch.maximum(torch.minimum(wanted, self.fastest), -self.fastest)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        side = self.gait.side(memory["gait"][:, :2])
        return torch.cat([super().observe(signals, memory), *self._seen(signals, side)], -1)

    def _seen(self, signals: Tensors, side: Any) -> tuple[Any, ...]:
        """Scan and points of the path, as the mirror shows them: ranges as one would see far things, and near ones."""
        scan = signals["scan"] / self.size
        backwards = torch.cat([scan[:, (BEAMS - k) % BEAMS : (BEAMS - k) % BEAMS + 1] for k in range(BEAMS)], -1)
        scan = torch.where(side < 0.0, backwards, scan)
        points = signals["path_points"] / self.size
        return scan / (scan + 0.5), 0.2 / torch.clamp(scan, min=0.2), points[:, :, 0], side * points[:, :, 1]

    def _led(self, truth: Tensors) -> dict[str, Any]:
        """With the velocity that the trot is to have, as if it had been commanded."""
        wanted = self.commanded(truth)
        return {**truth, "linear_velocity_command": wanted[:, :2], "yaw_rate_command": wanted[:, 2:]}

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The length of the path that is left (m), and how long the robot has been under way (s)."""
        return {"path_left": truth["left"][:, 0], "arrival_time": truth["time"][:, 0]}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        touched = truth["clearance"][:, 0] <= 0.0
        return {
            **super().reward(self._led(truth), commands, previous),
            "progress": torch.clamp(truth["gained"][:, 0] / self.size, max=FASTEST[0] * PERIOD),
            "arrival": torch.where(self.succeeded(truth), 1.0, 0.0),
            "contact": torch.where(touched, 1.0, 0.0),
            "near": torch.clamp(1.0 - truth["clearance"][:, 0] / (NEAR * self.size), min=0.0),
        }

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {**super().failures(truth), "touches the wall": truth["clearance"][:, 0] <= 0.0}

    def succeeded(self, truth: Tensors) -> Any:
        near = truth["to_goal"].square().sum(-1) <= (REACHED * self.size) ** 2
        return near & (truth["clearance"][:, 0] > 0.0)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        side = self.gait.side(truth["clock"])
        clear, left = truth["clearance"] / self.size, truth["left"] / self.size
        own = [clear, torch.exp(-8.0 * clear), torch.exp(-0.3 * left), 0.1 * left]
        return torch.cat([super().privileged(self._led(truth), parameters), *self._seen(truth, side), *own], -1)

    def markers(self, truth: Tensors) -> list[Marker]:
        """Obstacles, the planned path and its end, and where the robot was."""
        low = torch.full_like(truth["left"], 0.1 * self.size)
        place = truth["position"][:, :2]
        return [
            Line("obstacles", raised(truth["obstacles"], low), SLATE),
            Line("plan", raised(truth["plan"], low), GREEN),
            Sphere("goal", torch.cat([place + truth["to_goal"], low], -1), 0.1 * self.size),
            Trail("path", torch.cat([place, low], -1), seconds=None, color=ORANGE),
        ]
