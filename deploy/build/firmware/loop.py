"""Processor in the loop: the plant simulated here, the policy on a device at the other end of the link.

    flown = fly_devices(bundle, board, HostDevice(made, count=100), Conditions(episodes=100))

Every vehicle has a device of its own. The host says hello, arms it, activates it with the first signals of the
flight, and moves the plant by the commands that come back over the wire. The same bytes go to a twin, the same C on
this computer, which must answer with the same bytes at every step; and onnxruntime is asked the same questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Event, Request, Source, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.held import Samples, samples_behind
from robo_rl.deploy.build.c.device import Answer
from robo_rl.deploy.build.c.device import Request as Parcel
from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.deploy.robot.link import LinkError
from robo_rl.deploy.robot.link.messages import Ask, Commands, Fault, Hello, Role, messages_of
from robo_rl.deploy.robot.link.port import Link, Mailbox
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.sim.tasks import Task

APART = 123_456_789  # µs, between the clocks of host and device
LATENCY = 1_000  # µs, of the wire, at most a period
LONGEST_START = 1000  # steps, to the start pose


class Devices(Protocol):
    """Devices that can be talked to: on a board, or on this computer."""

    def exchange(self, requests: Sequence[Parcel]) -> list[Answer]:
        """What they answer, one after the other."""

    def restart(self) -> None:
        """Power off and on, at time 0."""


@dataclass
class Loop:
    """The host's ends of ``count`` wires, and the time (µs) that all of them share."""

    contract: Contract
    devices: Devices
    count: int
    twins: Devices | None = None
    time: int = 0
    exchanges: int = 0
    different: int = 0
    """Exchanges in which device and twin did not do the same, to the bit."""
    faults: list[Fault] = field(default_factory=list)
    """That began."""

    def __post_init__(self) -> None:
        self.mailboxes = [Mailbox(f"device {i}") for i in range(self.count)]
        self.links = [Link(mailbox, self.contract, Role.HOST) for mailbox in self.mailboxes]
        self.period = round(self.contract.control_period * 1e6)
        self._names = [signal.name for signal in self.contract.signals]
        self._ends = np.cumsum([signal.size for signal in self.contract.signals])[:-1]
        self.samples: list[Samples] = [{} for _ in range(self.count)]
        self.sent: list[dict[str, int]] = [{} for _ in range(self.count)]

    def hello(self) -> None:
        """Begin all connections."""
        for link in self.links:
            link.hello(self.time)
        self._exchange()
        self.time += self.period

    def step(self, signals: np.ndarray, request: Request = Request.NONE) -> list[Commands]:
        """One control period with signals (count, N), as a simulation tells them: what the devices command then."""
        for i, values in enumerate(signals):
            parts = dict(zip(self._names, np.split(values, self._ends), strict=True))
            self.samples[i] = samples_behind(self.contract, parts, self.samples[i], self.time)
        return self.tell(self.samples, request)

    def tell(self, samples: Sequence[Samples], request: Request = Request.NONE) -> list[Commands]:
        """One control period with the newest samples for each device: what they command then."""
        for i, (link, newest) in enumerate(zip(self.links, samples, strict=True)):
            if request:
                link.send(Ask(request))
            messages, self.sent[i] = messages_of(self.contract, newest, self.time, 0, self.sent[i])
            for message in messages:
                link.send(message)
        commands = self._exchange()
        self.time += self.period
        missing = [i for i, command in enumerate(commands) if command is None]
        if missing:
            raise LinkError(f"device {missing[0]} did not answer the signals of {self.time - self.period} µs")
        return [command for command in commands if command is not None]

    def _exchange(self) -> list[Commands | None]:
        now = APART + self.time + min(LATENCY, self.period)
        parcels = [Parcel(i, mailbox.collect(), now) for i, mailbox in enumerate(self.mailboxes)]
        answers = self.devices.exchange(parcels)
        if self.twins is not None:
            for answer, twin in zip(answers, self.twins.exchange(parcels), strict=True):
                same = answer.said == twin.said and answer.motors.tobytes() == twin.motors.tobytes()
                same = same and answer.enabled == twin.enabled
                self.different += not same
        self.exchanges += len(parcels)
        return [self._hear(i, answer) for i, answer in enumerate(answers)]

    def _hear(self, index: int, answer: Answer) -> Commands | None:
        """The newest command over the wire, which must be what the actuators get."""
        self.mailboxes[index].incoming += answer.said
        commands = None
        for _, message in self.links[index].receive(self.time):
            if isinstance(message, Fault) and message.events & Event.FAULTED:
                self.faults.append(message)
            if isinstance(message, Hello):
                self.sent[index] = {}  # it may have forgotten what it was sent
            commands = message if isinstance(message, Commands) else commands
        if commands is not None and commands.values.tobytes() != answer.motors.tobytes():
            raise LinkError(
                f"device {index} reports that it commands {commands.values}; its actuators get {answer.motors}"
            )
        return commands


