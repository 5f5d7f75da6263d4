"""Flights in real time, and what a person may do to them while they are under way."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.evaluation import HELD_OUT, ControllerPilot
from robo_rl.pilots import Flier
from robo_rl.viewer.server import Frame
from sim.env import VecEnv
from sim.pictures.film import spread

FRAMES_PER_SECOND = 50
HOUR = 3600.0  # s
LONGEST_DELAY = 0.06  # s
GREATEST_PUSH = 3.0  # m/s
GREATEST_SHIFT = 0.6  # m; a flight fails one metre away from where the set-point was
LATE = 0.2  # s behind the clock beyond which the simulation does not catch up
BREATH = 0.001  # s between steps, however late: others wait for the lock


@dataclass(frozen=True)
class Knob:
    """A condition that can be turned during flight, the same for all vehicles. ``trained``: what training drew."""

    name: str
    label: str
    unit: str
    low: float
    high: float
    value: float
    trained: tuple[float, float]


class Live:
    """``flights`` vehicles of a flier at its task. Thread-safe: ``run`` in one thread, the rest from any other."""

    page = Path(__file__).with_name("page.html")

    def __init__(
        self, flier: Flier, flights: int = 4, seed: int = 0, seconds: float | None = None,
        fixed: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """``seconds``: after which flights begin again; None: an hour. ``fixed`` as in ``robo-rl evaluate``."""
        fixed = dict(fixed or {})
        self.task, self.title = flier.task, flier.name
        own = "geometric" if isinstance(flier.pilot, ControllerPilot) else "policy"
        self.pilots: dict[str, Any] = {own: flier.pilot}
        if own == "policy":
            self.pilots["geometric"] = ControllerPilot(flier.task)
        self.pilot = own
        self.knobs = {knob.name: knob for knob in _knobs(self.task.spec.ranges, fixed)}
        longest = max(LONGEST_DELAY, fixed.get("delay", 0.0))
        self.env = VecEnv(
            self.task, flights, HELD_OUT + 1000 * seed, fixed={**fixed, "delay": longest}, evaluation=True,
            episode_length=seconds or HOUR,
        )  # fmt: skip
        self.paused = False
        self.shift = torch.zeros(3)
        self.failures = [0] * flights
        self.episodes = [0] * flights
        self.time = 0.0
        self._lock = threading.Condition()
        self._frame = Frame(0, {})
        self.reset()

    def reset(self) -> None:
        """Begin all flights anew, with new draws."""
        with self._lock:
            self._signals = self.env.reset()
            self._state = self._pilot.initial_state(self.env.n)
            self.episodes = [count + 1 for count in self.episodes]
            self._turn()
            self._publish()

    @property
    def _pilot(self) -> Any:
        return self.pilots[self.pilot]

    def step(self) -> None:
        """One control period."""
        with self._lock:
            signals = {**self._signals, "position_setpoint": self._signals["position_setpoint"] + self.shift}
            commands, self._state = self._pilot(signals, self._state)
            done = self.env.step(commands)
            self._signals = done.signals
            if len(done.ids):
                self._state[done.ids] = self._pilot.initial_state(len(done.ids))
            for i in done.ids.tolist():
                self.episodes[i] += 1
                self.failures[i] += int(done.failed[i])
            self._turn()
            self.time += self.task.spec.control_period

    def run(self, stop: threading.Event) -> None:
        """Fly in real time until ``stop`` is set."""
        period = self.task.spec.control_period
        every = max(1, round(1 / (FRAMES_PER_SECOND * period)))
        due, count = time.monotonic(), 0
        while not stop.is_set():
            count += 1
            with self._lock:
                if not self.paused:
                    self.step()
                if count % every == 0:
                    self._publish()
            due = max(due + period, time.monotonic() - LATE)
            stop.wait(max(due - time.monotonic(), BREATH))

    def next_frame(self, after: int, timeout: float) -> Frame | None:
        """The newest frame if its number is above ``after``, waiting for it at most ``timeout`` s."""
        with self._lock:
            self._lock.wait_for(lambda: self._frame.number > after, timeout)
            return self._frame if self._frame.number > after else None

    def act(self, request: Any) -> None:
        """Do what a page asks: an object with one entry, which is one of

        pause: true or false; reset: true; pilot: its name; push: velocity [x, y, z] in m/s, added to all vehicles;
        shift: [x, y, z] in m, by which the set-points move; knob: {name, value}. ValueError if it is anything else.
        """
        actions: dict[str, Callable[[Any], None]] = {
            "pause": self._pause, "reset": self._reset, "pilot": self._choose, "push": self._push,
            "shift": self._shift, "knob": self._set_knob,
        }  # fmt: skip
        if not isinstance(request, dict) or len(request) != 1 or next(iter(request)) not in actions:
            raise ValueError(f"request is {str(request)[:100]}; expected an object with one of {sorted(actions)}")
        ((name, value),) = request.items()
        with self._lock:
            actions[name](value)
            self._publish()

    def _pause(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise ValueError(f"pause is {value!r}; expected true or false")
        self.paused = value

    def _reset(self, value: Any) -> None:
        if value is not True:
            raise ValueError(f"reset is {value!r}; expected true")
        self.reset()

    def _choose(self, value: Any) -> None:
        if value not in list(self.pilots):
            raise ValueError(f"pilot is {value!r}; expected one of {list(self.pilots)}")
        self.pilot = value
        self._state = self._pilot.initial_state(self.env.n)

    def _push(self, value: Any) -> None:
        self.env.plant.truth()["linear_velocity"] += _triple("push", value, GREATEST_PUSH, "m/s")

    def _shift(self, value: Any) -> None:
        self.shift = _triple("shift", value, GREATEST_SHIFT, "m")

    def _set_knob(self, value: Any) -> None:
        if not isinstance(value, dict) or set(value) != {"name", "value"} or value["name"] not in list(self.knobs):
            raise ValueError(f"knob is {str(value)[:100]}; expected name, one of {list(self.knobs)}, and value")
        knob = self.knobs[value["name"]]
        number = _number(f"knob {knob.name}", value["value"], knob.low, knob.high, knob.unit)
        self.knobs[knob.name] = replace(knob, value=number)
        self._turn()

    def _turn(self) -> None:
        """Write what the knobs say into the simulation."""
        plant, draws = self.env.plant, self.env.draws
        plant.param("mass")[:] = plant.nominal.mass * self.knobs["mass"].value
        plant.param("wind")[:] = torch.tensor([self.knobs["wind"].value, 0.0, 0.0])
        draws.delay[:] = self.knobs["delay"].value
        draws.noise[:] = self.knobs["noise"].value

    def scene(self) -> dict[str, Any]:
        """What does not change, for the page."""
        spec, card = self.task.spec, self.task.spec.multirotor
        every = torch.arange(self.env.n)
        moments = torch.arange(0.0, 10.0, 0.1)
        course = self.env.draws.course
        setpoints = torch.stack(
            [self.task.reference(moment.expand(len(every)), course)["position_setpoint"] for moment in moments]
        )
        return {
            "title": self.title,
            "task": spec.name,
            "summary": spec.summary,
            "robot": card.title,
            "hertz": 1 / spec.control_period,
            "offsets": spread(setpoints.numpy(), card.arm).tolist(),
            "pilots": list(self.pilots),
            "top": card.rotor_speed_max,
            "arm": card.arm,
            "height": card.body_size[2],
            "propeller": card.propeller_radius,
            "rotors": [{"name": r.name, "at": r.position, "spin": 1 if r.spin == "ccw" else -1} for r in card.rotors],
            "knobs": [vars(knob) for knob in self.knobs.values()],
            "shift": GREATEST_SHIFT,
        }

    def _publish(self) -> None:
        """Make a frame of now, and wake those who wait for one."""
        truth = self.env.truth(torch.arange(self.env.n))
        setpoint = truth["position_setpoint"] + self.shift
        error = (truth["position"] - setpoint).norm(dim=-1)
        x, y = truth["orientation"][:, 0], truth["orientation"][:, 1]
        tilt = torch.rad2deg(torch.acos((1 - 2 * (x * x + y * y)).clamp(-1.0, 1.0)))
        content = {
            "time": round(self.time, 3),
            "pilot": self.pilot,
            "paused": self.paused,
            "knobs": {name: knob.value for name, knob in self.knobs.items()},
            "position": _rounded(truth["position"], 4),
            "orientation": _rounded(truth["orientation"], 4),
            "velocity": _rounded(truth["linear_velocity"], 3),
            "rotor_speed": _rounded(truth["rotor_speed"], 0),
            "setpoint": _rounded(setpoint, 4),
            "error": _rounded(error, 4),
            "tilt": _rounded(tilt, 1),
            "failures": self.failures,
            "episodes": self.episodes,
        }
        self._frame = Frame(self._frame.number + 1, content)
        self._lock.notify_all()


def _knobs(ranges: Mapping[str, Any], fixed: Mapping[str, float]) -> list[Knob]:
    """Label, unit, bounds and starting value of every knob."""
    table = [
        ("mass", "mass", "× nominal", 0.6, 1.6, 1.0),
        ("wind", "wind along x", "m/s", -4.0, 4.0, 0.0),
        ("delay", "latency", "s", 0.0, LONGEST_DELAY, 0.01),
        ("noise", "sensor noise", "× nominal", 0.0, 10.0, 1.0),
    ]
    return [
        Knob(
            name, label, unit, min(low, fixed.get(name, low)), max(high, fixed.get(name, high)),
            fixed.get(name, value), ranges[name].end,
        )
        for name, label, unit, low, high, value in table
    ]  # fmt: skip


def _number(name: str, value: Any, low: float, high: float, unit: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (good and low <= value <= high):
        raise ValueError(f"{name} is {str(value)[:40]}; expected a number from {low:g} to {high:g} {unit}")
    return float(value)


def _triple(name: str, value: Any, most: float, unit: str) -> Tensor:
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError(f"{name} is {str(value)[:100]}; expected three numbers in {unit}")
    return torch.tensor([_number(name, x, -most, most, unit) for x in value])


def _rounded(value: Tensor, digits: int) -> Any:
    return torch.round(value, decimals=digits).double().mul(10**digits).round().div(10**digits).tolist()
