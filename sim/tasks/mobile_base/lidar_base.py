"""What tasks of a mobile base with a lidar share: its signals, how its motors differ, and how it is drawn in a room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from robo_rl.contract import Scan, Signal
from robo_rl.sim.drawing import ORANGE, SLATE, Line, Marker, Sphere, Trail, raised
from robo_rl.sim.plants import Plant
from robo_rl.sim.plants.mobile_base.in_room import BaseInRoom
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.car import NOTHING
from robo_rl.sim.robots.mobile_base import BaseCard, MobileBaseCard
from robo_rl.sim.scenes.rooms.edits import NO_WAY
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.tasks.mobile_base.clearance import Clearance

B = TypeVar("B", bound=BaseInRoom)
"""The plant: a base in a room, of whatever is in it."""
PLANE, FAR = ("x", "y"), 1e3  # m
NEAREST = 0.12  # m, the least range that TurtleBot3's lidar measures
LOOKED = 4.0  # s over which it remembers where it was
TURN_GAIN = (0.8, 1.2)  # estimate: between grounds ICRs of skid-steers wander by some 20 % of their width
AHEAD = 0.1  # of the radius, estimate: by how much a load, or a slope, moves the point about which they turn
REACHED = 0.3  # m to the goal, for a robot of TurtleBot3's size: Nav2's goal checker takes 0.25 m of the odometry's


def measured(
    card: BaseCard, scan: Scan, beams: int, control: float, speed: tuple[str, ...] = ("x",)
) -> tuple[Signal, ...]:
    """By lidar, wheels and gyroscope: a scan of so many beams, the pose by odometry, ``speed`` along so many axes of
    the body, and the turn rate. A lidar that is faster than the ``control`` period (s) has a scan for every step."""
    noise, rate, delay = card.lidar_noise, card.gyroscope_range, (0.0, 0.1)
    period = card.lidar_period if card.lidar_period >= control else None
    return (
        Signal(
            "scan", (), "m", "base_scan", 0.0, scan.range_max + 10 * noise, noise=noise, delay=delay, shape=(beams,),
            layout=scan, period=period,
        ),
        # without noise: odometry at rest repeats, and is no frozen sensor
        Signal("position", PLANE, "m", "world", (-FAR, -FAR), (FAR, FAR)),
        Signal(
            "orientation", ("x", "y", "z", "w"), "1", "body to world", (-1.001,) * 4, (1.001,) * 4, kind="quaternion",
        ),
        Signal("wheel_speed", speed, "m/s", "body", (-5.0,) * len(speed), (5.0,) * len(speed)),
        Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.01,), delay=delay),
    )  # fmt: skip


def base_facts(card: BaseCard, reached: float) -> dict[str, Any]:
    """What a contract tells of a task of a mobile base with a lidar."""
    forward, height = card.lidar_position
    return {
        "mounting": {"scan": {"position": [forward, 0.0, height], "yaw": 0.0, "from": "the base's reference point"}},
        "nothing_seen": {"scan": NOTHING},
        "references": {
            "body": "x ahead, y left, from the middle between the wheels, on the ground",
            "position": "of that point in the odometry's frame, whose origin may be anywhere",
            "wheel_speed": "ahead, as the wheels turn",
        },
        "base": {
            "motor_time": card.motor_time, "acceleration": card.acceleration,
            "turn_acceleration": card.turn_acceleration, "body": {"shape": "disc", "radius": card.radius},
        },
        "success": {"goal_within_m": reached, "contact": "none"},
    }  # fmt: skip


def randomize_motors(plant: Plant, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
    """Write lag, acceleration and scales of the wheels of the robots ``ids`` (m,), as factors on the card's figures."""
    for name in ("acceleration", "motor_time", "speed_scale", "turn_scale"):
        plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
    plant.param("turn_acceleration")[ids] = plant.nominal.turn_acceleration * drawn["acceleration"]
    for name in ("turn_gain", "icr_forward"):
        if name in drawn:
            plant.param(name)[ids] = drawn[name]


def skid_ranges(card: BaseCard) -> dict[str, Range]:
    """Of a base that skids in turns: how, which the ground decides."""
    if not (isinstance(card, MobileBaseCard) and card.skids):
        return {}
    ahead = card.icr_forward
    return {
        "turn_gain": Range.fixed(*TURN_GAIN, unit="×"),
        "icr_forward": Range.fixed(ahead - AHEAD * card.radius, ahead + AHEAD * card.radius, unit="m"),
    }


def last_command(commands: Tensors, top: float, turn: float) -> Tensor:
    """(n, 2): speed and turn rate, over the greatest ones."""
    return torch.cat([commands["forward_speed"] / top, commands["turn_rate"] / turn], -1)


