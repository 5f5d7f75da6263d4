"""Drive a route on a road with lanes, crossings, lights and other traffic, as far as it goes without a fault.

The policy sees its speed and yaw rate, its lane and the next 60 m of it, the next light, and the eight nearest
neighbours; it commands the steering angle and the speed, as an Ackermann message does. Every episode has a road and
traffic of its own (``robo_rl.sim.scenes.lanes``). It ends with the route (success); at the first contact, off the
road, past a red
light, or beyond where the lanes part in another one than the route's, 60 m before its end (failure).

The reward is that of Jaeger et al. 2025 (CaRL: Learning scalable planning policies with simple rewards): the part of
the route that a step completed, times a factor for each fault that is not a failure, and less a little for a collision
and a red light. A class with ``additive`` has the usual kind instead, a sum of many terms: that of Zhang et al. 2021
(End-to-end urban driving by imitating a reinforcement learning coach, "Roach").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from robo_rl.contract import Signal, StateBlock
from robo_rl.sim.drawing import Marker, Sphere
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.scenes.lanes import FAR, REACH, WIDE
from robo_rl.sim.scenes.lanes.around import AROUND, around
from robo_rl.sim.scenes.lanes.guard import BEFORE, FORESIGHT, YELLOW, Guard, yellow_age
from robo_rl.sim.tasks import Measure, Tensors, any_of
from robo_rl.sim.tasks.car.in_lanes import LIMIT, PERIOD, SLACK, STEER, InLanes

SUM = {"speed": 0.1, "position": -0.05, "rotation": -0.1, "action": -0.01, "end": -0.1}
RED, GREEN = (0.85, 0.1, 0.1, 1.0), (0.0, 0.65, 0.3, 1.0)


class CarLanes(InLanes):
    """A route in traffic."""

    additive: ClassVar[bool] = False
    """Whether the reward is a sum of terms instead of a product."""
    product: ClassVar[Mapping[str, float]] = {"route": 10.0, "terminal": -3.0}
    """Weights of the whole route, and of a collision or a red light."""
    elsewhere: ClassVar[float] = 0.4
    """Of what a way is worth, what each lane costs between the car and the middle of the route's."""
    name = "car-lanes"
    summary = "drive a route among other cars, with lanes, crossings and lights"
    measures = (Measure("driving_score", "1", "end", PERIOD, failed=0.6), Measure("trip_time", "s", "end", PERIOD))
    perturbed = ("traffic/density", "traffic/speed", "road/bends", "friction", "noise")
    observation_size = 25 + len(REACH) + AROUND
    goal_size = 1
    expected = 0.9
    settings = {
        "ppo": {
            "updates": 160, "environments": 512, "horizon": 64, "epochs": 3, "mini_batches": 8, "gamma": 0.995,
            "anneal": 0.6, "entropy": 0.001, "desired_kl": 0.01, "activation": "elu",
        }
    }  # fmt: skip

    def __init__(self, card: CarCard | None = None) -> None:
        super().__init__(card)
        card = self.card
        self.guard = Guard(self.front, self.base, card.rear_axle, card.steering_limit, self.top)
        more = (
            StateBlock("yellow", (1,), (0.0,)),
            StateBlock("steering_bounds", (2,), (0.0, 0.0)),
            StateBlock("speed_bound", (1,), (self.top,)),
        )
        self.spec = dataclasses.replace(self.spec, memory=(*self.spec.memory, *more))

    def facts(self) -> dict[str, Any]:
        told = super().facts()
        more = {
            "lane_count": "lanes to the left, lanes to the right, and from its lane to the route's last, left positive",
            "route_left": "along the road to where only the route's own lane leads on; about -60 at the end",
            "light_distance": "from the car's front to the next stop line; 100 where there is none",
            "light_state": "1 where that light is red, and where it is yellow; both 0: green",
        }
        return {**told, "references": {**told["references"], **more}, "yellow_s": YELLOW,
                "success": {**told["success"], "red_lights": "none passed"}}  # fmt: skip

    def signals(self) -> tuple[Signal, ...]:
        return (
            *self.own_signals(),
            Signal("lane_count", ("left", "right", "route"), "1", "lane", (0.0, 0.0, -3.0), (3.0, 3.0, 3.0)),
            self.route_signal(),
            Signal("route_left", ("x",), "m", "lane", (-65.0,), (500.0,)),
            Signal("light_distance", ("x",), "m", "lane", (-5.0,), (FAR,)),
            Signal("light_state", ("red", "yellow"), "1", "lane", (0.0, 0.0), (1.0, 1.0)),
            *self.neighbour_signals(),
        )

    def weights(self) -> dict[str, float]:
        return dict(SUM if self.additive else self.product)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        speed, offset, turn = signals["wheel_speed"], signals["lane_offset"], signals["lane_heading"]
        light, left, state = signals["light_distance"], signals["route_left"], signals["light_state"]
        bounds = self.guard.bounds(signals, memory["yellow"])
        needed = speed * speed / (2.0 * torch.clamp(light - BEFORE, min=0.5))  # m/s², to stop before the line
        slow = 1.0 + (torch.clamp(speed, min=0.0) / 7.0).square()
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
            state[:, 1:] * (1.0 - memory["yellow"] / YELLOW),
            bounds.stop,
            bounds.taken,
            torch.clamp(bounds.steering * slow / STEER, -2.0, 2.0),
            torch.clamp(bounds.speed - speed, -4.0, 4.0),
            memory["last_command"],
            torch.clamp(speed - LIMIT, -2.0, 2.0),
            signals["lane_count"][:, 2:] * torch.exp(-torch.clamp(left, min=0.0) / 60.0),
            *bends,
            around(signals, speed, self.front, FORESIGHT),
        ]
        return {"policy": torch.cat(vector, -1), "neighbours": self.table(signals)}

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        """What the network asks for, within the bounds of ``robo_rl.sim.scenes.lanes.guard``."""
        asked, (least, most) = super().command(action, memory), memory["steering_bounds"].split(1, 1)
        return {
            "steering_angle": torch.minimum(torch.maximum(asked["steering_angle"], least), most),
            "speed": torch.minimum(asked["speed"], memory["speed_bound"]),
        }

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        bounds = self.guard.bounds(signals, memory["yellow"])
        return {
            **super().remember(memory, signals, commands),
            "yellow": yellow_age(signals, memory["yellow"], PERIOD),
            "steering_bounds": bounds.steering,
            "speed_bound": bounds.speed,
        }

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        if self.additive:
            return self._sum(truth, commands, previous)
        return {
            "route": (truth["gained"] * self._factor(truth))[:, 0],
            "terminal": torch.where(self.failed(truth), 1.0, 0.0),
        }

    def _factor(self, truth: Tensors) -> Any:
        """(n, 1): what completing a part of the route is worth."""
        legal = torch.clamp(1.0 - (truth["velocity"][:, :1] - LIMIT) / SLACK, 0.0, 1.0)
        elsewhere = torch.clamp(1.0 - self.elsewhere * self._beside(truth), 0.25, 1.0)
        return legal * elsewhere * self.faults(truth)

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
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        missed = (truth["route_left"] <= 0.0) & (self._beside(truth) > 0.65)
        return {
            "collision": truth["collision"][:, 0] > 0.5,
            "runs a red light": truth["red_run"][:, 0] > 0.5,
            "off the road": self.off_road(truth)[:, 0],
            "misses the route": missed[:, 0],
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        change, state = truth["light_change"] / 20.0, truth["light_state"]
        light = truth["light_distance"]
        return torch.cat(
            [
                *self.true_motion(truth, parameters),
                0.5 * truth["lane_count"],
                torch.exp(-torch.clamp(truth["route_left"], min=0.0) / 50.0),
                light / 50.0,
                torch.exp(-torch.clamp(light, min=0.0) / 20.0),
                state,
                change * state[:, :1],
                change * (1.0 - state[:, :1]),
                around(truth, truth["velocity"][:, :1], self.front),
            ],
            -1,
        )

    def markers(self, truth: Tensors) -> list[Marker]:
        light = torch.cat([truth["light_place"], torch.full_like(truth["heading"], 3.0)], -1)
        there, red = truth["light_distance"] < FAR, truth["light_state"][:, :1] > 0.5
        lights = [
            Sphere(name, torch.where(on, light, float("nan")), 0.7, color)
            for name, on, color in (("red light", there & red, RED), ("green light", there & ~red, GREEN))
        ]
        return [*super().markers(truth), *lights]
