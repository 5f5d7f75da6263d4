"""A bundle by its file alone: onnxruntime runs the graph, and its contract says what goes in and out (docs/bundle.md).

Nothing of robo_rl is imported here, nor in the files beside it: that is what they are for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Arrays = dict[str, np.ndarray]


class Policy:
    """n copies of a policy."""

    def __init__(self, file: Path, n: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.contract: dict[str, Any] = json.loads(self.session.get_modelmeta().custom_metadata_map["robo_rl.contract"])
        initial = [x for block in self.contract["state"] for x in block["initial"]]
        self.n, self.period = n, self.contract["control_period"]
        self.facts, self.robot = self.contract["facts"], self.contract["robot"]
        self.state = np.tile(np.array(initial, np.float32), (n, 1))
        self.refused = np.zeros(n, bool)
        """Whose signals have ever been out of their limits: a gate stops those."""

    def __call__(self, signals: Arrays) -> Arrays:
        """Commands (n, elements) for signals (n, …), one control period."""
        given = {}
        for signal in self.contract["signals"]:
            shape = signal["shape"] or [len(signal["elements"])]
            value = np.asarray(signals[signal["name"]], np.float32).reshape(self.n, *shape)
            low, high = np.float32(signal["lower"]), np.float32(signal["upper"])
            assert np.isfinite(value).all(), signal["name"]
            self.refused |= ((value < low) | (value > high)).reshape(self.n, -1).any(1)
            given[signal["name"]] = np.clip(value, low, high)
        *commands, self.state = self.session.run(None, {**given, "state": self.state})
        return {command["name"]: value for command, value in zip(self.contract["commands"], commands, strict=True)}


class Draws:
    """What differs between episodes, from ``facts.ranges``."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.ranges, self.n, self.random = policy.facts["ranges"], policy.n, np.random.default_rng(seed)

    def __call__(self, name: str, *shape: int, otherwise: float = 0.0) -> np.ndarray:
        """(n, *shape) draws of a range, or a number where there is none of the name."""
        if name not in self.ranges:
            return np.full((self.n, *shape), otherwise)
        low, high = self.ranges[name]["from"], self.ranges[name]["to"]
        return self.random.uniform(low, high, (self.n, *shape))


class Sensors:
    """Measured values with the contract's latency and noise, from true ones at every step of a plant."""

    def __init__(self, policy: Policy, draw: Draws, step: float) -> None:
        self.signals = {s["name"]: s for s in policy.contract["signals"] if s["source"] == "sensor"}
        self.random, self.noise = draw.random, draw("noise", otherwise=1.0)
        common = draw("delay")
        self.late = {}
        for name, signal in self.signals.items():
            late = draw(f"delay.{name}") if f"delay.{name}" in draw.ranges else np.clip(common, *signal["delay"])
            self.late[name] = np.rint(late / step).astype(int)
        self.past: dict[str, list[np.ndarray]] = {name: [] for name in self.signals}

    def note(self, name: str, value: np.ndarray) -> None:
        """The true value (n, …) at this step."""
        self.past[name] = [*self.past[name][-60:], value.copy()]

    def read(self) -> Arrays:
        """(n, …) of every signal that was noted."""
        found = {}
        for name, past in self.past.items():
            if not past:
                continue
            at = np.maximum(len(past) - 1 - self.late[name], 0)
            value = np.stack(past)[at, np.arange(len(at))]
            if self.signals[name]["noise"] is not None:
                factor = self.noise.reshape(-1, *[1] * (value.ndim - 1))
                value = value + factor * np.array(self.signals[name]["noise"]) * self.random.standard_normal(
                    value.shape
                )
            if self.signals[name]["kind"] == "quaternion":
                value = value / np.linalg.norm(value, axis=-1, keepdims=True)
            found[name] = value
        return found


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4), x, y, z, w."""
    a, b = p[:, :3], q[:, :3]
    v = p[:, 3:] * b + q[:, 3:] * a + np.cross(a, b)
    return np.concatenate([v, p[:, 3:] * q[:, 3:] - (a * b).sum(1, keepdims=True)], 1)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) from the body to the world."""
    t = 2.0 * np.cross(q[:, :3], v)
    return v + q[:, 3:] * t + np.cross(q[:, :3], t)
