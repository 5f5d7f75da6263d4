"""Where functions have no value or no derivative, or constants are folded: fuse does as torch does in float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import fuse

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, 1000.0, -1000.0, 1e-30, 1e30, math.inf, -math.inf, math.nan)
UNARY = {
    name: getattr(torch, name) for name in ("neg", "abs", "sqrt", "exp", "log", "tanh", "sin", "cos", "rsqrt", "square")
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "minimum": torch.minimum,
    "maximum": torch.maximum,
}  # fmt: skip
X = torch.tensor(SPECIAL)[:, None]


def folded(value: float, like: Tensor) -> Tensor:
    """(n, 1) of a number that fuse knows when it traces."""
    return torch.ones_like(like) * torch.tensor([value])


def same(mine: Tensor, theirs: Tensor, what: object) -> None:
    np.testing.assert_allclose(mine.detach(), theirs.detach().expand_as(mine), rtol=3e-6, err_msg=str(what))


def test_functions_of_constants_are_those_of_torch() -> None:
    def every(x: Tensor) -> dict[str, Tensor]:
        return {f"{name} {v}": function(folded(v, x)) for name, function in UNARY.items() for v in SPECIAL}

    mine, theirs = fuse(every)(X), every(X)
    for name, value in theirs.items():
        same(mine[name], value, name)


def test_operations_of_constants_and_of_constants_and_numbers_are_those_of_torch() -> None:
    def every(x: Tensor) -> dict[str, Tensor]:
        found = {}
        for name, function in BINARY.items():
            for a in SPECIAL:
                found[f"{name}({a}, x)"] = function(folded(a, x), x)
                found[f"{name}(x, {a})"] = function(x, folded(a, x))
                found |= {f"{name}({a}, {b})": function(folded(a, x), folded(b, x)) for b in SPECIAL}
        return found

    mine, theirs = fuse(every)(X), every(X)
    for name, value in theirs.items():
        same(mine[name], value, name)


def test_a_constant_that_overflows_goes_on_as_in_float32() -> None:
    def late(x: Tensor) -> Tensor:
        return torch.exp(folded(100.0, x)) * 1e-30 + x

    finite = torch.ones(3, 1)
    assert torch.equal(fuse(late)(finite), late(finite))
    assert bool(late(finite).isinf().all())


GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "clamp": lambda x: torch.clamp(x, -1.0, 1.0),
    "clamp to a tensor": lambda x: torch.clamp(x, min=x[:, [1, 0, 2]]),
    "maximum": lambda x: torch.maximum(x, x[:, [1, 2, 0]]),
    "minimum": lambda x: torch.minimum(x, x[:, [1, 2, 0]]),
    "maximum of a constant": lambda x: torch.maximum(x, torch.zeros(3)),
    "minimum of a constant": lambda x: torch.minimum(torch.ones(3), x),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1, keepdim=True),
    "amax of two": lambda x: torch.amax(x[:, :2], -1),
    "amax of both": lambda x: (x[:, :, None] * x[:, None, :].abs()).amax((1, 2)),
    "where": lambda x: torch.where(x > 0, x * 3.0, x),
    "product": lambda x: x * x[:, [1, 2, 0]] * 0.0,
}
TIES = [[0.0, 0.0, 0.0], [1.0, 1.0, -1.0], [-1.0, 2.0, 2.0], [0.0, -0.0, 1.0], [3.0, -3.0, 3.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_ties_and_corners_are_those_of_autograd(name: str) -> None:
    found = []
    for function in (fuse(GRADIENTS[name]), GRADIENTS[name]):
        x = torch.tensor(TIES, requires_grad=True)
        result = function(x)
        (result * torch.linspace(1.0, 2.0, result.numel()).reshape(result.shape)).sum().backward()
        assert x.grad is not None
        found.append(x.grad)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_a_task_whose_episodes_begin_slowly_says_why_and_begins_the_same() -> None:
    from robo_rl.sim.env import VecEnv
    from robo_rl.sim.tasks.loading import load_task

    class Looped(type(load_task("quadrotor-hover"))):  # type: ignore[misc]
        def place(self, plant: Any, ids: Any, drawn: Any, goal: Any) -> None:
            for row in ids:  # of environments, one by one
                self._one(plant, row[None], drawn, goal, ids)

        def _one(self, plant: Any, row: Any, drawn: Any, goal: Any, ids: Any) -> None:
            place = (ids == row).nonzero()[:, 0]
            super().place(plant, row, {name: value[place] for name, value in drawn.items()}, goal[place])

    with pytest.warns(UserWarning, match=r"task 'quadrotor-hover': its episodes begin slowly.*can't be traced \("):
        env = VecEnv(Looped(), 3, seed=5)
    fast = VecEnv(load_task("quadrotor-hover"), 3, seed=5)
    for name, value in env.true().items():
        torch.testing.assert_close(value, fast.true()[name])
