"""Run a bundle on a robot: numpy and onnxruntime, nothing else.

    policy = Policy.load("policy.onnx", rate_hz=100)
    commands = policy.step({"position": [0, 0, 1], "orientation": [0, 0, 0, 1], …})

Loading refuses a file that is damaged or fails its golden vectors, and a rate other than the contract's. A step
refuses signals that are missing, unknown, of the wrong size, not finite or out of range, and steps at the wrong
time. A refusal raises, changes nothing, and means that the caller must send ``policy.safe_commands``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike
from onnxruntime import OrtValue

from deploy.bundle import Bundle, BundleError
from robo_rl.contract import Contract, Signal

GOLDEN_TOLERANCE = 1e-5  # deviation, commands in units of their range
RATE_TOLERANCE = 1e-3  # relative
TIME_TOLERANCE = 0.5  # of the control period, between two steps
UNIT_TOLERANCE = 0.05  # deviation of a quaternion's norm from 1


class SignalError(ValueError):
    """The signals of a step must not be acted on. The message names signal, value and expectation."""


class Graph(Protocol):
    """What runs a bundle's graph."""

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Commands (k,) by name and the next state (1, S), for signals (k,) by name and a state (1, S)."""


class Policy:
    """One robot's policy with its memory."""

    def __init__(self, bundle: Bundle, graph: Graph | None = None) -> None:
        """``graph``: what runs the bundle's graph; None: this process does."""
        self.bundle = bundle
        self.contract: Contract = bundle.contract
        self._bounds = {
            s.name: (np.array(s.lower, np.float32), np.array(s.upper, np.float32)) for s in self.contract.signals
        }
        self._lower, self._upper = (np.concatenate(parts) for parts in zip(*self._bounds.values(), strict=True))
        self._quaternions = [s.name for s in self.contract.signals if s.kind == "quaternion"]
        self._graph: Graph = graph or BoundGraph(bundle)
        self.reset()

    @classmethod
    def load(cls, path: str | Path, rate_hz: float, isolate: bool = False) -> Policy:
        """Read and check a bundle that will be stepped ``rate_hz`` times a second.

        ``isolate``: the graph runs in a process of its own, which ``close`` ends.
        """
        bundle = Bundle.read(path)
        wanted = 1 / bundle.contract.control_period
        if not abs(rate_hz / wanted - 1) <= RATE_TOLERANCE:
            raise BundleError(
                f"{path}: rate_hz is {rate_hz:g}; the policy was trained for {wanted:g} Hz and no other rate"
            )
        error = bundle.golden_error()
        if not error <= GOLDEN_TOLERANCE:
            raise BundleError(
                f"{path}: its golden vectors come out wrong by {error:.2g} on this machine; expected at most "
                f"{GOLDEN_TOLERANCE:g}. Don't use it here"
            )
        if not isolate:
            return cls(bundle)
        from deploy.isolation import IsolatedGraph

        return cls(bundle, IsolatedGraph(bundle))

    def close(self) -> None:
        """End the process of an isolated policy."""
        if hasattr(self._graph, "close"):
            self._graph.close()

    def reset(self) -> None:
        """Forget the past: before every take-over of the robot."""
        self.state = self.contract.initial_state[None]
        self._time: float | None = None

    @property
    def safe_commands(self) -> dict[str, np.ndarray]:
        """What to send when in doubt."""
        return {command.name: np.array(command.safe, np.float32) for command in self.contract.commands}

    def step(self, signals: Mapping[str, ArrayLike], time: float | None = None) -> dict[str, np.ndarray]:
        """Commands, (k,) by name, for signals, (k,) by name, both in the contract's order and units.

        ``time`` (s, any origin) lets the step be refused when it comes too early or too late after the last one.
        """
        checked = self.check(signals)
        self._check_time(time)
        commands, state = self._graph.run(checked, self.state)
        if not (np.isfinite(state).all() and all(np.isfinite(value).all() for value in commands.values())):
            raise SignalError(f"the policy's output is not finite for signals {checked}; expected finite commands")
        self.state, self._time = state, time
        return commands

    def check(self, signals: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """The signals as float32 arrays, if a policy may act on them; else SignalError."""
        unknown = signals.keys() - self._bounds.keys()
        if unknown:
            raise SignalError(f"signals {sorted(unknown)} are not in the contract; expected {list(self._bounds)}")
        arrays = {signal.name: self._array(signal, signals) for signal in self.contract.signals}
        flat = np.concatenate(list(arrays.values()))
        if not ((flat >= self._lower) & (flat <= self._upper)).all():  # true for NaN
            self._refuse_range(arrays)
        for name in self._quaternions:
            norm = math.hypot(*arrays[name].tolist())
            if abs(norm - 1) > UNIT_TOLERANCE:
                raise SignalError(f"signal '{name}' is {arrays[name].tolist()} with norm {norm:.3f}; expected norm 1")
        return arrays

    def _array(self, signal: Signal, signals: Mapping[str, ArrayLike]) -> np.ndarray:
        where = f"signal '{signal.name}'"
        if signal.name not in signals:
            raise SignalError(f"{where} is missing; expected {signal.size} numbers {signal.elements} in {signal.unit}")
        value = _numbers(signals[signal.name])
        if value is None:
            raise SignalError(f"{where} is {repr(signals[signal.name])[:200]}; expected {signal.size} numbers")
        if value.shape != (signal.size,):
            raise SignalError(f"{where} has shape {value.shape}; expected ({signal.size},) for {signal.elements}")
        return value

    def _refuse_range(self, arrays: Mapping[str, np.ndarray]) -> NoReturn:
        """Name the first element that is out of range."""
        for signal in self.contract.signals:
            for element, value, lower, upper in zip(
                signal.elements, arrays[signal.name], *self._bounds[signal.name], strict=True
            ):
                if not lower <= value <= upper:
                    raise SignalError(
                        f"signal '{signal.name}': {element} is {value:g} {signal.unit}; expected a number from "
                        f"{lower:g} to {upper:g}"
                    )
        raise AssertionError("no element is out of range")

    def _check_time(self, time: float | None) -> None:
        if time is None or self._time is None:
            return
        passed, period = time - self._time, self.contract.control_period
        if not abs(passed - period) <= TIME_TOLERANCE * period:
            raise SignalError(
                f"{passed:.4g} s passed since the last step; expected {period:g} s. Reset before going on"
            )


class BoundGraph:
    """A bundle's graph for one robot, between arrays that stay where they are.

    It does what ``Bundle.run`` does for a batch of one. A graph as small as a policy takes about as long to run as
    its inputs take to be handed over, so that is done once.
    """

    def __init__(self, bundle: Bundle) -> None:
        contract = bundle.contract
        self._session, self._binding = bundle.session, bundle.session.io_binding()
        self._inputs = {s.name: np.zeros((1, s.size), np.float32) for s in contract.signals}
        self._state = np.zeros((1, contract.state_size), np.float32)
        self._outputs = {c.name: np.zeros((1, c.size), np.float32) for c in contract.commands}
        self._next = np.zeros((1, contract.state_size), np.float32)
        for name, array in {**self._inputs, "state": self._state}.items():
            self._binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        for name, array in {**self._outputs, "next_state": self._next}.items():
            self._binding.bind_ortvalue_output(name, OrtValue.ortvalue_from_numpy(array))

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Commands (k,) by name and the next state (1, S), for signals (k,) by name and a state (1, S)."""
        for name, array in self._inputs.items():
            array[0] = signals[name]
        self._state[:] = state
        self._session.run_with_iobinding(self._binding)
        return {name: array[0].copy() for name, array in self._outputs.items()}, self._next.copy()


def _numbers(given: ArrayLike) -> np.ndarray | None:
    """As float32, infinite where float32 ends; None for what is no array of real numbers: texts, truth values, …"""
    if isinstance(given, np.ndarray) and given.dtype == np.float32:
        return given
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind not in "fiu":
        return None
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
