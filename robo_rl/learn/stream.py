"""Streaming actor-critic: a policy goes on learning from each step once, without a memory of steps.

Each transition changes the weights at once and is forgotten. Eligibility traces carry credit back, and the size of a
step is bounded so that no single surprise can overshoot: with traces z and the error δ of the temporal difference, the
step is 1 / max(1, κ · max(|δ|, 1) · ‖z‖₁). After Elsayed et al. 2024 (Streaming Deep Reinforcement Learning Finally
Works), for policies that already work: exploration is Gaussian noise of one deviation, and each weight of the actor
stays within a bound about the exported one.

This is the reference of the generated C (``robo_rl.deploy.build.c.learning``), which gives the same bits: float32
throughout, sums in one order, tanh, logarithm and cosine by own polynomials, random numbers from a counter.

A robot's learning is guarded: nothing is learnt in a step that the gate does not allow, nor from a surprise that is far
beyond the usual; the exported weights come back where what is earned falls below what they earned.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from robo_rl.learn.config import Bound, Bounded, Count, NotNegative, Part, Positive

Floats = NDArray[np.float32]
ONE, ZERO = np.float32(1.0), np.float32(0.0)
RATE = np.float32(0.001)
"""Of the running mean of |δ|."""
STEADY = 5000
"""Steps after which that mean tells what is usual."""
LARGEST = np.float32(1e6)
"""A |δ| beyond which weights can't be trusted any more."""
NOISES = 256
"""Random numbers that belong to a step, at most."""
RETURNS = 5
"""How often the exported weights come back before the learning ends."""


@dataclass(frozen=True)
class StreamConfig(Bounded):
    """Hyperparameters of learning on a microcontroller."""

    gamma: Part = 0.98
    """Discount per control step."""
    lam: Part = 0.9
    """λ of the eligibility traces."""
    kappa_actor: Positive = 3.0
    """How much smaller than the bound the actor's steps are."""
    kappa_critic: Positive = 2.0
    deviation: Positive = 0.05
    """Standard deviation of exploration, in actions."""
    bound: Positive = 0.2
    """How far a weight of the actor may move from the exported one."""
    spike: Annotated[float, Bound("above 1", lambda x: x > 1.0)] = 20.0
    """A |δ| so many times its running mean is not learnt from."""
    block: Count = 20_000
    """Steps over which what is earned is compared with what the exported weights earned in the first so many."""
    worse: NotNegative = 0.25
    """Part of it, by which a block may be worse before the exported weights come back."""
    warm_up: Count = 20_000
    """Steps after the first block in which only the critic learns."""
    seed: Annotated[int, Bound("0 to 4294967295", lambda x: 0 <= x < 2**32)] = 0


# --- functions of one number, as in kernels/stream.h -----------------------------------------------------------------


def _f(x: float) -> np.float32:
    return np.float32(x)


def tangent(x: Floats) -> Floats:
    """tanh, as x P(x²) / Q(x²) of the generated C's policies, with each operation rounded once."""
    u = x * x
    v = u * u
    f = float.fromhex
    p01 = _f(f("0x1.437378p+9")) * u + _f(f("0x1.3e2386p+12"))
    p23 = _f(f("0x1.2a2e06p-5")) * u + _f(f("0x1.b6bde2p+3"))
    p24 = _f(f("-0x1.062eecp-15")) * v + p23
    q01 = _f(f("0x1.24f418p+11")) * u + _f(f("0x1.3e2398p+12"))
    inner = (x * (p24 * v + p01)) / ((u + _f(f("0x1.d0f61ep+6"))) * v + q01)
    return np.where(u > _f(f("0x1.f347aep+5")), np.where(x > 0, ONE, -ONE), inner).astype(np.float32)


def logarithm(x: np.float32) -> np.float32:
    """Natural logarithm of a positive normal number, with an error below 2e-7 of the greater of it and 1."""
    bits = int(x.view(np.uint32))
    exponent, bits = (bits >> 23) - 127, (bits & 0x7FFFFF) | 0x3F800000
    if bits > 0x3FB504F3:  # √2
        exponent, bits = exponent + 1, bits - 0x800000
    m = np.uint32(bits).view(np.float32)
    s = (m - ONE) / (m + ONE)
    u = s * s
    series = ((_f(1 / 9) * u + _f(1 / 7)) * u + _f(1 / 5)) * u + _f(1 / 3)
    return _f(exponent) * _f(0.6931471805599453) + _f(2.0) * (s + s * (u * series))


