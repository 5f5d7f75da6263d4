"""Proximal policy optimisation, to be read from top to bottom.

One update: all robots act for a horizon at random about what the policy would do (``collect``); then the policy makes
what turned out better than the critic had expected more likely, in small steps that stay near the policy that acted,
and the critic learns what the robots earned (``learn``). What trains is the policy graph that will be exported.

After Schulman et al. 2017 (Proximal Policy Optimization Algorithms) and 2016 (High-Dimensional Continuous Control Using
Generalized Advantage Estimation), with the choices of rsl_rl (Schwarke et al. 2025), whose numbers it gives, as a test
shows: a step size that follows the divergence between policies, advantages normalised over all samples, the
gradients of actor and critic clipped apart, and observations normalised by running statistics.

Shapes: T steps of a horizon, n robots, m robots of a mini-batch, k actions, p privileged numbers, w units of a
recurrent network.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from robo_rl.learn.adam import Adam
from robo_rl.learn.adversary import Adversary, undrawn
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed import processes
from robo_rl.learn.distributed.stragglers import Stragglers
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import starts
from robo_rl.learn.experience.samples import Samples, empty_samples
from robo_rl.learn.experience.transitions import Transition, groups
from robo_rl.learn.extension import Extension
from robo_rl.learn.finite import MOST_DIVERGED, stepped
from robo_rl.learn.moments import Moments, RunningNormalizer, moments
from robo_rl.learn.rnd import Novelty
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors, part
from robo_rl.policy import PolicyGraph
from robo_rl.policy.chunk import LEFT
from robo_rl.policy.elu import use_fast_elu
from robo_rl.policy.networks import MLP, VECTOR, Normalizer
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import all_within, within
from robo_rl.sim.tasks import Task

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
DEVIATIONS = (1e-6, 1e6)
"""Least and greatest standard deviation of exploration."""
LEARNING_RATES = (1e-5, 1e-2)
"""Least and greatest step size."""
LOSSES = (
    "loss/value", "loss/surrogate", "loss/entropy", "kl", "clip_fraction", "gradient_norm", "gradient_norm_critic",
)  # fmt: skip
"""Metrics of a step of the optimiser; norms are those before clipping."""


# --- what a horizon was worth --------------------------------------------------------------------------------------


def advantages(
    reward: Tensor, value: Tensor, last: Tensor, done: Tensor, gamma: float, lam: float, decided: Tensor | None = None
) -> Tensor:
    """Generalised advantage estimates (T, n), of values (T, n) and those after the last step (n,).

    ``decided`` (T, n): where some steps only went on with a chunk of actions, their values, which know nothing of it,
    cancel out: λ counts from decision to decision (a semi-Markov process, Sutton et al. 1999).
    """
    found, later = torch.empty_like(reward), torch.zeros_like(last)
    trust: float | Tensor = lam
    for t in reversed(range(len(reward))):
        discount = gamma * ~done[t]
        surprise = reward[t] + discount * (value[t + 1] if t + 1 < len(value) else last) - value[t]
        if decided is not None and t + 1 < len(reward):
            trust = torch.where(decided[t + 1], lam, 1.0)
        later = found[t] = surprise + discount * trust * later
    return found


def explained_variance(value: Tensor, returns: Tensor) -> float:
    """1 where the critic expects (…) exactly what is earned, 0 where it is no better than a constant; can be below."""
    return float(1.0 - (returns - value).var() / (returns.var() + 1e-8))


def normalized(x: Tensor, over: Moments) -> Tensor:
    """``x`` less the mean, over the deviation."""
    return (x - over.mean) / ((over.squares / (over.number - 1)).sqrt() + 1e-8)


# --- policies, and how far they are apart --------------------------------------------------------------------------


def mean_action(
    policy: PolicyGraph, observation: Mapping[str, Tensor], hidden: Tensor, done: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Actions (T, m, k) for observations (T, m, …) in a row, and the hidden state (1, m, w) after them.

    The hidden state is forgotten where an episode ended, (T, m).
    """
    shape = next(iter(observation.values())).shape[:2]
    seen = policy.features({name: value.flatten(0, 1) for name, value in observation.items()})  # (T · m, features)
    if policy.recurrence is not None:
        (state,), states = hidden, []
        for t, x in enumerate(seen.unflatten(0, shape)):
            state = policy.recurrence.step(x, state)
            states.append(state)
            state = state if done is None else state * ~done[t, :, None]
        seen, hidden = torch.cat(states), state[None]
    return policy.network(seen).unflatten(0, shape), hidden


