"""From true quantities to measured signals: latency and noise.

Pure functions of tensors, so that they run in the environment's loop, inside a fused differentiable step and
in a stand-in robot alike. One latency holds for all of a robot's sensors (they reach a policy through one
state estimator); it differs between environments and need not be a whole number of control steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from robo_rl.contract import Signal


class Sensors:
    """Measures the sensor signals of a task; those of the operator and of the simulation pass through.

    The past needed for latency is a tensor ``delay_buffer`` (n, steps, elements) that the caller keeps.
    """

    def __init__(
        self,
        signals: Sequence[Signal],
        period: float,
        longest_delay: float | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        """``longest_delay`` (s) is how much past must be kept; by default what the signals tell."""
        self.signals = tuple(signals)
        self.period = period
        self.sensed = [signal for signal in signals if signal.source == "sensor"]
        self.sizes = [signal.size for signal in self.sensed]
        self.size = sum(self.sizes)
        noise = [x for s in self.sensed for x in s.spread(0.0 if s.noise is None else s.noise)]
        self.noise = torch.tensor([noise], dtype=torch.float32, device=device)
        delay = max(signal.delay[1] for signal in self.sensed) if longest_delay is None else longest_delay
        self.steps = max(1, math.ceil(delay / period - 1e-9))

    def start(self, truth: Mapping[str, Any]) -> Any:
        """The ``delay_buffer`` of vehicles that were always in the state ``truth``."""
        now = torch.cat([truth[signal.name] for signal in self.sensed], -1)
        return torch.stack([now] * self.steps, 1)

    def measure(
        self, truth: Mapping[str, Any], delay_buffer: Any, delay: Any, noise: Any
    ) -> tuple[dict[str, Any], Any]:
        """The signals now, and the delay_buffer for the next step.

        ``truth``: tensors (n, k) by signal name. ``delay``: (n,) s. ``noise``: (n, elements), standard
        deviations already applied. Quaternions come out with unit norm.
        """
        now = torch.cat([truth[signal.name] for signal in self.sensed], -1)
        past = [now, *delay_buffer.unbind(1)]
        lag = (delay / self.period)[:, None]
        weights = [torch.clamp(1 - abs(lag - k), min=0.0) for k in range(self.steps + 1)]
        seen = sum((w * x for w, x in zip(weights[1:], past[1:], strict=True)), weights[0] * past[0])
        delay_buffer = torch.stack(past[:-1], 1)
        signals = dict(zip([s.name for s in self.sensed], torch.split(seen + noise, self.sizes, -1), strict=True))
        for signal in self.signals:
            if signal.kind == "quaternion":
                value = signals[signal.name]
                signals[signal.name] = value / torch.linalg.vector_norm(value, dim=-1, keepdim=True)
            if signal.source != "sensor":
                signals[signal.name] = truth[signal.name]
        return {signal.name: signals[signal.name] for signal in self.signals}, delay_buffer
