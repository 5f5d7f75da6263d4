"""Run a bundle on a robot: numpy and onnxruntime, nothing else.

    policy = Policy.load("policy.onnx", rate_hz=100)
    commands = policy.step({"position": [0, 0, 1], "orientation": [0, 0, 0, 1], …})

Loading refuses a file that is damaged or fails its golden vectors, and a rate other than the contract's. A step
refuses signals that are missing, unknown, of the wrong size, not finite or out of range, steps at the wrong time,
and what a graph gives that is not finite. A refusal raises, changes nothing, and means that the caller must send
``policy.safe_commands``. Commands are within the contract's limits, whatever the graph does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike
from onnxruntime import OrtValue

from robo_rl.contract import Command, Contract, Signal
from robo_rl.controllers.gate.held import Holding, Samples, may_wait
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.bundle.signing import read_signed

GOLDEN_TOLERANCE = 1e-5  # deviation, commands in units of their range
RATE_TOLERANCE = 1e-3  # relative
TIME_TOLERANCE = 0.5  # of the control period, between two steps
UNIT_TOLERANCE = 0.05  # deviation of a quaternion's norm from 1
FLOAT32 = np.dtype(np.float32)
BEGINNING = 1 << 50  # µs, added to all times, so that no measurement was before time zero


class SignalError(ValueError):
    """The signals of a step must not be acted on. The message names signal, value and expectation."""


class Graph(Protocol):
    """What runs a bundle's graph."""

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Commands (k,) by name and the next state (1, S), for signals (*dimensions) by name and a state (1, S)."""


class Policy:
    """One robot's policy with its memory."""

    def __init__(self, bundle: Bundle, graph: Graph | None = None) -> None:
        """``graph``: what runs the bundle's graph; None: this process does."""
        self.bundle = bundle
        self.contract: Contract = bundle.contract
        self._given = [signal for signal in self.contract.signals if signal.source != "runtime"]
        self._bounds = {
            s.name: tuple(limits.astype(np.float32).reshape(s.dimensions) for limits in s.bounds) for s in self._given
        }
        flat = ([limits[i].ravel() for limits in self._bounds.values()] for i in (0, 1))
        self._lower, self._upper = (np.concatenate(parts) for parts in flat)
        self._shapes = {signal.name: signal.dimensions for signal in self._given}
        self._quaternions = [s.name for s in self._given if s.kind == "quaternion"]
        self._limits = {
            c.name: (np.array(c.lower, np.float32), np.array(c.upper, np.float32)) for c in self.contract.commands
        }
        self._feedback = {c.name: self.contract.feedback(c) for c in self.contract.commands if c.safe == "hold"}
        self._holding = Holding.from_contract(self.contract)
        self._waits = may_wait(self.contract)
        self._period = round(1e6 * self.contract.control_period)
        self._graph: Graph = graph or BoundGraph(bundle)
        self.signer = ""
        """Who signed the bundle, by name and fingerprint; "" where nobody had to."""
        self.runtime, self.runtime_note = "onnxruntime", ""
        """What runs the graph, and why it is not what was asked for; "" if it is."""
        self.reset()

    @classmethod
    def load(
        cls, path: str | Path, rate_hz: float | None, isolate: bool = False, trusted_keys: str | Path | None = None,
        native: bool | str | Path = False,
    ) -> Policy:  # fmt: skip
        """Read and check a bundle that will be stepped ``rate_hz`` times a second; None for the rate of its contract.

        ``isolate``: the graph runs in a process of its own, which ``close`` ends. ``trusted_keys``: a file of public
        keys, one of which must have signed the bundle (``robo_rl.deploy.robot.bundle.signing``). ``native``: the
        graph runs as machine code
        (``robo_rl.deploy.build.native``), of this library or, if True, compiled now; onnxruntime runs it where True
        is not possible
        (``runtime`` tells which, ``runtime_note`` why).
        """
        if native and isolate:
            raise BundleError("both native and isolate; expected one: compiled code can't hang, and does not allocate")
        if native and native is not True and trusted_keys:
            raise BundleError(f"{native}: nobody signs libraries; with trusted keys it is compiled here (native=True)")
        bundle, signer = read_signed(path, trusted_keys)
        wanted = 1 / bundle.contract.control_period
        if rate_hz is not None and not abs(rate_hz / wanted - 1) <= RATE_TOLERANCE:
            raise BundleError(
                f"{path}: rate_hz is {rate_hz:g}; the policy was trained for {wanted:g} Hz and no other rate"
            )
        error = bundle.golden_error()
        if not error <= GOLDEN_TOLERANCE:
            raise BundleError(
                f"{path}: its golden vectors have an error of {error:.2g} on this machine; expected at most "
                f"{GOLDEN_TOLERANCE:g}. Don't use it on this machine"
            )
        graph: Graph | None = None
        if isolate:
            from robo_rl.deploy.robot.isolation import IsolatedGraph

            graph = IsolatedGraph(bundle)
        runtime, note = "onnxruntime", ""
        if native:
            from robo_rl.deploy.build.native import NativeError, native_graph

            try:
                graph, runtime = native_graph(bundle, None if native is True else native), "native"
            except NativeError as error:
                if native is not True:
                    raise
                note = str(error)
        policy = cls(bundle, graph)
        policy.signer, policy.runtime, policy.runtime_note = signer, runtime, note
        return policy

    def close(self) -> None:
        """End the process of an isolated policy."""
        if hasattr(self._graph, "close"):
            self._graph.close()

    def reset(self) -> None:
        """Forget the past, measurements too: before every take-over of the robot."""
        self.state = self.contract.initial_state[None]
        self._time: float | None = None
        self._now = BEGINNING
        """µs, of the last step."""
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        """The last accepted ones, and when they were measured (µs), where that matters."""
        self._seen: dict[str, np.ndarray] = {}
        """What the policy saw last."""

    def continue_from(self, before: Policy) -> None:
        """Take over the robot, with the memory of another policy of the same contract: nothing is forgotten."""
        self.state, self._time, self._now = before.state, before._time, before._now
        self._samples, self._seen = before._samples, before._seen

    @property
    def safe_commands(self) -> dict[str, np.ndarray]:
        """The safe command: the contract's safe numbers, or the last measured values for "hold".

        SignalError if a value must be held and no step was taken since the last ``reset``.
        """
        return {command.name: self._safe(command) for command in self.contract.commands}

    def _safe(self, command: Command) -> np.ndarray:
        if command.safe != "hold":
            return np.array(command.safe, np.float32)
        if not self._seen:
            raise SignalError(
                f"command '{command.name}' is safe at its measured value, and there was no measurement since the "
                "last reset; expected a step with accepted signals before"
            )
        measured = [self._seen[signal][index] for signal, index in self._feedback[command.name]]
        return np.clip(np.array(measured, np.float32), *self._limits[command.name])

    def step(
        self, signals: Mapping[str, ArrayLike], time: float | None = None, ages: Mapping[str, float] | None = None
    ) -> dict[str, np.ndarray]:
        """Commands, (k,) by name, for signals, (k,) or of their shape by name, in the contract's order and units.

        ``time`` (s, any origin) lets the step be refused when it comes too early or too late after the last one.
        ``ages`` (s) tell how long ago given signals were measured; those that it does not name were measured now.

        A signal that has a ``period``, or whose age the policy is told, may be left out: it keeps its last value, until
        that is older than the contract allows. What the policy is told of ages is computed here; where ``time`` is not
        given, by counting steps.
        """
        checked = self.check(signals)
        self._check_time(time)
        now = self._now + self._period if time is None else BEGINNING + round(1e6 * time)
        samples, seen = self._samples, checked
        if self._waits or ages:
            samples = {**samples, **self._stamped(checked, now, ages or {})}
            self._refuse_late(samples, now)
            seen = {name: value for name, (value, _) in self._holding.completed(samples, now).items()}
        commands, state = self._graph.run(seen, self.state)
        commands = {name: self._within(commands[name], *limits, seen) for name, limits in self._limits.items()}
        if not np.isfinite(state).all():
            raise SignalError(f"the policy's memory is not finite for signals {seen}; expected finite numbers")
        self.state, self._time, self._now, self._samples, self._seen = state, time, now, samples, seen
        return commands

    @staticmethod
    def _within(
        command: np.ndarray, lower: np.ndarray, upper: np.ndarray, seen: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """A command within its limits, whatever the graph gave; SignalError for what is not finite."""
        if ((command >= lower) & (command <= upper)).all():  # False for NaN
            return command
        if not np.isfinite(command).all():
            raise SignalError(f"the policy's output is not finite for signals {seen}; expected finite commands")
        return np.clip(command, lower, upper)

    @staticmethod
    def _stamped(
        checked: Mapping[str, np.ndarray], now: int, ages: Mapping[str, float]
    ) -> dict[str, tuple[np.ndarray, int]]:
        """Samples of checked signals."""
        for name, age in ages.items():
            if name not in checked or not 0 <= age < math.inf:
                raise SignalError(f"the age of '{name}' is {age} s; expected 0 or more, of one of {sorted(checked)}")
        return {name: (value, now - round(1e6 * ages.get(name, 0.0))) for name, value in checked.items()}

    def _refuse_late(self, samples: Samples, now: int) -> None:
        late = self._holding.late(samples, now)
        if late is None:
            return
        slot, age = late
        if age < 0:
            expected = f"{_amount(self.contract.signal(slot.name))}, in the first step after a reset at the latest"
            raise SignalError(f"signal '{slot.name}' was never measured; expected {expected}")
        raise SignalError(
            f"signal '{slot.name}' was measured {1e-6 * age:g} s ago; expected at most {1e-6 * slot.timeout:g} s"
        )

    def check(self, signals: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """The signals as float32 arrays, if a policy may act on them; else SignalError."""
        if not signals.keys() <= self._bounds.keys():
            self._refuse_unknown(signals.keys() - self._bounds.keys())
        waits = self._waits
        given = [s for s in self._given if s.name in signals or s.name not in waits] if waits else self._given
        arrays = {signal.name: self._array(signal, signals) for signal in given}
        if len(arrays) == len(self._given):
            flat = np.concatenate(list(arrays.values()), axis=None)
            inside = bool(((flat >= self._lower) & (flat <= self._upper)).all())  # False for NaN
        else:
            limits = ((array, *self._bounds[name]) for name, array in arrays.items())
            inside = all(((array >= lower) & (array <= upper)).all() for array, lower, upper in limits)
        if not inside:
            self._refuse_range(arrays)
        for name in self._quaternions:
            norm = math.hypot(*arrays[name].tolist()) if name in arrays else 1.0
            if abs(norm - 1) > UNIT_TOLERANCE:
                raise SignalError(f"signal '{name}' is {arrays[name].tolist()} with norm {norm:.3f}; expected norm 1")
        return arrays

    def _refuse_unknown(self, unknown: Set[str]) -> NoReturn:
        ages = [s.name for s in self.contract.signals if s.source == "runtime" and s.name in unknown]
        if ages:
            raise SignalError(f"signals {ages} are ages, which are computed here; expected only {list(self._bounds)}")
        raise SignalError(f"signals {sorted(unknown)} are not in the contract; expected {list(self._bounds)}")

    def _array(self, signal: Signal, signals: Mapping[str, ArrayLike]) -> np.ndarray:
        given = signals.get(signal.name)
        value = None if given is None else _numbers(given)
        if value is not None and value.shape == self._shapes[signal.name]:
            return value
        where = f"signal '{signal.name}'"
        if signal.name not in signals:
            raise SignalError(f"{where} is missing; expected {_amount(signal)}")
        if value is None:
            raise SignalError(f"{where} is {repr(given)[:200]}; expected {signal.size} numbers")
        elements = f" for {signal.elements}" if signal.elements else ""
        raise SignalError(f"{where} has shape {value.shape}; expected {signal.dimensions}{elements}")

    def _refuse_range(self, arrays: Mapping[str, np.ndarray]) -> NoReturn:
        """Name the first element that is out of range."""
        for signal in self._given:
            if signal.name not in arrays:
                continue
            value = arrays[signal.name].ravel()
            lower, upper = (limits.ravel() for limits in self._bounds[signal.name])
            outside = np.flatnonzero(~((value >= lower) & (value <= upper)))
            if len(outside):
                i = int(outside[0])
                raise SignalError(
                    f"signal '{signal.name}': {signal.labels[i]} is {value[i]:g} {signal.unit}; expected a number from "
                    f"{lower[i]:g} to {upper[i]:g}"
                )
        raise AssertionError("no element is out of range")

    def _check_time(self, time: float | None) -> None:
        if time is None or self._time is None:
            return
        passed, period = time - self._time, self.contract.control_period
        if not abs(passed - period) <= TIME_TOLERANCE * period:
            raise SignalError(
                f"{passed:.4g} s passed since the last step; expected {period:g} s. Reset before the next step"
            )


def _amount(signal: Signal) -> str:
    """How many numbers a signal has, and what they are."""
    if signal.shape is None:
        return f"{signal.size} numbers {signal.elements} in {signal.unit}"
    return f"{' x '.join(map(str, signal.shape))} numbers in {signal.unit}"


class BoundGraph:
    """A bundle's graph for one robot, between arrays that stay where they are.

    It does what ``Bundle.run`` does for a batch of one. A graph as small as a policy takes about as long to run as
    its inputs take to be handed over, so that is done once.
    """

    def __init__(self, bundle: Bundle) -> None:
        contract = bundle.contract
        self._session, self._binding = bundle.session, bundle.session.io_binding()
        self._inputs = {s.name: np.zeros((1, *s.dimensions), np.float32) for s in contract.signals}
        self._state = np.zeros((1, contract.state_size), np.float32)
        self._outputs = {c.name: np.zeros((1, c.size), np.float32) for c in contract.commands}
        self._next = np.zeros((1, contract.state_size), np.float32)
        for name, array in {**self._inputs, "state": self._state}.items():
            self._binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        for name, array in {**self._outputs, "next_state": self._next}.items():
            self._binding.bind_ortvalue_output(name, OrtValue.ortvalue_from_numpy(array))

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Commands (k,) by name and the next state (1, S), for signals (*dimensions) by name and a state (1, S).

        SignalError if the graph can't be run on them.
        """
        for name, array in self._inputs.items():
            array[0] = signals[name]
        self._state[:] = state
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # onnxruntime's errors share no type below Exception
            raise SignalError(f"the policy can't be run on signals {signals} ({error}); expected commands") from None
        return {name: array[0].copy() for name, array in self._outputs.items()}, self._next.copy()


def _numbers(given: ArrayLike) -> np.ndarray | None:
    """As float32, infinite where float32 ends; None for what is no array of real numbers: texts, truth values, …"""
    if isinstance(given, np.ndarray) and given.dtype is FLOAT32:
        return given
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind not in "fiu":
        return None
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
