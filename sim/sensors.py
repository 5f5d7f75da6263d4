"""From true quantities to measured signals: latency, noise, bias, slow sensors, measurements that drop out.

Pure functions of tensors, so that they run in the environment's loop, inside a fused differentiable step and in a
simulated robot alike. Signals that are measured together (at one rate, equally late) are one group.

Latency need not be a whole number of control steps, and differs between environments. It is the draw "delay/<signal>"
where the task has such a range, else "delay", which is one for all sensors (they reach a policy through one state
estimator), else uniform over the signal's own ``delay``, one draw for all signals of the same.

A slow sensor is sampled and held: at every ``period`` a measurement arrives, with the latency and the noise of its
own, and stands until the next one. At which of the control steps that is differs between episodes. "dropout/<signal>"
is the probability that a measurement never arrives: the last one stands, and ages.

Scans, images and long pasts are too large for a loop over single numbers: see ``robo_rl.sim.large_signals``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.contract import Signal
from robo_rl.sim.accelerate.fuse import normal_uniforms, normals, uniforms
from robo_rl.sim.ranges import Range

MOST_LATENCY, MOST_STEPS = 1.0, 100
"""s, and control steps, of a past that is kept for every robot: the larger of the two."""
LARGE = 512
"""Numbers per environment, past included, from which on a signal is computed apart from the others."""


class Chance(NamedTuple):
    """The random numbers of one measurement."""

    normal: Any
    """(n, elements) standard normal: noise."""
    uniform: Any
    """(n, groups) from 0 to 1: which measurements drop out; () where none can."""


class SensorDraws(NamedTuple):
    """What differs between episodes. Each is () where the task has none."""

    delay: Any = ()
    """(n, k) s, latencies."""
    noise: Any = ()
    """(n,) factor on the signals' noise."""
    bias: Any = ()
    """(n, elements) constant errors."""
    dropout: Any = ()
    """(n, groups) probability that a measurement drops out."""


class SensorState(NamedTuple):
    """What sensors keep from step to step, by group; () where there is nothing to keep."""

    past: tuple[Any, ...]
    """(n, steps, k) each: the true readings of the last steps, newest first."""
    held: tuple[Any, ...]
    """(n, k) each: the measurement that stands."""
    left: tuple[Any, ...]
    """(n,) each: control steps until the next measurement."""
    since: tuple[Any, ...]
    """(n,) each: control steps since the measurement that stands arrived."""


@dataclass(frozen=True)
class Group:
    """Signals that are measured together."""

    signals: tuple[Signal, ...]
    delay: int | None
    """Which of the latencies is theirs; None: they are never late."""
    steps: int
    """Of the past that latency needs."""
    every: float
    """Control steps between measurements."""
    phase: str | None
    """Name of the draw, 0 to 1, that tells when a slow sensor measures."""
    dropout: int | None
    """Which of the probabilities is theirs."""

    @property
    def holds(self) -> bool:
        """Whether there are steps without a measurement."""
        return self.phase is not None or self.dropout is not None

    @property
    def size(self) -> int:
        """Numbers of a measurement."""
        return sum(signal.size for signal in self.signals)

    @property
    def large(self) -> bool:
        """Whether it is computed apart."""
        return self.size * (self.steps + self.holds + 1) > LARGE


