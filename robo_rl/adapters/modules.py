"""A bundle from any torch module, whoever trained it.

    robo_rl.adapters.modules.export(actor, env, "policy.onnx")

``actor`` gives actions (n, action_size) for observations (n, observation_size), by its ``forward``, without noise. It
becomes a policy graph like any other: the task's processing of signals before it, its commands and limits after it. A
plain stack of linear layers with one activation is told in the contract, so ``robo-rl verify`` builds it again; any
other module is compared with the file here, and ``robo-rl verify --foreign`` runs and searches the file alone.
"""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from robo_rl.adapters.wrappers import Normalized, WrapperError, Wrapping, unwrap
from robo_rl.contract import Network, Provenance
from robo_rl.deploy.build.export import ExportError
from robo_rl.deploy.build.export import export as export_graph
from robo_rl.deploy.build.rows import batching
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, Witness
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.learn.runs.folder import versions
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import ACTIVATIONS
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

ROUNDING = 1e-3
"""Of actions, by which one that was computed alone may differ from that in a batch."""
COMPARED = 20
"""Episodes in which module and file are compared."""
SILENT = (nn.Flatten, nn.Identity, nn.Dropout)
"""Layers that do nothing to a vector when a policy runs."""


class ModuleGraph(PolicyGraph):
    """A policy graph around any module, from observations to the task's actions."""

    rebuildable = False

    def __init__(self, task: Task, module: nn.Module) -> None:
        super().__init__(task, (), "tanh", encoders=())
        self.shape = Network((), "module", False)
        self.network = module  # type: ignore[assignment]

    def features(self, observation: Any) -> Any:
        """The observation as it is: a module takes groups as a dictionary."""
        return observation


class _Scaled(nn.Module):
    """Actions in the task's units."""

    def __init__(self, module: nn.Module, scale: float) -> None:
        super().__init__()
        self.module, self.scale = module, scale

    def forward(self, observation: Any) -> Tensor:
        return self.scale * self.module(observation)


def export(
    module: nn.Module, task: Any, path: str | Path, robot: str | None = None, algorithm: str = "external",
    seed: int = 0, environment_steps: int = 0, passive: tuple[str, ...] = (),
    wrappers: Literal["", "include", "inside"] = "",
) -> Bundle:  # fmt: skip
    """Write the bundle of ``module`` to ``path`` and read it back through all checks.

    ``task`` is the environment that it was trained in (of gymnasium, rsl_rl or stable-baselines3), or a task, or a
    task's name or FILE.py:CLASS for ``robot``; an environment of gymnasium has actions in units of
    ``robo_rl.learn.experience.learning_env.ACTION_SCALE``, the others and a task's name in the task's own. Where the
    environment's
    wrappers change observations or actions, ``wrappers`` says whether they become part of the graph ("include", see
    ``robo_rl.adapters.wrappers``), or the module does the same by itself ("inside"); ``passive`` names wrapper classes
    of your own that change nothing. The rest goes into the contract's provenance. ExportError if
    the module is no such function, if a wrapper can't be a part of the graph, or if the file does not do what the
    module does.
    """
    known, scale, wrapping = _environment(task, robot, passive)
    actor = _wrapped(_copied(module).cpu().eval().requires_grad_(False), wrapping, task, wrappers)
    _require_actions(actor, known)
    policy = _stack(actor, known, scale) or ModuleGraph(known, actor if scale == 1.0 else _Scaled(actor, scale))
    source = known.source
    provenance = Provenance(
        algorithm=algorithm, seed=seed, environment_steps=environment_steps, configuration_digest="",
        source=source.label if source else "", source_digest=source.digest if source else "", versions=versions(),
    )  # fmt: skip
    bundle = export_graph(policy.eval().requires_grad_(False), provenance, path)
    rows = batching(bundle)
    if rows.fault:
        Path(path).unlink()
        raise ExportError(rows.fault)
    if not _is_alike_alone(actor, known):
        Path(path).unlink()
        raise ExportError(
            "the module gives other actions for an observation alone than for the same one in a batch; each row of a "
            "batch must be computed alone, as on the robot"
        )
    witness = Witness(bundle, policy, rows)
    rollout(known, witness, Conditions(episodes=COMPARED, seed=1), "comparing")
    if not witness.worst <= PARITY_TOLERANCE:
        Path(path).unlink()
        raise ExportError(f"module and file differ by {witness.worst:.2g}; expected at most {PARITY_TOLERANCE:g}")
    return bundle


def _copied(module: nn.Module) -> nn.Module:
    """ExportError for a module that keeps results of its last call, as policies of stable-baselines3 do."""
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:100]
        raise ExportError(
            f"the {type(module).__name__} can't be copied ({reason}); expected a module from observations to actions, "
            "of stable-baselines3 robo_rl.adapters.sb3_env.actor(model)"
        ) from None


def _environment(given: Any, robot: str | None, passive: tuple[str, ...]) -> tuple[Task, float, Wrapping]:
    """The task, the task's units in an action of 1, and what wrappers do."""
    if isinstance(given, str):
        return load_task(given, robot), 1.0, Wrapping(None)
    if robot is not None:
        raise ValueError(f"robot is '{robot}'; expected None, since the environment has one")
    if isinstance(given, Task):
        return given, 1.0, Wrapping(None)
    try:
        wrapping = unwrap(given, passive)
    except WrapperError as error:
        raise ExportError(str(error)) from None
    return wrapping.env.observed.task, getattr(wrapping.env, "action_scale", 1.0), wrapping


