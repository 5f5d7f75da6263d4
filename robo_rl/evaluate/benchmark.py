"""How fast things are on this machine, beside a peer in the same run.

Machines differ and are noisy, so what counts is a ratio: both sides run in turns, and each is given by its best
round, for noise only ever slows.
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from robo_rl.console import Progress
from robo_rl.contract.kinds import of_kind
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

CLOSED_FORM = 16384
ENGINE = 512
STANDARD = 128  # environments of gymnasium's tasks, on both sides


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    names = [line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
    }


def _cpuinfo() -> list[str]:
    try:
        with open("/proc/cpuinfo") as file:
            return file.read().splitlines()
    except OSError:
        return []


def rates(
    sides: Mapping[str, tuple[int, Callable[[], None]]], rounds: int = 7, seconds: float = 0.5
) -> dict[str, float]:
    """Control steps per second of each side: ``(steps, call)`` by name, where one call makes that many steps.

    Every round runs every side for about ``seconds``.
    """
    counts = {name: _calls_in(call, seconds) for name, (_, call) in sides.items()}
    found: dict[str, list[float]] = {name: [] for name in sides}
    with Progress("measuring", rounds) as progress:
        for done in range(rounds):
            for name, (steps, call) in sides.items():
                start = time.perf_counter()
                for _ in range(counts[name]):
                    call()
                found[name].append(steps * counts[name] / (time.perf_counter() - start))
            progress.update(done + 1)
    return {name: max(values) for name, values in found.items()}


def _calls_in(call: Callable[[], None], seconds: float) -> int:
    call()  # compiles
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < 0.2 * seconds:
        call()
        calls += 1
    return max(1, 5 * calls)


def plant_stepper(task: Task, device: str = "cpu", n: int | None = None) -> tuple[int, Callable[[], None]]:
    """The task's plant alone, every parameter that the task randomizes drawn per robot, under a zero action."""
    n = n or number(task)
    env = VecEnv(task, n, device=device, evaluation=True)
    commands = idle(task, n, device)
    return n, lambda: env.plant.step(commands)


def number(task: Task) -> int:
    """Of robots at once: enough that more would gain nothing on a CPU, in closed form or in an engine."""
    closed = getattr(task.make_plant(1, "cpu"), "dynamics", None) is not None
    return CLOSED_FORM if closed else ENGINE


def idle(task: Task, n: int, device: str) -> dict[str, torch.Tensor]:
    """The commands of a zero action, for n robots."""
    commands = task.command(torch.zeros(1, task.action_size, device=device), task.first_memory(1, device))
    return {name: value.expand(n, -1).contiguous() for name, value in commands.items()}


def env_stepper(task: Task, device: str = "cpu", n: int | None = None) -> tuple[int, Callable[[], None]]:
    """The whole environment: plant, sensors, reward, failures and resets, under the commands of a zero action."""
    n = n or number(task)
    env = VecEnv(task, n, device=device)
    commands = idle(task, n, device)

    def step() -> None:
        env.step(commands)

    return n, step


Peer = tuple[str, Callable[[], tuple[int, Callable[[], None]] | None]]
"""A simulator of the same robots by others: its name, and what steps it, of how many robots; None if not installed."""


def peer_of(kind: str) -> Peer | None:
    """That of a kind of robots: the ``PEER`` of the kind's folder in ``robo_rl.evaluate``."""
    return getattr(of_kind("robo_rl.evaluate", kind), "PEER", None)


def standard_sides(name: str, threads: int) -> tuple[dict[str, tuple[int, Callable[[], None]]], str]:
    """gymnasium's task of that name: "ours", and every way to run "peer" (one or more sides); what the peer is.

    All take the same uniformly random actions. EnvPool (C++, PyPI) is the peer where it is installed, waiting for all
    of its environments ("peer") and for the first half of them ("peer, asynchronous"); else gymnasium's own vector of
    processes.
    """
    from robo_rl.evaluate.standard_envs import StandardEnv

    ours = StandardEnv(name, STANDARD, threads=threads)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (64, STANDARD, ours.model.nu))
    turn = itertools.cycle(actions)
    sides: dict[str, tuple[int, Callable[[], None]]] = {"ours": (STANDARD, lambda: _ignore(ours.step(next(turn))))}
    try:
        import envpool
    except ImportError:
        import gymnasium

        vector = gymnasium.make_vec(name, threads, vectorization_mode="async")
        vector.reset(seed=0)
        sides["peer"] = (threads, lambda: _ignore(vector.step(next(turn)[:threads])))
        return sides, f"gymnasium {gymnasium.__version__}, AsyncVectorEnv"
    pool = envpool.make_gymnasium(name, num_envs=STANDARD, num_threads=threads)
    pool.reset()
    sides["peer"] = (STANDARD, lambda: _ignore(pool.step(next(turn))))
    half = STANDARD // 2
    eager = envpool.make_gymnasium(name, num_envs=STANDARD, batch_size=half, num_threads=threads)
    eager.async_reset()

    def step() -> None:
        eager.send(next(turn)[:half], eager.recv()[4]["env_id"])

    sides["peer, asynchronous"] = (half, step)
    return sides, f"envpool {envpool.__version__}"


def _ignore(result: Any) -> None:
    """A side's call returns nothing."""
