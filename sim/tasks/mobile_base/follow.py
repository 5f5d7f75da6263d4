"""Follow a path that was planned on a map, round obstacles and people that the map does not know.

This is the task of a local planner, such as Nav2's controllers: the policy is told the points of the path that come
next, in the robot's frame, and how fast it may drive; it sees 60 beams of a lidar that turns five times a second. It
commands speed and turn rate, as a Twist does. Whatever the network wants, a speed limit of 0 brings the robot to rest,
at the commands' greatest rate of change, and it drives no faster than it can stop before what its scans have hit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Scan, Signal, StateBlock
from robo_rl.controllers.mobile_base.follow import PathIntegralOnPath, PathWindow
from robo_rl.controllers.path import AHEAD, SIZE
from robo_rl.sim.drawing import GREEN, PERSON, Line, Marker, Sphere, raised
from robo_rl.sim.plants.mobile_base.among_people import COUNT as PEOPLE
from robo_rl.sim.plants.mobile_base.among_people import WIDE, BaseAmongPeople
from robo_rl.sim.plants.mobile_base.in_room import CELL
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import CARD, MobileBaseCard
from robo_rl.sim.scenes.rooms import ROWS, ends
from robo_rl.sim.tasks import Measure, Spec, Tensors
from robo_rl.sim.tasks.mobile_base.clearance import COUNT, Clearance
from robo_rl.sim.tasks.mobile_base.lidar_base import (
    FAR,
    ToGoal,
    base_facts,
    last_command,
    measured,
    randomize_motors,
    skid_ranges,
)
from robo_rl.sim.tasks.mobile_base.local_map import LocalMap
from robo_rl.sim.tasks.mobile_base.seen_map import AROUND

PERIOD = 0.1  # s
BEAMS = 60
TURN = 1.5  # rad/s, the greatest turn rate that is commanded
BACK = 0.5  # of the greatest speed, backwards
NEAR = 0.08  # m, a clearance below which a place costs
BRAKED, TURNED = 2.5, 4.0  # 1/s, greatest changes of commanded speed and turn rate, over the greatest commands
CREEPING = 0.1  # of the greatest speed: below such a limit it turns slower, too
MARGIN = 0.012  # m, of a robot of TurtleBot3's size: nearer to what is ahead it does not drive on
BRAKING = 0.6  # s: it drives no faster than what is free ahead, over this
TURNED_BY = 0.2  # s after which the direction is taken in which it drives
TOLD = 0.5  # s without word from who plans, after which the gate stops the robot


class DiffFollow(ToGoal[BaseAmongPeople]):
    """A planned path, and what is in its way."""

    name = "diff-follow"
    summary = "follow a planned path round obstacles and people that its map does not know, by lidar"
    card_type = MobileBaseCard
    card: MobileBaseCard
    algorithms = ("ppo",)
    measures = (Measure("path_left", "m", "end", PERIOD), Measure("arrival_time", "s", "end", PERIOD))
    perturbed = ("room/fill", "room/blocks", "people/speed", "delay", "noise")
    observation_size = 2 * BEAMS + COUNT + AROUND[0] * len(AROUND[1]) + 2 * len(AHEAD) + 16
    action_size = 2
    goal_size = 3
    expected = 0.9
    reached = 0.25  # m: xy_goal_tolerance of Nav2's SimpleGoalChecker
    weights = {"progress": 4.0, "arrival": 5.0, "contact": -20.0, "near": -0.1, "time": -0.01, "turning": -0.005}
    settings = {
        "ppo": {
            "updates": 160, "environments": 512, "horizon": 64, "epochs": 4, "gamma": 0.99, "anneal": 0.5,
            "entropy": 0.001, "hidden": (256, 128), "activation": "elu",
        }
    }  # fmt: skip

    def __init__(self, card: MobileBaseCard | None = None) -> None:
        card = card or load_robot("turtlebot3", CARD)
        self.card = card
        low, high = card.lidar_range
        self.scan = Scan(-math.pi, 2 * math.pi / BEAMS, low, high)
        self.wide = card.radius / SIZE
        self.top, self.turn = card.speed_max, min(TURN, card.turn_rate_max)
        self.rates = BRAKED * self.top, TURNED * self.turn  # m/s², rad/s²
        self.map = LocalMap(CELL * card.radius, self.scan, BEAMS, card.lidar_position[0], PERIOD)
        self.clearance = Clearance(card.radius, self.wide, self.scan, BEAMS, card.lidar_position[0])
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=round(4.0 * ROWS * CELL * card.radius / card.speed_max),
            signals=(
                *measured(card, self.scan, BEAMS, PERIOD),
                Signal(
                    "path_points", ("x", "y"), "m", "body", -FAR, FAR, source="operator", shape=(len(AHEAD), 2),
                    timeout=TOLD,
                ),
                Signal("speed_limit", ("x",), "m/s", "body", (0.0,), (5.0,), source="operator", timeout=TOLD),
            ),
            commands=(
                Command(
                    "forward_speed", ("vx",), "m/s", "body", (-BACK * self.top,), (self.top,), safe=(0.0,),
                    rate=(1.01 * self.rates[0],),
                ),
                Command(
                    "turn_rate", ("wz",), "rad/s", "body", (-self.turn,), (self.turn,), safe=(0.0,),
                    rate=(1.01 * self.rates[1],),
                ),
            ),
            memory=(
                StateBlock("last_command", (2,), (0.0, 0.0)),
                StateBlock("limit", (1,), (0.0,)),
                StateBlock("free", (2,), (0.0, 0.0)),
                StateBlock("been", (3,), (0.0,) * 3),
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
        points = {
            "path_points": "of the planned path, from where it is nearest to the robot; the last one repeated",
            "speed_limit": "how fast it may drive; 0 stops it",
        }
        spacing = {"path_points": [self.wide * along for along in AHEAD]}
        return {**told, "references": {**told["references"], **points}, "along_path_m": spacing}

    def ranges(self) -> dict[str, Range]:
        """What differs between episodes. Physical ones are factors on the card's figures where no unit is given."""
        return {
            "room/seed": Range.fixed(0.0, 1.0, count=2),
            "room/fill": Range.fixed(0.1, 0.3, unit="× cells"),
            "room/blocks": Range.fixed(0.0, 4.0, unit="obstacles that are not on the map"),
            "people/begin": Range.fixed(0.25, 0.9, count=PEOPLE, unit="× path"),
            "people/heading": Range.fixed(-math.pi, math.pi, count=PEOPLE, unit="rad"),
            "people/speed": Range.fixed(0.3, 1.5, count=PEOPLE, unit="× greatest speed"),
            "speed_limit": Range.fixed(0.5, 1.0, unit="× greatest speed"),
            "goal/across": Range.fixed(0.0, 1.0, unit="× width"),
            "initial/across": Range.fixed(0.0, 1.0, unit="× width"),
            "initial/heading": Range.fixed(-math.pi, math.pi, unit="rad"),
            "localization/place": Range.fixed(-0.03, 0.03, count=2, unit="m"),
            "localization/heading": Range.fixed(-0.03, 0.03, unit="rad"),
            "acceleration": Range.fixed(0.5, 1.0, unit="×"),
            "motor_time": Range.fixed(0.5, 2.0, unit="×"),
            "speed_scale": Range.fixed(0.98, 1.02, unit="×"),
            "turn_scale": Range.fixed(0.98, 1.02, unit="×"),
            "lidar/yaw": Range.fixed(-0.0175, 0.0175, unit="rad"),
            "delay": Range.fixed(0.0, 0.1, unit="s"),
            "noise": Range.fixed(0.5, 1.5, unit="×"),
            **skid_ranges(self.card),
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> BaseAmongPeople:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; bases in rooms are simulated on the cpu")
        return BaseAmongPeople(self.card, n, PERIOD, self.scan, BEAMS)

    def controller(self) -> PathWindow:
        limits, forward = (self.top, self.turn), self.card.lidar_position[0]
        return PathWindow(self.card.facts(), self.scan, BEAMS, limits, forward)

    def controllers(self) -> tuple[PathIntegralOnPath]:
        lower, upper = (-BACK * self.top, -self.turn), (self.top, self.turn)
        forward = self.card.lidar_position[0]
        return (PathIntegralOnPath(self.card.facts(), self.scan, BEAMS, lower, upper, PERIOD, forward),)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 3): the path's end, m, in the world; and the speed limit, m/s."""
        place = ends(drawn["goal/across"], drawn["goal/across"], CELL * self.card.radius)[1]
        return torch.cat([place, self.top * drawn["speed_limit"][:, None]], 1)

    def randomize(self, plant: BaseAmongPeople, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        randomize_motors(plant, ids, drawn)
        plant.param("lidar_yaw")[ids] = drawn["lidar/yaw"]
        plant.param("people_speed")[ids] = self.top * drawn["people/speed"]
        error = torch.cat([drawn["localization/place"], drawn["localization/heading"][:, None]], 1)
        plant.param("pose_error")[ids] = error

    def place(self, plant: BaseAmongPeople, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for name in ("room/seed", "room/fill", "room/blocks", "people/begin", "people/heading"):
            plant.param(name.replace("/", "_"))[ids] = drawn[name]
        plant.param("room_start")[ids] = ends(drawn["initial/across"], drawn["goal/across"], CELL * self.card.radius)[0]
        plant.param("room_goal")[ids] = goal[:, :2]
        plant.refresh(ids)
        plant.put(ids, drawn["initial/heading"])

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None], "speed_limit": goal[:, 2:]}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        scans = self.last_scans(signals, memory)
        far, _ = self.ranges_seen(signals["scan"])
        before, _ = self.ranges_seen(scans["scans"][:, 1])
        moving = [signals["wheel_speed"] / self.top, signals["yaw_rate"] / self.turn]
        moving.append(torch.clamp(signals["speed_limit"] / self.top, max=1.0))
        points = signals["path_points"].reshape(-1, 2 * len(AHEAD)) / self.wide
        points = points / (torch.abs(points) + 0.5)
        left, gains = self.map.seen(memory, signals["position"], signals["orientation"])
        ways = [*self.polar(self.way_back(signals, memory), signals), left / (left + 20.0), 0.05 * left, gains]
        clear = self.clearance.seen(scans, self.pose(signals))
        free = torch.clamp(memory["free"] / (BRAKING * self.top), max=1.0)
        since = self.since_scan(signals, memory)
        return torch.cat([far, before, clear, *moving, points, *ways, memory["last_command"], free, since], -1)

    def _told(self, signals: Tensors) -> Any:
        """(n, points, 2) m: the next points of the path, by odometry."""
        x, y, cosine, sine = self.pose(signals).split(1, -1)
        ahead, left = signals["path_points"][..., 0], signals["path_points"][..., 1]
        return torch.stack([x + cosine * ahead - sine * left, y + sine * ahead + cosine * left], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        limit = memory["limit"] / self.top  # of the step before
        speed = (1.0 + BACK) * torch.sigmoid(action[:, :1] + 0.5) - BACK
        ahead, back = (torch.minimum(limit, free / (BRAKING * self.top)) for free in memory["free"].split(1, -1))
        speed = torch.maximum(torch.minimum(speed, ahead), -back)
        turn = torch.tanh(action[:, 1:]) * torch.clamp(limit / CREEPING, max=1.0)
        found = []
        for wanted, k, rate in ((speed, 0, BRAKED), (turn, 1, TURNED)):
            last = memory["last_command"][:, k : k + 1]
            found.append(torch.maximum(torch.minimum(wanted, last + PERIOD * rate), last - PERIOD * rate))
        return {"forward_speed": self.top * found[0], "turn_rate": self.turn * found[1]}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        taken, changed = self.scan_pose(signals, memory), self.scan_changed(signals, memory)
        pose, scans, turning = self.pose(signals), self.last_scans(signals, memory), signals["yaw_rate"]
        here, heading = pose[:, :2], pose[:, 2:]
        return {
            "last_command": last_command(commands, self.top, self.turn),
            "limit": signals["speed_limit"],
            "free": self.clearance.free_ways(scans, pose, TURNED_BY * turning, MARGIN * self.wide),
            "been": self.been(signals, memory),
            "scan": signals["scan"],
            "scanned": taken,
            **scans,
            **self.map.follow(memory, here, heading, self._told(signals), signals["scan"], taken, changed, turning),
        }

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        change = (commands["turn_rate"] - previous["turn_rate"]) / self.turn
        gained = torch.clamp(truth["gained"] / self.wide, -0.2, 0.2)
        return {
            "progress": gained[:, 0],
            "arrival": torch.where(self.succeeded(truth), 1.0, 0.0),
            "contact": torch.where(truth["clearance"][:, 0] <= 0.0, 1.0, 0.0),
            "near": torch.clamp(1.0 - truth["clearance"][:, 0] / (NEAR * self.wide), min=0.0),
            "time": torch.ones_like(gained[:, 0]),
            "turning": change.square()[:, 0],
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        scan, left = truth["scan"] / self.wide, truth["path"] / self.wide
        people = (truth["people"] - truth["place"][:, None]) / self.wide
        turn = truth["heading"]
        ahead = torch.cos(turn) * people[..., 0] + torch.sin(turn) * people[..., 1]
        side = torch.cos(turn) * people[..., 1] - torch.sin(turn) * people[..., 0]
        points = truth["path_points"].flatten(1) / self.wide
        return torch.cat(
            [
                scan / (scan + 0.5),
                points / (torch.abs(points) + 0.5),
                ahead / (torch.abs(ahead) + 0.5),
                side / (torch.abs(side) + 0.5),
                parameters.people_speed / self.top,
                torch.clamp(truth["ahead"] / self.wide, -1.0, 1.0),
                torch.exp(-0.3 * left),
                torch.clamp(0.1 * left, max=2.0),
                truth["clearance"] / self.wide,
                truth["wheel_speed"] / self.top,
                truth["yaw_rate"] / self.turn,
                truth["speed_limit"] / self.top,
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        """Those of a room; the planned path, and people."""
        low = torch.full_like(truth["heading"], 0.5 * self.card.height)
        people = [
            Sphere(f"person {k + 1}", torch.cat([truth["people"][:, k], low], -1), WIDE * self.card.radius, PERSON)
            for k in range(PEOPLE)
        ]
        return [*super().markers(truth), Line("plan", raised(truth["plan"], low), GREEN), *people]
