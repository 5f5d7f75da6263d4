"""Practise on one track until the laps are fast: never set back by hand, from slow laps of other tracks.

As FastRLAP does with a real car (Stachowicz et al. 2023): ten decisions a second, by the lidar, the speed of the
wheels, the yaw rate, and where the next way-point is. A car that has touched a wall or is stuck is brought back by a
rule, which drives in reverse for a second (``robo_rl.sim.plants.car.practising``), at a price. There are no episodes
while a
car practises: the 12,000 decisions of a training, 20 minutes, are one. The reward is what the car could measure itself.

An evaluation is attended: an episode is a lap from standstill, and ends with the first contact. The tracks are those of
``car-race``; the range "track/number" says which. A class with ``courses`` practises on tracks that exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Scan, Signal, StateBlock
from robo_rl.controllers.car import FollowTheGap
from robo_rl.sim.drawing import ORANGE, SLATE, Line, Marker, Sphere, Trail
from robo_rl.sim.plants.car.practising import BACK, TURNS, PractisingCar
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CARD, CarCard
from robo_rl.sim.scenes.tracks import KNOTS
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors, any_of
from robo_rl.sim.tasks.scripted import Scripted

if TYPE_CHECKING:
    from robo_rl.sim.scenes.tracks.courses import Course

PERIOD = 0.1  # s (FastRLAP)
DECISIONS = 12_000  # of a practice: 20 minutes
DELAY = (0.0, 0.025)  # s: up to one scan late
BEAMS = 64
TOP = 6.0  # m/s, the greatest speed that is commanded
TIMID = 1.6  # m/s, the speed of what is demonstrated: 40 % of a lap by pure pursuit
SLOW = 0.8  # m/s: a lap that is slower, and 10 s late, is none
FAR = 100.0  # m


class CarPractice(Task[PractisingCar]):
    """Laps of one track."""

    courses: Sequence[Course] = ()
    """The tracks (``robo_rl.sim.scenes.tracks.courses.read_course``) in the order of their numbers; none: they are
    generated."""
    name = "car-practice"
    summary = "practise on one track without being set back, from slow laps of other tracks, by lidar"
    card_type = CarCard
    algorithms = ("sac", "bc")
    measures = (Measure("contact_free_speed", "m/s", "mean", 0.0), Measure("lap_time", "s", "end", PERIOD))
    perturbed: tuple[str, ...] = ("friction", "steering_gain", "delay", "noise", "track/width")
    observation_size = BEAMS + 7
    action_size = 2
    goal_size = 1
    expected = 0.8
    weights = {"advance": 0.2, "contact": -2.0, "stuck": -2.0, "steering_change": -0.01, "speed_change": -0.005}
    settings = {
        "sac": {
            "updates": 120, "steps": 100, "environments": 1, "gradient_steps": 4, "actor_every": 2, "batch": 128,
            "first": 200, "gamma": 0.97, "critics": 4, "initial_deviation": 0.25, "activation": "elu", "anneal": 0.4,
            "final_entropy": -1.5, "deviation_price": 1.0,
        }
    }  # fmt: skip

    def __init__(self, card: CarCard | None = None) -> None:
        card = card or load_robot("f1tenth", CARD)
        self.card = card
        angle, (low, high) = card.lidar_angle, card.lidar_range
        self.scan = Scan(-0.5 * angle, angle / (BEAMS - 1), low, high)
        limit, rate, noise = card.steering_limit, card.gyroscope_range, card.lidar_noise
        self.top, self.wide = min(TOP, card.speed_max), card.body[1] / 0.31
        if self.courses:
            self.perturbed = tuple(name for name in self.perturbed if name != "track/width")
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=DECISIONS * PERIOD,
            signals=(
                Signal(
                    "scan", (), "m", "laser", 0.0, high + 10 * noise, noise=noise, delay=DELAY, shape=(BEAMS,),
                    layout=self.scan,
                ),
                # without noise: that of a car that stands is 0, again and again, and no frozen sensor
                Signal("wheel_speed", ("x",), "m/s", "body", (-30.0,), (30.0,), delay=DELAY),
                Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.02,), delay=DELAY),
                Signal(
                    "waypoint_position", ("x", "y"), "m", "body", (-FAR, -FAR), (FAR, FAR), noise=(0.05, 0.05),
                    delay=DELAY,
                ),
            ),
            commands=(
                Command("steering_angle", ("steering",), "rad", "body", (-limit,), (limit,), safe=(0.0,)),
                Command("speed", ("drive",), "m/s", "body", (-BACK,), (self.top,), safe=(0.0,)),
            ),
            memory=(StateBlock("last_command", (2,), (0.0, 0.0)),),
            safety=Safety(signal_timeout=0.3, on_fault="stop"),
            reward=dict(self.weights),
            ranges=self.ranges(),
            rules=(Rule("attended", "survived", 2.0, -1.0, 1.0),),  # which never moves it: a practice is not attended
            facts=self.facts(),
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        told = self.card.task_facts()
        point = "the next of the points on the centre line about 4 m apart, that is 2 m ahead at least"
        waypoint = {"waypoint_position": point}
        return {**told, "references": {**told["references"], **waypoint}, "success": {"laps": 1, "contact": "none"}}

    def ranges(self) -> dict[str, Range]:
        """One car on one track. Physical ones are factors on the card's figures where no unit is given."""
        return {
            "attended": Range((0.0, 0.0), (1.0, 1.0)),
            "recovery": Range.fixed(1.0, 1.0),
            "recovery/steering": Range.fixed(-1.0, 1.0, count=TURNS, unit="× limit"),
            "track/number": Range.fixed(0.0, 0.0),
            **({} if self.courses else {"track/width": Range.fixed(2.0 * self.wide, 2.0 * self.wide, unit="m")}),
            "initial/station": Range.fixed(0.0, 1.0, unit="× length"),
            "initial/offset": Range.fixed(-0.3, 0.3, unit="× width"),
            "initial/turn": Range.fixed(-0.2, 0.2, unit="rad"),
            "friction": Range.fixed(1.0, 1.0, unit="×"),
            "steering_gain": Range.fixed(1.0, 1.0, unit="×"),
            "speed_scale": Range.fixed(1.0, 1.0, unit="×"),
            "delay": Range.fixed(*DELAY, unit="s"),
            "noise": Range.fixed(0.5, 1.5, unit="×"),
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> PractisingCar:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; cars on tracks are simulated on the cpu")
        return PractisingCar(self.card, n, PERIOD, self.scan, BEAMS, self.courses)

    # --- what is demonstrated -----------------------------------------------------------------------------------------

    def script(self, signals: Tensors, memory: Tensors) -> Any:
        """(n, 2) actions of a timid driver, who follows the gap."""
        driver = FollowTheGap(self.card.facts(), self.scan, BEAMS, TIMID)
        commands, _ = driver(signals, torch.zeros(len(signals["scan"]), 1))
        speed = 2.0 * (commands["speed"] + BACK) / (self.top + BACK) - 1.0
        return torch.cat([commands["steering_angle"] / self.card.steering_limit, speed], -1)

    def controller(self) -> Scripted:
        """The script, as part of the policy's own graph."""
        return Scripted(self, self.script)

    # --- the policy ---------------------------------------------------------------------------------------------------

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        scan, waypoint = signals["scan"] / self.wide, signals["waypoint_position"] / self.wide
        distance = torch.sqrt(waypoint.square().sum(-1, keepdim=True) + 0.01)
        return torch.cat(
            [
                scan / (scan + 2.0),
                signals["wheel_speed"] / self.top,
                0.3 * signals["yaw_rate"],
                waypoint / distance,
                0.2 * torch.clamp(distance, max=10.0),
                memory["last_command"],
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        cut = torch.clamp(action, -1.0, 1.0)
        return {
            "steering_angle": self.card.steering_limit * cut[:, :1],
            "speed": 0.5 * (self.top + BACK) * (cut[:, 1:] + 1.0) - BACK,
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        last = [commands["steering_angle"] / self.card.steering_limit, commands["speed"] / self.top]
        return {"last_command": torch.cat(last, -1)}

    # --- what is wanted -----------------------------------------------------------------------------------------------

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        turned = (commands["steering_angle"] - previous["steering_angle"]) / self.card.steering_limit
        change = (commands["speed"] - previous["speed"]) / self.top
        return {
            "advance": truth["advance"][:, 0],
            "contact": truth["contact"][:, 0],
            "stuck": truth["stuck"][:, 0],
            "steering_change": turned.square()[:, 0],
            "speed_change": change.square()[:, 0],
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The mean speed along the track (m/s), recoveries included, and the time of a lap at it (s)."""
        speed = torch.clamp(truth["progress"] / torch.clamp(truth["clock"], min=PERIOD), min=0.01)
        return {"contact_free_speed": speed[:, 0], "lap_time": (truth["track_length"] / speed)[:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        causes = {
            "contact": truth["contact"] > 0.5,
            "stuck": truth["stuck"] > 0.5,
            "drives backwards": truth["progress"] < -1.0,
            "too late": truth["clock"] > 10.0 + truth["track_length"] / SLOW,
        }
        attended = truth["attended"] > 0.5
        return {name: (found & attended)[:, 0] for name, found in causes.items()}

    def succeeded(self, truth: Tensors) -> Any:
        return ((truth["progress"] >= truth["track_length"]) & (truth["attended"] > 0.5))[:, 0]

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        seen = [truth[name] for name in ("velocity", "yaw_rate", "steering", "drive", "offset", "direction")]
        return torch.cat([*seen, truth["clearance"], truth["waypoint_position"]], -1)

    # --- how it begins ------------------------------------------------------------------------------------------------

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """There is none of an operator: (m, 1) zeros."""
        return torch.zeros_like(drawn["friction"])[:, None]

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None]}

    def randomize(self, plant: PractisingCar, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        plant.param("friction")[ids] = plant.nominal.friction * drawn["friction"]
        for name in ("steering_gain", "speed_scale", "recovery", "attended"):
            plant.param(name)[ids] = drawn[name]
        plant.param("recovery_steering")[ids] = drawn["recovery/steering"]

    def place(self, plant: PractisingCar, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        numbers = drawn["track/number"].floor().long().tolist()
        if self.courses:
            count = len(self.courses)
            plant.param("track_choice")[ids] = torch.tensor([(number % count + 0.5) / count for number in numbers])
        else:
            drawing = [np.random.default_rng(abs(number)).random(2 * KNOTS + 2) for number in numbers]
            track = torch.tensor(np.array(drawing).reshape(-1, 2 * KNOTS + 2), dtype=torch.float32)
            plant.param("track_shape")[ids] = track[:, 2:]
            plant.param("track_size")[ids] = self.wide * (8.0 + 6.0 * track[:, 0])
            plant.param("track_direction")[ids] = track[:, 1] - 0.5
            plant.param("track_width")[ids] = drawn["track/width"]
        plant.refresh(ids)
        width = plant.tracks.width(ids, drawn["initial/station"] * plant.tracks.length[ids])
        if self.courses:
            plant.param("track_width")[ids] = width
        offset = drawn["initial/offset"] * torch.clamp(width - 1.5 * self.card.body[1], min=0.0)
        zero = torch.zeros_like(offset)
        plant.put(ids, drawn["initial/station"], offset, drawn["initial/turn"], zero)

    def markers(self, truth: Tensors) -> list[Marker]:
        height = torch.full_like(truth["heading"], self.card.wheel_radius)
        cosine, sine = truth["heading"].cos(), truth["heading"].sin()
        x, y = truth["waypoint_position"].split(1, -1)
        goal = truth["position"] + torch.cat([cosine * x - sine * y, sine * x + cosine * y], -1)
        walls = [
            Line(name.replace("_", " "), torch.cat([truth[name], truth[name][:, :1]], 1), SLATE)
            for name in ("left_wall", "right_wall")
        ]
        return [
            *walls,
            Sphere("next way-point", torch.cat([goal, height], -1), 0.1 * self.wide),
            Trail("path", torch.cat([truth["position"], height], -1), seconds=None, color=ORANGE),
        ]
