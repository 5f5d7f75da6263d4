"""The simulated robot: a task's plant with its sensors' noise and latency, and an operator for it.

The plant and the sensors are those of training. This does for any task; a kind of robot that begins on the ground, can
hang in the air or be moved by hand has a module beside this one under its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract.channels import feedback
from robo_rl.controllers.gate.codes import Source
from robo_rl.deploy.robot.realtime import require_period
from robo_rl.sim.accelerate.fuse import streams
from robo_rl.sim.large_signals import LargeSignals
from robo_rl.sim.ranges import Levels, Range
from robo_rl.sim.sensors import Chance, SensorDraws, Sensors
from robo_rl.sim.tasks import Task


class Twin:
    """One robot at a task, stepped once per control period."""

    settings: tuple[str, ...] = ()
    """Names of further arguments that this kind of robot takes."""
    held = True
    """Whether the robot is held at its initial state until its actuators are first commanded."""
    stance: Any = None
    """The gains of its stance (``StanceGains``), of a robot that falls with those of its policy."""

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        delay: float = 0.01,
        noise: float = 1.0,
        miswired: Sequence[str] = (),
    ) -> None:
        """``delay`` (s) is the latency of all sensors, ``noise`` a factor on the contract's.

        ``miswired`` are mistakes of assembly: see ``Miswiring``.
        """
        self.task, self.spec = task, task.spec
        self.period = self.spec.control_period
        require_period(self.period)
        longest = max(signal.delay[1] for signal in self.spec.signals)
        if not 0 <= delay <= longest:
            raise ValueError(
                f"parameter 'delay' is {delay:g} s; expected 0 to {longest:g} s, as in training, by delay:={longest:g}"
            )
        self.generator = torch.Generator().manual_seed(seed)
        self.sensors = Sensors(self.spec.signals, self.period, {"noise": Range.fixed(0.0, 1.0)})
        self.draws = SensorDraws(
            delay=torch.full((1, len(self.sensors.delays)), delay), noise=torch.tensor([float(noise)])
        )
        self.large = LargeSignals(self.sensors, 1, torch.device("cpu")) if self.sensors.apart else None
        self._stream = streams(seed, 1)
        self._noise = noise
        self.miswirings = [Miswiring.parse(text) for text in miswired if text]
        for one in self.miswirings:
            one.check([element for signal in self.spec.signals for element in signal.elements])
        self.plant = self._make_plant()
        self.goal, self._drawn = self._draw(seed)
        self.limits = {c.name: (torch.tensor([c.lower]), torch.tensor([c.upper])) for c in self.spec.commands}
        self.steps = 0
        self._stays: dict[str, Tensor] | None = None
        """What is sent while there are no commands, by name: of those that hold, where they were at first."""
        self.hands = lambda: self.time
        """s, the clock by which a person's hands move the robot: in real time, that of the person."""
        self.commanded_since = self.handled_until = -1.0
        self.restart()

    def restart(self) -> None:
        """Stand on the ground. Time goes on."""
        self.commanded_since = self.handled_until = -1.0
        self._stays = None
        self._place()
        phases = tuple(torch.rand(len(self.sensors.slow), 1, generator=self.generator).unbind(0))
        self.measured = self.sensors.start(self._truth(), phases)
        self._images: dict[str, Tensor] | None = None
        if self.large:
            own = {group.phase: torch.rand(1, generator=self.generator) for group in self.sensors.large if group.phase}
            grain = {k: self._noise * v for k, v in self._drawn.items() if k.startswith("grain/")}
            drawn = {**self._drawn, **grain, **own}
            self._images = {}
            self.large.begin(torch.tensor([0]), self._truth(), drawn, self.draws, self._stream, self._images)

    @property
    def time(self) -> float:
        """s since the beginning."""
        return self.steps * self.period

    def set_source(self, source: Source) -> None:
        """What the gate's commands are made of from now on: only a robot with a stance moves differently."""

    def _make_plant(self) -> Any:
        return self.task.make_plant(1, "cpu")

    def _draw(self, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        """The goal (1, k) of the robot's only episode, and a draw of every range as it is at the end of training."""
        levels = Levels(self.spec.ranges, (), 1)
        drawn = levels.named(levels.draw(levels.level, streams(seed, 1), {}))
        return self.task.goal(drawn), drawn

    def setpoints(self) -> dict[str, Tensor]:
        """The operator's signals now, (1, k) by name: the task's, from the first command on."""
        begun = self.time - self.commanded_since if self.commanded_since >= 0 else 0.0
        return self.task.reference(torch.tensor([begun]), self.goal)

    def _place(self) -> None:
        """Put the robot where it begins: with nothing drawn of its physics, it is the one of the card."""
        self.task.place(self.plant, torch.tensor([0]), self._drawn, self.goal)

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        """One period under commands (1, k) within their limits."""
        self.plant.step(dict(commands))

    def _be_handled(self) -> None:
        """Move the robot as a person would for the doctor: most kinds stay where they are."""

    def passive(self) -> dict[str, Tensor]:
        """What the actuators do without a command, (1, k) each: the safe command, or they stay where they are."""
        truth = self.plant.truth()
        found = {}
        for command in self.spec.commands:
            if command.safe != "hold":
                found[command.name] = torch.tensor([command.safe])
                continue
            measured = [truth[name][:, index] for name, index in feedback(self.spec.signals, command)]
            found[command.name] = torch.clamp(torch.stack(measured, -1), *self.limits[command.name])
        return found

    def _truth(self) -> dict[str, Tensor]:
        return {**self.plant.truth(), **self.setpoints()}

    def truth(self) -> dict[str, np.ndarray]:
        """True quantities and set-points (k,) by name."""
        return {name: value[0].numpy().copy() for name, value in self._truth().items()}

    def step(self, commands: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """One period under commands (k,) by name, clamped; without any, the actuators are passive. Returns what they
        got."""
        given = passive = self.passive()
        if commands is None:
            self._stays = self._stays or passive
            given = {c.name: (self._stays if c.stop == "hold" else passive)[c.name] for c in self.spec.commands}
        else:
            self._stays = None
            given = {
                name: torch.clamp(torch.as_tensor(commands[name], dtype=torch.float32)[None], *self.limits[name])
                for name in passive
            }
        commanded = any(bool((given[n] != passive[n]).any()) for n in given)
        if commanded or self.commanded_since >= 0 or not self.held:
            self._move(given)
        self.steps += 1
        if self.hands() < self.handled_until:
            self._be_handled()
        if self.commanded_since < 0 and commanded:
            self.commanded_since = self.time
        return {name: value[0].numpy() for name, value in given.items()}

    def take_in_hand(self, seconds: float) -> None:
        """For some time, be turned and moved as by a person, about and along all axes."""
        self.handled_until = self.hands() + seconds

    def measure(self) -> dict[str, np.ndarray]:
        """The signals now, (k,) float32 by name; call it once per step."""
        chance = Chance(torch.randn(1, self.sensors.size, generator=self.generator), ())
        signals, self.measured = self.sensors.measure(self._truth(), self.measured, self.draws, chance)
        if self.large:
            step = torch.tensor([float(self.steps)])
            signals |= self._images or self.large.measure(self._truth(), self.draws, self._stream, step)
            self._images = None
        values = {s.name: signals[s.name][0].numpy().copy() for s in self.spec.signals}
        for signal in self.spec.signals:
            for one in self.miswirings:
                one.strike(signal.elements, signal.unit, values[signal.name])
        return values


class Miswiring:
    """A mistake of assembly in what a robot measures: "swap A B", "reverse A" or "offset A 0.3" (rad)."""

    def __init__(self, kind: str, elements: tuple[str, ...], value: float = 0.0) -> None:
        self.kind, self.elements, self.value = kind, elements, value

    @staticmethod
    def parse(text: str) -> Miswiring:
        """From the text; ValueError if it is invalid."""
        match text.split():
            case ["swap", a, b]:
                return Miswiring("swap", (a, b))
            case ["reverse", a]:
                return Miswiring("reverse", (a,))
            case ["offset", a, value]:
                return Miswiring("offset", (a,), float(value))
        raise ValueError(f"miswired has {text!r}; expected 'swap A B', 'reverse A' or 'offset A 0.3'")

    def check(self, known: Sequence[str]) -> None:
        """ValueError unless all elements are known."""
        for name in self.elements:
            if name not in known:
                raise ValueError(f"miswired names '{name}'; the robot has {sorted(set(known))}")

    def strike(self, elements: Sequence[str], unit: str, values: np.ndarray) -> None:
        """Change the values (k,) of a signal in place."""
        if not set(self.elements) <= set(elements):
            return
        at = [list(elements).index(name) for name in self.elements]
        if self.kind == "swap":
            values[at] = values[at[::-1]]
        elif self.kind == "reverse":
            values[at] = -values[at]
        elif unit == "rad":
            values[at] += self.value
