"""What wrappers do to observations and actions between an environment and a policy, as modules for its graph.

A policy that was trained in ``NormalizeObservation(env)`` is one that normalises first. Wrappers of gymnasium, for one
environment or many, and of stable-baselines3 are known here, each in one of three ways: it changes neither
observations nor actions; it becomes a module before or after the policy; or it can't, and is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from robo_rl.adapters.elementwise import Elementwise

PASSIVE = (
    "ArrayConversion", "Autoreset", "ClipReward", "DictInfoToList", "HumanRendering", "JaxToNumpy", "JaxToTorch",
    "Monitor", "NormalizeReward", "NumpyToTorch", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics",
    "RecordVideo", "RenderCollection", "TimeLimit", "TransformReward", "VecCheckNan", "VecMonitor", "VecVideoRecorder",
)  # fmt: skip
"""Wrappers of gymnasium and stable-baselines3 that change neither observations nor actions."""
MEMORY = {
    "DelayObservation": "the policy would have to remember observations; put the delay into the task's signals",
    "FrameStackObservation": "the policy would have to remember observations; keep them in the task's memory",
    "MaxAndSkipObservation": "the policy would act at another rate; set the task's control period",
    "RepeatAction": "the policy would act at another rate; set the task's control period",
    "StickyAction": "the policy would have to remember actions; put the delay into the task's ranges",
    "TimeAwareObservation": "the policy would have to count; observe a clock of the task",
    "VecFrameStack": "the policy would have to remember observations; keep them in the task's memory",
}
"""Those whose effect lasts from step to step, with what to do instead."""
MANY = ("SyncVectorEnv", "DummyVecEnv")
"""Environments of several, each with wrappers of its own."""
APART = ("AsyncVectorEnv", "SubprocVecEnv")
OURS = ("gymnasium", "stable_baselines3")
PASSING = (
    "__getattribute__", "action", "actions", "observation", "observations", "reset", "step", "step_async", "step_wait",
)  # fmt: skip
"""Methods by which a wrapper may change observations or actions."""
BASES = (
    "ABC", "Env", "RecordConstructorArgs", "RewardWrapper", "VecEnv", "VecEnvWrapper", "VectorEnv",
    "VectorRewardWrapper", "VectorWrapper", "Wrapper",
)  # fmt: skip
"""Classes of gymnasium and stable-baselines3 that by themselves change nothing."""


class WrapperError(ValueError):
    """A wrapper can't become a part of a policy's graph. The message names it."""


class Normalized(nn.Module):
    """(x − mean) / √(variance + epsilon), cut at ±``most``: gymnasium's and stable-baselines3's normalisation."""

    def __init__(self, statistics: Any, epsilon: float, most: float = float("inf"), shared: bool = False) -> None:
        """``statistics`` has ``mean`` and ``var``, (k,) each. ``shared``: a learner's model may bring it, too."""
        super().__init__()
        mean, variance = np.asarray(statistics.mean), np.asarray(statistics.var)
        self.register_buffer("mean", torch.from_numpy(mean.copy()).float())
        self.register_buffer("deviation", torch.from_numpy(np.sqrt(variance + epsilon)).float())
        self.most, self.shared = most, shared

    def forward(self, observation: Tensor) -> Tensor:
        seen = (observation - self.get_buffer("mean")) / self.get_buffer("deviation")
        return seen if np.isinf(self.most) else torch.clamp(seen, -self.most, self.most)

    def same(self, other: Normalized) -> bool:
        """Whether both do the same, to the last bit."""
        equal = all(torch.equal(self.get_buffer(n), other.get_buffer(n)) for n in ("mean", "deviation"))
        return equal and self.most == other.most


class Clipped(nn.Module):
    """Numbers within bounds (k,)."""

    def __init__(self, lower: Any, upper: Any) -> None:
        super().__init__()
        for name, bound in (("lower", lower), ("upper", upper)):
            self.register_buffer(name, torch.from_numpy(np.array(bound, np.float32)))

    def forward(self, values: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(values, self.get_buffer("lower")), self.get_buffer("upper"))


