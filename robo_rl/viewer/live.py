"""Robots in real time, and the interactions of a user with them. Independent of the kind of robot."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.evaluate.evaluation import HELD_OUT, ControllerPolicy, StopPolicy
from robo_rl.policies.loading import Loaded
from robo_rl.sim.drawing import Marker, as_array, can_draw, mapped
from robo_rl.sim.env import VecEnv
from robo_rl.viewer.knobs import BEGINNING, Knob, operator_knobs, range_knobs

FRAMES_PER_SECOND = 30
HOUR = 3600.0  # s
LATE = 0.2  # s behind the clock beyond which the simulation does not catch up
BREATH = 0.001  # s between steps, however late: others wait for the lock
SPEEDS = (0.05, 4.0)
"""Times as fast as real time, at least and at most."""
GREATEST_PUSH = 3.0  # m/s
FAR = 1e4  # m
REMEMBERED, RATE = 10.0, 20.0
"""s, and 1/s, of the past that plots show."""


@dataclass(frozen=True)
class Moment:
    """What there is to know about n robots at a time. All arrays are (n, …)."""

    time: float
    """s simulated since the page was started."""
    truth: dict[str, np.ndarray]
    """True quantities and set-points."""
    commands: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    """By the task's measures, (n,)."""


@dataclass(frozen=True)
class Counters:
    """What became of episodes under the present policy."""

    begun: np.ndarray
    """(n,)."""
    failed: np.ndarray
    """(n,)."""
    ended: int = 0

    @property
    def success(self) -> float | None:
        """Part of the ended episodes that did not fail; None before the first one ends."""
        return 1 - int(self.failed.sum()) / self.ended if self.ended else None


@dataclass(frozen=True)
class Frame:
    """One moment as it is shown."""

    number: int
    moment: Moment
    poses: np.ndarray | None
    """(n, bodies, 7) m and quaternions x, y, z, w; None for robots that can't be drawn."""
    markers: list[Marker]
    counters: Counters
    policy: str
    paused: bool
    speed: float
    """Times as fast as real time, as it really is."""


@dataclass
class Clock:
    """How fast the simulation goes."""

    speed: float = 1.0
    paused: bool = False
    single: int = 0
    """Control steps to be done although it is paused."""
    real: float = 0.0
    """Times as fast as real time, as measured."""


