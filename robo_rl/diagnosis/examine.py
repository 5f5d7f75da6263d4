"""All that is known of a run, gathered for the checks."""

from __future__ import annotations

import math

import torch

from robo_rl.diagnosis.checks import Finding, Training, diagnose
from robo_rl.diagnosis.look import look, sources, unused_actions
from robo_rl.evaluate.evaluation import GraphPolicy
from robo_rl.evaluate.untrained import RandomPolicy, ZeroPolicy
from robo_rl.learn import config_of
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run, RunError
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import Normalizer


@torch.no_grad()
def examine(run: Run) -> tuple[float, list[Finding]]:
    """The part of a run's updates that is done, and what is conspicuous. RunError before there is anything to look at.

    A training that ended before its first checkpoint is looked at with the policy that it began with.
    """
    begun = run.checkpoint_file.is_file()
    if not begun and not run.metrics():
        raise RunError(f"{run.checkpoint_file} does not exist yet; expected a training that has begun")
    policy = run.policy()[0] if begun else run.new_policy().requires_grad_(False).eval()
    task, settings = policy.task, vars(config_of(run))
    numbers = checkpoint.load(run.checkpoint_file)[1] if begun else {"done": run.metrics()[-1]["update"]}
    total = round(settings.get("updates", 0) * task.update_scale)
    part = 1.0 if numbers.get("finished") else min(1.0, numbers.get("done", 0) / max(1, total))
    training = Training(
        task=task,
        algorithm=run.algorithm,
        settings=settings,
        metrics=run.metrics(),
        part=part,
        newest=look(task, GraphPolicy(policy), policy),
        idle=look(task, ZeroPolicy(task)),
        random=look(task, RandomPolicy(task)),
        sources=sources(task),
        unused=unused_actions(task),
        moved=None if run.begun_from or run.algorithm == "distilled" else _moved(run, policy),
        normalizes=isinstance(policy.normalizer, Normalizer),
    )
    return part, diagnose(training)


def _moved(run: Run, policy: PolicyGraph) -> float:
    """The relative change of the network's weights since the run's beginning, which its seed gives again."""
    generator = torch.get_rng_state()
    torch.manual_seed(run.seed)
    first = run.new_policy()
    torch.set_rng_state(generator)
    pairs = [(a, b) for a, b in zip(policy.network.parameters(), first.network.parameters(), strict=True)]
    apart = sum(float((a - b).square().sum()) for a, b in pairs)
    return math.sqrt(apart / max(1e-12, sum(float(b.square().sum()) for _, b in pairs)))