class Joined(nn.Module):
    """Groups of an observation, flattened one after the other, as ``FlattenObservation`` does."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def forward(self, groups: dict[str, Tensor]) -> Tensor:
        return torch.cat([groups[name].flatten(1) for name in self.names], 1)


@dataclass(frozen=True)
class Wrapping:
    """An environment of ours below its wrappers."""

    env: Any
    """It has ``observed``, a ``LearningEnv``."""
    before: tuple[nn.Module, ...] = ()
    """What is done to observations, in order."""
    after: tuple[nn.Module, ...] = ()
    """What is done to actions, in order."""
    names: tuple[str, ...] = ()
    """The wrappers that do it, the innermost first."""

    def around(self, policy: nn.Module) -> nn.Module:
        """The policy with all that wrappers do; itself if they do nothing."""
        return nn.Sequential(*self.before, policy, *self.after) if self.names else policy


def unwrap(env: Any, passive: tuple[str, ...] = ()) -> Wrapping:
    """What the wrappers of ``env`` do, down to an environment of ours.

    ``passive``: names of a user's own wrapper classes that change neither observations nor actions. WrapperError where
    one can't be a part of the graph, or is unknown; ValueError if there is no environment of ours below.
    """
    if "observed" in getattr(
        env, "__dict__", {}
    ):  # wrappers of stable-baselines3 hand on attributes of what is in them
        return Wrapping(env)
    name = type(env).__name__
    if _theirs(env) and name in APART:
        raise WrapperError(f"'{name}' has its environments in other processes, where their wrappers can't be seen; "
                           "give one that was made in this process")  # fmt: skip
    if _theirs(env) and name in MANY:
        return _one_of(env, [unwrap(single, passive) for single in env.envs])
    inner = getattr(env, "venv", None) or getattr(env, "env", None)
    if inner is None or inner is env:
        raise ValueError(f"task is a {name}; expected a task, its name, or one of its environments")
    below = unwrap(inner, passive)
    before, after = _effect(env, inner, passive)
    if not before and not after:
        return below
    return Wrapping(below.env, (*below.before, *before), (*after, *below.after), (*below.names, name))


def _theirs(env: Any) -> bool:
    return type(env).__module__.split(".")[0] in OURS


def _one_of(env: Any, found: list[Wrapping]) -> Wrapping:
    """Of several environments that are wrapped alike, the first."""
    first = found[0]
    alike = all(one.names == first.names and _equal(one, first) for one in found)
    if not alike:
        raise WrapperError(
            f"the {len(found)} environments of '{type(env).__name__}' are wrapped differently, or each has statistics "
            f"of its own ({', '.join(first.names) or 'some by nothing'}); a policy has one normalisation: wrap the "
            "environments together"
        )
    return first


def _equal(one: Wrapping, other: Wrapping) -> bool:
    pairs = zip((*one.before, *one.after), (*other.before, *other.after), strict=True)
    return all(_same(a, b) for a, b in pairs)


def _same(one: nn.Module, other: nn.Module) -> bool:
    if isinstance(one, Normalized) and isinstance(other, Normalized):
        return one.same(other)
    probe = torch.linspace(-30.0, 30.0, 101)
    if isinstance(one, Elementwise) and isinstance(other, Elementwise):
        shape = one.shape
        grid = probe.reshape(-1, *[1] * len(shape)).expand(-1, *shape)
        return bool(torch.equal(one(grid), other(grid)))
    return type(one) is type(other)


Parts = tuple[list[nn.Module], list[nn.Module]]


def _effect(env: Any, inner: Any, passive: tuple[str, ...]) -> Parts:
    """What one wrapper does to observations and to actions."""
    name = type(env).__name__
    if name in passive:
        return [], []
    if not _theirs(env):
        return _own(env)
    if name in PASSIVE:
        return [], []
    if name in ("VecNormalize", "NormalizeObservation"):
        _require_used(env, name)
    if name == "VecNormalize":
        return ([normalization(env)] if env.norm_obs else []), []
    if name == "NormalizeObservation":
        return [Normalized(env.obs_rms, env.epsilon)], []
    if name in MEMORY:
        raise WrapperError(f"wrapper '{name}': {MEMORY[name]}")
    single = vars(env).get("wrapper", env)  # a vector wrapper may hold the one of a single environment
    seen, done = (_space(env, f"{what}_space") for what in ("observation", "action"))
    seen_below, done_below = (_space(inner, f"{what}_space") for what in ("observation", "action"))
    if name == "FlattenObservation":
        return _flattened(seen_below), []
    if name == "ReshapeObservation":
        return [nn.Flatten(), nn.Unflatten(1, seen.shape)], []
    if name == "DtypeObservation" and np.issubdtype(seen.dtype, np.floating):
        return [], []
    if name == "ClipAction":
        return [], [Clipped(done_below.low, done_below.high)]
    function = getattr(single, "func", None)  # those that inherit from it may have none, as DiscretizeAction
    if function and (isinstance(single, gymnasium.wrappers.TransformObservation) or name == "TransformObservation"):
        return [_traced(name, function, seen_below, single is env and _many(env))], []
    if function and (isinstance(single, gymnasium.wrappers.TransformAction) or name == "TransformAction"):
        return [], [_traced(name, function, done, single is env and _many(env))]
    raise WrapperError(f"wrapper '{name}' changes observations or actions in a way that can't be put into the graph; "
                       "do it within the module or the task")  # fmt: skip


def _own(env: Any) -> Parts:
    """A user's wrapper: fine where neither it nor what it inherits from passes observations or actions on."""
    own = [kind for kind in type(env).__mro__ if kind.__module__.split(".")[0] not in (*OURS, "builtins", "typing")]
    theirs = {kind.__name__ for kind in type(env).__mro__ if kind.__module__.split(".")[0] in OURS}
    changed = sorted({name for kind in own for name in PASSING if name in vars(kind)})
    changed += sorted(theirs - {*BASES, *PASSIVE})
    if not changed:
        return [], []
    name = type(env).__name__
    raise WrapperError(
        f"wrapper '{name}' is not known, and its {', '.join(changed)} may change observations or actions; do that "
        f"within the module or the task, or say passive=('{name}',) if it changes neither"
    )