class Sensors:
    """Measures the sensor signals of a task; those of operator, runtime and simulation pass through."""

    def __init__(
        self,
        signals: Sequence[Signal],
        period: float,
        ranges: Mapping[str, Range] = MappingProxyType({}),
        fixed: Mapping[str, float | Tensor] = MappingProxyType({}),
        device: str | torch.device = "cpu",
    ) -> None:
        """``period`` is the control period, s; ``ranges`` are the task's, and ``fixed`` what they are fixed to."""
        self.period = period
        measured = [signal for signal in signals if signal.source == "sensor"]
        late = {signal.name: self._delay_name(signal, measured, ranges) for signal in measured}
        slow = [s for s in measured if s.period is not None and s.period > period * (1 + 1e-6)]
        self.ranges = {
            **{name: _own_delay(name, measured) for name in late.values() if name and name not in ranges},
            **{f"phase/{signal.name}": Range.fixed(0.0, 1.0) for signal in slow},
        }
        """Draws that sensors need besides the task's."""
        drawn = {**ranges, **self.ranges}
        self.delays = list(dict.fromkeys(name for name in late.values() if name is not None))
        self.dropouts = [s.name for s in measured if f"dropout/{s.name}" in ranges]
        steps = {name: math.ceil(_longest(drawn[name], fixed.get(name)) / period - 1e-9) for name in self.delays}
        for name, count in steps.items():
            if count > max(MOST_STEPS, MOST_LATENCY / period):
                raise ValueError(
                    f"ranges: {name} is up to {count * period:g} s; expected at most {MOST_LATENCY:g} s, or "
                    f"{MOST_STEPS} control steps"
                )
        groups: dict[Any, list[Signal]] = {}
        for s in measured:
            alone = s.name if s in slow or s.name in self.dropouts or s.shape is not None else None
            groups.setdefault((late[s.name], alone), []).append(s)
        every = [
            Group(
                signals=tuple(members),
                delay=self.delays.index(delay) if delay else None,
                steps=max(1, steps[delay]) if delay else 0,
                every=members[0].period / period if members[0] in slow else 1.0,  # type: ignore[operator]
                phase=f"phase/{alone}" if members[0] in slow else None,
                dropout=self.dropouts.index(alone) if alone in self.dropouts else None,
            )
            for (delay, alone), members in groups.items()
        ]
        self.large = [group for group in every if group.large]
        self.groups = [group for group in every if not group.large]
        apart = {signal.name for group in self.large for signal in group.signals}
        apart |= {s.name for s in signals if s.source != "sensor" and s.size > LARGE}
        apart |= {signal.name for signal in signals if signal.age_of in apart}
        self.apart = [signal for signal in signals if signal.name in apart]
        """Signals that are not measured here."""
        self.slow = [group for group in self.groups if group.phase is not None]
        self.signals = tuple(signal for signal in signals if signal.name not in apart)
        self.sensed = [signal for signal in measured if signal.name not in apart]
        self.sizes = [signal.size for signal in self.sensed]
        self.size = sum(self.sizes)
        noise = torch.cat([torch.zeros(0), *map(deviations, self.sensed)])[None]
        self.noise = noise.to(device)
        self.noisy, self.factor = bool((noise > 0).any()), "noise" in ranges
        self.biased = any(f"bias/{signal.name}" in ranges for signal in self.sensed)

    @staticmethod
    def _delay_name(signal: Signal, measured: Sequence[Signal], ranges: Mapping[str, Range]) -> str | None:
        """The draw that is a signal's latency."""
        for name in (f"delay/{signal.name}", "delay"):
            if name in ranges:
                return name
        alike = next(other for other in measured if other.delay == signal.delay)
        return f"delay/{alike.name}" if signal.delay[1] > 0 else None

    def draws(self, drawn: Mapping[str, Any]) -> SensorDraws:
        """What holds for an episode, of the draws (m,) or (m, k) from all ranges."""

        def stacked(names: Sequence[str]) -> Any:
            return torch.stack([drawn[name] for name in names], -1) if names else ()

        return SensorDraws(
            delay=stacked(self.delays),
            noise=drawn["noise"] if self.factor else (),
            bias=self._bias(drawn) if self.biased else (),
            dropout=stacked([f"dropout/{name}" for name in self.dropouts]),
        )

    def _bias(self, drawn: Mapping[str, Any]) -> Any:
        """(m, elements) the draws "bias/<signal>", 0 without one."""
        zero = next(iter(drawn.values()))
        zero = 0.0 * (zero[:, None] if zero.ndim == 1 else zero[:, :1])
        parts = [drawn.get(f"bias/{s.name}", zero) for s in self.sensed]
        parts = [part[:, None] if part.ndim == 1 else part for part in parts]
        return torch.cat([part.expand(-1, s.size) for part, s in zip(parts, self.sensed, strict=True)], 1)

    def phases(self, drawn: Mapping[str, Any]) -> tuple[Any, ...]:
        """Of the slow groups: (m,) draws that tell when they measure."""
        return tuple(drawn[str(group.phase)] for group in self.slow)

    def chance(self, stream: Any, step: Any) -> Chance:
        """The numbers that environments draw for their measurement at a ``step`` (n,): see
        ``robo_rl.sim.accelerate.fuse.random``."""
        after = 4 * math.ceil(normal_uniforms(self.size) / 4)
        return Chance(
            normal=normals(stream, step, self.size) if self.noisy else (),
            uniform=uniforms(stream, step, len(self.dropouts), after) if self.dropouts else (),
        )

    def start(self, truth: Mapping[str, Any], phases: tuple[Any, ...] = ()) -> SensorState:
        """The state of robots that were always in the state ``truth`` and have just measured it."""
        now = [self._now(group, truth) for group in self.groups]
        still = [reading[:, 0] * 0.0 for reading in now]
        turns = iter(phases)
        holding = [(group, reading) for group, reading in zip(self.groups, now, strict=True) if group.holds]
        return SensorState(
            past=tuple(torch.stack([x] * g.steps, 1) for g, x in zip(self.groups, now, strict=True) if g.steps),
            held=tuple(reading for _, reading in holding),
            left=tuple(0.5 + g.every * next(turns) for g in self.groups if g.phase is not None),
            since=tuple(zero for g, zero in zip(self.groups, still, strict=True) if g.holds),
        )

    @staticmethod
    def _now(group: Group, truth: Mapping[str, Any]) -> Any:
        return torch.cat([truth[signal.name].flatten(1) for signal in group.signals], -1)

    def measure(
        self, truth: Mapping[str, Any], state: SensorState, draws: SensorDraws, chance: Chance, first: bool = False
    ) -> tuple[dict[str, Any], SensorState]:
        """The signals now, and the state for the next step.

        ``truth``: tensors (n, …) by signal name. Quaternions come out with unit norm. With ``first``, ``state`` is that
        of ``start``, and every sensor measures.
        """
        past, held, left, since = (iter(part) for part in state)
        pasts: list[Any] = []
        holds: list[Any] = []
        lefts: list[Any] = []
        ages: list[Any] = []
        errors = self._errors(draws, chance)
        signals: dict[str, Any] = {}
        old: dict[str, Any] = {}
        for group in self.groups:
            value = self._now(group, truth)
            late = since_arrival = None
            if group.delay is not None:
                late = draws.delay[:, group.delay]
                value, line = delayed(value, next(past), late / self.period)
                pasts.append(line)
            if errors:
                value = value + torch.cat([errors[signal.name] for signal in group.signals], -1)
            if group.holds:
                before, since_arrival = next(held), next(since)
                wait = None if group.phase is None else next(left)
                if not first:
                    arrived, wait = self._arrived(group, wait, draws, chance)
                    value = torch.where(arrived[:, None], value, before)
                    since_arrival = torch.where(arrived, 0.0, since_arrival + 1.0)
                lefts += [] if wait is None else [wait]
                holds.append(value)
                ages.append(since_arrival)
            signals |= self.split(group, value)
            old |= {signal.name: (late, since_arrival) for signal in group.signals}
        for signal in self.signals:
            if signal.age_of is not None:
                signals[signal.name] = self._age(signal, truth, *old.get(signal.age_of, (None, None)))
            elif signal.source != "sensor":
                signals[signal.name] = truth[signal.name]
        ordered = {signal.name: signals[signal.name] for signal in self.signals}
        return ordered, SensorState(tuple(pasts), tuple(holds), tuple(lefts), tuple(ages))

    def _errors(self, draws: SensorDraws, chance: Chance) -> dict[str, Any]:
        """(n, k) errors of each signal: noise and bias."""
        errors: Any = None
        if self.noisy:
            errors = chance.normal * self.noise
            errors = errors if isinstance(draws.noise, tuple) else errors * draws.noise[:, None]
        if self.biased:
            errors = draws.bias if errors is None else errors + draws.bias
        if errors is None:
            return {}
        return dict(zip([s.name for s in self.sensed], torch.split(errors, self.sizes, -1), strict=True))

    @staticmethod
    def _arrived(group: Group, wait: Any, draws: SensorDraws, chance: Chance) -> tuple[Any, Any]:
        """(n,) whether a measurement arrives now, and the steps until the next one, None if there is one at each."""
        arrived = None
        if wait is not None:
            wait = wait - 1.0
            arrived = wait < 0.5
            wait = torch.where(arrived, wait + group.every, wait)
        if group.dropout is not None:
            comes = chance.uniform[:, group.dropout] >= draws.dropout[:, group.dropout]
            arrived = comes if arrived is None else arrived & comes
        return arrived, wait

    @staticmethod
    def split(group: Group, value: Any) -> dict[str, Any]:
        """Signals by name, in their shapes."""
        found = {}
        parts = torch.split(value, [signal.size for signal in group.signals], -1)
        for signal, part in zip(group.signals, parts, strict=True):
            if signal.kind == "quaternion":
                part = part / torch.linalg.vector_norm(part, dim=-1, keepdim=True)
            found[signal.name] = part if signal.shape is None else part.reshape(-1, *signal.shape)
        return found

    def _age(self, signal: Signal, truth: Mapping[str, Any], late: Any, since: Any) -> Any:
        """(n, 1) s, how old the measurement is that stands for ``signal.age_of``."""
        if signal.name in truth:
            return truth[signal.name]
        parts = [part for part in (late, None if since is None else since * self.period) if part is not None]
        age = sum(parts[1:], parts[0]) if parts else next(iter(truth.values())).flatten(1)[:, 0] * 0.0
        return torch.clamp(age, max=greatest(signal))[:, None]


