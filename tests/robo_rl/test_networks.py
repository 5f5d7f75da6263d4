"""Networks: what they compute, and where they start."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.policy.networks import ACTIVATIONS, GRU, MLP, Normalizer

FORMULAS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_mlp_is_affine_maps_with_the_activation_between_them(activation: str) -> None:
    torch.manual_seed(0)
    network = MLP(5, (7, 6), 3, activation)
    x = torch.randn(11, 5)
    y = x.double().numpy()
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    for place, layer in enumerate(layers):
        y = y @ layer.weight.detach().double().numpy().T + layer.bias.detach().double().numpy()
        y = FORMULAS[activation](y) if place < len(layers) - 1 else y
    np.testing.assert_allclose(network(x).detach().numpy(), y, atol=1e-6)


def test_an_untrained_mlp_gives_almost_zero_actions() -> None:
    torch.manual_seed(0)
    actions = MLP(20, (64, 64), 4)(torch.randn(1000, 20))
    assert actions.abs().max() < 0.02


def test_mlp_without_hidden_layers_is_affine() -> None:
    network = MLP(4, (), 2)
    a, b = torch.randn(2, 1, 4).unbind(0)
    np.testing.assert_allclose(
        (network(a + b) + network(torch.zeros(1, 4))).detach(), (network(a) + network(b)).detach(), atol=1e-6
    )


def test_one_step_of_a_gru_is_torch_s_over_a_sequence() -> None:
    torch.manual_seed(0)
    gru, x, hidden = GRU(5, 7), torch.randn(20, 3, 5), torch.randn(3, 7)
    expected, _ = gru(x, hidden[None])
    for now, then in zip(x, expected, strict=True):
        hidden = gru.step(now, hidden)
        torch.testing.assert_close(hidden, then, atol=1e-6, rtol=1e-5)


def test_normalizer_subtracts_the_mean_and_divides_by_the_deviation() -> None:
    rng = np.random.default_rng(0)
    x, mean, deviation = rng.normal(size=(9, 4)), rng.normal(size=4), rng.uniform(0.1, 3, size=4)
    normalizer = Normalizer(4)
    np.testing.assert_array_equal(normalizer(torch.tensor(x)), x)
    normalizer.mean.copy_(torch.tensor(mean))
    normalizer.deviation.copy_(torch.tensor(deviation))
    np.testing.assert_allclose(normalizer(torch.tensor(x)), (x - mean) / deviation, rtol=1e-5, atol=1e-6)
