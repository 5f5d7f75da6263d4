"""What tasks of a full-size car among others have in common: the car, roads and traffic, signals, commands, faults.

Every episode has a road and traffic of its own (``robo_rl.sim.scenes.lanes``). The policy commands the steering
angle and the speed,
as an Ackermann message does; its actions are a steering angle that the speed allows, and an acceleration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from robo_rl.contract import Command, Encoder, Safety, Signal, StateBlock
from robo_rl.controllers.car.traffic import LaneDriver
from robo_rl.sim.drawing import GREY, ORANGE, SLATE, Line, Marker, Trail
from robo_rl.sim.plants.car.in_lanes import CarInLanes
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CARD, CarCard
from robo_rl.sim.scenes.lanes import NEAREST, REACH, VEHICLE, WIDE
from robo_rl.sim.scenes.lanes.around import across_of
from robo_rl.sim.tasks import Spec, Task, Tensors

PERIOD = 0.1  # s
DELAY = (0.0, 0.1)  # s, of the speed and the yaw rate: up to one period
LIMIT = 13.9  # m/s: 50 km/h
TOP = 16.0  # m/s, the greatest speed that is commanded
GO, BRAKE = 2.5, 7.0  # m/s², the greatest accelerations that the network asks for
STEER = 0.35  # rad, the greatest steering angle at rest
SLACK = 2.23  # m/s above a wanted speed at which nothing is earned (CaRL: 5 mph)
CLOSE = 0.95  # s, a time to collision that is too short (nuPlan's metric)
ACCELERATION, LATERAL, JERK, TURN = (-4.05, 2.40), 4.89, 4.13, 0.95  # m/s², m/s², m/s³, rad/s: nuPlan's comfort
PLANE, SEEN = ("x", "y"), 100.0


class InLanes(Task[CarInLanes]):
    """A car among others; tasks say what it sees besides, what is rewarded and what ends an episode."""

    vehicles: ClassVar[int] = 31
    """Other vehicles in an environment, at most; up to 127."""
    card_type = CarCard
    algorithms = ("ppo",)
    action_size = 2
    encoders: tuple[Encoder, ...] = (Encoder("neighbours", (NEAREST, 9), "attention", (32, 32), 32),)

    def __init__(self, card: CarCard | None = None) -> None:
        card = card or load_robot("bmw320i", CARD)
        self.card = card
        self.top = min(TOP, card.speed_max)
        self.base, self.front = card.wheelbase, 0.5 * card.body[0]
        limit = card.steering_limit
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=90.0,
            signals=self.signals(),
            commands=(
                Command("steering_angle", ("steering",), "rad", "body", (-limit,), (limit,), safe=(0.0,)),
                Command("speed", ("drive",), "m/s", "body", (0.0,), (self.top,), safe=(0.0,)),
            ),
            memory=(StateBlock("last_command", (2,), (0.0, 0.0)), StateBlock("speed", (1,), (0.0,))),
            safety=Safety(signal_timeout=0.5, on_fault="stop"),
            reward=self.weights(),
            ranges=self.ranges(),
            facts=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        lidar = any(signal.name == "scan" for signal in self.signals())
        told = self.card.task_facts(lidar)
        lane = {
            "lane_offset": "of the centre of mass to the left of the middle of the lane that it is in",
            "lane_heading": "of the car from the lane's direction, to the left positive",
            "route": "points of the middle of the lane ahead, in the car's frame",
        }
        around = {
            "neighbour_position": "middles of the nearest vehicles in the car's frame, the nearest first; those behind "
            "count as half as far again; zeros where there is none",
            "neighbour_velocity": "less the car's own, in its frame",
            "neighbour_heading": "from the car's",
            "neighbour_valid": "1 where there is a vehicle within 80 m, else 0",
        }
        seen = {"scan": "ranges to other vehicles; nothing else is seen"} if lidar else around
        return {
            **told,
            "references": {**told["references"], **lane, **seen},
            "along_path_m": {"route": list(REACH)},
            "lane_width_m": WIDE,
            "neighbour_size_m": list(VEHICLE),
            "success": {"part_of_route": 1.0, "contact": "none", "on_road": "half of the car's width at least"},
        }

    @abstractmethod
    def signals(self) -> tuple[Signal, ...]:
        """All that the policy sees."""

    @abstractmethod
    def weights(self) -> dict[str, float]:
        """Of the reward's terms."""

    def own_signals(self) -> tuple[Signal, ...]:
        """The car's motion, and where it is in its lane."""
        rate = self.card.gyroscope_range
        return (
            Signal("wheel_speed", ("x",), "m/s", "body", (-60.0,), (60.0,), delay=DELAY),
            Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.01,), delay=DELAY),
            Signal("lane_offset", ("y",), "m", "lane", (-20.0,), (20.0,), noise=(0.05,)),
            Signal("lane_heading", ("z",), "rad", "lane", (-3.3,), (3.3,), noise=(0.01,)),
        )

    def route_signal(self) -> Signal:
        """Points of the lane ahead."""
        return Signal("route", PLANE, "m", "body", -SEEN, SEEN, shape=(len(REACH), 2))

    def neighbour_signals(self) -> tuple[Signal, ...]:
        """The nearest vehicles."""
        return (
            Signal("neighbour_position", PLANE, "m", "body", -SEEN, SEEN, noise=0.2, shape=(NEAREST, 2)),
            Signal("neighbour_velocity", PLANE, "m/s", "body", -SEEN, SEEN, noise=0.3, shape=(NEAREST, 2)),
            Signal("neighbour_heading", (), "rad", "body", -3.6, 3.6, noise=0.03, shape=(NEAREST,)),
            Signal("neighbour_valid", (), "1", "body", 0.0, 1.0, shape=(NEAREST,)),
        )

    def ranges(self) -> dict[str, Range]:
        """What differs between episodes. Physical ones are factors on the card's figures where no unit is given."""
        return {
            "road/seed": Range.fixed(0.0, 1.0, count=2),
            "road/lanes": Range.fixed(2.0, 4.99),
            "road/bends": Range.fixed(0.0, 1.0),
            "road/crossings": Range.fixed(0.0, 2.99),
            "traffic/seed": Range.fixed(0.0, 1.0, count=2),
            "traffic/density": Range.fixed(0.3, 1.0, unit="× vehicles"),
            "traffic/speed": Range.fixed(8.0, 14.0, unit="m/s"),
            "initial/offset": Range.fixed(-0.4, 0.4, unit="m"),
            "initial/turn": Range.fixed(-0.05, 0.05, unit="rad"),
            "initial/speed": Range.fixed(0.0, 10.0, unit="m/s"),
            "friction": Range.fixed(0.6, 1.0, unit="×"),
            "stiffness": Range.fixed(0.8, 1.2, unit="×"),
            "mass": Range.fixed(1.0, 1.4, unit="×"),
            "motor_time": Range.fixed(0.5, 2.0, unit="×"),
            "steering_time": Range.fixed(0.5, 2.0, unit="×"),
            "steering_gain": Range.fixed(0.95, 1.05, unit="×"),
            "steering_offset": Range.fixed(-0.005, 0.005, unit="rad"),
            "speed_scale": Range.fixed(0.97, 1.03, unit="×"),
            "delay": Range.fixed(*DELAY, unit="s"),
            "noise": Range.fixed(0.5, 1.5, unit="×"),
        }

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> CarInLanes:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; cars in lanes are simulated on the cpu")
        return CarInLanes(self.card, n, PERIOD, self.vehicles)

    def controller(self) -> LaneDriver | None:
        return LaneDriver(self.card.facts(), self.card.speed_gain, LIMIT, PERIOD)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """There is none: (m, 1) zeros."""
        return torch.zeros_like(drawn["friction"])[:, None]

    def randomize(self, plant: CarInLanes, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for name in ("friction", "mass", "motor_time", "steering_time"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
        plant.param("inertia")[ids] = plant.nominal.inertia * drawn["mass"]
        for name in ("front_stiffness", "rear_stiffness"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn["stiffness"]
        for name in ("steering_gain", "steering_offset", "speed_scale"):
            plant.param(name)[ids] = drawn[name]

    def place(self, plant: CarInLanes, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for name in ("seed", "lanes", "bends", "crossings"):
            plant.param(f"road_{name}")[ids] = drawn[f"road/{name}"]
        plant.refresh(ids)
        traffic = [drawn[f"traffic/{name}"] for name in ("seed", "density", "speed")]
        plant.put(ids, *traffic, *(drawn[f"initial/{name}"] for name in ("offset", "turn", "speed")))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"time": time[:, None]}

    def table(self, signals: Tensors) -> Any:
        """(n, 8, 9): where neighbours are, in the car's frame and across the lane, and how they move."""
        place, velocity = signals["neighbour_position"], signals["neighbour_velocity"]
        x, y, valid = place[:, :, 0], place[:, :, 1], signals["neighbour_valid"]
        columns = [
            x / 30.0,
            y / 5.0,
            across_of(signals)[0] / WIDE,
            velocity[:, :, 0] / 5.0,
            velocity[:, :, 1] / 5.0,
            torch.cos(signals["neighbour_heading"]),
            torch.sin(signals["neighbour_heading"]),
            torch.exp(-torch.sqrt(x * x + 4.0 * y * y) / 10.0),
            torch.ones_like(x),
        ]
        return torch.stack([valid * column for column in columns], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        """Steering within what the speed allows, about 5 m/s² across; the speed that an acceleration leads to."""
        speed = memory["speed"]
        ask = action[:, 1:]
        wanted = torch.where(ask > 0.0, GO * torch.tanh(ask), BRAKE * torch.tanh(ask * (GO / BRAKE)))
        return {
            "steering_angle": STEER / (1.0 + (speed / 7.0).square()) * torch.tanh(action[:, :1]),
            "speed": torch.clamp(speed + wanted / self.card.speed_gain, 0.0, self.top),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        speed = signals["wheel_speed"]
        steering = commands["steering_angle"] / STEER * (1.0 + (memory["speed"] / 7.0).square())
        asked = (commands["speed"] - memory["speed"]) * (self.card.speed_gain / GO)
        return {"last_command": torch.cat([steering, asked], -1), "speed": torch.clamp(speed, min=0.0)}

    def faults(self, truth: Tensors) -> Any:
        """(n, 1): the product of CaRL's factors for what no style of driving excuses."""
        drive, speed = truth["drive"], truth["velocity"][:, :1]
        factor = torch.where(truth["edge"] < 0.0, 0.0, 1.0)
        factor = factor * torch.where(truth["time_to_collision"] < CLOSE, 0.5, 1.0)
        factor = factor * torch.where(truth["astray"] > 3.0, 0.5, 1.0)
        rough = [
            (drive < ACCELERATION[0]) | (drive > ACCELERATION[1]),
            abs(speed * truth["yaw_rate"]) > LATERAL,
            abs(truth["jerk"]) > JERK,
            abs(truth["yaw_rate"]) > TURN,
        ]
        for fault in rough:
            factor = factor * torch.where(fault, 0.875, 1.0)
        return factor

    def off_road(self, truth: Tensors) -> Any:
        """(n, 1): half of the car's width beyond the road's edge, or back where the road begins."""
        return (truth["edge"] < -0.5 * self.card.body[1]) | (truth["station"] < 40.0)

    def succeeded(self, truth: Tensors) -> Any:
        return (truth["completion"] >= 1.0)[:, 0]

    def true_motion(self, truth: Tensors, parameters: Any) -> list[Any]:
        """Of the car and of those around it, (n, k) each, for critics."""
        position, velocity = truth["neighbour_position"], truth["neighbour_velocity"]
        closing = torch.clamp(truth["velocity"][:, :1] - truth["leader_speed"], min=0.0)
        braking = closing.square() / torch.clamp(truth["gap"], min=1.0)  # m/s², twice what avoids a collision
        return [
            truth["velocity"] / 10.0,
            truth["yaw_rate"],
            10.0 * truth["steering"],
            truth["drive"] / 3.0,
            truth["lane_offset"],
            4.0 * truth["lane_heading"],
            truth["edge"] / WIDE,
            truth["completion"],
            truth["progress"],
            truth["gap"] / 50.0,
            torch.exp(-torch.clamp(truth["gap"], min=0.0) / 15.0),
            truth["leader_speed"] / 10.0,
            truth["time_to_collision"] / 5.0,
            torch.clamp(braking, max=20.0) / 5.0,
            50.0 * truth["bend"],
            truth["astray"] / 3.0,
            truth["neighbour_valid"],
            position[:, :, 0] / 30.0,
            position[:, :, 1] / 5.0,
            velocity[:, :, 0] / 5.0,
            velocity[:, :, 1] / 5.0,
            truth["time"] / 90.0,
            torch.stack([parameters.friction, parameters.steering_gain], -1),
        ]

    def markers(self, truth: Tensors) -> list[Marker]:
        place = torch.cat([truth["position"], torch.full_like(truth["heading"], 0.5)], -1)
        marks = [
            Line("edge" if k == 0 else f"line {k}", truth["marks"][:, k], SLATE if k == 0 else GREY) for k in range(5)
        ]
        return [*marks, Trail("path", place, seconds=None, color=ORANGE)]