def delayed(now: Any, past: Any, lag: Any) -> tuple[Any, Any]:
    """Readings (n, k) ``lag`` (n,) control steps ago, between two steps in between; and the past for the next step."""
    readings = [now, *past.unbind(1)]
    lag = lag[:, None]
    weights = [torch.clamp(1 - abs(lag - k), min=0.0) for k in range(len(readings))]
    seen = sum((w * x for w, x in zip(weights[1:], readings[1:], strict=True)), weights[0] * readings[0])
    return seen, torch.stack(readings[:-1], 1)


def without_large(truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The quantities that a loop over single numbers can hold."""
    return {name: value for name, value in truth.items() if value.shape[1:].numel() <= LARGE}


def deviations(signal: Signal) -> Tensor:
    """(size,) standard deviations of the noise."""
    return torch.from_numpy(signal.spread(0.0 if signal.noise is None else signal.noise).copy()).float()


def greatest(signal: Signal) -> float:
    """The upper limit of a signal's first number."""
    return float(signal.bounds[1][0])


def _own_delay(name: str, measured: Sequence[Signal]) -> Range:
    signal = next(signal for signal in measured if name == f"delay/{signal.name}")
    return Range.fixed(*signal.delay)


def _longest(drawn: Range, fixed: float | Tensor | None) -> float:
    """The longest latency (s) that can be drawn from a range that may be fixed."""
    values = torch.as_tensor(0.0 if fixed is None else fixed, dtype=torch.float64)
    return max(drawn.start[1], drawn.end[1], float(values.nan_to_num(0.0).max()))