def _wrapped(actor: nn.Module, wrapping: Wrapping, given: Any, wrappers: str) -> nn.Module:
    """The module between what wrappers do, each once: an actor may bring the normalisation of its environment."""
    if wrappers not in ("", "include", "inside"):
        raise ValueError(f"wrappers is '{wrappers}'; expected 'include' or 'inside'")
    if not hasattr(actor, "trained_in"):
        if wrapping.names and not wrappers:
            raise ExportError(
                f"the environment is wrapped by {', '.join(wrapping.names)}, which a module may or may not do by "
                "itself; say wrappers='include' to put it into the file around the module, or wrappers='inside' if the "
                "module does it already"
            )
        return wrapping.around(actor) if wrappers == "include" else actor
    trained_in: Any = actor.trained_in
    if trained_in is None and not wrappers and "VecNormalize" not in wrapping.names:
        where = repr(given) if isinstance(given, str) else "the environment"
        raise ExportError(
            "the policy was loaded from a file, which doesn't say how observations were normalised, and "
            f"{where} has no VecNormalize; give the environment, wrapped as in training (VecNormalize.load(FILE, "
            "Sb3Env(...))), or say wrappers='inside' if it had none"
        )
    lacking = [name for name in trained_in or () if name not in wrapping.names]
    own = [part for part in actor.modules() if isinstance(part, Normalized) and part.shared]
    if own and "VecNormalize" in lacking:
        lacking.remove("VecNormalize")  # the actor has it
    if lacking:
        raise ExportError(
            f"the policy was trained in an environment wrapped by {', '.join(lacking)}, and the one given isn't; give "
            "that of the training"
        )
    again = [part for part in wrapping.before if isinstance(part, Normalized) and part.shared and own]
    if any(not part.same(own[0]) for part in again):
        raise ExportError(
            "the policy and the environment have different statistics for normalising observations; expected those at "
            "the end of the training in both"
        )
    before = tuple(part for part in wrapping.before if part not in again)
    return dataclasses.replace(wrapping, before=before).around(actor)


def _require_actions(actor: nn.Module, task: Task) -> None:
    """ExportError unless the module gives the task's actions for its observations."""
    for name, tensor in (*actor.named_parameters(), *actor.named_buffers()):
        if tensor.isnan().any():
            raise ExportError(f"the module's {name} has NaN in it; expected the numbers of a policy")
    seen = {name: torch.zeros(3, *shape) for name, shape in task.observation_shapes.items()}
    shapes = {name: tuple(value.shape) for name, value in seen.items()}
    try:
        found = actor(seen if task.encoders else seen["policy"])
    except Exception as error:  # whatever a module raises
        reason = " ".join(str(error).split())[:200]
        raise ExportError(f"the module can't take observations {shapes}: {type(error).__name__}: {reason}") from error
    expected = (3, task.action_size)
    shape = tuple(found.shape) if isinstance(found, Tensor) else f"a {type(found).__name__}"
    if shape != expected:
        raise ExportError(f"the module gives {shape} for 3 observations; expected actions {expected} without noise")


def _is_alike_alone(actor: nn.Module, task: Task) -> bool:
    """Whether three observations at once have the actions that each has alone, if they are the same every time."""
    source = torch.Generator().manual_seed(0)
    seen = {name: torch.randn(3, *shape, generator=source) for name, shape in task.observation_shapes.items()}

    def actions(rows: slice) -> Tensor:
        part = {name: value[rows] for name, value in seen.items()}
        found: Tensor = actor(part if task.encoders else part["policy"])
        return found

    together = actions(slice(None))
    if not torch.equal(together, actions(slice(None))):
        return True  # comparing tells of noise
    try:
        alone = torch.cat([actions(slice(k, k + 1)) for k in range(3)])
    except Exception:  # whatever a module raises
        return False
    return torch.allclose(together, alone, rtol=ROUNDING, atol=ROUNDING)


def _stack(actor: nn.Module, task: Task, scale: float) -> PolicyGraph | None:
    """The policy graph of a stack of linear layers with one activation between them; None for any other module."""
    layers = [part for part in actor.modules() if not list(part.children()) and not isinstance(part, SILENT)]
    linear, between = layers[::2], layers[1::2]
    kinds = [name for name, kind in ACTIVATIONS.items() if all(type(part) is kind for part in between)]
    sequential = all(isinstance(part, nn.Sequential) for part in actor.modules() if list(part.children()))
    if not (sequential and kinds and between and len(layers) % 2 and all(type(part) is nn.Linear for part in linear)):
        return None
    if task.encoders or not _plain(between):
        return None
    policy = PolicyGraph(task, tuple(part.out_features for part in linear[:-1]), kinds[0])  # type: ignore[misc]
    with torch.no_grad():
        for mine, theirs in zip([part for part in policy.network if isinstance(part, nn.Linear)], linear, strict=True):
            mine.weight.copy_(theirs.weight)  # type: ignore[arg-type]
            mine.bias.copy_(0.0 if theirs.bias is None else theirs.bias)  # type: ignore[arg-type]
        mine.weight.mul_(scale)
        mine.bias.mul_(scale)
    return policy


def _plain(activations: list[nn.Module]) -> bool:
    """Whether they have their usual parameters."""
    return all(getattr(part, "alpha", 1.0) == 1.0 for part in activations)
