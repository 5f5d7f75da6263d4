"""Fast exponential linear units, against torch's."""

from __future__ import annotations

import torch
from torch import nn

from robo_rl.policy.elu import Elu, use_fast_elu


def test_elu_and_its_gradient_are_torchs() -> None:
    x = torch.linspace(-20.0, 5.0, 1001).requires_grad_()
    (ours,) = torch.autograd.grad(Elu()(x).square().sum(), x)
    (theirs,) = torch.autograd.grad(nn.ELU()(x).square().sum(), x)
    torch.testing.assert_close(Elu()(x), nn.ELU()(x), atol=2e-7, rtol=1e-6)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)


def test_only_elu_with_the_usual_slope_is_replaced_wherever_it_is() -> None:
    inner = nn.ModuleDict({"part": nn.Sequential(nn.ELU(), nn.Linear(2, 2))})
    network = nn.Sequential(nn.ELU(), nn.ELU(alpha=0.5), nn.Tanh(), inner)
    use_fast_elu(network)
    assert [type(layer) for layer in network] == [Elu, nn.ELU, nn.Tanh, nn.ModuleDict]
    assert [type(layer) for layer in inner["part"]] == [Elu, nn.Linear]


def test_what_is_exported_is_torchs() -> None:
    program = torch.export.export(nn.Sequential(Elu()), (torch.randn(2, 3),))
    assert torch.ops.aten.elu.default in [node.target for node in program.graph.nodes]
