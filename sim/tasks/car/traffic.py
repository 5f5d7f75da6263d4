"""Drive among other cars in a style that the operator sets, from timid to bold, while the car drives.

The style is three numbers: the time gap to the vehicle ahead that is kept at least, the speed that is wanted, and the
advantage from which on a change of lanes is wanted: the time gap and the desired speed of the intelligent driver model,
and the threshold of MOBIL (``robo_rl.controllers.car.traffic``). Roads and traffic are those of car-lanes, without
crossings, and
every lane leads to the end of the route (success). An episode ends at the first contact or off the road (failure).
Every episode has a style of its own.

The reward is the part of the route that a step completed, times a factor for each of the style's wishes that is not met
and for each of CaRL's faults (``InLanes.faults``), less what a failure and, a little, each change of lanes cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Signal
from robo_rl.controllers.car.traffic import StyledDriver
from robo_rl.sim.ranges import Range
from robo_rl.sim.scenes.lanes import REACH
from robo_rl.sim.scenes.lanes.around import AROUND, around
from robo_rl.sim.scenes.lanes.gains import Lane, gains, lanes_of
from robo_rl.sim.tasks import Measure, Tensors, any_of
from robo_rl.sim.tasks.car.in_lanes import LIMIT, PERIOD, SLACK, InLanes

STYLE = {
    "time_gap_setpoint": (0.8, 2.4, "s"),  # Treiber's IDM has 1.5; drivers of this traffic 1.0 to 1.8
    "speed_setpoint": (8.0, LIMIT, "m/s"),
    "advantage_setpoint": (0.1, 2.0, "m/s^2"),  # MOBIL's authors have 0.1
}
"""Signals of the operator: least and greatest value in training, unit."""
TIMID, BOLD = (2.4, 8.0, 2.0), (0.8, LIMIT, 0.1)
STANDSTILL = 2.0  # m, between standing vehicles, as IDM's
ROUTE = 300.0  # m
MISSED = 0.4  # the most that is lost while a change of lanes is wanted, 1 m/s² more than the style asks for
FORESIGHT = 1.0  # s
FREE = 6.0  # s, that a time gap counts as at most in the measure


class CarTraffic(InLanes):
    """A route among others, in a style."""

    name = "car-traffic"
    student: str | None = "car-traffic-lidar"
    summary = "drive among other cars in a style that the operator sets, from timid to bold"
    measures = (
        Measure("driving_score", "1", "end", PERIOD, failed=0.6),
        Measure("time_gap", "s", "mean", 0.0),
        Measure("lane_changes", "1/km", "end", PERIOD),
        Measure("trip_time", "s", "end", PERIOD),
    )
    perturbed = ("style/time_gap", "style/speed", "style/advantage", "traffic/density", "friction", "noise")
    observation_size = 17 + len(REACH) + AROUND
    goal_size = len(STYLE)
    expected = 0.8
    settings = {
        "ppo": {
            "updates": 100, "environments": 512, "horizon": 64, "epochs": 3, "mini_batches": 8, "gamma": 0.995,
            "anneal": 0.6, "entropy": 0.001, "desired_kl": 0.01, "activation": "elu",
        }
    }  # fmt: skip

    def signals(self) -> tuple[Signal, ...]:
        return (*self.own_signals(), *self.lane_signals(), *self.style_signals(), *self.neighbour_signals())

    def facts(self) -> dict[str, Any]:
        told = super().facts()
        more = {
            "lanes_beside": "lanes to the left and to the right of the car's",
            "time_gap_setpoint": "to the vehicle ahead, kept at least",
            "speed_setpoint": "wanted on a free road",
            "advantage_setpoint": "gain of acceleration from which on a change of lanes is wanted",
        }
        return {**told, "references": {**told["references"], **more}}

    def lane_signals(self) -> tuple[Signal, ...]:
        """Lanes beside the car's, and its lane ahead."""
        return (
            Signal("lanes_beside", ("left", "right"), "1", "lane", (0.0, 0.0), (3.0, 3.0)),
            self.route_signal(),
        )

    def style_signals(self) -> tuple[Signal, ...]:
        """What the operator sets."""
        return tuple(
            Signal(name, ("x",), unit, "operator", (0.5 * low,), (2.0 * high,), source="operator")
            for name, (low, high, unit) in STYLE.items()
        )

    def weights(self) -> dict[str, float]:
        return {"route": 10.0, "lane_change": -0.1, "terminal": -5.0}

    def ranges(self) -> dict[str, Range]:
        style = {
            f"style/{name.removesuffix('_setpoint')}": Range.fixed(low, high, unit=unit)
            for name, (low, high, unit) in STYLE.items()
        }
        return {**super().ranges(), "road/crossings": Range.fixed(0.0, 0.0), **style}

    def controller(self) -> StyledDriver | None:
        return StyledDriver(self.card.facts(), self.card.speed_gain, LIMIT, PERIOD)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """The style, (m, 3)."""
        return torch.stack([drawn[f"style/{name.removesuffix('_setpoint')}"] for name in STYLE], -1)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {**super().reference(time, goal), **{name: goal[:, k : k + 1] for k, name in enumerate(STYLE)}}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        speed = signals["wheel_speed"]
        vector = [
            *self.seen(signals, memory, lanes_of(signals, speed, self.front)),
            around(signals, speed, self.front, FORESIGHT),
        ]
        return {"policy": torch.cat(vector, -1), "neighbours": self.table(signals)}

    def seen(self, signals: Tensors, memory: Tensors, lanes: list[Lane]) -> list[Any]:
        """The motion, the lane, the style, and what it makes of who is in the ``lanes``."""
        speed = signals["wheel_speed"]
        return [
            speed / 10.0,
            2.0 * signals["yaw_rate"],
            0.5 * signals["lane_offset"],
            4.0 * signals["lane_heading"],
            0.5 * signals["lanes_beside"],
            memory["last_command"],
            *_style(signals),
            torch.clamp(speed - signals["speed_setpoint"], -3.0, 3.0),
            torch.clamp(lanes[0].gap / _wanted(signals, speed), max=2.0),
            *_advantages(signals, speed, lanes),
            torch.clamp(signals["lane_offset"].square(), max=4.0),
            *(4.0 * signals["route"][:, k, 1:] / reach for k, reach in enumerate(REACH)),
        ]

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        return {
            "route": (truth["gained"] * self._factor(truth))[:, 0],
            "lane_change": truth["changed"][:, 0],
            "terminal": torch.where(self.failed(truth), 1.0, 0.0),
        }

    def _factor(self, truth: Tensors) -> Any:
        """(n, 1): what completing a part of the route is worth."""
        speed, wanted = truth["velocity"][:, :1], truth["speed_setpoint"]
        slower = 0.5 + 0.5 * torch.clamp(speed / wanted, 0.0, 1.0)
        faster = torch.clamp(1.0 - (speed - wanted) / SLACK, 0.0, 1.0)
        near = torch.clamp(truth["gap"] / _wanted(truth, speed), 0.0, 1.0)
        missed, _ = _advantages(truth, speed, lanes_of(truth, speed, self.front))
        return slower * faster * near * (1.0 - MISSED * torch.clamp(missed, 0.0, 1.0)) * self.faults(truth)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """The part of the route that was completed; time gap (s), at most 6; changes of lanes per km; time (s)."""
        gap = torch.clamp(truth["gap"] / torch.clamp(truth["velocity"][:, :1], min=1.0), 0.0, FREE)
        way = torch.clamp(0.001 * ROUTE * truth["progress"], min=0.01)  # km
        return {
            "driving_score": truth["progress"][:, 0],
            "time_gap": gap[:, 0],
            "lane_changes": (truth["changes"] / way)[:, 0],
            "trip_time": truth["time"][:, 0],
        }

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"collision": truth["collision"][:, 0] > 0.5, "off the road": self.off_road(truth)[:, 0]}

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        speed = truth["velocity"][:, :1]
        return torch.cat(
            [
                *self.true_motion(truth, parameters),
                0.5 * truth["lanes_beside"],
                *_style(truth),
                torch.clamp(truth["gap"] / _wanted(truth, speed), 0.0, 2.0),
                *_advantages(truth, speed, lanes_of(truth, speed, self.front)),
                around(truth, speed, self.front, FORESIGHT),
            ],
            -1,
        )


def _style(signals: Tensors) -> list[Any]:
    """(n, 1) each: 0 at the least value of training, 1 at the greatest."""
    return [(signals[name] - low) / (high - low) for name, (low, high, _) in STYLE.items()]


def _wanted(signals: Tensors, speed: Any) -> Any:
    """(n, 1) m: the gap that the style asks for at a ``speed`` (n, 1) m/s."""
    return STANDSTILL + signals["time_gap_setpoint"] * torch.clamp(speed, min=0.0)


def _advantages(signals: Tensors, speed: Any, lanes: list[Lane]) -> list[Any]:
    """m/s²: the greater advantage of a change of lanes, (n, 1), less than the style asks for; and both, (n, 2)."""
    style = signals["speed_setpoint"], signals["time_gap_setpoint"]
    found = gains(lanes, signals["lanes_beside"], torch.clamp(speed, min=0.0), *style)
    return [found.amax(1, keepdim=True) - signals["advantage_setpoint"], 0.5 * found]
