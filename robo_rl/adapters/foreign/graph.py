"""From a network of another trainer and its description to a bundle, with test vectors made by the other's runtime."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.foreign.recurrent import Runtime, memory_of
from robo_rl.adapters.foreign.task import NETWORK, AdoptedWalk
from robo_rl.adapters.modules import ModuleGraph
from robo_rl.contract import Provenance
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.build.verify import BundlePolicy, command_differences, greatest
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout_signals

TOLERANCE = 1e-6
"""Between bundle and the other's runtime: actions relative to the largest, commands in units of their range."""
EPISODES = 64
"""From which test vectors are recorded."""
SAMPLES = 1000


class AdoptedGraph(ModuleGraph):
    """A policy graph whose memory has the network's own output, as the other trainer's has."""

    task: AdoptedWalk

    def forward(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        memory = self.unpack(state)
        seen, kept = self.task.observe(signals, memory), {}
        if NETWORK in memory:
            action, kept[NETWORK] = self.network(seen, memory[NETWORK])
        else:
            action = self.network(seen)
        commands = {name: self._limit(name, value) for name, value in self.task.command(action, memory).items()}
        return commands, self.pack(self.task.keep(memory, signals, action) | kept)


class Foreign(nn.Module):
    """The other's runtime in the place of the network."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime

    def forward(self, *given: Tensor) -> Any:
        """Of observations, and of a memory where there is one."""
        found = self.runtime(*(np.ascontiguousarray(value.numpy(), np.float32) for value in given))
        return torch.from_numpy(found) if isinstance(found, np.ndarray) else tuple(map(torch.from_numpy, found))


@dataclass(frozen=True)
class Agreement:
    """How far the bundle is from the other's runtime."""

    network: float
    """Over random observations, relative to the largest action."""
    rollout: float
    """Over an episode, commands in units of their range."""

    @property
    def good(self) -> bool:
        return max(self.network, self.rollout) <= TOLERANCE


def require_fit(task: AdoptedWalk, network: nn.Module) -> None:
    """AdoptionError unless the network takes the task's observations and gives its actions."""
    given = ", ".join(
        f"{term.name} {width}" + (f" × {term.history}" if term.history > 1 else "")
        for term, width in zip(task.terms, task.widths, strict=True)
    )
    takes = getattr(network, "observation_size", None)
    said = "" if takes is None else f" The network takes {takes}."
    if takes is not None and takes != task.observation_size:
        raise AdoptionError(f"observations: the terms are {task.observation_size} numbers ({given}); expected {takes}, "
                            "as the network takes")  # fmt: skip
    width = memory_of(network)
    if width != task.told.memory:
        raise AdoptionError(f"memory is {task.told.memory}; expected {width}, as the network keeps")
    zeros = [torch.zeros(2, size) for size in (task.observation_size, width) if size]
    try:
        given_back = network(*zeros)
        found = tuple((given_back[0] if width else given_back).shape)
    except (RuntimeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())[:160]
        raise AdoptionError(
            f"observations: the network doesn't take the {task.observation_size} numbers of the terms ({given}): "
            f"{reason}.{said}"
        ) from None
    if found != (2, task.action_size):
        raise AdoptionError(
            f"joints: the network gives {found[1:]} actions; expected {task.action_size}, one per joint"
        )


def write(task: AdoptedWalk, network: nn.Module, runtime: Runtime, out: Path, trainer: str) -> tuple[Bundle, Agreement]:
    """Write the bundle to ``out``. AdoptionError, and no file, where it does not do what the other's runtime does."""
    require_fit(task, network)
    policy = AdoptedGraph(task, network.eval().requires_grad_(False)).eval()
    theirs = copy.copy(policy)
    theirs._modules = {**policy._modules, "network": Foreign(runtime)}
    source = task.source
    provenance = Provenance(
        algorithm=trainer.replace(" ", "-"), seed=0, environment_steps=0, configuration_digest="",
        source=source.label if source else "", source_digest=source.digest if source else "", versions={},
    )  # fmt: skip
    seen = rollout_signals(task, GraphPolicy(policy), Conditions(episodes=EPISODES, seed=7))
    network_error = compare(task, network, runtime)
    bundle = write_bundle(policy, provenance, seen, out, recorded=theirs)
    found = Agreement(network_error, follow(bundle, theirs, seen))
    if not found.good:
        out.unlink()
        raise AdoptionError(
            f"the bundle differs from the runtime of {trainer} by {found.network:.2g} over {SAMPLES} observations and "
            f"by {found.rollout:.2g} over an episode; expected at most {TOLERANCE:g}"
        )
    return bundle, found


def compare(task: AdoptedWalk, network: nn.Module, runtime: Runtime) -> float:
    """The greatest difference over random observations and memories, relative to the largest action."""
    rng, sizes = np.random.default_rng(0), (task.observation_size, task.told.memory)
    given = [rng.normal(size=(SAMPLES, size)).astype(np.float32) for size in sizes if size]
    with torch.inference_mode():
        found: Any = network(*map(torch.from_numpy, given))
    theirs = runtime(*given)
    ours, theirs = (found, theirs) if isinstance(theirs, tuple) else ((found,), (theirs,))
    pairs = zip(ours, theirs, strict=True)
    return greatest([(a.numpy() - b) / max(float(np.abs(b).max()), 1.0) for a, b in pairs])


def follow(bundle: Bundle, theirs: AdoptedGraph, seen: Mapping[str, np.ndarray], steps: int = 500) -> float:
    """The greatest difference of commands over an episode's signals, both with memories of their own."""
    policy = BundlePolicy(bundle)
    ours_state, their_state, worst = policy.initial_state(1), theirs.initial_state(1), 0.0
    with torch.inference_mode():
        for k in range(min(steps, len(next(iter(seen.values()))))):
            now = {name: torch.from_numpy(value[k, :1]) for name, value in seen.items()}
            ours, ours_state = policy(now, ours_state)
            expected, their_state = theirs(now, their_state)
            worst = max(worst, greatest(command_differences(bundle.contract, ours, expected)))
    return worst