def _require_used(env: Any, name: str) -> None:
    """WrapperError where statistics are still those before the first observation."""
    found = env.obs_rms if getattr(env, "norm_obs", True) else None
    if found is not None and not isinstance(found, dict) and found.count < 1.0:
        raise WrapperError(
            f"wrapper '{name}' has not seen an observation, so it has no statistics; give the environment of training"
        )


def normalization(env: Any) -> Normalized:
    """What a ``VecNormalize`` does to observations."""
    if isinstance(env.obs_rms, dict):
        raise WrapperError("wrapper 'VecNormalize' normalises groups of observations; expected one vector")
    return Normalized(env.obs_rms, env.epsilon, env.clip_obs, shared=True)


def _many(env: Any) -> bool:
    return hasattr(env, "single_action_space")


def _space(env: Any, name: str) -> Any:
    """Of one environment."""
    return getattr(env, f"single_{name}", None) or getattr(env, name)


def _flattened(space: Any) -> list[nn.Module]:
    if isinstance(space, gymnasium.spaces.Dict):
        return [Joined(list(space.spaces))]
    return [nn.Flatten()]


def _traced(name: str, function: Callable[[Any], Any], space: Any, batched: bool) -> nn.Module:
    """What a user's function does, where it treats every number by itself."""
    if not isinstance(space, gymnasium.spaces.Box):
        raise WrapperError(f"wrapper '{name}' gets a {type(space).__name__}; expected a vector")
    part = Elementwise(function, space.shape)
    try:
        part.require_same(function, batched)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WrapperError(
            f"wrapper '{name}': its function can't be put into the graph ({reason}); do what it does within the module"
        ) from None
    return part