def cosine_of_turns(t: np.float32) -> np.float32:
    """cos 2πt for t from 0 to 1."""
    quarter = int(_f(4.0) * t + _f(0.5))
    a = (t - _f(quarter) * _f(0.25)) * _f(6.283185307179586)
    u = a * a
    cosine = (((_f(1 / 40320) * u - _f(1 / 720)) * u + _f(1 / 24)) * u - _f(0.5)) * u + ONE
    sine = ((((_f(1 / 362880) * u - _f(1 / 5040)) * u + _f(1 / 120)) * u - _f(1 / 6)) * u + ONE) * a
    return (cosine, -sine, -cosine, sine)[quarter & 3]


def philox(counter: int, seed: int) -> tuple[int, int]:
    """Two 32-bit random words of a 64-bit counter: Philox 2x32 with 10 rounds (Salmon et al. 2011)."""
    low, high, key = counter & 0xFFFFFFFF, counter >> 32, seed
    for _ in range(10):
        product = 0xD256D193 * low
        low, high = (product >> 32) ^ key ^ high, product & 0xFFFFFFFF
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return low, high


def normal(counter: int, seed: int) -> np.float32:
    """A number of a standard normal distribution (Box and Muller 1958)."""
    one, two = philox(counter, seed)
    u = _f((one >> 8) + 1) * _f(2.0**-24)
    return np.sqrt(_f(-2.0) * logarithm(u)) * cosine_of_turns(_f(two >> 8) * _f(2.0**-24))


# --- networks --------------------------------------------------------------------------------------------------------


class Net:
    """Linear layers with tanh between them, and the traces of its weights.

    Parameters lie in one array, layer by layer: rows of weights, then biases, as torch flattens them.
    """

    def __init__(self, sizes: Sequence[int], parameters: Floats) -> None:
        self.sizes = tuple(sizes)
        self.parameters, self.traces = parameters.astype(np.float32).copy(), np.zeros(len(parameters), np.float32)
        self.norm = ZERO
        """Sum of the traces' magnitudes."""

    @staticmethod
    def count(sizes: Sequence[int]) -> int:
        """Of parameters."""
        return sum((a + 1) * b for a, b in itertools.pairwise(sizes))

    def layers(self, flat: Floats) -> list[tuple[Floats, Floats]]:
        """Views (rows, columns) and (rows,) of an array of parameters."""
        parts, start = [], 0
        for columns, rows in itertools.pairwise(self.sizes):
            weights = flat[start : start + rows * columns].reshape(rows, columns)
            start += rows * columns
            parts.append((weights, flat[start : start + rows]))
            start += rows
        return parts

    def forward(self, x: Floats) -> list[Floats]:
        """The input and what each layer gives."""
        values = [x]
        for weights, bias in self.layers(self.parameters):
            y = bias.copy()
            for column, value in zip(weights.T, values[-1], strict=True):
                y += column * value
            values.append(y)
            if len(values) < len(self.sizes):
                values[-1] = tangent(y)
        return values

    def trace(self, values: list[Floats], output: Floats, decay: np.float32) -> None:
        """Let the traces decay, and add the gradient of the outputs, weighted by ``output`` (k,)."""
        delta = output
        layers, traces = self.layers(self.parameters), self.layers(self.traces)
        for place in reversed(range(len(layers))):
            weights, _ = layers[place]
            z, z_bias = traces[place]
            x = values[place]
            below = np.zeros(len(x), np.float32)
            for row, d in zip(weights, delta, strict=True):
                below += row * d
            z[:] = decay * z + delta[:, None] * x[None]
            z_bias[:] = decay * z_bias + delta
            delta = below * (ONE - x * x)
        self.norm = np.add.accumulate(np.abs(self.traces))[-1]

    def forget(self) -> None:
        """Clear the traces."""
        self.traces[:] = ZERO
        self.norm = ZERO

    def step(self, error: np.float32, kappa: np.float32) -> None:
        """Go along the traces, by no more than the bound."""
        overshoot = (kappa * max(np.abs(error), ONE)) * self.norm
        size = error / overshoot if overshoot > ONE else error
        self.parameters += size * self.traces