class DevicePolicy:
    """Devices as a policy for robo_rl.evaluate.evaluation: one for each vehicle, for one batch of flights."""

    def __init__(self, bundle: Bundle, devices: Devices, twins: Devices | None = None) -> None:
        self.bundle, self.devices, self.twins = bundle, devices, twins
        self.loop: Loop | None = None
        self.worst, self.steps = 0.0, 0

    def initial_state(self, n: int) -> Tensor:
        """Nothing: the memory is on the devices."""
        return torch.zeros(n, 0)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        contract = self.bundle.contract
        arrays = {s.name: np.ascontiguousarray(signals[s.name].numpy()) for s in contract.signals}
        flat = np.concatenate([a.reshape(len(a), -1) for a in arrays.values()], axis=1, dtype=np.float32)
        request = Request.NONE
        if self.loop is None:
            self.loop, request = self._ready(flat), Request.ACTIVATE
        commands = self.loop.step(flat, request)
        by_name = self._by_name(np.stack([command.values for command in commands]))
        self._compare(arrays, by_name, np.array([command.source == Source.POLICY for command in commands]))
        self.steps += len(flat)
        return {name: torch.from_numpy(value) for name, value in by_name.items()}, state

    def _ready(self, signals: np.ndarray) -> Loop:
        """Connected, armed and at the start pose, while the vehicles wait at their initial states.

        Their actuators' feedback is what they are commanded, as if nothing held them.
        """
        contract = self.bundle.contract
        config, signals = GateConfig.from_contract(contract), signals.copy()
        start, driven = np.isfinite(config.start), config.measured
        self._state = np.tile(contract.initial_state, (len(signals), 1))
        loop = Loop(contract, self.devices, len(signals), self.twins)
        loop.hello()
        request = Request.ARM
        for k in range(LONGEST_START):
            # a sensor that repeats itself to the bit would be a frozen one
            commands = loop.step(signals if k % 2 else np.nextafter(signals, np.float32(0)), request)
            request = Request.NONE
            self._check_armed(commands, loop)
            values = np.stack([command.values for command in commands])
            if (values[:, start] == config.start[start]).all():
                return loop
            signals[:, config.feedback[driven]] = values[:, driven]
        raise LinkError(f"the devices did not reach the start pose {config.start} within {LONGEST_START} steps")

    def _check_armed(self, commands: Sequence[Commands], loop: Loop) -> None:
        refused = [i for i, command in enumerate(commands) if command.state != State.READY]
        if refused:
            raise LinkError(
                f"device {refused[0]} does not arm: {loop.faults[:1] or 'its self-test or signals are bad'}"
            )

    def _by_name(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        sizes = np.cumsum([command.size for command in self.bundle.contract.commands])[:-1]
        parts = np.split(flat, sizes, axis=1)
        return {command.name: part for command, part in zip(self.bundle.contract.commands, parts, strict=True)}

    def _compare(self, signals: dict[str, np.ndarray], commands: dict[str, np.ndarray], by_policy: np.ndarray) -> None:
        """Keep the greatest difference from onnxruntime, which has a memory of its own."""
        expected, self._state = self.bundle.run(signals, self._state)
        differences = command_differences(self.bundle.contract, commands, expected)
        self.worst = max(self.worst, greatest([difference[by_policy] for difference in differences]))


@dataclass(frozen=True)
class Flown:
    """The result of episodes with processors in the loop."""

    flights: dict[str, float | int]
    """What ``robo-rl evaluate`` gives."""
    steps: int
    different: int
    """Answers that were not those of the same C on this computer, to the bit."""
    worst: float
    """The greatest difference from onnxruntime, in units of the commands' range."""
    faults: list[Fault]


def fly_devices(
    bundle: Bundle,
    devices: Devices,
    twins: Devices | None,
    conditions: Conditions,
    title: str,
    task: Task | None = None,
) -> Flown:
    """Run a bundle's task, or the given one, on devices, one for each episode."""
    policy = DevicePolicy(bundle, devices, twins)
    flights: Any = rollout(task or task_of(bundle), policy, conditions, title).summary()
    assert policy.loop is not None
    return Flown(flights, policy.steps, policy.loop.different, policy.worst, policy.loop.faults)