class ToGoal(Task[B]):
    """An episode ends at a goal in a room, or with the first contact."""

    card: BaseCard
    wide: float
    """The robot's size over TurtleBot3's."""
    reached: float = REACHED
    clicks: tuple[str, ...] = ("obstacle",)
    clearance: Clearance
    """Of tasks that see how far places about the robot are from what its last scans have hit."""

    def ranges_seen(self, scan: Any) -> tuple[Any, Any]:
        """(n, beams) each, between 0 and 1: a scan (n, beams) m as one would see far things in it, and near ones."""
        scan = scan / self.wide
        return scan / (scan + 0.5), NEAREST / torch.clamp(scan, min=NEAREST)

    def been(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 3): 1, and where the robot was in the last LOOKED s, m; of ``memory["been"]``, zeros at first."""
        known, been, here = memory["been"][:, :1], memory["been"][:, 1:], signals["position"]
        been = here + known * (1.0 - self.spec.control_period / LOOKED) * (been - here)
        return torch.cat([0.0 * known + 1.0, been], -1)

    def way_back(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 2) m in the world, to where the robot was in the last LOOKED s."""
        return memory["been"][:, :1] * (memory["been"][:, 1:] - signals["position"])

    def pose(self, signals: Tensors) -> Any:
        """(n, 4): x, y (m), cosine and sine of the heading, by odometry."""
        z, w = signals["orientation"][:, 2:3], signals["orientation"][:, 3:4]
        return torch.cat([signals["position"], 1.0 - 2.0 * z * z, 2.0 * z * w], -1)

    def last_scans(self, signals: Tensors, memory: Tensors) -> dict[str, Any]:
        """The last scans, the present one among them, and where they were taken: the blocks of ``clearance``."""
        changed = self.scan_changed(signals, memory)
        moving = signals["wheel_speed"], signals["yaw_rate"]
        return self.clearance.remember(memory, signals["scan"], self.pose(signals), changed, *moving)

    def scan_pose(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 4): x, y (m), z and w of the odometry when the present scan came.

        A lidar turns slower than the policy runs: a scan is read several times, while the robot goes on. It is the same
        one where no range has changed, which is exact in every runtime.
        """
        now = torch.cat([signals["position"], signals["orientation"][:, 2:]], -1)
        return torch.where(self.scan_changed(signals, memory), now, memory["scanned"])

    def scan_changed(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 1) whether the present scan is another one than that of the step before."""
        return torch.abs(signals["scan"] - memory["scan"]).sum(-1, keepdim=True) > 0.0

    def since_scan(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 4): how far the robot has moved and turned since the present scan came, in its frame."""
        then = self.scan_pose(signals, memory)
        z, w = signals["orientation"][:, 2:3], signals["orientation"][:, 3:4]
        cosine, sine = 1.0 - 2.0 * z * z, 2.0 * z * w
        way = (signals["position"] - then[:, :2]) / (0.05 * self.wide)
        ahead, left = cosine * way[:, :1] + sine * way[:, 1:], cosine * way[:, 1:] - sine * way[:, :1]
        half_sine, half_cosine = z * then[:, 3:4] - w * then[:, 2:3], w * then[:, 3:4] + z * then[:, 2:3]
        return torch.cat([ahead, left, 4.0 * half_sine * half_cosine, 2.0 * half_sine * half_sine], -1)

    def in_frame(self, x: Any, y: Any, signals: Tensors) -> tuple[Any, Any]:
        """Ways (n, k) m in the world, as ways ahead and to the left in robots of TurtleBot3's size."""
        z, w = signals["orientation"][:, 2:3], signals["orientation"][:, 3:4]
        cosine, sine = (1.0 - 2.0 * z * z) / self.wide, 2.0 * z * w / self.wide
        return cosine * x + sine * y, cosine * y - sine * x

    def polar(self, way: Any, signals: Tensors) -> tuple[Any, ...]:
        """A way (n, 2) m in the world as direction in the robot's frame, and distance between 0 and 1."""
        ahead, left = self.in_frame(way[:, :1], way[:, 1:], signals)
        distance = torch.sqrt(ahead * ahead + left * left + 1e-4)
        return ahead / distance, left / distance, distance / (distance + 1.0)

    def click(self, what: str, plant: B, goal: Tensor, robot: int, place: tuple[float, float]) -> None:
        if what == "goal" and what in self.clicks:
            plant.place_goal(robot, place)
            goal[robot] = torch.tensor(place)
        elif what == "obstacle":
            plant.drop_obstacle(robot, place)
        else:
            super().click(what, plant, goal, robot, place)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The length of the way that is left (m), and how long the robot has been under way (s).

        Where the robot is pressed into an obstacle, and no way leads on, it is the straight line to the goal.
        """
        way, straight = truth["path"][:, 0], torch.sqrt(truth["to_goal"].square().sum(-1))
        return {"path_left": torch.where(way > NO_WAY, straight, way), "arrival_time": truth["time"][:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return (truth["clearance"] <= 0.0)[:, 0]

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"collision": self.failed(truth)}

    def succeeded(self, truth: Tensors) -> Any:
        return (truth["to_goal"].square().sum(-1) <= (self.reached * self.wide) ** 2) & (truth["clearance"][:, 0] > 0.0)

    def markers(self, truth: Tensors) -> list[Marker]:
        """Obstacles, the goal, and where the robot was."""
        low = torch.full_like(truth["heading"], 0.5 * self.card.height)
        goal = torch.cat([truth["place"] + truth["to_goal"], low], -1)
        return [
            Line("obstacles", raised(truth["obstacles"], low), SLATE),
            Sphere("goal", goal, 0.5 * self.reached * self.wide),
            Trail("path", torch.cat([truth["place"], low], -1), seconds=None, color=ORANGE),
        ]