@dataclass(frozen=True)
class Start:
    """What learning begins with: the exported actor, and a critic of what it earns."""

    sizes: tuple[int, ...]
    """Of the actor: inputs, hidden layers, actions. The critic's are the same but for its one output."""
    actor: Floats
    critic: Floats
    reward_scale: float
    """Factor on rewards, so that errors of the temporal difference are about 1."""

    @property
    def critic_sizes(self) -> tuple[int, ...]:
        return (*self.sizes[:-1], 1)


class StreamLearner:
    """One robot's learning, a step at a time."""

    def __init__(self, start: Start, config: StreamConfig) -> None:
        self.start, self.config = start, config
        self.actor, self.critic = Net(start.sizes, start.actor), Net(start.critic_sizes, start.critic)
        self.steps, self.learnt, self.spikes, self.returns = 0, 0, 0, 0
        """Allowed control steps; those learnt from; surprises that were not; how often the exported weights came
        back."""
        self.off = False
        self.value, self.usual = ZERO, ZERO
        self.follows = False
        self.earned, self.counted = ZERO, 0
        self.first, self.last = ZERO, ZERO
        """What was earned per step in the first block, and in the newest."""

    def act(self, observation: Floats, reward: float, allowed: bool = True) -> Floats:
        """Actions (k,) for what is observed (k,), after ``reward`` for the last ones.

        Where it is not ``allowed``, nothing is learnt and nothing is tried.
        """
        config, seen = self.config, observation.astype(np.float32)
        if not allowed or self.off:
            self.pause()
            return self.actor.forward(seen)[-1]
        earned = _f(reward) * _f(self.start.reward_scale)
        if self.follows:
            error = (earned + _f(config.gamma) * self.critic.forward(seen)[-1][0]) - self.value
            self._learn(error)
            self._judge(earned)
        values, actions = self.critic.forward(seen), self.actor.forward(seen)
        self.value, self.follows = values[-1][0], True
        self.steps += 1
        if self.steps <= config.block or self.off:
            return actions[-1]
        noise = np.array([normal(self.steps * NOISES + k, config.seed) for k in range(len(actions[-1]))], np.float32)
        decay = _f(config.gamma * config.lam)
        self.critic.trace(values, np.array([ONE]), decay)
        self.actor.trace(actions, noise, decay)
        return actions[-1] + _f(config.deviation) * noise

    def pause(self) -> None:
        """The next step does not follow the last one."""
        self.follows = False
        self.actor.forget()
        self.critic.forget()

    def restore(self) -> None:
        """Back to the exported weights, and the first critic."""
        self.actor.parameters[:] = self.start.actor
        self.critic.parameters[:] = self.start.critic
        self.pause()

    def _learn(self, error: np.float32) -> None:
        config, size = self.config, np.abs(error)
        if not size <= LARGEST:
            self.restore()
            self.off = True
            return
        if self.learnt >= STEADY and size > _f(config.spike) * self.usual:
            self.spikes += 1
            self.actor.forget()
            self.critic.forget()
        elif self.steps > config.block:
            self.critic.step(error, _f(config.kappa_critic))
            if self.steps > config.block + config.warm_up:
                self.actor.step(error, _f(config.kappa_actor))
                low, high = self.start.actor - _f(config.bound), self.start.actor + _f(config.bound)
                self.actor.parameters[:] = np.minimum(np.maximum(self.actor.parameters, low), high)
        self.usual += RATE * (size - self.usual)
        self.learnt += 1

    def _judge(self, earned: np.float32) -> None:
        """Compare what a block of steps earned with the first one."""
        self.earned += earned
        self.counted += 1
        if self.counted < self.config.block:
            return
        self.last = self.earned * _f(1.0 / self.config.block)
        if self.learnt <= self.config.block:
            self.first = self.last
        elif self.last < self.first - _f(self.config.worse) * np.abs(self.first):
            self.returns += 1
            self.off = self.returns >= RETURNS
            self.restore()
        self.earned, self.counted = ZERO, 0
