"""Parity on the target: what a processor computes from recorded episodes, against onnxruntime and the same C here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robo_rl.deploy.build.c.host import HostPolicy
from robo_rl.deploy.build.firmware.emulate import replay
from robo_rl.deploy.build.firmware.targets import Target
from robo_rl.deploy.build.verify import BundlePolicy, task_of
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.evaluate.evaluation import Conditions, rollout_signals

SEED = 13

Step = Callable[[dict[str, np.ndarray], np.ndarray], tuple[dict[str, np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Parity:
    """Greatest differences, in units of the commands' range, each side with a memory of its own."""

    steps: int
    target: float
    """The target against onnxruntime."""
    host: float
    """The same C on this computer against onnxruntime."""
    identical: bool
    """Whether target and host give the same bits."""


def recorded_flights(bundle: Bundle, flights: int) -> dict[str, np.ndarray]:
    """Signals (steps, flights, *dimensions) by name, of held-out episodes by onnxruntime."""
    return rollout_signals(task_of(bundle), BundlePolicy(bundle), Conditions(episodes=flights, seed=SEED))


def parity(bundle: Bundle, host: HostPolicy, image: Path, target: Target, signals: dict[str, np.ndarray]) -> Parity:
    """Replay recorded signals on an emulated target, here, and by onnxruntime."""
    contract = bundle.contract
    parts = [signals[s.name].reshape(*signals[s.name].shape[:2], s.size) for s in contract.signals]
    flat = np.concatenate(parts, axis=2)
    sizes = np.cumsum([command.size for command in contract.commands])
    found = replay(image, target, flat.swapaxes(0, 1), int(sizes[-1])).swapaxes(0, 1)
    split = np.split(found, sizes[:-1], axis=2)
    there = {command.name: part for command, part in zip(contract.commands, split, strict=True)}
    here, exact = _answers(host.run, bundle, signals), _answers(bundle.run, bundle, signals)
    return Parity(
        found.shape[0] * found.shape[1],
        greatest(command_differences(contract, there, exact)),
        greatest(command_differences(contract, here, exact)),
        all(there[name].tobytes() == here[name].tobytes() for name in here),
    )


def _answers(step: Step, bundle: Bundle, signals: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Commands (steps, flights, k) by name, from fresh memories."""
    steps, flights = next(iter(signals.values())).shape[:2]
    state, rows = np.tile(bundle.contract.initial_state, (flights, 1)), []
    for k in range(steps):
        commands, state = step({name: np.ascontiguousarray(value[k]) for name, value in signals.items()}, state)
        rows.append(commands)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
