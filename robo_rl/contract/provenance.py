"""Where a policy comes from, and how its network is built."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Literal

from robo_rl.contract.channels import require_shape
from robo_rl.contract.checks import require, require_identifier, require_label, require_unique

MAX_WEIGHTS = 1 << 25
"""Of a network's layers: a verifier builds what a file only names."""
ENCODERS = ("convolution", "attention")
BASES = ("script", "network")
DIGEST = re.compile(r"([0-9a-f]{64})?")


@dataclass(frozen=True)
class Encoder:
    """A small network that makes ``features`` numbers of a group of the observation with more than one dimension.

    "convolution": layers with ``widths`` channels, kernels of ``kernel`` places, every second place, along all axes
    but the first where there are three, then a linear layer. "attention": each row (a neighbour, a lane) goes through
    layers of ``widths``, and a learnt query attends to the rows.
    """

    group: str
    shape: tuple[int, ...]
    kind: Literal["convolution", "attention"]
    widths: tuple[int, ...]
    features: int
    kernel: int = 3

    def __post_init__(self) -> None:
        where = f"network: encoder '{self.group}'"
        require_identifier(self.group, "network: encoder: group")
        for name in ("shape", "widths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require_shape(self.shape, f"{where}: shape")
        require(self.kind in ENCODERS, f"{where}: kind", self.kind, f"one of {ENCODERS}")
        _require_widths(self.widths, f"{where}: widths")
        require(len(self.widths) > 0, f"{where}: widths", self.widths, "at least one")
        for name in ("features", "kernel"):
            require(0 < getattr(self, name) <= 4096, f"{where}: {name}", getattr(self, name), "1 to 4096")
        kernels = (self.kernel**2 if self.kind == "convolution" else 1) * max(self.widths) ** 2
        flat = self.widths[-1] * (math.prod(self.shape) >> len(self.widths) if self.kind == "convolution" else 1)
        good = max(kernels, (flat + 1) * self.features) <= MAX_WEIGHTS
        size = (self.shape, self.widths, self.features, self.kernel)
        require(good, f"{where}: shape, widths, features, kernel", size, f"layers of at most {MAX_WEIGHTS} weights")


@dataclass(frozen=True)
class Base:
    """A frozen policy whose actions a network corrects, by at most ``bound`` (actions are −1 to 1).

    "script": the task's own, which needs no layers. "network": an MLP with ``hidden`` layers.
    """

    kind: Literal["script", "network"]
    bound: float
    hidden: tuple[int, ...] = ()
    activation: str = "tanh"
    normalize: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        require(self.kind in BASES, "network: base: kind", self.kind, f"one of {BASES}")
        require(0.0 < self.bound <= 2.0, "network: base: bound", self.bound, "above 0, and at most 2")
        _require_widths(self.hidden, "network: base: hidden")
        require_identifier(self.activation, "network: base: activation")
        good = self.kind == "network" or not (self.hidden or self.normalize)
        require(good, "network: base: hidden, normalize", (self.hidden, self.normalize), "none, of a script")


@dataclass(frozen=True)
class Flow:
    """The network is the velocity of a flow, ``steps`` of which make a chunk of so many actions."""

    steps: int
    chunk: int

    def __post_init__(self) -> None:
        require(1 <= self.steps <= 16, "network: flow: steps", self.steps, "1 to 16")
        require(1 <= self.chunk <= 64, "network: flow: chunk", self.chunk, "1 to 64")


CHUNK_BLOCKS = ("chunk", "chunk_left")
"""Blocks of memory of a policy with chunks: actions (length, k), the next one first; and how many of them are left."""


@dataclass(frozen=True)
class Chunk:
    """One inference gives the actions of ``length`` control steps.

    A step whose memory ``chunk_left`` is 0 is one with an inference; in the others the network's answer is not used.
    """

    length: int

    def __post_init__(self) -> None:
        require(2 <= self.length <= 64, "network: chunk: length", self.length, "2 to 64")


@dataclass(frozen=True)
class Network:
    """Enough to build the network again: hidden layers of an MLP, and what is in front of it.

    ``normalize``: observations are normalised by fixed numbers. ``recurrent``: width of a gated recurrent unit before
    the hidden layers, 0 for none. ``base``: what the network corrects, if it does not act alone. ``flow``: if
    the network is one. ``chunk``: if one inference gives several actions.
    """

    hidden: tuple[int, ...]
    activation: str
    normalize: bool
    recurrent: int = 0
    encoders: tuple[Encoder, ...] = ()
    base: Base | None = None
    flow: Flow | None = None
    chunk: Chunk | None = None

    def __post_init__(self) -> None:
        for name in ("hidden", "encoders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _require_widths((self.recurrent, *self.hidden) if self.recurrent > 0 else self.hidden, "network: hidden")
        require_identifier(self.activation, "network: activation")
        require(0 <= self.recurrent <= 4096, "network: recurrent", self.recurrent, "0 to 4096")
        require_unique([encoder.group for encoder in self.encoders], "network: encoders")
        kinds = (self.base is not None) + (self.flow is not None) + bool(self.recurrent or self.encoders)
        given = (self.recurrent, self.encoders, self.base, self.flow)
        require(kinds <= 1, "network: recurrent, encoders, base, flow", given, "no base or flow beside the others")
        require(self.flow is None or not self.normalize, "network: normalize", self.normalize, "false, of a flow")
        alone = self.chunk is None or not (self.recurrent or self.base or self.flow)
        require(alone, "network: chunk", self.chunk, "none beside recurrent, base or flow")

    @property
    def actions(self) -> int:
        """Control steps for which one inference gives the actions."""
        if self.chunk is not None:
            return self.chunk.length
        return 1 if self.flow is None else self.flow.chunk


@dataclass(frozen=True)
class Provenance:
    """Where a policy comes from: enough to train it again, nothing about the machine it was trained on.

    ``configuration_digest`` is the SHA-256 of the run's description (task, robot, algorithm, seed and
    hyperparameters). ``source`` ("circle.py:Circle") and ``source_digest`` (SHA-256) tell of a task from a user's own
    file; both are empty for tasks that come with robo-rl.
    """

    algorithm: str
    seed: int
    environment_steps: int
    configuration_digest: str
    versions: dict[str, str] = field(default_factory=dict)
    source: str = ""
    source_digest: str = ""

    def __post_init__(self) -> None:
        require_label(self.algorithm, "provenance: algorithm")
        if self.source:
            require_label(self.source, "provenance: source")
        for name in ("configuration_digest", "source_digest"):
            value = getattr(self, name)
            good = isinstance(value, str) and DIGEST.fullmatch(value) is not None
            require(good, f"provenance: {name}", value, "64 hexadecimal digits, or nothing")
        steps = self.environment_steps
        require(steps >= 0, "provenance: environment_steps", steps, "a number of 0 or more")


def _require_widths(widths: tuple[int, ...], where: str) -> None:
    require(all(0 < width <= 65536 for width in widths), where, widths, "widths of layers, 1 to 65536")
    weights = sum(before * after for before, after in itertools.pairwise(widths))
    require(weights <= MAX_WEIGHTS, where, widths, f"widths of layers with at most {MAX_WEIGHTS} weights in all")
