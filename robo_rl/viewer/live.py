"""Robots in real time, and what a person may do to them while they are under way."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.evaluation import HELD_OUT
from robo_rl.loading import Loaded
from robo_rl.viewer.server import Frame
from sim.env import VecEnv

FRAMES_PER_SECOND = 50
HOUR = 3600.0  # s
LATE = 0.2  # s behind the clock beyond which the simulation does not catch up
BREATH = 0.001  # s between steps, however late: others wait for the lock


@dataclass(frozen=True)
class Knob:
    """A condition that can be turned under way, the same for all robots. ``trained``: what training drew."""

    name: str
    label: str
    unit: str
    low: float
    high: float
    value: float
    trained: tuple[float, float]


class Live(ABC):
    """Robots of a loaded at its task. Thread-safe: ``run`` in one thread, the rest from any other.

    What is shown of a kind of robot, and what can be done to it, is told by ``Flying`` and ``Walking``.
    """

    page = Path(__file__).with_name("page.html")
    reserve = ""
    """Name of the classical controller of this kind of robot."""

    def __init__(
        self, loaded: Loaded, flights: int = 4, seed: int = 0, seconds: float | None = None,
        fixed: Mapping[str, float] | None = None, others: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """``seconds``: after which episodes begin again; None: an hour. ``fixed`` as in ``robo-rl evaluate``.

        ``others``: more pilots, by name, that the page can hand over to.
        """
        self.task, self.title = loaded.task, loaded.name
        self.pilot, self.pilots = self.own_pilots(loaded)
        self.pilots |= dict(others or {})
        fixed = dict(fixed or {})
        self.knobs = {knob.name: knob for knob in self.make_knobs(fixed)}
        self.env = VecEnv(
            self.task, flights, HELD_OUT + 1000 * seed, fixed=self.conditions(fixed), evaluation=True,
            episode_length=seconds or HOUR,
        )  # fmt: skip
        self.paused = False
        self.failures = [0] * flights
        self.episodes = [0] * flights
        self.time = 0.0
        self._lock = threading.Condition()
        self._frame = Frame(0, {})
        self.actions: dict[str, Callable[[Any], None]] = {
            "pause": self._pause, "reset": self._reset, "pilot": self._choose, "push": self.push,
            "knob": self._set_knob,
        }  # fmt: skip
        self.reset()

    @abstractmethod
    def own_pilots(self, loaded: Loaded) -> tuple[str, dict[str, Any]]:
        """Who moves the robots at first, and who can."""

    @abstractmethod
    def make_knobs(self, fixed: Mapping[str, float]) -> list[Knob]:
        """What can be turned, from where ``fixed`` puts it."""

    @abstractmethod
    def conditions(self, fixed: Mapping[str, float]) -> dict[str, float]:
        """Ranges of the task that are held."""

    @abstractmethod
    def turn(self) -> None:
        """Write what the knobs say into the simulation."""

    @abstractmethod
    def push(self, value: Any) -> None:
        """Change the speed of all robots by ``value``: [x, y, z] in m/s, world."""

    def perceived(self, signals: dict[str, Tensor]) -> dict[str, Tensor]:
        """The signals as the person changes them."""
        return signals

    def begun(self, ids: Tensor) -> None:  # noqa: B027 (robots that need nothing then leave it out)
        """Episodes of the robots ``ids`` have begun."""

    @abstractmethod
    def scene(self) -> dict[str, Any]:
        """What does not change, for the page."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What this kind of robot adds to a frame."""

    def reset(self) -> None:
        """Begin all episodes anew, with new draws."""
        with self._lock:
            self._signals = self.env.reset()
            self._state = self._pilot.initial_state(self.env.n)
            self.episodes = [count + 1 for count in self.episodes]
            self.begun(torch.arange(self.env.n))
            self.turn()
            self._publish()

    @property
    def _pilot(self) -> Any:
        return self.pilots[self.pilot]

    def step(self) -> None:
        """One control period."""
        with self._lock:
            commands, self._state = self._pilot(self.perceived(self._signals), self._state)
            done = self.env.step(commands)
            self._signals = done.signals
            if len(done.ids):
                self._state[done.ids] = self._pilot.initial_state(len(done.ids))
                self.begun(done.ids)
            for i in done.ids.tolist():
                self.episodes[i] += 1
                self.failures[i] += int(done.failed[i])
            self.turn()
            self.time += self.task.spec.control_period

    def run(self, stop: threading.Event) -> None:
        """In real time until ``stop`` is set."""
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

        pause: true or false; reset: true; pilot: its name; push: velocity [x, y, z] in m/s, added to all robots;
        knob: {name, value}; and for multirotors shift: [x, y, z] in m, by which the set-points move. ValueError if it
        is anything else.
        """
        if not isinstance(request, dict) or len(request) != 1 or next(iter(request)) not in self.actions:
            raise ValueError(f"request is {str(request)[:100]}; expected an object with one of {sorted(self.actions)}")
        ((name, value),) = request.items()
        with self._lock:
            self.actions[name](value)
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

    def _set_knob(self, value: Any) -> None:
        if not isinstance(value, dict) or set(value) != {"name", "value"} or value["name"] not in list(self.knobs):
            raise ValueError(f"knob is {str(value)[:100]}; expected name, one of {list(self.knobs)}, and value")
        knob = self.knobs[value["name"]]
        at = number(f"knob {knob.name}", value["value"], knob.low, knob.high, knob.unit)
        self.knobs[knob.name] = replace(knob, value=at)
        self.turn()

    def _publish(self) -> None:
        """Make a frame of now, and wake those who wait for one."""
        content = {
            "time": round(self.time, 3),
            "pilot": self.pilot,
            "paused": self.paused,
            "knobs": {name: knob.value for name, knob in self.knobs.items()},
            "failures": self.failures,
            "episodes": self.episodes,
            **self.content(),
        }
        self._frame = Frame(self._frame.number + 1, content)
        self._lock.notify_all()


def tilt(orientation: Tensor) -> Tensor:
    """(n,) degrees between body z and world z."""
    x, y = orientation[:, 0], orientation[:, 1]
    return torch.rad2deg(torch.acos((1 - 2 * (x * x + y * y)).clamp(-1.0, 1.0)))


def number(name: str, value: Any, low: float, high: float, unit: str) -> float:
    """A number that a page sent, if it is one from ``low`` to ``high``."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (good and low <= value <= high):
        raise ValueError(f"{name} is {str(value)[:40]}; expected a number from {low:g} to {high:g} {unit}")
    return float(value)


def triple(name: str, value: Any, most: float, unit: str) -> Tensor:
    """Three numbers that a page sent, if they are from ``-most`` to ``most``."""
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError(f"{name} is {str(value)[:100]}; expected three numbers in {unit}")
    return torch.tensor([number(name, x, -most, most, unit) for x in value])


def rounded(value: Tensor, digits: int) -> Any:
    """As lists, short in JSON."""
    return torch.round(value, decimals=digits).double().mul(10**digits).round().div(10**digits).tolist()
