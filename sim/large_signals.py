"""Signals that are too large for a loop over single numbers: scans, images, and long pasts of fast control.

They are measured as ``robo_rl.sim.sensors`` says, by tensor operations: the past is a ring of readings, and noise is
drawn in
one native loop over all numbers of all environments. Signals of other sources than sensors pass through. An image is
of one moment: a late one is that of the control step nearest to when it was taken, and what is wrong with depth is in
``robo_rl.sim.depth_errors``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from robo_rl.contract import Image
from robo_rl.sim.accelerate.fuse import fuse, normals, uniforms
from robo_rl.sim.depth_errors import DepthErrors
from robo_rl.sim.sensors import Group, SensorDraws, Sensors, deviations, greatest

FIRST = 1 << 18
"""From this number of a step on, the streams of large signals are drawn."""
WHOLE = 1 << 24
DROPOUT = 1 << 23

_four = fuse(lambda stream, step: normals(stream, step, 4))


class LargeSignals:
    """The signals of n environments that ``Sensors`` leaves out."""

    def __init__(self, sensors: Sensors, n: int, device: torch.device) -> None:
        self.n = n
        self.groups = [_Large(group, n, sensors, place, device) for place, group in enumerate(sensors.large)]
        self.passed = [s.name for s in sensors.apart if s.source != "sensor" and s.age_of is None]

    def begin(
        self, ids: Tensor, truth: Mapping[str, Tensor], drawn: Mapping[str, Tensor], draws: SensorDraws, stream: Tensor,
        signals: dict[str, Tensor],
    ) -> None:  # fmt: skip
        """New episodes of ``ids`` (m,) in the state ``truth``, under ``drawn`` (m, …); writes ``signals`` (n, …)."""
        first = {name: truth[name] for name in self.passed}
        for group in self.groups:
            first |= group.begin(ids, truth, drawn, draws, stream)
        for name, value in first.items():
            if name not in signals:
                signals[name] = value.new_zeros(self.n, *value.shape[1:])
            signals[name][ids] = value

    def measure(
        self, truth: Mapping[str, Tensor], draws: SensorDraws, stream: Tensor, step: Tensor
    ) -> dict[str, Tensor]:
        """The signals (n, …) at a ``step`` (n,)."""
        signals = {name: truth[name].clone() for name in self.passed}
        for group in self.groups:
            signals |= group.measure(truth, draws, stream, step)
        return signals

    def state(self, ids: Tensor) -> dict[str, Tensor]:
        """All that the future of ``ids`` (m,) depends on, (m, …) by name."""
        return {name: value for group in self.groups for name, value in group.state(ids).items()}

    def set_state(self, ids: Tensor, state: Mapping[str, Tensor]) -> None:
        """Go on from ``state``."""
        for group in self.groups:
            group.set_state(ids, state)


class _Large:
    """One group of them."""

    def __init__(self, group: Group, n: int, sensors: Sensors, place: int, device: torch.device) -> None:
        self.group, self.n, self.period, self.first = group, n, sensors.period, FIRST * (place + 1)
        self.noise = torch.cat([deviations(signal) for signal in group.signals]).to(device)
        self.noisy = bool((self.noise > 0).any())
        length = group.steps + 1 if group.delay is not None else 0
        self.ring = torch.zeros(length, n, group.size, device=device)
        self.newest = 0
        self.held = torch.zeros(n, group.size if group.holds else 0, device=device)
        self.left, self.since = torch.zeros(2, n, device=device)
        self.bias = torch.zeros(n, group.size, device=device)
        self.every = torch.arange(n, device=device)
        self.image = isinstance(group.signals[0].layout, Image)  # a signal with a shape is a group of its own
        self.errors = DepthErrors.of(group.signals[0], n, device)
        names = {signal.name for signal in group.signals}
        self.ages = [signal for signal in sensors.apart if signal.age_of in names]

    def begin(
        self, ids: Tensor, truth: Mapping[str, Tensor], drawn: Mapping[str, Tensor], draws: SensorDraws, stream: Tensor
    ) -> dict[str, Tensor]:
        group = self.group
        now = self._now(truth)
        if len(self.ring):
            self.ring[:, ids] = now
        biases = [drawn.get(f"bias/{signal.name}") for signal in group.signals]
        zero = now.new_zeros(len(ids), 1)
        parts = [
            (zero if bias is None else bias.reshape(len(ids), -1)).expand(-1, signal.size)
            for signal, bias in zip(group.signals, biases, strict=True)
        ]
        self.bias[ids] = bias = torch.cat(parts, 1)
        step = torch.zeros(len(ids), device=now.device)
        value = now + bias + self._noise(draws, stream, step)
        if self.errors:
            self.errors.begin(ids, drawn)
            value = self.errors.added(value, self._stream(stream, step), ids)
        if group.phase is not None:
            self.left[ids] = 0.5 + group.every * drawn[group.phase]
        self.since[ids] = 0.0
        if group.holds:
            self.held[ids] = value
        return self._signals(value, self.since[ids], draws)

    def measure(
        self, truth: Mapping[str, Tensor], draws: SensorDraws, stream: Tensor, step: Tensor
    ) -> dict[str, Tensor]:
        value = self._delayed(self._now(truth), draws) + self.bias + self._noise(draws, stream, step)
        if self.errors:
            value = self.errors.added(value, self._stream(stream, step))
        if self.group.holds:
            arrived = self._arrived(draws, stream, step)
            value = torch.where(arrived[:, None], value, self.held)
            self.held = value.clone()
            self.since = torch.where(arrived, 0.0, self.since + 1.0)
        return self._signals(value, self.since, draws)

    def _now(self, truth: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([truth[signal.name].flatten(1) for signal in self.group.signals], 1)

    def _delayed(self, now: Tensor, draws: SensorDraws) -> Tensor:
        """Readings some time ago, between two steps in between."""
        if self.group.delay is None:
            return now
        length = len(self.ring)
        self.newest = (self.newest - 1) % length
        self.ring[self.newest] = now
        lag = draws.delay[:, self.group.delay] / self.period
        if self.image:
            lag = lag.round()
        before = lag.long().clamp(max=length - 1)
        after = (before + 1).clamp(max=length - 1)
        a, b = (self.ring[(self.newest + k) % length, self.every] for k in (before, after))
        return a + (lag - before)[:, None] * (b - a)

    def _stream(self, stream: Tensor, step: Tensor) -> Tensor:
        """A stream for each of the rows of a stream, for this group at that step."""
        return uniforms(stream, step, 4, self.first) * WHOLE

    def _noise(self, draws: SensorDraws, stream: Tensor, step: Tensor) -> Tensor | float:
        """(m, k): the group's noise."""
        if not self.noisy:
            return 0.0
        m, fours = len(step), -(-self.group.size // 4)
        own = self._stream(stream, step).mT[:, :, None].expand(4, m, fours).reshape(4, -1).mT
        drawn = _four(own, torch.arange(fours, device=step.device, dtype=torch.float32).repeat(m))
        normal = drawn.reshape(m, fours * 4)[:, : self.group.size] * self.noise
        return normal if isinstance(draws.noise, tuple) else normal * draws.noise[:, None]

    def _arrived(self, draws: SensorDraws, stream: Tensor, step: Tensor) -> Tensor:
        """(n,) whether a measurement arrives."""
        arrived = torch.ones(self.n, dtype=torch.bool, device=step.device)
        if self.group.phase is not None:
            self.left -= 1.0
            arrived = self.left < 0.5
            self.left += self.group.every * arrived
        if self.group.dropout is not None:
            number = torch.full_like(step, float(DROPOUT))
            arrived &= uniforms(self._stream(stream, step), number, 1)[:, 0] >= draws.dropout[:, self.group.dropout]
        return arrived

    def _signals(self, value: Tensor, since: Tensor, draws: SensorDraws) -> dict[str, Tensor]:
        """The group's signals, and how old they are where there is a signal that tells."""
        age = since * self.period
        if self.group.delay is not None:
            age = age + draws.delay[:, self.group.delay]
        ages = {signal.name: age.clamp(max=greatest(signal))[:, None] for signal in self.ages}
        return {**Sensors.split(self.group, value), **ages}

    def state(self, ids: Tensor) -> dict[str, Tensor]:
        name, order = self.group.signals[0].name, (self.newest + torch.arange(len(self.ring))) % max(1, len(self.ring))
        return {
            f"{name}/past": self.ring[order][:, ids].movedim(0, 1),
            f"{name}/held": self.held[ids],
            f"{name}/left": self.left[ids],
            f"{name}/since": self.since[ids],
            f"{name}/bias": self.bias[ids],
            **({f"{name}/errors": self.errors.drawn[ids]} if self.errors else {}),
        }

    def set_state(self, ids: Tensor, state: Mapping[str, Tensor]) -> None:
        name, length = self.group.signals[0].name, len(self.ring)
        for k in range(length):
            self.ring[(self.newest + k) % length, ids] = state[f"{name}/past"][:, k]
        for part in ("held", "left", "since", "bias"):
            getattr(self, part)[ids] = state[f"{name}/{part}"]
        if self.errors:
            self.errors.drawn[ids] = state[f"{name}/errors"]
