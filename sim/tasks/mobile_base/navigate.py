"""Drive to a goal across a room that was never seen before, by lidar and odometry.

The policy sees 60 beams of a lidar that turns five times a second, the goal by odometry, and how fast it moves; it
commands speed and turn rate, as a Twist does. Every episode has a room full of obstacles of its own
(``robo_rl.sim.scenes.rooms``),
and wheels, lag, drift of the odometry and latency of its own. An episode ends at the goal, or with the first contact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Scan, Signal, StateBlock
from robo_rl.controllers.mobile_base import DynamicWindow
from robo_rl.controllers.mobile_base.mppi import PathIntegral
from robo_rl.sim.plants.mobile_base.in_room import CELL, BaseInRoom
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import BaseCard, MobileBaseCard
from robo_rl.sim.scenes.rooms import ROWS, ends
from robo_rl.sim.tasks import Measure, Spec, Tensors
from robo_rl.sim.tasks.mobile_base.clearance import COUNT, Clearance
from robo_rl.sim.tasks.mobile_base.lidar_base import (
    FAR,
    PLANE,
    ToGoal,
    base_facts,
    measured,
    randomize_motors,
    skid_ranges,
)
from robo_rl.sim.tasks.mobile_base.seen_map import AROUND, SeenMap

PERIOD = 0.1  # s
BEAMS = 60
TURN = 1.5  # rad/s, the greatest turn rate that is commanded
BACK = 0.5  # of the greatest speed, backwards
NEAR = 0.08  # m, a clearance below which a place costs


class RoomNav(ToGoal[BaseInRoom]):
    """A way through an unseen room, for bases of any kind that are commanded a speed and a turn rate, and more."""

    summary = "drive to a goal across an unseen room, by lidar and odometry"
    card_type: type[BaseCard]
    robot: str
    """The card of which it is, if none is given."""
    speed_axes: tuple[str, ...] = ("x",)
    """Of the body, along which the wheels measure a speed."""
    algorithms = ("ppo",)
    measures = (Measure("path_left", "m", "end", PERIOD), Measure("arrival_time", "s", "end", PERIOD))
    perturbed: tuple[str, ...] = ("room/fill", "speed_scale", "turn_scale", "delay", "noise")
    observation_size = 2 * BEAMS + AROUND[0] * len(AROUND[1]) + COUNT + 16
    goal_size = 2
    clicks = ("goal", "obstacle")
    expected = 0.8
    weights = {"progress": 1.0, "arrival": 5.0, "contact": -20.0, "near": -0.1, "time": -0.01, "turning": -0.005}
    settings = {
        "ppo": {
            "updates": 600, "environments": 512, "horizon": 64, "epochs": 4, "gamma": 0.99, "anneal": 0.5,
            "entropy": 0.001, "hidden": (256, 128), "activation": "elu",
        }
    }  # fmt: skip

    def __init__(self, card: BaseCard | None = None) -> None:
        card = card or load_robot(self.robot, self.card_type)
        self.card = card
        low, high = card.lidar_range
        self.scan = Scan(-math.pi, 2 * math.pi / BEAMS, low, high)
        self.wide = card.radius / 0.105
        self.top, self.turn = card.speed_max, min(TURN, card.turn_rate_max)
        self.map = SeenMap(CELL * card.radius, self.scan, BEAMS, card.lidar_position[0], PERIOD)
        self.clearance = Clearance(card.radius, self.wide, self.scan, BEAMS, card.lidar_position[0])
        across = ROWS * CELL * card.radius  # m
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=round(4.0 * across / card.speed_max),
            signals=(
                *measured(card, self.scan, BEAMS, PERIOD, self.speed_axes),
                Signal("position_setpoint", PLANE, "m", "world", (-FAR, -FAR), (FAR, FAR), source="operator"),
            ),
            commands=self.commands(),
            memory=(
                StateBlock("last_command", (self.action_size,), (0.0,) * self.action_size),
                StateBlock("been", (3,), (0.0, 0.0, 0.0)),
                StateBlock("scan", (BEAMS,), (0.0,) * BEAMS),
                StateBlock("scanned", (4,), (0.0, 0.0, 0.0, 1.0)),
                *self.map.memory,
                *self.clearance.memory,
            ),
            safety=Safety(signal_timeout=0.3, on_fault="stop"),
            reward=dict(self.weights),
            ranges=self.ranges(),
            facts=self.facts(),
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        told = base_facts(self.card, self.reached * self.wide)
        goal = {"position_setpoint": "the goal, in the odometry's frame"}
        return {**told, "references": {**told["references"], **goal}}

    def commands(self) -> tuple[Command, ...]:
        """What is commanded, one number each."""
        return (
            Command("forward_speed", ("vx",), "m/s", "body", (-BACK * self.top,), (self.top,), safe=(0.0,)),
            Command("turn_rate", ("wz",), "rad/s", "body", (-self.turn,), (self.turn,), safe=(0.0,)),
        )

    def ranges(self) -> dict[str, Range]:
        """What differs between episodes. Physical ones are factors on the card's figures where no unit is given."""
        return {
            "room/seed": Range.fixed(0.0, 1.0, count=2),
            "room/fill": Range.fixed(0.15, 0.35, unit="× cells"),
            "goal/across": Range.fixed(0.0, 1.0, unit="× width"),
            "initial/across": Range.fixed(0.0, 1.0, unit="× width"),
            "initial/heading": Range.fixed(-math.pi, math.pi, unit="rad"),
            "acceleration": Range.fixed(0.5, 1.0, unit="×"),
            "motor_time": Range.fixed(0.5, 2.0, unit="×"),
            "speed_scale": Range.fixed(0.98, 1.02, unit="×"),
            "turn_scale": Range.fixed(0.98, 1.02, unit="×"),
            "lidar/yaw": Range.fixed(-0.0175, 0.0175, unit="rad"),
            "delay": Range.fixed(0.0, 0.1, unit="s"),
            "noise": Range.fixed(0.5, 1.5, unit="×"),
            **skid_ranges(self.card),
        }

    def refuse_device(self, device: str | torch.device) -> None:
        """ValueError unless it is the cpu."""
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; bases in rooms are simulated on the cpu")

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 2) m: the place to go to, in the world and in the frame of the odometry."""
        return ends(drawn["goal/across"], drawn["goal/across"], CELL * self.card.radius)[1]

    def randomize(self, plant: BaseInRoom, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        randomize_motors(plant, ids, drawn)
        plant.param("lidar_yaw")[ids] = drawn["lidar/yaw"]

    def place(self, plant: BaseInRoom, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for name in ("seed", "fill"):
            plant.param(f"room_{name}")[ids] = drawn[f"room/{name}"]
        plant.param("room_start")[ids] = ends(drawn["initial/across"], drawn["goal/across"], CELL * self.card.radius)[0]
        plant.param("room_goal")[ids] = goal
        plant.refresh(ids)
        plant.put(ids, drawn["initial/heading"])

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None], "position_setpoint": goal}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        far, near = self.ranges_seen(signals["scan"])
        moving = [signals["wheel_speed"] / self.top, signals["yaw_rate"] / self.turn]
        way = signals["position_setpoint"] - signals["position"]
        ways = [*self.polar(way, signals), *self.polar(self.way_back(signals, memory), signals)]
        left, gains = self.map.seen(memory, signals["position"], signals["orientation"])
        ways += [left / (left + 20.0), 0.05 * left, gains]
        clear = self.clearance.seen(self.last_scans(signals, memory), self.pose(signals))
        return torch.cat(
            [far, near, clear, *moving, *ways, memory["last_command"], self.since_scan(signals, memory)], -1
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        part = torch.sigmoid(action[:, :1] + 0.5)
        return {
            "forward_speed": self.top * ((1.0 + BACK) * part - BACK),
            "turn_rate": self.turn * torch.tanh(action[:, 1:2]),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        pose, changed = self.scan_pose(signals, memory), self.scan_changed(signals, memory)
        return {
            "last_command": torch.cat([commands[c.name] / c.upper[0] for c in self.spec.commands], -1),
            "been": self.been(signals, memory),
            "scan": signals["scan"],
            "scanned": pose,
            **self.last_scans(signals, memory),
            **self.map.remember(
                memory, signals["position"], signals["position_setpoint"], signals["scan"], pose, changed,
                signals["yaw_rate"],
            ),
        }  # fmt: skip

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        change = (commands["turn_rate"] - previous["turn_rate"]) / self.turn
        gained = torch.clamp(truth["gained"] / self.wide, -0.2, 0.2)
        return {
            "progress": 4.0 * gained[:, 0],
            "arrival": torch.where(self.succeeded(truth), 1.0, 0.0),
            "contact": torch.where(truth["clearance"][:, 0] <= 0.0, 1.0, 0.0),
            "near": torch.clamp(1.0 - truth["clearance"][:, 0] / (NEAR * self.wide), min=0.0),
            "time": torch.ones_like(gained[:, 0]),
            "turning": change.square()[:, 0],
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        scan, left = truth["scan"] / self.wide, truth["path"] / self.wide
        return torch.cat(
            [
                scan / (scan + 0.5),
                torch.clamp(truth["ahead"] / self.wide, -1.0, 1.0),
                torch.exp(-0.3 * left),
                torch.clamp(0.1 * left, max=2.0),
                truth["clearance"] / self.wide,
                truth["wheel_speed"] / self.top,
                truth["yaw_rate"] / self.turn,
                torch.stack([parameters.motor_time, parameters.speed_scale - 1, parameters.turn_scale - 1], -1),
            ],
            -1,
        )


class DiffNav(RoomNav):
    """For a base with differential drive."""

    name = "diff-nav"
    card_type = MobileBaseCard
    robot = "turtlebot3"
    action_size = 2
    card: MobileBaseCard

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> BaseInRoom:
        self.refuse_device(device)
        return BaseInRoom(self.card, n, PERIOD, self.scan, BEAMS)

    def controller(self) -> DynamicWindow:
        limits, forward = (self.top, self.turn), self.card.lidar_position[0]
        return DynamicWindow(self.card.facts(), self.scan, BEAMS, limits, forward)

    def controllers(self) -> tuple[PathIntegral]:
        lower, upper = (-BACK * self.top, -self.turn), (self.top, self.turn)
        forward = self.card.lidar_position[0]
        return (PathIntegral(self.card.facts(), self.scan, BEAMS, lower, upper, PERIOD, forward),)
