"""What a plan server and a bundle agree on, and what of a server's messages is a plan by that."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robo_rl.contract import Contract

ROUNDING = 1e-5
"""Of a limit's span, by which a target in float32 may be beyond it; then it is put on it."""
SENTENCE = 300
"""Characters of what is told of a stranger's message."""


class PlanError(ValueError):
    """The server, or its message, does not agree with the bundle. The message says in what."""


@dataclass(frozen=True)
class Plan:
    """Targets of all commands, one beside the other, for the time from ``start`` on."""

    number: int
    """Of the request that it answers."""
    start: int
    """µs of the robot's clock: the time of its first row, which is that of the request's signals."""
    rows: np.ndarray
    """(rows, D) float32, in the units of the commands."""


@dataclass(frozen=True)
class Terms:
    """The agreement, as the bundle has it. D is the number of all commands' elements."""

    names: tuple[str, ...]
    """(D,) "COMMAND/ELEMENT"."""
    units: tuple[str, ...]
    frames: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    rows: int
    dt: float
    """s between two rows."""
    signals: tuple[tuple[str, tuple[int, ...]], ...]
    """Names and dimensions of what may be sent to the server."""

    @staticmethod
    def of(contract: Contract) -> Terms:
        """PlanError for a bundle that follows no plans."""
        facts = contract.facts.get("plan")
        if not isinstance(facts, Mapping):
            raise PlanError(
                f"the policy of '{contract.task}' follows no plans; expected one that does: robo-rl export "
                "TASK-plans --out FILE, such as arm-place-plans"
            )
        plans = {*facts["signals"].values(), facts["age"]}
        each = [(c, i) for c in contract.commands for i in range(c.size)]
        given = [s for s in contract.signals if s.name not in plans and s.source != "runtime"]
        return Terms(
            tuple(f"{c.name}/{c.elements[i]}" for c, i in each), tuple(c.unit for c, _ in each),
            tuple(c.frame for c, _ in each), tuple(c.lower[i] for c, i in each), tuple(c.upper[i] for c, i in each),
            int(facts["rows"]), float(facts["dt"]), tuple((s.name, s.dimensions) for s in given),
        )  # fmt: skip

    def to_json(self) -> str:
        """In one line."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Terms:
        """Of ``to_json``."""
        told = json.loads(text)
        told["signals"] = tuple((name, tuple(shape)) for name, shape in told["signals"])
        fields: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in told.items()}
        return Terms(**fields)

    @property
    def most_bytes(self) -> int:
        """Of a message of the server: a plan in float64, and as much again as its names and 64 KiB."""
        return 65536 + 16 * self.rows * len(self.names) + 64 * len(self.names)

    def metadata(self, needs: tuple[str, ...] = ()) -> dict[str, Any]:
        """What a server that agrees sends first; ``needs``: names of the signals that it wants to be sent."""
        told = {key: list(getattr(self, key)) for key in ("names", "units", "frames", "lower", "upper")}
        return {"plan": {**told, "dt": self.dt, "rows": self.rows, "signals": list(needs)}}

    def agreed(self, metadata: Any) -> tuple[int, tuple[str, ...]]:
        """Rows of the server's plans, and names of the signals that it needs. PlanError where it does not agree."""
        told = metadata.get("plan") if isinstance(metadata, dict) else None
        if not isinstance(told, dict):
            raise PlanError(
                "the server's metadata has no 'plan' with names, units, frames, lower, upper, dt, rows, signals; "
                "expected it, so that nothing is taken for something else (docs/plans.md has it for openpi)"
            )
        self._same(told, "the server's plans")
        for side, worse in (("lower", np.less), ("upper", np.greater)):
            value = _numbers(told.get(side), len(self.names), f"the server's '{side}'")
            room = ROUNDING * (np.array(self.upper) - np.array(self.lower))
            beyond = worse(value, np.array(getattr(self, side)) + (-room if side == "lower" else room))
            if beyond.any():
                i = int(np.argmax(beyond))
                raise PlanError(
                    f"the server's '{side}' of {self.names[i]} is {value[i]:g}; expected the bundle's limits, "
                    f"{self.lower[i]:g} to {self.upper[i]:g}, or less"
                )
        rows, needs = told.get("rows"), told.get("signals")
        if type(rows) is not int or not 2 <= rows <= self.rows:
            raise PlanError(f"the server's plans have {_told(rows)} rows; expected 2 to {self.rows}")
        known = [name for name, _ in self.signals]
        if not isinstance(needs, list) or not all(isinstance(name, str) for name in needs):
            raise PlanError(f"the server's 'signals' are {_told(needs)}; expected a list of names, of {known}")
        if lacking := [name for name in needs if name not in known]:
            raise PlanError(f"the server needs the signals {_told(lacking)}; the robot has {known}")
        return rows, tuple(needs)

    def plan(self, answer: Any, rows: int) -> Plan:
        """The plan that an answer of the server is. PlanError where it is none."""
        if not isinstance(answer, dict):
            raise PlanError("the answer is no map; expected actions, id, t0, dt, names, units, frames")
        number, start, actions = answer.get("id"), answer.get("t0"), answer.get("actions")
        if type(number) is not int or not 0 <= number < 1 << 32:
            raise PlanError(f"the answer's id is {_told(number)}; expected that of the request")
        self._same(answer, "the answer")
        if type(start) is not float or not math.isfinite(start) or not abs(start) < 1e12:
            raise PlanError(f"the answer's t0 is {_told(start)}; expected the time of the request, in s")
        shape = (rows, len(self.names))
        if not isinstance(actions, np.ndarray) or actions.dtype.kind != "f" or actions.shape != shape:
            found = (
                f"{actions.dtype}{actions.shape}" if isinstance(actions, np.ndarray) else _told(type(actions).__name__)
            )
            raise PlanError(f"the answer's actions are {found[:80]}; expected floats {shape}")
        return Plan(number, round(1e6 * start), self.within(actions))

    def within(self, actions: np.ndarray) -> np.ndarray:
        """(rows, D) float32 within the limits. PlanError for what is beyond them, or not finite."""
        value = actions.astype(np.float64)
        if not np.isfinite(value).all():
            raise PlanError("the plan has a target that is not a finite number")
        lower, upper = np.array(self.lower), np.array(self.upper)
        room = ROUNDING * (upper - lower)
        beyond = (value < lower - room) | (value > upper + room)
        if beyond.any():
            row, i = (int(k) for k in np.argwhere(beyond)[0])
            raise PlanError(
                f"row {row} of the plan has {value[row, i]:.6g} for {self.names[i]}; expected "
                f"{self.lower[i]:g} to {self.upper[i]:g}"
            )
        return np.clip(value.astype(np.float32), lower.astype(np.float32), upper.astype(np.float32))

    def _same(self, told: Mapping[str, Any], what: str) -> None:
        for key in ("names", "units", "frames"):
            wanted, found = list(getattr(self, key)), told.get(key)
            if found != wanted:
                raise PlanError(f"{what}: {key} are {_told(found)}; the bundle has {wanted}, in this order")
        if type(told.get("dt")) is not float or not abs(told["dt"] - self.dt) <= 1e-9:
            raise PlanError(f"{what}: dt is {_told(told.get('dt'))}; the bundle has {self.dt:g} s")


def _numbers(found: Any, count: int, what: str) -> np.ndarray:
    good = isinstance(found, list) and len(found) == count
    if not good or not all(type(x) in (int, float) and math.isfinite(x) for x in found):
        raise PlanError(f"{what} is {_told(found)}; expected {count} finite numbers")
    return np.array(found, np.float64)


def _told(value: Any) -> str:
    """A stranger's value as a part of a sentence."""
    return ascii(value)[:120]