class Live:
    """Robots of a policy at its task. Thread-safe: ``run`` in one thread, the rest from any other."""

    def __init__(
        self, loaded: Loaded, robots: int = 4, seed: int = 0, seconds: float | None = None,
        fixed: Mapping[str, float] | None = None, others: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """``seconds``: after which episodes begin again; None: never. ``fixed`` as in ``robo-rl evaluate``.

        ``others``: more policies, by name, that the page can switch to.
        """
        self.task, self.title, self.seconds = loaded.task, loaded.name, seconds
        self.policies = _policies(loaded) | dict(others or {})
        self.policy = next(iter(self.policies))
        self.ranges, self.commands = range_knobs(self.task, fixed or {}), operator_knobs(self.task)
        self.env = self._make_env(robots, seed, dict(fixed or {}))
        self.clock = Clock()
        self.idle = False
        """Whether nobody looks, so that nothing is simulated."""
        self.model = self.env.plant.drawing() if can_draw(self.env.plant) else None
        """The drawing; None for robots that can't be drawn."""
        self.past: deque[Moment] = deque(maxlen=round(REMEMBERED * RATE))
        self._everyone = torch.arange(self.env.n)
        self._age = torch.zeros(self.env.n, dtype=torch.int64)
        self._lock = threading.Condition()
        self._time = 0.0
        self._sent: dict[str, Tensor] = {}
        self._state: Tensor
        self._counters = self._no_counters()
        self.actions: dict[str, Callable[[Any], None]] = {
            "pause": self._pause, "step": self._step_once, "speed": self._set_speed, "reset": self._reset,
            "policy": self._choose, "push": self._push, "range": self._set_range, "release": self._release,
            "command": self._set_command, "again": self._set_again, "click": self._click, "clear": self._clear,
        }  # fmt: skip
        self.frame: Frame
        self.reset()

    def _make_env(self, robots: int, seed: int, fixed: dict[str, float]) -> VecEnv:
        """With room for the longest latency that can be set."""
        longest = {"delay": self.ranges["delay"].high} if "delay" in self.ranges else {}
        env = VecEnv(
            self.task, robots, HELD_OUT + 1000 * seed, fixed={**fixed, **longest}, evaluation=True, episode_length=HOUR
        )
        for name in longest:
            env.fix(name, None)
        for name, value in fixed.items():
            env.fix(name, value)
        return env

    def _no_counters(self) -> Counters:
        none = np.zeros(self.env.n, int)
        return Counters(none, none.copy())

    @property
    def n(self) -> int:
        """Robots."""
        return self.env.n

    def reset(self) -> None:
        """Begin all episodes again, with new draws."""
        with self._lock:
            self._signals = self.env.reset()
            self._begun(self._everyone)
            self._publish()

    def _begun(self, ids: Tensor) -> None:
        """Episodes of the robots ``ids`` have begun."""
        self._age[ids] = 0
        fresh = self.policies[self.policy].initial_state(self.n)
        self._state = fresh if len(ids) == self.n else torch.where(_among(ids, fresh), fresh, self._state)
        self._counters.begun[ids.numpy()] += 1

    def step(self) -> None:
        """One control period."""
        with self._lock, torch.no_grad():
            commands, self._state = self.policies[self.policy](self._perceived(self._signals), self._state)
            self._sent = {name: value.detach().clone() for name, value in commands.items()}
            done = self.env.step(commands)
            self._signals = done.signals
            self._time += self.task.spec.control_period
            self._age += 1
            ended, failed = done.ids, done.failed
            if len(ended):
                self._counters.failed[:] += failed.numpy()
                self._counters = replace(self._counters, ended=self._counters.ended + len(ended))
                self._begun(ended)
            self._end_old_episodes()
            if self._time >= (self.past[-1].time if self.past else -1.0) + 0.999 / RATE:
                self.past.append(self._moment())

    def _end_old_episodes(self) -> None:
        """Reset the robots whose time is over."""
        if self.seconds is None:
            return
        over = (self._age >= round(self.seconds / self.task.spec.control_period)).nonzero()[:, 0]
        if len(over):
            for name, value in self.env.reset(over).items():
                self._signals[name][over] = value
            self._counters = replace(self._counters, ended=self._counters.ended + len(over))
            self._begun(over)

    def _perceived(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Signals, or true quantities, with what the person commands instead of the task."""
        found = dict(given)
        for knob in self.commands.values():
            signal, _, element = knob.name.rpartition("/")
            if knob.value is not None and signal in found:
                column = next(s for s in self.task.spec.signals if s.name == signal).elements.index(element)
                found[signal] = found[signal].clone()
                found[signal][:, column] = knob.value
        return found

    def _moment(self) -> Moment:
        truth = self._perceived(self.env.truth(self._everyone))
        errors = {name: as_array(value).copy() for name, value in self.task.errors(truth).items()}
        sent = {name: as_array(value).copy() for name, value in self._sent.items()}
        return Moment(self._time, {name: as_array(value).copy() for name, value in truth.items()}, sent, errors)

    def ways(self, seconds: float) -> np.ndarray | None:
        """(steps, n, 3) m: where the robots' first bodies go in so many s, after which all begin again."""
        if self.model is None:
            return None
        found = []
        with self._lock:
            for _ in range(round(seconds / self.task.spec.control_period)):
                self.step()
                found.append(self.env.plant.poses(self._everyone)[:, 0, :3])
            self._time, self._counters = 0.0, self._no_counters()
            self.past.clear()
            self.reset()
        return np.stack(found)

    def run(self, stop: threading.Event) -> None:
        """In real time until ``stop`` is set."""
        period = self.task.spec.control_period
        due = shown = measured = time.monotonic()
        simulated = self._time
        while not stop.is_set():
            with self._lock:
                clock = self.clock
                if (not clock.paused or clock.single) and not self.idle:
                    clock.single = max(0, clock.single - 1)
                    self.step()
                now = time.monotonic()
                if now >= shown + 1 / FRAMES_PER_SECOND:
                    shown = max(shown + 1 / FRAMES_PER_SECOND, now - 1 / FRAMES_PER_SECOND)
                    self._publish()
                if now >= measured + 1.0:
                    clock.real = (self._time - simulated) / (now - measured)
                    measured, simulated = now, self._time
                moves = not clock.paused and not self.idle
                pace = period / clock.speed if moves else 1 / FRAMES_PER_SECOND
            due = max(due + pace, now - LATE)
            stop.wait(max(due - time.monotonic(), BREATH))

    def renew(self, graph: Any, weights: Mapping[str, Tensor]) -> None:
        """Put newer weights into the graph of one of the policies, between two control steps."""
        with self._lock:
            graph.load_state_dict(weights)

    def next_frame(self, after: int, timeout: float) -> Frame | None:
        """The newest frame if its number is above ``after``, waiting for it at most ``timeout`` s."""
        with self._lock:
            self._lock.wait_for(lambda: self.frame.number > after, timeout)
            return self.frame if self.frame.number > after else None

    def _publish(self) -> None:
        """Make a frame of the current state, and notify those that wait for one."""
        moment = self._moment()
        truth = {name: torch.from_numpy(value) for name, value in moment.truth.items()}
        markers = [mapped(marker, np.array) for marker in self.task.markers(truth)]
        poses = None if self.model is None else self.env.plant.poses(self._everyone)
        counters = replace(self._counters, begun=self._counters.begun.copy(), failed=self._counters.failed.copy())
        number = self.frame.number + 1 if hasattr(self, "frame") else 1
        clock = self.clock
        self.frame = Frame(number, moment, poses, markers, counters, self.policy, clock.paused, clock.real)
        self._lock.notify_all()

    def act(self, request: Any) -> None:
        """Execute the request of a page: an object with one entry, which is one of

        pause: true or false; step: true; speed: times as fast as real time; reset: true; policy: its name; push:
        velocity [x, y, z] in m/s, added to all robots; range: {name, value}; release: name of a range, or null for
        all; command: {name, value or null}; again: s, after which episodes begin again, or null; click: {what, robot,
        place}, one of the task's clicks at [x, y] m in the world of a robot, by its number; clear: true, for obstacles.
        ValueError if it is anything else.
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
        self.clock.paused = value

    def _step_once(self, value: Any) -> None:
        if value is not True:
            raise ValueError(f"step is {value!r}; expected true")
        self.clock.paused, self.clock.single = True, min(self.clock.single + 1, 10)

    def _set_speed(self, value: Any) -> None:
        self.clock.speed = Knob("speed", "×", *SPEEDS, SPEEDS).accepted(value)

    def _reset(self, value: Any) -> None:
        if value is not True:
            raise ValueError(f"reset is {value!r}; expected true")
        self.reset()

    def _choose(self, value: Any) -> None:
        if value not in list(self.policies):
            raise ValueError(f"policy is {value!r}; expected one of {list(self.policies)}")
        self.policy, self._counters = value, self._no_counters()
        self._state = self.policies[value].initial_state(self.n)
        self._counters.begun[:] = 1

    def _push(self, value: Any) -> None:
        limit = Knob("push", "m/s", -GREATEST_PUSH, GREATEST_PUSH, (0.0, 0.0))
        if not isinstance(value, list | tuple) or len(value) != 3:
            raise ValueError(f"push is {str(value)[:100]}; expected three numbers in m/s")
        velocity = torch.tensor([limit.accepted(x) for x in value])
        push = getattr(self.env.plant, "push", None)
        if push is None:
            raise ValueError(f"robots of {type(self.env.plant).__name__} can't be pushed; it has no push()")
        push(self._everyone, velocity)

    def _set_range(self, value: Any) -> None:
        knob = _named(self.ranges, "range", value)
        at = knob.accepted(value["value"])
        self.ranges[knob.name] = replace(knob, value=at)
        self.env.fix(knob.name, at)
        if not knob.name.startswith(BEGINNING):
            self.env.apply({knob.name: at})

    def _release(self, value: Any) -> None:
        if value is not None and value not in list(self.ranges):
            raise ValueError(f"release is {str(value)[:100]}; expected null or one of {list(self.ranges)}")
        for name in self.ranges if value is None else [value]:
            self.ranges[name] = replace(self.ranges[name], value=None)
            self.env.fix(name, None)

    def _set_command(self, value: Any) -> None:
        knob = _named(self.commands, "command", value)
        at = None if value["value"] is None else knob.accepted(value["value"])
        self.commands[knob.name] = replace(knob, value=at)

    def _click(self, value: Any) -> None:
        if not isinstance(value, dict) or set(value) != {"what", "robot", "place"}:
            raise ValueError(f"click is {str(value)[:100]}; expected what, robot and place")
        what, robot, place = value["what"], value["robot"], value["place"]
        if what not in list(self.task.clicks):
            raise ValueError(f"click is {str(what)[:40]!r}; expected one of {list(self.task.clicks)}")
        if robot not in range(self.n) or isinstance(robot, bool):
            raise ValueError(f"robot is {str(robot)[:40]}; expected a number from 0 to {self.n - 1}")
        limit = Knob("place", "m", -FAR, FAR, (0.0, 0.0))
        if not isinstance(place, list | tuple) or len(place) != 2:
            raise ValueError(f"place is {str(place)[:100]}; expected two numbers in m")
        x, y = (limit.accepted(number) for number in place)
        self.task.click(what, self.env.plant, self.env.draws.goal, robot, (x, y))

    def _clear(self, value: Any) -> None:
        if value is not True or "obstacle" not in self.task.clicks:
            raise ValueError(f"clear is {str(value)[:40]}; expected true, of a task with obstacles")
        self.env.plant.clear_obstacles()

    def _set_again(self, value: Any) -> None:
        self.seconds = None if value is None else Knob("again", "s", 0.1, HOUR, (0.0, 0.0)).accepted(value)


def _policies(loaded: Loaded) -> dict[str, Any]:
    """Those that every task has: the one that was loaded, the classical controller if there is one, and the stop."""
    controller = {}
    if loaded.task.controller() is not None:
        controller = {"controller": ControllerPolicy(loaded.task)}
    own = {} if isinstance(loaded.policy, ControllerPolicy) else {"policy": loaded.policy}
    return {**own, **controller, "stop": StopPolicy(loaded.task)}


def _named(knobs: Mapping[str, Knob], what: str, value: Any) -> Knob:
    """The knob that a page named."""
    if not isinstance(value, dict) or set(value) != {"name", "value"} or value["name"] not in list(knobs):
        raise ValueError(f"{what} is {str(value)[:100]}; expected name, one of {list(knobs)}, and value")
    return knobs[value["name"]]


def _among(ids: Tensor, like: Tensor) -> Tensor:
    """(n, 1, …) whether each row of a tensor (n, …) is one of ``ids``."""
    found = torch.zeros(len(like), dtype=torch.bool)
    found[ids] = True
    return found.reshape(-1, *[1] * (like.ndim - 1))