def log_probability(action: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """(…) of actions (…, k), normally distributed about means (…, k) with deviations (k,)."""
    distance = ((action - mean) / deviation).square().sum(-1)
    return -0.5 * distance - (deviation.log() + HALF_LOG_TWO_PI).sum()


def entropy_of(deviation: Tensor) -> Tensor:
    """Of a normal distribution with deviations (k,)."""
    return (0.5 + HALF_LOG_TWO_PI + deviation.log()).sum()


def divergence(old_mean: Tensor, old: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Mean Kullback-Leibler divergence KL(old || new) of means (…, k) and deviations (k,)."""
    ratio = (old / deviation).square()
    return 0.5 * (((old_mean - mean) / deviation).square().sum(-1).mean() + (ratio - 1 - ratio.log()).sum())


def adapted(rate: float, kl: float, desired: float) -> float:
    """The step size after a divergence: smaller when it was twice the desired one, greater when it was half of it."""
    if kl > 2.0 * desired:
        return max(LEARNING_RATES[0], rate / 1.5)
    return min(LEARNING_RATES[1], rate * 1.5) if 0.0 < kl < 0.5 * desired else rate


def surrogate_loss(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """What a policy loses that takes actions ``ratio`` times as often; beyond 1 ± clip nothing more is to be gained."""
    return -torch.min(advantage * ratio, advantage * ratio.clamp(1.0 - clip, 1.0 + clip)).mean()


def value_loss(value: Tensor, old: Tensor, returns: Tensor, clip: float) -> Tensor:
    """Mean square of the critic's error; beyond ``clip`` from what it said before, nothing more is to be gained."""
    near = old + (value - old).clamp(-clip, clip)
    return torch.max((value - returns).square(), (near - returns).square()).mean()


class Critic(nn.Module):
    """What the robots will still earn, (…), by privileged observations (…, p)."""

    def __init__(self, inputs: int, config: PpoConfig) -> None:
        super().__init__()
        self.normalizer = RunningNormalizer(inputs) if config.normalize else nn.Identity()
        self.network = MLP(inputs, config.critic_hidden, 1, config.activation)
        last = self.network[-1]
        assert isinstance(last, nn.Linear)
        last.reset_parameters()  # unlike actions, values need not begin near zero

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.normalizer(x)).squeeze(-1)


def spread_episodes(env: VecEnv) -> None:
    """Let episodes that have just begun be anywhere in their time; those of a team's robots at the same moment."""
    team = env.team
    env.episode.step.copy_(torch.randint(env.episode_steps, (env.n // team,)).repeat_interleave(team))


# --- the algorithm -------------------------------------------------------------------------------------------------


class Learner:
    """Trains a policy, one update at a time, in one or several processes."""

    def __init__(
        self, task: Task, policy: PolicyGraph, config: PpoConfig, seed: int, device: str = "cpu",
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        """``folder`` is the run's, in which reset states are."""
        self.config, self.policy, self.device = config, policy.to(device), device
        self.seed = processes.own_seed(seed)
        own = processes.share(config.environments)
        task = policy.task if config.chunk > 1 else task
        chosen = undrawn(task, config.adversary, own)
        self.env = LearningEnv(VecEnv(task, own, self.seed, device, fixed=chosen))
        starts(folder, config.reset_states, config.reset_weights, self.env)
        if config.spread:
            spread_episodes(self.env.env)
        adversary = [Adversary(self.env.env, config.adversary, config.rationality)] if chosen else []
        self.room = self.samples = empty_samples(self.env, config, device)
        self.hidden = self.samples.hidden.clone()
        self.normalizer = RunningNormalizer(task.observation_size).to(device)
        self.set_normalizer()
        self.critic = Critic(self.samples.privileged.shape[-1], config).to(device)
        novelty = [Novelty(self.samples.privileged.shape[-1], config.rnd).to(device)] if config.rnd else []
        self.extensions: list[Extension] = [*adversary, *novelty]
        self.stragglers = Stragglers(config, self.env.n)
        self.deviation = nn.Parameter(torch.full((task.action_size,), config.initial_deviation, device=device))
        if torch.device(device).type == "cpu":
            use_fast_elu(policy)
            use_fast_elu(self.critic)
        self.actor_parameters = [self.deviation, *policy.parameters()]
        self.parameters = [*self.actor_parameters, *self.critic.parameters()]
        self.learning_rate = config.learning_rate
        self.optimizer = Adam(self.parameters, fused=True)  # one pass over all weights, not a dozen
        self.total, self.done = round(config.updates * task.update_scale), 0
        self.collect_seconds, self.diverged, self.skipped = 0.0, 0, 0
        self.survived: dict[str, float] = {}
        """Part of the episodes that ended in the last update in which any did: "alive", once there was one."""

    @property
    def environments(self) -> VecEnv:
        """Whose episodes metrics tell of."""
        return self.env.env

    @property
    def environment_steps(self) -> int:
        """Control steps simulated so far, over all environments of all processes."""
        return self.done * self.config.horizon * self.config.environments * self.env.env.team

    @property
    def desired_kl(self) -> float:
        """The wanted divergence now: from where the policy should anneal on, it falls to a tenth at the last update."""
        annealing = self.config.anneal * self.total
        left = (self.total - self.done) / annealing if annealing else 1.0
        return self.config.desired_kl * max(0.1, min(1.0, left))

    def update(self) -> dict[str, float]:
        """Collect a horizon, learn from it; returns metrics."""
        for extension in self.extensions:
            extension.plan(self.done, self.total)
        begun, before = time.perf_counter(), self.env.env.diverged
        metrics = self.collect()
        self.collect_seconds += time.perf_counter() - begun
        lost = self.env.env.diverged - before
        self.diverged += lost
        metrics |= self.learn() if self.worth_learning(lost) else self.skip()
        for extension in self.extensions:
            metrics |= extension.metrics()
        self.done += 1
        deviation = float(self.deviation.detach().clamp(*DEVIATIONS).mean())
        return {**metrics, "deviation": deviation, "learning_rate": self.learning_rate, **self.env.metrics()}

    @torch.inference_mode()
    def collect(self) -> dict[str, float]:
        """Act for a horizon and store what came of it; returns the mean reward and ``survived``."""
        samples, config, steps = self.room, self.config, 0
        deviation = self.deviation.clamp(*DEVIATIONS)
        earned, failed, ended = torch.zeros((), device=self.device), torch.zeros((), device=self.device), 0
        observation, privileged = groups(self.env.observation()), self.env.privileged()
        samples.hidden.copy_(self.hidden)
        while steps < config.horizon and not self.stragglers.late(self.done, steps):
            t = steps
            for name, value in observation.items():
                samples.observation[name][t] = value
            samples.privileged[t], samples.value[t] = privileged, self.critic(privileged)
            if config.chunk > 1:
                samples.decided[t] = self.env.memory[LEFT][:, 0] < 0.5
            now = {name: value[t : t + 1] for name, value in samples.observation.items()}
            samples.mean[t : t + 1], self.hidden = mean_action(self.policy, now, self.hidden)
            samples.action[t] = torch.normal(samples.mean[t], deviation.expand_as(samples.mean[t]))
            step = self.env.step(samples.action[t])
            samples.reward[t], samples.done[t] = self.bootstrapped(step), step.done
            self.hidden[:, step.ids] = 0.0
            for extension in self.extensions:
                extension.hear(step.reward, step.ids)
            earned += step.reward.mean()
            failed += step.failed.sum()
            ended += len(step.ids)
            observation, privileged = groups(step.observation), step.privileged
            steps += 1
        metrics = self.stragglers.finish(self.done, steps)
        self.samples = samples = samples.first(steps)
        for extension in self.extensions:
            metrics |= extension.add_reward(samples.reward, samples.privileged, self.done / self.total)
        reward, value, done, last = samples.reward, samples.value, samples.done, self.critic(privileged)
        samples.log_probability.copy_(log_probability(samples.action, samples.mean, deviation))
        decided = samples.decided if config.chunk > 1 else None
        samples.advantage.copy_(advantages(reward, value, last, done, config.gamma, config.lam, decided))
        samples.returns.copy_(samples.advantage + value)
        if ended:
            self.survived = {"alive": 1 - float(failed) / ended}
        return {"reward": float(earned) / steps, **metrics, **self.survived}

    def bootstrapped(self, step: Transition) -> Tensor:
        """Rewards (n,), with the value of the true final state where an episode ended because its time was over."""
        reward, late = step.reward.clone(), step.timeout[step.ids]
        if late.any():
            reward[step.ids[late]] += self.config.gamma * self.critic(step.final_privileged[late])
        return reward

    def worth_learning(self, lost: int) -> bool:
        """Whether the samples, of which so many diverged, are robots', in all processes."""
        seen = *self.samples.observation.values(), self.samples.privileged
        good = all_within(*seen) or all(bool(within(x.flatten(0, 1)).all()) for x in seen)
        return not processes.any_of(lost >= MOST_DIVERGED * self.samples.done.numel() or not good)

    def skip(self) -> dict[str, float]:
        """Learn nothing from the samples; returns no losses."""
        self.skipped += self.config.epochs * self.config.mini_batches
        return {f"loss/{name}": math.nan for name in ("value", "surrogate", "entropy")}

    def learn(self) -> dict[str, float]:
        """Improve policy and critic by the samples, then the normalisers; returns the mean losses.

        Nothing is learnt from samples of which one is not finite, and no step follows a gradient that is not.
        """
        old, samples = self.deviation.detach().clamp(*DEVIATIONS), self.samples
        seen = (samples.privileged, samples.observation[VECTOR]) if self.config.normalize else ()
        counted = samples.advantage[samples.decided] if self.config.chunk > 1 else samples.advantage.flatten()
        advantage, *new = moments(counted, *(x.flatten(0, -2) for x in seen))
        if not bool(advantage.squares.isfinite()):
            return self.skip()
        batches = self._mini_batches(advantage)
        losses = torch.zeros(len(LOSSES), device=self.device)
        for _ in range(self.config.epochs):
            for batch in batches:
                losses += self._step(batch, old)
        for extension in self.extensions:
            extension.learn(samples.privileged)
        if isinstance(self.critic.normalizer, RunningNormalizer):
            self.critic.normalizer.update(new[0])
            self.normalizer.update(new[1])
            self.set_normalizer()
        told = dict(zip(LOSSES, (losses / (self.config.epochs * len(batches))).tolist(), strict=True))
        return {**told, "explained_variance": explained_variance(samples.value, samples.returns)}

    def _mini_batches(self, advantage: Moments) -> list[Samples]:
        """The samples, shuffled once for all epochs.

        A recurrent policy learns from whole horizons, of some of the robots at a time: its hidden state goes on from
        where it was when they were collected, and is reset with every episode. Others learn from single samples.
        """
        samples = self.samples._replace(advantage=normalized(self.samples.advantage, advantage))
        samples = samples if self.config.recurrent else samples.in_one_row()
        size = samples.done.shape[1] // self.config.mini_batches
        order = torch.randperm(size * self.config.mini_batches, device=self.device)
        return [samples.columns(ids) for ids in order.split(size)]

    def _step(self, batch: Samples, old: Tensor) -> Tensor:
        """One step of the optimiser; returns ``LOSSES``."""
        config = self.config
        acted = batch.decisions() if config.chunk > 1 else batch
        mean, _ = mean_action(self.policy, acted.observation, acted.hidden, acted.done)
        deviation = self.deviation.clamp(*DEVIATIONS)
        with torch.no_grad():
            kl = divergence(acted.mean, old, mean, deviation)
        ratio = (log_probability(acted.action, mean, deviation) - acted.log_probability).exp()
        surrogate = surrogate_loss(ratio, acted.advantage, config.clip)
        value = value_loss(self.critic(batch.privileged), batch.value, batch.returns, config.clip)
        entropy = entropy_of(deviation)

        self.optimizer.zero_grad()
        (surrogate + value - config.entropy * entropy).backward()
        mean_kl = processes.average_gradients(self.parameters, kl)
        self.learning_rate = adapted(self.learning_rate, mean_kl, self.desired_kl)
        norms = [
            nn.utils.clip_grad_norm_(parameters, config.gradient_norm)
            for parameters in (self.actor_parameters, self.critic.parameters())
        ]
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.skipped += not stepped(self.optimizer, *norms)
        clipped = ((ratio.detach() - 1.0).abs() > config.clip).float().mean()
        return torch.stack([value, surrogate, entropy, kl, clipped, *norms]).detach()

    def set_normalizer(self) -> None:
        """Put the running statistics into the policy graph."""
        if isinstance(self.policy.normalizer, Normalizer):
            self.policy.normalizer.mean.copy_(self.normalizer.mean)
            self.policy.normalizer.deviation.copy_(self.normalizer.deviation)

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the training depends on, besides the policy: tensors and numbers."""
        tensors = {"deviation": self.deviation, "hidden": self.hidden, **optimizer_tensors(self.optimizer)}
        tensors |= {f"critic/{name}": value for name, value in self.critic.state_dict().items()}
        tensors |= {f"normalizer/{name}": value for name, value in self.normalizer.state_dict().items()}
        tensors |= {f"env/{name}": value for name, value in self.env.save().items()}
        for extension in self.extensions:
            tensors |= {f"{extension.name}/{name}": value for name, value in extension.save().items()}
        return tensors, {"done": self.done, "learning_rate": self.learning_rate, "survived": self.survived}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``, with the policy of that moment: on a CPU, bit by bit as if there had been no break.

        Robots of other processes than the first, whose state is not saved, begin new episodes, at the first's levels.
        """
        self.done, self.survived = numbers["done"], numbers.get("survived", {})
        self.learning_rate = numbers["learning_rate"]
        with torch.no_grad():
            self.deviation.copy_(tensors["deviation"])
        self.critic.load_state_dict(part(tensors, "critic/"))
        self.normalizer.load_state_dict(part(tensors, "normalizer/"))
        optimizer_from(tensors, self.optimizer)
        for extension in self.extensions:
            extension.load(part(tensors, f"{extension.name}/"))
        if processes.rank() > 0:
            self.env.env.seed(self.seed + self.done)  # not the first draws again
            self.env.begin_at(tensors["env/env/levels"])
            return
        self.env.load(part(tensors, "env/"))
        self.hidden = tensors["hidden"].to(self.device, copy=True)
