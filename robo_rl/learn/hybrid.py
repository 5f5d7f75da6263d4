"""How far a simulator can be believed: how likely a robot makes a simulated transition, over how likely that is there.

A robot may do what no parameter of its simulator can express. Then half of every batch of an off-policy algorithm comes
from the robot's log (``robo_rl.learn.experience.robot_log``), and half from the simulator, which reaches what the log
does not. Where the simulator is wrong, its transitions teach critics what the robot will not do. So their errors weigh

    w(s, a, s') = p_robot(s' | s, a) / p_simulator(s' | s, a)

after Niu et al. 2022 (When to Trust Your Simulator: Dynamics-Aware Hybrid Offline-and-Online Reinforcement Learning,
H2O). By Bayes' rule it is a ratio of two classifiers' odds (Eysenbach et al. 2021, Off-Dynamics Reinforcement Learning,
DARC): of telling the robot's transitions from the simulator's by (s, a, s'), over doing so by (s, a) alone,

    log w = logit(s, a, s') − logit(s, a)

The first logit is learnt as the second and a difference, which is log w itself, and 0 before anything is learnt. H2O's
other part, a penalty on values where the gap is wide, is left out.

Shapes: b transitions, k numbers observed, a of an action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from robo_rl.learn.adam import Adam
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.finite import gradient_norm, stepped
from robo_rl.policy.networks import MLP

LEAST, MOST = 0.01, 10.0
"""Of w: a transition that only the simulator makes still counts a little, and none more than ten of the robot's."""
HIDDEN = (64, 64)
"""Of both classifiers."""
FARTHEST = 10.0
"""Deviations of the log, beyond which inputs are cut: a simulated robot may fall where the robot never did."""
FINEST = 1e-3
"""Of an observation's deviation, the least that its change's counts as."""


class DynamicsRatio(nn.Module):
    """Two classifiers of transitions: the robot's, or the simulator's."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, robot: Transitions, config: SacConfig) -> None:
        """``robot``: all of its transitions, in whose deviations inputs are."""
        super().__init__()
        seen, acted = robot.observation.shape[1], robot.action.shape[1]
        self.known, self.noise = seen + acted, config.ratio_noise
        values = _values(robot)
        deviation = values.std(0)
        deviation[: self.known].clamp_(min=0.01)  # tasks observe numbers of about unit size
        deviation[self.known :] = torch.maximum(deviation[self.known :], FINEST * deviation[:seen])
        self.register_buffer("mean", values.mean(0))
        self.register_buffer("deviation", deviation)
        self.before = MLP(self.known, HIDDEN, 1, "relu")
        """The logit by (s, a)."""
        self.outcome = MLP(self.known + seen, HIDDEN, 1, "relu")
        """What (s, a, s') adds to it: log w."""
        self.optimizer = Adam(self.parameters(), config.learning_rate, fused=True)
        self.loss = 0.0
        """Cross-entropy of both classifiers at the last mini-batch; 2 log 2 where nothing can be told apart."""
        self.weight = 1.0
        """Mean w of the simulated transitions of the last mini-batch."""

    def forward(self, transitions: Transitions) -> Tensor:
        """log w (b,), not cut."""
        return self.outcome(self._inputs(transitions, 0.0))[:, 0]

    @torch.no_grad()
    def weights(self, simulated: Transitions) -> Tensor:
        """w (b,) of simulated transitions, within its limits."""
        found = self(simulated).clamp(math.log(LEAST), math.log(MOST)).exp()
        self.weight = float(found.mean())
        return found

    def learn(self, robot: Transitions, simulated: Transitions) -> bool:
        """One step of both classifiers on transitions of each side, which count alike; False if it was left out."""
        loss = torch.zeros(())
        for transitions, sign in ((robot, 1.0), (simulated, -1.0)):
            inputs = self._inputs(transitions, self.noise)
            before = self.before(inputs[:, : self.known])[:, 0]
            whole = before.detach() + self.outcome(inputs)[:, 0]
            loss = loss + 0.5 * sum(functional.softplus(-sign * logit).mean() for logit in (before, whole))
        self.optimizer.zero_grad()
        loss.backward()
        self.loss = float(loss.detach())
        return stepped(self.optimizer, gradient_norm(self.parameters()))

    def _inputs(self, transitions: Transitions, noise: float) -> Tensor:
        """(b, k + a + k) of about unit size; with ``noise``, so that single transitions can't be learnt by heart."""
        found = ((_values(transitions) - self.mean) / self.deviation).clamp(-FARTHEST, FARTHEST)
        return found + noise * torch.randn_like(found) if noise else found


def _values(transitions: Transitions) -> Tensor:
    """(b, k + a + k): s, a and s' − s, which is small beside s."""
    change = transitions.next_observation - transitions.observation
    return torch.cat([transitions.observation, transitions.action, change], 1)
