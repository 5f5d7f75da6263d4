"""Encoders: what networks make of scans, images and tables, against the formulas written out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "deploy"))
from seeing import drawn_signals, seeing_policy, seeing_task

from robo_rl.contract import ContractError, Encoder
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import Attention, Convolution, Encoders


def test_a_convolution_takes_every_second_place_with_the_edges_padded() -> None:
    encoder = Convolution(Encoder("scan", (7,), "convolution", (2,), 3), "tanh").requires_grad_(False)
    x = torch.randn(4, 7)
    weights, bias = encoder.layers[0].weight.numpy(), encoder.layers[0].bias.numpy()
    wide = np.pad(x.numpy(), [(0, 0), (1, 1)])
    inner = [
        [[weights[c, 0] @ wide[n, 2 * i : 2 * i + 3] + bias[c] for i in range(4)] for c in range(2)] for n in range(4)
    ]
    last = encoder.features[0]
    expected = np.tanh(np.tanh(inner).reshape(4, -1) @ last.weight.numpy().T + last.bias.numpy())
    np.testing.assert_allclose(encoder(x).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "kernel"), [((9,), 3), ((64,), 5), ((12, 7), 3), ((1, 1), 4), ((3, 16, 10), 3), ((5, 33), 4)]
)
def test_convolutions_fit_scans_images_and_stacks_of_any_size(shape: tuple[int, ...], kernel: int) -> None:
    encoder = Convolution(Encoder("group", shape, "convolution", (4, 8, 8), 5, kernel), "elu")
    found = encoder(torch.randn(6, *shape))
    assert found.shape == (6, 5)
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_attention_is_a_softmax_over_rows() -> None:
    encoder = Attention(Encoder("others", (5, 3), "attention", (4,), 2), "tanh").requires_grad_(False)
    x = torch.randn(6, 5, 3)
    first, last = encoder.layers[0], encoder.features[0]
    rows = np.tanh(x.numpy() @ first.weight.numpy().T + first.bias.numpy())  # (6, 5, 4)
    scores = np.exp(rows @ encoder.query.weight.numpy()[0])
    weights = scores / scores.sum(1, keepdims=True)
    mixed = np.einsum("nr,nrk->nk", weights, rows)
    expected = np.tanh(mixed @ last.weight.numpy().T + last.bias.numpy())
    np.testing.assert_allclose(encoder(x).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        (
            (2, 3, 4, 5),
            "convolution",
            r"'g': shape is \(2, 3, 4, 5\); a convolution takes \(length,\), \(height, width\)",
        ),
        ((8,), "attention", r"'g': shape is \(8,\); attention takes \(rows, columns\)"),
    ],
)
def test_shapes_that_an_encoder_can_not_take_are_refused(shape: tuple[int, ...], kind: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Encoders([Encoder("g", shape, kind, (4,), 2)])  # type: ignore[arg-type]


def test_features_are_the_normalised_vector_and_all_groups_in_order() -> None:
    policy = seeing_policy()
    policy.normalizer.mean[:] = 0.25
    signals = {name: torch.from_numpy(value[:, 0]) for name, value in drawn_signals(policy, 3, 1).items()}
    observed = policy.task.observe(signals, policy.task.first_memory(3))
    found = policy.features(observed)
    parts = [policy.normalizer(observed["policy"])]
    parts += [policy.encoders[name](observed[name]) for name in ("scan", "depth", "neighbours")]
    torch.testing.assert_close(found, torch.cat(parts, 1))
    assert found.shape == (3, policy.task.observation_size + policy.encoders.size)
    assert policy.network[0].in_features == found.shape[1]
    assert policy.shape.encoders == seeing_task().encoders


def test_a_task_without_groups_has_the_parameters_that_it_had() -> None:
    from robo_rl.sim.tasks.loading import load_task

    torch.manual_seed(3)
    policy = PolicyGraph(load_task("quadrotor-hover"), (8,))
    assert [name for name, _ in policy.named_parameters()] == [
        "network.0.weight", "network.0.bias", "network.2.weight", "network.2.bias",
    ]  # fmt: skip
    torch.manual_seed(3)
    assert torch.equal(policy.network[0].weight, torch.nn.Linear(policy.task.observation_size, 8).weight)


def test_what_can_not_learn_encoders_says_so() -> None:
    from robo_rl.learn.apg import Learner
    from robo_rl.learn.config import ApgConfig

    policy = seeing_policy()
    with pytest.raises(ValueError, match="task 'quadrotor-hover' has encoders of scans or images; train it with ppo"):
        Learner(policy.task, policy, ApgConfig(), 0)
