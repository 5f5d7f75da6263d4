"""What does the same as rsl_rl and torch with less work does the same."""

from __future__ import annotations

import torch
from rsl_rl.modules import EmpiricalNormalization
from torch import nn

from robo_rl.algorithms.fast_ppo import Elu, Normalization, use_fast_elu


def test_elu_and_its_gradient_are_torchs() -> None:
    x = torch.linspace(-20.0, 5.0, 1001).requires_grad_()
    (ours,) = torch.autograd.grad(Elu()(x).square().sum(), x)
    (theirs,) = torch.autograd.grad(nn.ELU()(x).square().sum(), x)
    torch.testing.assert_close(Elu()(x), nn.ELU()(x), atol=2e-7, rtol=1e-6)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)


def test_only_elu_with_the_usual_slope_is_replaced() -> None:
    network = nn.Sequential(nn.ELU(), nn.ELU(alpha=0.5), nn.Tanh(), nn.Linear(2, 2))
    use_fast_elu(network)
    assert [type(layer) for layer in network] == [Elu, nn.ELU, nn.Tanh, nn.Linear]


def test_mean_and_deviation_run_as_rsl_rls() -> None:
    generator = torch.Generator().manual_seed(0)
    ours, theirs = Normalization(3), EmpiricalNormalization(3)
    for n in (40, 1, 7):
        seen = torch.randn(n, 3, generator=generator) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 5.0, -2.0])
        ours.update(seen)
        theirs.update(seen)
        assert int(ours.count) == int(theirs.count)
        torch.testing.assert_close(ours.mean, theirs.mean)
        torch.testing.assert_close(ours.std, theirs.std)
