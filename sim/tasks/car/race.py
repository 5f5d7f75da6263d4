"""Drive a lap of an unseen track as fast as it goes, by lidar.

The policy sees 64 beams of a lidar, the speed of the wheels and the yaw rate, and what it last commanded; it commands
the steering angle and the speed, as an Ackermann message does. Every episode has a track that was never seen before
(``robo_rl.sim.scenes.tracks``), with bends or, where "track/kind" is 1 or more, with sharp corners, and a car, tyres
and grip of its own. An episode ends with a lap, or with the first contact. A class with ``courses`` races on tracks
that exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Scan, Signal, StateBlock
from robo_rl.controllers.car import FollowTheGap
from robo_rl.controllers.car.mppi import GRIP, PathIntegral
from robo_rl.sim.drawing import ORANGE, SLATE, Line, Marker, Trail
from robo_rl.sim.plants.car.on_track import CarOnTrack, tightest
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CARD, CarCard
from robo_rl.sim.scenes.tracks import INNER, INSIDE, KNOTS, SHARPEST
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors, any_of

if TYPE_CHECKING:
    from robo_rl.sim.scenes.tracks.courses import Course

PERIOD = 0.025  # s: a scan of Hokuyo's UST-10LX
DELAY = (0.0, 0.025)  # s: up to one scan late
BEAMS = 64
TOP = 8.0  # m/s, the greatest speed that is commanded
AHEAD = tuple(0.5 * k for k in range(1, 17))  # m, along the centre line: what only the critic sees


TURNED = -0.8  # cosine of the angle to the track of a car that is turned round
SLOW = 2.5 / TOP  # of the greatest speed: an episode is long enough for a lap at this speed
LONGEST = 98.0  # m, in cars of F1TENTH's width: the longest track that is drawn


class CarRace(Task[CarOnTrack]):
    """A lap on an unseen track."""

    courses: Sequence[Course] = ()
    """The tracks (``robo_rl.sim.scenes.tracks.courses.read_course``); none: every episode has one that is drawn."""
    name = "car-race"
    summary = "drive a lap of an unseen track as fast as it goes, by lidar"
    card_type = CarCard
    algorithms = ("ppo",)
    measures = (Measure("contact_free_speed", "m/s", "mean", 0.0), Measure("lap_time", "s", "end", PERIOD))
    perturbed: tuple[str, ...] = ("friction", "stiffness", "steering_gain", "delay", "noise", "track/width")
    observation_size = BEAMS + 4
    action_size = 2
    goal_size = 1
    expected = 0.9
    # The end of a lap is worth 20 m of progress, or an episode that ends would seem a loss; a contact costs 400 m:
    # with 100 m, policies learn to drive at the limit of the best grip. About 1 in sum, for the critic's sake.
    weights = {"progress": 0.05, "lap": 1.0, "contact": -20.0, "steering_change": -0.0025, "speed_change": -0.0005}
    settings = {
        "ppo": {"updates": 260, "environments": 1024, "horizon": 24, "gamma": 0.99, "anneal": 0.5, "entropy": 0.0}
    }

    def __init__(self, card: CarCard | None = None) -> None:
        card = card or load_robot("f1tenth", CARD)
        self.card = card
        angle, (low, high) = card.lidar_angle, card.lidar_range
        self.scan = Scan(-0.5 * angle, angle / (BEAMS - 1), low, high)
        limit, rate, noise = card.steering_limit, card.gyroscope_range, card.lidar_noise
        top = min(TOP, card.speed_max)
        self.top, self.wide = top, card.body[1] / 0.31
        longest = max((course.length for course in self.courses), default=LONGEST * self.wide)
        if self.courses:
            self.perturbed = tuple(name for name in self.perturbed if name != "track/width")
        for course in self.courses:
            if course.width.min() < 1.2 * card.body[1]:
                raise ValueError(
                    f"the track '{course.name}' is {course.width.min():.2f} m wide at its narrowest; expected at least "
                    f"1.2 times the car's width, {1.2 * card.body[1]:.2f} m"
                )
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=max(40.0, math.ceil(longest / (SLOW * top))),
            signals=(
                Signal(
                    "scan", (), "m", "laser", 0.0, high + 10 * noise, noise=noise, delay=DELAY, shape=(BEAMS,),
                    layout=self.scan,
                ),
                # without noise: that of a car that stands is 0, again and again, and no frozen sensor
                Signal("wheel_speed", ("x",), "m/s", "body", (-30.0,), (30.0,), delay=DELAY),
                Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.02,), delay=DELAY),
            ),
            commands=(
                Command("steering_angle", ("steering",), "rad", "body", (-limit,), (limit,), safe=(0.0,)),
                Command("speed", ("drive",), "m/s", "body", (0.0,), (top,), safe=(0.0,)),
            ),
            memory=(StateBlock("last_command", (2,), (0.0, 0.0)),),
            safety=Safety(signal_timeout=0.1, on_fault="stop"),
            reward=dict(self.weights),
            ranges=self.ranges(),
            facts=self.facts(),
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        told = {**self.card.task_facts(), "success": {"laps": 1, "contact": "none"}}
        if self.courses:
            return told
        radius = tightest(self.card)
        corners = {
            "of_kinds_from": 1.0,
            "turn_max_rad": SHARPEST,
            "inner_radius_min_m": round(INNER * radius / (0.5 + INNER), 4),
            "curvature_max_per_m": round(1 / radius, 4),
        }
        return {**told, "track": {"bends": {"inner_radius_min_m": INSIDE}, "corners": corners}}

    def ranges(self) -> dict[str, Range]:
        """What differs between episodes. Physical ones are factors on the card's figures where no unit is given."""
        wide = self.wide
        drawn = {
            "track/shape": Range.fixed(0.0, 1.0, count=2 * KNOTS),
            "track/size": Range.fixed(8.0 * wide, 14.0 * wide, unit="m"),
            "track/width": Range.fixed(1.4 * wide, 4.5 * wide, unit="m"),
        }
        return {
            **({"track/choice": Range.fixed(0.0, 1.0)} if self.courses else drawn),
            "track/direction": Range.fixed(-1.0, 1.0),
            "initial/station": Range.fixed(0.0, 1.0, unit="× length"),
            "initial/offset": Range.fixed(-0.3, 0.3, unit="× width"),
            "initial/turn": Range.fixed(-0.2, 0.2, unit="rad"),
            "initial/speed": Range.fixed(0.0, min(3.0, 0.375 * self.top), unit="m/s"),
            "friction": Range.fixed(0.6, 1.05, unit="×"),
            "stiffness": Range.fixed(0.8, 1.5, unit="×"),
            "mass": Range.fixed(0.9, 1.2, unit="×"),
            "inertia": Range.fixed(0.8, 1.3, unit="×"),
            "acceleration": Range.fixed(0.7, 1.0, unit="×"),
            "motor_time": Range.fixed(0.5, 2.0, unit="×"),
            "steering_time": Range.fixed(0.5, 2.0, unit="×"),
            "steering_gain": Range.fixed(0.93, 1.07, unit="×"),
            "steering_offset": Range.fixed(-0.02, 0.02, unit="rad"),
            "speed_scale": Range.fixed(0.95, 1.05, unit="×"),
            "lidar/forward": Range.fixed(-0.01, 0.01, unit="m"),
            "lidar/yaw": Range.fixed(-0.0175, 0.0175, unit="rad"),
            "delay": Range.fixed(*DELAY, unit="s"),
            "noise": Range.fixed(0.5, 1.5, unit="×"),
            **({} if self.courses else {"track/kind": Range.fixed(0.0, 2.0)}),
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> CarOnTrack:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; cars on tracks are simulated on the cpu")
        return CarOnTrack(self.card, n, PERIOD, self.scan, BEAMS, AHEAD, self.courses)

    def controller(self) -> FollowTheGap:
        return FollowTheGap(self.card.facts(), self.scan, BEAMS, self.top)

    def controllers(self) -> tuple[PathIntegral]:
        return (self.path_integral(),)

    def path_integral(self, grip: float = GRIP) -> PathIntegral:
        """MPPI by the lidar, which uses a part of the card's friction."""
        card, forward = self.card, self.card.lidar_position[0]
        return PathIntegral(card.facts(), self.scan, BEAMS, self.top, PERIOD, card.speed_gain, forward, grip)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """There is none: (m, 1) zeros."""
        return torch.zeros_like(drawn["friction"])[:, None]

    def randomize(self, plant: CarOnTrack, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for name in ("friction", "mass", "inertia", "acceleration", "motor_time", "steering_time"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
        for name in ("front_stiffness", "rear_stiffness"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn["stiffness"]
        for name in ("steering_gain", "steering_offset", "speed_scale"):
            plant.param(name)[ids] = drawn[name]
        plant.param("lidar_forward")[ids] = plant.nominal.lidar_forward + drawn["lidar/forward"]
        plant.param("lidar_yaw")[ids] = drawn["lidar/yaw"]

    def place(self, plant: CarOnTrack, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for name in ("choice", "direction") if self.courses else ("kind", "shape", "size", "width", "direction"):
            plant.param(f"track_{name}")[ids] = drawn[f"track/{name}"]
        plant.refresh(ids)
        width = plant.tracks.width(ids, drawn["initial/station"] * plant.tracks.length[ids])
        if self.courses:
            plant.param("track_width")[ids] = width
        offset = drawn["initial/offset"] * torch.clamp(width - 1.5 * self.card.body[1], min=0.0)
        plant.put(ids, drawn["initial/station"], offset, drawn["initial/turn"], drawn["initial/speed"])

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None]}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        scan = signals["scan"] / self.wide
        return torch.cat(
            [
                scan / (scan + 2.0),
                signals["wheel_speed"] / self.top,
                0.3 * signals["yaw_rate"],
                memory["last_command"],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {
            "steering_angle": self.card.steering_limit * torch.tanh(action[:, :1]),
            "speed": self.top * torch.sigmoid(action[:, 1:] - 0.5),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        last = [commands["steering_angle"] / self.card.steering_limit, commands["speed"] / self.top]
        return {"last_command": torch.cat(last, -1)}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        turned = (commands["steering_angle"] - previous["steering_angle"]) / self.card.steering_limit
        change = (commands["speed"] - previous["speed"]) / self.top
        return {
            "progress": truth["moved"][:, 0],
            "lap": torch.where(self.succeeded(truth), 1.0, 0.0),
            "contact": torch.where(self.failed(truth), 1.0, 0.0),
            "steering_change": turned.square()[:, 0],
            "speed_change": change.square()[:, 0],
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The mean speed along the track (m/s), and the time of a lap at it (s)."""
        time = torch.clamp(truth["time"], min=PERIOD)
        speed = torch.clamp(truth["progress"] / time, min=0.01)
        return {"contact_free_speed": speed[:, 0], "lap_time": (truth["track_length"] / speed)[:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {
            "touches the wall": truth["clearance"][:, 0] <= 0.0,
            "drives backwards": (truth["progress"][:, 0] < -1.0) | (torch.cos(truth["direction"][:, 0]) < TURNED),
        }

    def succeeded(self, truth: Tensors) -> Any:
        return (truth["progress"] >= truth["track_length"])[:, 0]

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        factors = [
            getattr(parameters, name) / float(getattr(self.card, name)) - 1
            for name in ("friction", "front_stiffness", "mass", "acceleration")
        ]
        own = [parameters.steering_gain - 1, parameters.steering_offset, parameters.track_width / self.wide - 2]
        left = (truth["track_length"] - truth["progress"]) / self.wide
        scan = truth["scan"] / self.wide
        seen = [truth[name] for name in ("velocity", "yaw_rate", "steering", "drive", "offset", "direction")]
        return torch.cat(
            [
                scan / (scan + 2.0),
                *seen,
                truth["clearance"],
                truth["ahead"],
                torch.exp(-0.2 * torch.clamp(left, min=0.0)),
                torch.stack([*factors, *own], -1),
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        place = torch.cat([truth["position"], torch.full_like(truth["heading"], self.card.wheel_radius)], -1)
        walls = [
            Line(name.replace("_", " "), torch.cat([truth[name], truth[name][:, :1]], 1), SLATE)
            for name in ("left_wall", "right_wall")
        ]
        return [*walls, Trail("path", place, seconds=None, color=ORANGE)]
