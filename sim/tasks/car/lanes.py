"""Drive a route on a road with lanes, crossings, lights and other traffic, as far as it goes without a fault.

The policy sees its speed and yaw rate, its lane and the next 60 m of it, the next light, and the eight nearest
neighbours; it commands the steering angle and the speed, as an Ackermann message does. Every episode has a road and
traffic of its own (``sim.lanes``). It ends with the route (success); at the first contact, off the road, past a red
light, or beyond where the lanes part in another one than the route's, 60 m before its end (failure).

The reward is that of Jaeger et al. 2025 (CaRL: Learning scalable planning policies with simple rewards): the part of
the route that a step completed, times a factor for each fault that is not a failure, and less a little for a collision
and a red light. A class with ``additive`` has the usual kind instead, a sum of many terms: that of Zhang et al. 2021
(End-to-end urban driving by imitating a reinforcement learning coach, "Roach").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from controllers.traffic import LaneDriver
from robo_rl.contract import Command, Encoder, Safety, Signal, StateBlock
from sim.drawing import ORANGE, SLATE, STONE, Line, Marker, Sphere, Trail
from sim.lanes import FAR, NEAREST, REACH, WIDE
from sim.lanes.around import AROUND, across_of, around
from sim.plants.car_in_lanes import CarInLanes
from sim.ranges import Range
from sim.robots import load_robot
from sim.robots.car import CARD, CarCard
from sim.tasks import Measure, Spec, Task, Tensors

PERIOD = 0.1  # s
DELAY = (0.0, 0.1)  # s, of the speed and the yaw rate: up to one period
LIMIT = 13.9  # m/s: 50 km/h
TOP = 16.0  # m/s, the greatest speed that is commanded
GO, BRAKE = 2.5, 7.0  # m/s², the greatest accelerations that the network asks for
SLACK = 2.23  # m/s above the limit at which nothing is earned (CaRL: 5 mph)
CLOSE = 0.95  # s, a time to collision that is too short (nuPlan's metric)
ACCELERATION, LATERAL, JERK, TURN = (-4.05, 2.40), 4.89, 4.13, 0.95  # m/s², m/s², m/s³, rad/s: nuPlan's comfort
SUM = {"speed": 0.1, "position": -0.05, "rotation": -0.1, "action": -0.01, "end": -0.1}
RED, GREEN = (0.85, 0.1, 0.1, 1.0), (0.0, 0.65, 0.3, 1.0)


class CarLanes(Task):
    """A route in traffic."""

    additive: ClassVar[bool] = False
    """Whether the reward is a sum of terms instead of a product."""
    product: ClassVar[Mapping[str, float]] = {"route": 10.0, "terminal": -3.0}
    """Weights of the whole route, and of a collision or a red light."""
    elsewhere: ClassVar[float] = 0.4
    """Of what a way is worth, what each lane costs between the car and the middle of the route's."""
    vehicles: ClassVar[int] = 31
    """Other vehicles in an environment, at most; up to 127."""
    name = "car-lanes"
    summary = "drive a route among other cars, with lanes, crossings and lights"
    card_type = CarCard
    algorithms = ("ppo",)
    measures = (Measure("driving_score", "1", "end", PERIOD, failed=0.6), Measure("trip_time", "s", "end", PERIOD))
    perturbed = ("traffic/density", "traffic/speed", "road/bends", "friction", "noise")
    observation_size = 18 + len(REACH) + AROUND
    action_size = 2
    goal_size = 1
    encoders = (Encoder("neighbours", (NEAREST, 9), "attention", (32, 32), 32),)
    expected = 0.55
    settings = {
        "ppo": {
            "updates": 160, "environments": 512, "horizon": 64, "epochs": 3, "mini_batches": 8, "gamma": 0.995,
            "anneal": 0.6, "entropy": 0.001, "desired_kl": 0.01, "activation": "elu",
        }
    }  # fmt: skip

    def __init__(self, card: CarCard | None = None) -> None:
        card = card or load_robot("bmw320i", CARD)
        self.card = card
        limit, rate = card.steering_limit, card.gyroscope_range
        self.top = min(TOP, card.speed_max)
        self.base, self.front = card.wheelbase, 0.5 * card.body[0]
        plane, far = ("x", "y"), 100.0
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=90.0,
            signals=(
                Signal("wheel_speed", ("x",), "m/s", "body", (-60.0,), (60.0,), delay=DELAY),
                Signal("yaw_rate", ("z",), "rad/s", "body", (-rate,), (rate,), noise=(0.01,), delay=DELAY),
                Signal("lane_offset", ("y",), "m", "lane", (-20.0,), (20.0,), noise=(0.05,)),
                Signal("lane_heading", ("z",), "rad", "lane", (-3.3,), (3.3,), noise=(0.01,)),
                Signal("lane_count", ("left", "right", "route"), "1", "lane", (0.0, 0.0, -3.0), (3.0, 3.0, 3.0)),
                Signal("route", plane, "m", "body", -far, far, shape=(len(REACH), 2)),
                Signal("route_left", ("x",), "m", "lane", (-50.0,), (500.0,)),
                Signal("light_distance", ("x",), "m", "lane", (-5.0,), (FAR,)),
                Signal("light_state", ("red", "yellow"), "1", "lane", (0.0, 0.0), (1.0, 1.0)),
                Signal("neighbour_position", plane, "m", "body", -far, far, noise=0.2, shape=(NEAREST, 2)),
                Signal("neighbour_velocity", plane, "m/s", "body", -far, far, noise=0.3, shape=(NEAREST, 2)),
                Signal("neighbour_heading", (), "rad", "body", -3.6, 3.6, noise=0.03, shape=(NEAREST,)),
                Signal("neighbour_valid", (), "1", "body", 0.0, 1.0, shape=(NEAREST,)),
            ),
            commands=(
                Command("steering_angle", ("steering",), "rad", "body", (-limit,), (limit,), safe=(0.0,)),
                Command("speed", ("drive",), "m/s", "body", (0.0,), (self.top,), safe=(0.0,)),
            ),
            memory=(StateBlock("last_command", (2,), (0.0, 0.0)), StateBlock("speed", (1,), (0.0,))),
            safety=Safety(signal_timeout=0.5, on_fault="stop"),
            reward=dict(SUM if self.additive else self.product),
            ranges=self.ranges(),
        )  # fmt: skip

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

    def controller(self) -> LaneDriver:
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

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        speed, offset, turn = signals["wheel_speed"], signals["lane_offset"], signals["lane_heading"]
        light, left, state = signals["light_distance"], signals["route_left"], signals["light_state"]
        needed = speed * speed / (2.0 * torch.clamp(light + 2.0, min=1.0))  # m/s², to stop at the line
        bends = [4.0 * signals["route"][:, k, 1:] / reach for k, reach in enumerate(REACH)]
        vector = [
            speed / 10.0,
            2.0 * signals["yaw_rate"],
            0.5 * offset,
            4.0 * turn,
            0.5 * signals["lane_count"],
            torch.exp(-torch.clamp(left, min=0.0) / 60.0),
            left / 200.0,
            torch.exp(-torch.clamp(light, min=0.0) / 20.0),
            light / 50.0,
            0.3 * torch.clamp(needed, max=12.0) * torch.clamp(state[:, :1] + state[:, 1:], max=1.0),
            state,
            memory["last_command"],
            torch.clamp(speed - LIMIT, -2.0, 2.0),
            signals["lane_count"][:, 2:] * torch.exp(-torch.clamp(left, min=0.0) / 60.0),
            *bends,
            around(signals, speed, self.front),
        ]
        return {"policy": torch.cat(vector, -1), "neighbours": self._table(signals)}

    def _table(self, signals: Tensors) -> Any:
        """(n, 8, 9): where neighbours are, in the car's frame and across the lane, and how they move."""
        place, velocity = signals["neighbour_position"], signals["neighbour_velocity"]
        x, y, valid = place[:, :, 0], place[:, :, 1], signals["neighbour_valid"]
        columns = [
            x / 30.0,
            y / 5.0,
            across_of(signals) / WIDE,
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
            "steering_angle": 0.35 / (1.0 + (speed / 7.0).square()) * torch.tanh(action[:, :1]),
            "speed": torch.clamp(speed + wanted / self.card.speed_gain, 0.0, self.top),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        speed = signals["wheel_speed"]
        steering = commands["steering_angle"] / 0.35 * (1.0 + (memory["speed"] / 7.0).square())
        asked = (commands["speed"] - memory["speed"]) * (self.card.speed_gain / GO)
        return {"last_command": torch.cat([steering, asked], -1), "speed": torch.clamp(speed, min=0.0)}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        if self.additive:
            return self._sum(truth, commands, previous)
        return {
            "route": (truth["gained"] * self._factor(truth))[:, 0],
            "terminal": torch.where(self.failed(truth), 1.0, 0.0),
        }

    def _factor(self, truth: Tensors) -> Any:
        """(n, 1): what completing a part of the route is worth."""
        velocity, drive = truth["velocity"], truth["drive"]
        speed = velocity[:, :1]
        factor = torch.clamp(1.0 - (speed - LIMIT) / SLACK, 0.0, 1.0)
        factor = factor * torch.where(truth["edge"] < 0.0, 0.0, 1.0)
        factor = factor * torch.where(truth["time_to_collision"] < CLOSE, 0.5, 1.0)
        factor = factor * torch.where(truth["astray"] > 3.0, 0.5, 1.0)
        factor = factor * torch.clamp(1.0 - self.elsewhere * self._beside(truth), 0.25, 1.0)
        rough = [
            (drive < ACCELERATION[0]) | (drive > ACCELERATION[1]),
            abs(speed * truth["yaw_rate"]) > LATERAL,
            abs(truth["jerk"]) > JERK,
            abs(truth["yaw_rate"]) > TURN,
        ]
        for fault in rough:
            factor = factor * torch.where(fault, 0.875, 1.0)
        return factor

    def _beside(self, truth: Tensors) -> Any:
        """(n, 1): how many lanes it is from the middle of the route's."""
        return abs(truth["lane_offset"] / WIDE - truth["lane_count"][:, 2:])

    def _sum(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        speed = truth["velocity"][:, :1]
        state = truth["light_state"]
        red = torch.clamp(state[:, :1] + state[:, 1:], max=1.0)
        clear = torch.minimum(truth["gap"], torch.where(red > 0.5, truth["light_distance"], FAR))
        desired = LIMIT * torch.clamp((clear - 2.0) / 20.0, 0.0, 1.0)
        turned = abs(commands["steering_angle"] - previous["steering_angle"]) > 0.01
        over = self.failed(truth)
        return {
            "speed": (1.0 - abs(speed - desired) / LIMIT)[:, 0],
            "position": torch.clamp(self._beside(truth), max=2.0)[:, 0],
            "rotation": abs(truth["lane_heading"])[:, 0],
            "action": torch.where(turned, 1.0, 0.0)[:, 0],
            "end": torch.where(over, 10.0 + speed[:, 0], 0.0),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The part of the route that was completed, and the time (s)."""
        return {"driving_score": truth["progress"][:, 0], "trip_time": truth["time"][:, 0]}

    def failed(self, truth: Tensors) -> Any:
        stray = (truth["edge"] < -0.5 * self.card.body[1]) | (truth["station"] < 40.0)
        missed = (truth["route_left"] <= 0.0) & (self._beside(truth) > 0.65)
        return ((truth["collision"] > 0.5) | (truth["red_run"] > 0.5) | stray | missed)[:, 0]

    def succeeded(self, truth: Tensors) -> Any:
        return (truth["completion"] >= 1.0)[:, 0]

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        position, velocity = truth["neighbour_position"], truth["neighbour_velocity"]
        closing = torch.clamp(truth["velocity"][:, :1] - truth["leader_speed"], min=0.0)
        braking = closing.square() / torch.clamp(truth["gap"], min=1.0)  # m/s², twice what avoids a collision
        rows = [truth["neighbour_valid"], position[:, :, 0] / 30.0, position[:, :, 1] / 5.0]
        rows += [velocity[:, :, 0] / 5.0, velocity[:, :, 1] / 5.0]
        change, state = truth["light_change"] / 20.0, truth["light_state"]
        light = truth["light_distance"]
        return torch.cat(
            [
                truth["velocity"] / 10.0,
                truth["yaw_rate"],
                10.0 * truth["steering"],
                truth["drive"] / 3.0,
                truth["lane_offset"],
                4.0 * truth["lane_heading"],
                0.5 * truth["lane_count"],
                truth["edge"] / WIDE,
                truth["completion"],
                truth["progress"],
                torch.exp(-torch.clamp(truth["route_left"], min=0.0) / 50.0),
                light / 50.0,
                torch.exp(-torch.clamp(light, min=0.0) / 20.0),
                state,
                change * state[:, :1],
                change * (1.0 - state[:, :1]),
                truth["gap"] / 50.0,
                torch.exp(-torch.clamp(truth["gap"], min=0.0) / 15.0),
                truth["leader_speed"] / 10.0,
                truth["time_to_collision"] / 5.0,
                torch.clamp(braking, max=20.0) / 5.0,
                50.0 * truth["bend"],
                truth["astray"] / 3.0,
                *rows,
                truth["time"] / 90.0,
                torch.stack([parameters.friction, parameters.steering_gain], -1),
                around(truth, truth["velocity"][:, :1], self.front),
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        place = torch.cat([truth["position"], torch.full_like(truth["heading"], 0.5)], -1)
        marks = [
            Line("edge" if k == 0 else f"line {k}", truth["marks"][:, k], SLATE if k == 0 else STONE) for k in range(5)
        ]
        light = torch.cat([truth["light_place"], torch.full_like(truth["heading"], 3.0)], -1)
        there, red = truth["light_distance"] < FAR, truth["light_state"][:, :1] > 0.5
        lights = [
            Sphere(name, torch.where(on, light, float("nan")), 0.7, color)
            for name, on, color in (("red light", there & red, RED), ("green light", there & ~red, GREEN))
        ]
        return [*marks, *lights, Trail("path", place, seconds=None, color=ORANGE)]
