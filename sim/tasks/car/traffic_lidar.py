"""Drive among other cars in a style, by a lidar: ``car-traffic`` for a car that is told of no neighbour.

A policy of ``car-traffic`` teaches it (``robo-rl distill``): the teacher is told where the nearest vehicles are and how
fast they drive, the student gets the scan of a lidar on the roof. Of a scan, the policy's graph finds how far it is to
the next vehicle ahead and behind in three lanes and to the side (``robo_rl.sim.scenes.lanes.beams``); it remembers
these gaps of the
last five steps, as they tell how fast others drive. The scan goes through convolutions, too.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Encoder, Scan, Signal, StateBlock
from robo_rl.sim.plants.car.in_lanes import CarInLanes
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.scenes.lanes import FAR, REACH
from robo_rl.sim.scenes.lanes.beams import CLEAR, GAPS, gaps
from robo_rl.sim.scenes.lanes.gains import Lane
from robo_rl.sim.scenes.tracks import Lidar
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.tasks.car.in_lanes import BRAKE, DELAY, GO, PERIOD, STEER
from robo_rl.sim.tasks.car.traffic import CarTraffic

BEAMS = 180
PAST = 5  # steps whose gaps are remembered
NEAR = 15.0  # m, over which the nearness that the network sees falls to 37 %
SURE = 0.98  # of the greatest steering or acceleration: more is asked of no student


class CarTrafficLidar(CarTraffic):
    """A route among others, in a style, by lidar."""

    name = "car-traffic-lidar"
    summary = "drive among other cars in a style that the operator sets, by lidar"
    student = None
    observation_size = 17 + len(REACH) + (1 + 2) * GAPS
    encoders = (Encoder("beams", (BEAMS,), "convolution", (8, 16), 32),)
    settings = {
        "distilled": {
            "hidden": (128, 128), "activation": "elu", "environments": 128, "mixed": 8, "learning_rate": 1e-3,
            "teacher_part": 0.3,
        }
    }  # fmt: skip

    def __init__(self, card: CarCard | None = None) -> None:
        super().__init__(card)
        clear = (CLEAR,) * (PAST * GAPS)
        self.spec = dataclasses.replace(
            self.spec, memory=(*self.spec.memory, StateBlock("past_gaps", (PAST, GAPS), clear))
        )

    @property
    def layout(self) -> Scan:
        """The angles and ranges of the lidar."""
        angle, (low, high) = self.card.lidar_angle, self.card.lidar_range
        return Scan(-0.5 * angle, angle / (BEAMS - 1), low, high)

    def signals(self) -> tuple[Signal, ...]:
        layout, noise = self.layout, self.card.lidar_noise
        scan = Signal(
            "scan", (), "m", "laser", 0.0, layout.range_max + 10 * noise, noise=noise, delay=DELAY, shape=(BEAMS,),
            layout=layout,
        )  # fmt: skip
        return (*self.own_signals(), *self.lane_signals(), *self.style_signals(), scan)

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> CarInLanes:
        if torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; cars in lanes are simulated on the cpu")
        layout = self.layout
        lidar = Lidar(BEAMS, layout.angle_min, layout.angle_increment, layout.range_min, layout.range_max)
        return CarInLanes(self.card, n, PERIOD, self.vehicles, lidar)

    def controller(self) -> None:
        """None: IDM and MOBIL need neighbours."""
        return None

    def find_gaps(self, signals: Tensors) -> Any:
        """(n, GAPS) m: see ``robo_rl.sim.scenes.lanes.beams``."""
        return gaps(signals["scan"], self.layout, signals, self.card.lidar_position[0], self.front)

    def lanes_of(self, gap: Any, rate: Any, speed: Any) -> list[Lane]:
        """Who is in the car's lane, to the left and to the right: by gaps (n, GAPS) m and how fast they grow (m/s)."""
        found = []
        for k in (2, 4, 0):
            ahead, behind = gap[:, k : k + 1], gap[:, k + 1 : k + 2]
            leader, follower = speed + rate[:, k : k + 1], speed - rate[:, k + 1 : k + 2]
            found.append(
                Lane(
                    torch.where(ahead < CLEAR, ahead, FAR),
                    torch.clamp(leader, min=0.0),
                    torch.where(behind < CLEAR, behind, FAR),
                    torch.clamp(follower, min=0.0),
                )
            )
        return found

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        now, past = self.find_gaps(signals), memory["past_gaps"]
        rates = []
        for steps in (2, PAST):
            then = past[:, steps - 1]
            known = (now < CLEAR) & (then < CLEAR)
            rates.append(torch.where(known, torch.clamp((now - then) / (steps * PERIOD), -12.0, 12.0), 0.0))
        lanes = self.lanes_of(now, rates[0], signals["wheel_speed"])
        vector = [*self.seen(signals, memory, lanes), torch.exp(-now / NEAR), *(rate / 5.0 for rate in rates)]
        return {"policy": torch.cat(vector, -1), "beams": torch.exp(-signals["scan"] / NEAR)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        past = torch.cat([self.find_gaps(signals)[:, None], memory["past_gaps"][:, : PAST - 1]], 1)
        return {**super().remember(memory, signals, commands), "past_gaps": past}

    # --- what a teacher of car-traffic gives ----------------------------------------------------------------------

    def beside(self, teacher: Task) -> Task:
        """With the teacher's signals too."""
        both = copy.copy(self)
        known = {signal.name for signal in self.spec.signals}
        more = tuple(signal for signal in teacher.spec.signals if signal.name not in known)
        both.spec = dataclasses.replace(self.spec, signals=(*self.spec.signals, *more))
        return both

    def imitated(self, commands: Mapping[str, Tensor], signals: Tensors, memory: Tensors) -> Tensor:
        """The actions whose commands these are."""
        speed = memory["speed"]
        steering = commands["steering_angle"] / STEER * (1.0 + (speed / 7.0).square())
        wanted = (commands["speed"] - speed) * self.card.speed_gain
        asked = torch.where(wanted > 0.0, wanted / GO, wanted / BRAKE).clamp(-SURE, SURE).atanh()
        return torch.cat(
            [steering.clamp(-SURE, SURE).atanh(), torch.where(wanted > 0.0, asked, asked * (BRAKE / GO))], -1
        )
