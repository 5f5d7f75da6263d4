"""An update of ours, against rsl_rl's own algorithm, storage, networks and normaliser on the same samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.moments import RunningNormalizer, moments
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

if TYPE_CHECKING:  # rsl_rl takes seconds to import: the tests do it, not every process that collects them
    from rsl_rl.algorithms import PPO
    from rsl_rl.modules import EmpiricalNormalization
    from tensordict import TensorDict


def their_groups(policy: torch.Tensor, privileged: torch.Tensor) -> TensorDict:
    from tensordict import TensorDict

    return TensorDict({"policy": policy, "privileged": privileged}, batch_size=[len(policy)])


def copy_normalizer(ours: RunningNormalizer, theirs: EmpiricalNormalization) -> None:
    theirs._mean.copy_(ours.mean)
    theirs._var.copy_(ours.variance)
    theirs._std.copy_(ours.variance.sqrt())
    theirs.count.copy_(ours.count)


def their_ppo(learner: Learner, config: PpoConfig, last: TensorDict) -> PPO:
    """rsl_rl's algorithm with the same networks, and the samples that ours collected in its storage."""
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel, RNNModel
    from rsl_rl.storage import RolloutStorage

    samples, actions = learner.samples, learner.samples.action.shape[-1]
    sides = {"actor": ["policy"], "critic": ["privileged"]}
    deviation = {"class_name": "GaussianDistribution", "init_std": 1.0}
    shape = (last, sides, "actor", actions, config.hidden, config.activation, True, deviation)
    actor = RNNModel(*shape, "gru", config.recurrent) if config.recurrent else MLPModel(*shape)
    critic = MLPModel(last, sides, "critic", 1, config.critic_hidden, config.activation, True)
    actor.mlp.load_state_dict(learner.policy.network.state_dict())
    critic.mlp.load_state_dict(learner.critic.network.state_dict())
    if config.recurrent:
        actor.rnn.rnn.load_state_dict(learner.policy.recurrence.state_dict())
        actor.reset(hidden_state=samples.hidden.clone())
    with torch.no_grad():
        actor.distribution.std_param.copy_(learner.deviation)
    copy_normalizer(learner.normalizer, actor.obs_normalizer)
    copy_normalizer(learner.critic.normalizer, critic.obs_normalizer)

    storage = RolloutStorage("rl", learner.env.n, config.horizon, last, [actions])
    for t in range(config.horizon):
        kept = RolloutStorage.Transition()
        kept.observations = their_groups(samples.observation["policy"][t], samples.privileged[t])
        kept.hidden_states = (actor.get_hidden_state(), None)
        with torch.no_grad():
            actor(kept.observations, stochastic_output=True)
            kept.values = critic(kept.observations)
            kept.actions = samples.action[t]
            kept.actions_log_prob = actor.get_output_log_prob(kept.actions)
            kept.distribution_params = actor.output_distribution_params
        kept.rewards, kept.dones = samples.reward[t], samples.done[t]
        storage.add_transition(kept)
        actor.reset(samples.done[t])
    return PPO(
        actor,
        critic,
        storage,
        num_learning_epochs=config.epochs,
        num_mini_batches=config.mini_batches,
        clip_param=config.clip,
        gamma=config.gamma,
        lam=config.lam,
        entropy_coef=config.entropy,
        learning_rate=learner.learning_rate,
        max_grad_norm=config.gradient_norm,
        desired_kl=config.desired_kl,
    )


@pytest.mark.parametrize(
    ("task", "recurrent", "mini_batches"), [("quadrotor-hover", 0, 3), ("go2-flat", 0, 4), ("quadrotor-hover", 12, 1)]
)
def test_an_update_is_rsl_rl_s_own(task: str, recurrent: int, mini_batches: int) -> None:
    """rsl_rl does not shuffle the robots of a recurrent policy, so there all of them are in one mini-batch."""
    config = PpoConfig(
        environments=19, horizon=8, hidden=(16, 12), critic_hidden=(24,), activation="elu", entropy=0.01,
        epochs=5, recurrent=recurrent, mini_batches=mini_batches,
    )  # fmt: skip
    torch.manual_seed(0)
    policy = PolicyGraph(load_task(task), config.hidden, config.activation, True, recurrent)
    learner = Learner(policy.task, policy, config, seed=0)
    learner.update()
    learner.optimizer = torch.optim.Adam(learner.parameters, fused=True)
    learner.learning_rate = 1e-2  # the greatest: before the first step the divergence is 0, or above it by rounding
    base = learner.env.env
    base.episode.step[3] = base.episode_steps - 4  # an episode ends on the way, and a recurrent network forgets
    learner.collect()
    assert learner.samples.done.any()
    last = their_groups(learner.env.observation(), learner.env.privileged())
    theirs, before = their_ppo(learner, config, last), learner.learning_rate
    with torch.no_grad():
        theirs.compute_returns(last)

    torch.manual_seed(1)
    expected = theirs.update()
    torch.manual_seed(1)
    losses = learner.learn()
    told = {f"loss/{name}": value for name, value in expected.items()}
    assert {name: losses[name] for name in told} == pytest.approx(told, rel=1e-4)
    assert learner.learning_rate == pytest.approx(theirs.learning_rate)
    assert learner.learning_rate != before
    pairs = {
        "network": (policy.network, theirs.actor.mlp),
        "critic": (learner.critic.network, theirs.critic.mlp),
    }
    if recurrent:
        pairs["recurrence"] = (policy.recurrence, theirs.actor.rnn.rnn)
    for part, (ours, other) in pairs.items():
        for name, value in other.state_dict().items():
            np.testing.assert_allclose(ours.state_dict()[name], value, rtol=1e-4, atol=1e-5, err_msg=f"{part} {name}")
    torch.testing.assert_close(learner.deviation, theirs.actor.distribution.std_param)
    for ours, other in (
        (learner.normalizer, theirs.actor.obs_normalizer),
        (learner.critic.normalizer, theirs.critic.obs_normalizer),
    ):
        torch.testing.assert_close(ours.mean, other.mean)
        torch.testing.assert_close(ours.variance.sqrt(), other.std)
    x = torch.randn(3, policy.task.observation_size)
    torch.testing.assert_close(policy.normalizer(x), theirs.actor.obs_normalizer(x))


def test_statistics_run_as_rsl_rl_s() -> None:
    generator = torch.Generator().manual_seed(0)
    from rsl_rl.modules import EmpiricalNormalization

    ours, theirs = RunningNormalizer(3), EmpiricalNormalization(3)
    for n in (40, 1, 7):
        seen = torch.randn(n, 3, generator=generator) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 5.0, -2.0])
        torch.testing.assert_close(ours(seen), theirs(seen))
        ours.update(*moments(seen))
        theirs.update(seen)
        assert int(ours.count) == int(theirs.count)
        torch.testing.assert_close(ours.mean, theirs.mean)
        torch.testing.assert_close(ours.variance.sqrt(), theirs.std)
