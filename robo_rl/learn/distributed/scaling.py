"""A model of the time that one policy takes on N processes, fitted to measurements of one.

An update collects samples, then takes E steps of the optimiser. A process's part of either takes a time in proportion
to its robots, and a fixed one: calls, small matrices. Every step ends with a message to all others, and two more are
sent in an update; a message takes log2 N times a latency, and the bytes of the gradients over the bandwidth, twice. All
wait for the slowest: of N times with a deviation of σ it is expected m(N) σ behind the mean, m being the expected
maximum of N standard normal numbers. So

    T(N) = C(N) (1 + σ_C m(N)) + L(N) (1 + σ_L √E m(N)) + (E + 2) α log2 N + 2 E G / β (N − 1) / N

with C(N) = c + C n / N of n robots, and L(N) alike; σ_L is that of all E steps together, which are independent.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch

from robo_rl.console import Progress
from robo_rl.learn.config import PpoConfig
from robo_rl.sim.tasks import Task

LATENCY = 25e-6
"""s, of a message between two computers of a cluster, assumed; two processes of one computer: 2e-4 to 9e-4 (gloo)."""
BANDWIDTH = 1.25e9
"""bytes/s, of a network of 10 Gbit/s."""
UPDATES = 8
"""That are timed, after one that compiles."""


@dataclass(frozen=True)
class Phase:
    """A part of an update, in one process."""

    fixed: float
    """s"""
    each: float
    """s for each robot"""
    noise: float
    """Standard deviation of the time over its mean."""

    def seconds(self, robots: float) -> float:
        """Mean time (s)."""
        return self.fixed + self.each * robots


@dataclass(frozen=True)
class Costs:
    """What an update takes."""

    collect: Phase
    learn: Phase
    gradient: int
    """bytes"""


@dataclass(frozen=True)
class Network:
    """What connects the processes."""

    latency: float = LATENCY
    bandwidth: float = BANDWIDTH


@dataclass(frozen=True)
class Prediction:
    """Of an update on several processes: parts of its time (s)."""

    processes: int
    work: float
    """What would be shared out without loss."""
    fixed: float
    waiting: float
    messages: float

    @property
    def seconds(self) -> float:
        return self.work + self.fixed + self.waiting + self.messages

    @property
    def limit(self) -> str:
        """What takes most of the time that more processes don't make shorter."""
        parts = {"fixed work": self.fixed, "stragglers": self.waiting, "messages": self.messages}
        worst = max(parts, key=lambda name: parts[name])
        return worst if parts[worst] > 0.1 * self.seconds else "work"


def predict(costs: Costs, config: PpoConfig, processes: int, network: Network) -> Prediction:
    """An update of ``config.environments`` robots, shared out."""
    share, steps = config.environments / processes, config.epochs * config.mini_batches
    collect, learn = costs.collect.seconds(share), costs.learn.seconds(share)
    waiting = slowest(processes) * (collect * costs.collect.noise + learn * costs.learn.noise * math.sqrt(steps))
    sent = 2 * steps * costs.gradient / network.bandwidth * (processes - 1) / processes
    messages = (steps + 2) * network.latency * math.log2(processes) + sent
    fixed = costs.collect.fixed + costs.learn.fixed
    return Prediction(processes, collect + learn - fixed, fixed, waiting, messages)


def slowest(n: int) -> float:
    """Expected maximum of n standard normal numbers (Blom 1958, Statistical Estimates and Transformed Variables)."""
    return NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 0.0


def measure(task: Task, config: PpoConfig, device: str = "cpu", updates: int = UPDATES) -> Costs:
    """Time one process on this computer, with all of the robots (at most 512 on a CPU) and with a quarter of them.

    On a CPU by the processor's time of one thread, so that other programs matter little.
    """
    from robo_rl.learn.ppo import Learner
    from robo_rl.policy import PolicyGraph

    many = config.environments if device != "cpu" else min(config.environments, 512)
    sizes = [max(config.mini_batches, many // 4), many]
    threads, clock = torch.get_num_threads(), time.process_time if device == "cpu" else time.perf_counter
    torch.set_num_threads(1)
    learners = []
    for n in sizes:
        small = dataclasses.replace(config, environments=n)
        with torch.device(device):
            policy = PolicyGraph(task, config.hidden, config.activation, config.normalize, config.recurrent)
        learners.append(Learner(task, policy, small, 0, device))
    times = np.zeros((updates, len(sizes), 2))
    with Progress("measuring", updates) as progress:
        for done in range(-1, updates):
            for k, learner in enumerate(learners):
                collect, learn = _timed(learner.collect, clock, device), _timed(learner.learn, clock, device)
                if done >= 0:
                    times[done, k] = collect, learn
            progress.update(done + 1)
    torch.set_num_threads(threads)
    parameters = sum(x.numel() for x in learners[0].parameters)
    phases = [_fitted(sizes, times[:, :, phase]) for phase in (0, 1)]
    return Costs(phases[0], phases[1], 4 * parameters)


def _timed(call: Callable[[], object], clock: Callable[[], float], device: str) -> float:
    begun = clock()
    call()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - begun


def _fitted(sizes: list[int], times: np.ndarray) -> Phase:
    """A line through the medians of times (updates, 2) at two numbers of robots."""
    few, many = (float(x) for x in np.median(times, axis=0))
    each = max(0.0, (many - few) / (sizes[1] - sizes[0]))
    fixed = max(0.0, many - each * sizes[1])
    quartiles = np.quantile(times[:, 1], (0.25, 0.75))
    noise = float(quartiles[1] - quartiles[0]) / 1.349 / many  # of a normal distribution, without its outliers
    return Phase(fixed, each, noise)


def simulated(
    costs: Costs, config: PpoConfig, processes: int, network: Network, updates: int = 200, seed: int = 0
) -> float:
    """Mean time (s) of an update by simulation of each process and each message; ``processes`` is a power of two.

    A message to all is recursive doubling: in round k every process exchanges with the one whose number differs in bit
    k, and waits for it.
    """
    generator = np.random.default_rng(seed)
    share, steps = config.environments / processes, config.epochs * config.mini_batches
    now = np.zeros(processes)
    numbers = np.arange(processes)

    def works(phase: Phase, parts: int) -> np.ndarray:
        mean = phase.seconds(share) / parts
        return np.maximum(0.0, generator.normal(mean, mean * phase.noise * math.sqrt(parts), processes))

    def told(bytes_: float) -> None:
        nonlocal now
        for bit in range(processes.bit_length() - 1):
            now = np.maximum(now, now[numbers ^ (1 << bit)]) + network.latency
        now = now + 2 * bytes_ / network.bandwidth * (processes - 1) / processes

    for _ in range(updates):
        now = now + works(costs.collect, 1)
        told(0)
        for _ in range(steps):
            now = now + works(costs.learn, steps)
            told(costs.gradient)
        told(0)
    return float(now.max()) / updates
