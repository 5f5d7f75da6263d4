"""Every operation that fuse knows, against torch itself in double precision: values and gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import fuse
from robo_rl.sim.accelerate.fuse.symbol import TORCH

MATRIX = torch.tensor([[1.5, 0.0, -2.0, 0.3], [-0.7, 1.0, 0.1, 4.0], [0.0, 0.2, -1.0, 0.9]])


def matrix_like(a: Tensor) -> Tensor:
    """In torch's own arithmetic, of its type; in a graph, as it is."""
    return MATRIX.to(a.dtype) if isinstance(a, Tensor) else MATRIX


N = 37  # not a multiple of any number of lanes

VALUES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "abs": lambda a, b: torch.abs(a) + abs(b),
    "add": lambda a, b: torch.add(a, b) + 1.5 + a.add(2),
    "radd": lambda a, b: 1 + a + b,
    "amax": lambda a, b: torch.stack([a.amax(-1), torch.amax(b, dim=1)], -1),
    "axis": lambda a, b: torch.stack([a, torch.sum(b, axis=-1, keepdims=True) + a], axis=1),
    "amin": lambda a, b: a.amin(-1, keepdim=True) * torch.amin(b, -1, keepdim=True),
    "cat": lambda a, b: torch.cat([a, b[:, :2], torch.cat((b, a), 1)], -1),
    "clamp": lambda a, b: a.clamp(-0.5, 0.5) + torch.clamp(b, min=0.1) + torch.clamp(a, max=b),
    "cos": lambda a, b: torch.cos(3 * a) + b.cos(),
    "div": lambda a, b: a / (2 + b.abs()) + torch.div(a, 3.0) + b / 0.7,
    "rdiv": lambda a, b: 2 / (1 + a.abs()) + 1 / (b * b + 0.3),
    "exp": lambda a, b: torch.exp(a) * b.exp(),
    "expand": lambda a, b: a[:, None].expand(-1, 4, 3) * b[:, :1, None].expand(-1, 4, 3),
    "flatten": lambda a, b: (a[:, :, None] * b[:, None, :]).flatten(1) + torch.flatten(a[:, None, :1], 1),
    "log": lambda a, b: torch.log(a.abs() + 0.2) * (b * b + 1).log(),
    "matmul": lambda a, b: torch.matmul(a, matrix_like(a)) * b.matmul(matrix_like(b)),
    "maximum": lambda a, b: torch.maximum(a, b) * a.maximum(-b),
    "minimum": lambda a, b: torch.minimum(a, b) * a.minimum(-b),
    "mean": lambda a, b: a.mean(-1) * torch.mean(b, dim=1) + (a[:, None] * b[:, :, None]).mean((1, 2)),
    "mul": lambda a, b: torch.mul(a, b) * a.mul(3) * (-1 * b),
    "neg": lambda a, b: torch.neg(a) - (-b) + (a * b).neg().neg(),
    "pow": lambda a, b: a**2 + torch.pow(b, 3) + (a * a + 1) ** 0.5 + b.pow(5) + a**1 + b**2.0,
    "reciprocal": lambda a, b: torch.reciprocal(a * a + 0.5) + (b * b + 0.5).reciprocal(),
    "reshape": lambda a, b: (
        (a[:, :, None] * b[:, None, :]).reshape(-1, 9) + torch.reshape(a, (-1, 3, 1)).reshape(-1, 3)[:, :1]
    ),
    "rsqrt": lambda a, b: torch.rsqrt(a * a + 0.5) + (b * b + 0.5).rsqrt(),
    "sigmoid": lambda a, b: torch.sigmoid(3 * a) * b.sigmoid(),
    "sin": lambda a, b: torch.sin(3 * a) * b.sin(),
    "split": lambda a, b: torch.cat([*torch.split(a, [1, 2], -1), *b.split(2, 1)][::-1], -1),
    "sqrt": lambda a, b: torch.sqrt(a.abs() + 0.1) * (b * b + 0.1).sqrt(),
    "square": lambda a, b: torch.square(a) * b.square(),
    "squeeze": lambda a, b: a[:, :1].squeeze(1)[:, None] * torch.squeeze(b[:, None, :], 1) + a.squeeze(-1),
    "stack": lambda a, b: torch.stack([a, b, a * b], 1) + torch.stack((a[:, 0], b[:, 0], a[:, 1]), 0).mT[:, None],
    "sub": lambda a, b: torch.sub(a, b) - a.sub(2) * (b - 1.0),
    "rsub": lambda a, b: 1 - a * (2 - b),
    "clip": lambda a, b: torch.clip(a, None, 0.3) + b.clip(-0.5, 0.5),
    "sum by numpy's names": lambda a, b: torch.sum(a * b, axis=-1, keepdims=True) + a,
    "sum": lambda a, b: a.sum(-1) * torch.sum(b, 1) + (a[:, None] * b[:, :, None]).sum((1, 2)) + sum(a.unbind(-1)),
    "tanh": lambda a, b: torch.tanh(2 * a) * b.tanh(),
    "unbind": lambda a, b: torch.stack([x * y for x, y in zip(a.unbind(-1), torch.unbind(b, 1), strict=True)], -1),
    "unsqueeze": lambda a, b: a.unsqueeze(1) * torch.unsqueeze(b, -1),
    "vector_norm": lambda a, b: (
        torch.linalg.vector_norm(a, dim=-1, keepdim=True) * torch.linalg.vector_norm(b, 2, -1)[:, None]
    ),
    "where": lambda a, b: torch.where(a > b, a * b, torch.where(a < 0, 2.0, b)) + torch.where(b > 0, a, 0.0),
    "zeros_like": lambda a, b: torch.zeros_like(a) + b,
    "ones_like": lambda a, b: torch.ones_like(a) * b,
    "index": lambda a, b: a[..., [2, 0]] * b[:, 1:] + a[:, -1:] * b[:, ::2],
    "mT": lambda a, b: (a[:, :, None] * b[:, None, :]).mT * b[:, None],
    "constant_tensor": lambda a, b: a * torch.tensor([1.0, 2.0, 3.0]) - torch.ones(3) / (b.abs() + 1),
}

MASKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "lt": lambda a, b: torch.lt(a, b) & (a < 0.5),
    "le": lambda a, b: torch.le(a, b) | (b >= 0.5),
    "gt": lambda a, b: torch.gt(a, b) & (a < 0.3),
    "ge": lambda a, b: torch.ge(a, b) | a.ge(0.9),
    "eq": lambda a, b: a.clamp(0.0, 0.4) == b.clamp(0.0, 0.4),
    "ne": lambda a, b: torch.ne(a.clamp(0.0, 0.4), b.clamp(0.0, 0.4)),
    "any": lambda a, b: (a > b).any(-1) & torch.any(b > 0.5, dim=1),
    "all": lambda a, b: (a > b).all(-1) | torch.all(b > -0.5, dim=1),
    "logical_and": lambda a, b: torch.logical_and(a > 0, b > 0),
    "logical_or": lambda a, b: torch.logical_or(a > 0, b > 0),
    "logical_not": lambda a, b: torch.logical_not(a > 0) & ~(b > 0),
}


def inputs(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(2 * torch.rand(2, N, 3, generator=generator) - 1)


PAIRS = {name: inputs(seed) for seed, name in enumerate((*VALUES, *MASKS))}


@pytest.fixture(scope="module")
def fused() -> dict[str, tuple[Tensor, tuple[Tensor, Tensor]]]:
    """Result and gradients of every operation, all computed by one fused function and one fused gradient."""

    @fuse
    def everything(pairs):
        return {name: VALUES[name](*pair) for name, pair in pairs.items()}

    pairs = {name: tuple(x.clone().requires_grad_() for x in PAIRS[name]) for name in VALUES}
    results = everything(pairs)
    sum((weights(result) * result).sum() for result in results.values()).backward()
    return {name: (results[name].detach(), tuple(x.grad for x in pairs[name])) for name in VALUES}


def weights(result: Tensor) -> Tensor:
    """What the loss makes of a result: every element counts differently."""
    return torch.linspace(-1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_torch(fused, name):
    exact = VALUES[name](*(x.double() for x in PAIRS[name]))
    assert fused[name][0].shape == exact.shape
    np.testing.assert_allclose(fused[name][0], exact, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name", VALUES)
def test_gradients_are_those_of_autograd(fused, name):
    exact = [x.double().requires_grad_() for x in PAIRS[name]]
    result = VALUES[name](*exact)
    (weights(result) * result).sum().backward()
    for mine, theirs in zip(fused[name][1], exact, strict=True):
        expected = torch.zeros_like(theirs) if theirs.grad is None else theirs.grad
        np.testing.assert_allclose(mine, expected, rtol=2e-5, atol=1e-5)


def test_truth_values_are_those_of_torch():
    @fuse
    def everything(pairs):
        return {name: MASKS[name](*pair) for name, pair in pairs.items()}

    results = everything({name: PAIRS[name] for name in MASKS})
    for name, result in results.items():
        expected = MASKS[name](*PAIRS[name])
        assert result.dtype == torch.bool
        assert torch.equal(result, expected), name
        assert 0 < expected.float().mean() < 1, f"{name} is not tested by these inputs"


def test_no_operation_is_untested():
    known = {function.__name__.strip("_") for function in TORCH}
    assert known - {"linalg_vector_norm", "rmul", "rtruediv", "uniforms"} <= {*VALUES, *MASKS}


def test_tensors_and_symbols_mix_in_any_order():
    constant = torch.tensor([0.5, -1.0, 2.0])
    operations = (operator.add, operator.sub, operator.mul, operator.truediv)
    comparisons = (operator.lt, operator.le, operator.gt, operator.ge)

    @fuse
    def mixed(x):
        values = [op(constant, x) for op in operations] + [op(x, constant) for op in operations]
        masks = [op(constant, x) for op in comparisons] + [op(x, constant) for op in comparisons]
        return torch.stack(values, 1), torch.stack(masks, 1)

    x = PAIRS["add"][0]
    values, masks = mixed(x)
    expected_values, expected_masks = mixed.function(x)
    np.testing.assert_allclose(values, expected_values, rtol=1e-6)
    assert torch.equal(masks, expected_masks)


def test_constants_among_the_columns_of_a_tensor_are_computed_too():
    @fuse
    def folded(x):
        y = torch.cat([x, torch.tensor([[0.5, -2.0]]).expand(x.shape[0], 2)], -1)
        constants, negative = y[:, 3:], y[:, 3:] < 0
        return constants.exp() - 2 * constants, torch.where(negative, x[:, :2], constants), ~negative

    x = PAIRS["add"][0]
    results, expected = folded(x), folded.function(x)
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-6)
    assert torch.equal(results[1], expected[1])
    assert torch.equal(results[2], expected[2])


def test_gradient_of_a_clamped_number_at_its_bound_is_one_as_in_torch():
    @fuse
    def clamped(x):
        return torch.clamp(1.0 * x, min=0.0) + torch.clamp(2.0 * x, max=0.0)

    x = torch.zeros(3, requires_grad=True)
    y = torch.zeros(3, requires_grad=True)
    clamped(x).sum().backward()
    clamped.function(y).sum().backward()
    assert torch.equal(x.grad, y.grad)
