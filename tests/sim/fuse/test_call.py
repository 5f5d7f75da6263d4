"""Calling fused functions: structures, broadcasting, batch sizes, threads, not-a-number, bound calls, errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import Fused, blocks_like, empty_block, fuse
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.robots import load_robot


class Body(NamedTuple):
    place: Tensor
    speed: Tensor


def swing(body: Body, world: dict, push: Tensor) -> tuple[Body, dict]:
    """A pendulum's step: something with nested arguments and results."""
    pull = -world["gravity"][:, None] * torch.sin(body.place) + push * world["drag"]
    speed = body.speed + 0.1 * pull
    return Body(body.place + 0.1 * speed, speed), {"energy": (speed * speed).sum(-1), "fast": speed.abs() > 0.5}


def swing_arguments(n: int, seed: int = 0, shared: bool = True) -> tuple[Body, dict, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    place, speed, push = torch.randn(3, n, 2, generator=generator)
    gravity, drag = torch.rand(1 if shared else n, generator=generator), torch.rand(n, 2, generator=generator)
    return Body(place, speed), {"gravity": gravity, "drag": drag}, push


def tensors_of(arguments: tuple[Body, dict, Tensor]) -> list[Tensor]:
    body, world, push = arguments
    return [*body, *world.values(), push]


fused_swing = fuse(swing)


def test_results_keep_the_structure_that_the_function_gives():
    body, extras = fused_swing(*swing_arguments(5))
    expected_body, expected_extras = swing(*swing_arguments(5))
    assert isinstance(body, Body)
    assert list(extras) == ["energy", "fast"]
    for mine, theirs in zip((*body, extras["energy"]), (*expected_body, expected_extras["energy"]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    assert torch.equal(extras["fast"], expected_extras["fast"])


def test_a_fused_function_tells_which_tensors_it_reads():
    def double(body: Body, world: dict, push: Tensor) -> Tensor:
        return 2 * body.speed[:, 1] + world["gravity"] + 0.0 * push[:, 0]

    place, speed, gravity, drag, push = fuse(double).reads(*swing_arguments(5))
    assert (place, speed, gravity, drag, push) == (False, True, True, False, False)


def test_gradients_of_shared_inputs_are_summed_over_the_batch():
    arguments, copies = swing_arguments(9), swing_arguments(9)
    for function, given in ((fused_swing, arguments), (swing, copies)):
        for tensor in tensors_of(given):
            tensor.requires_grad_()
        new, extras = function(*given)
        (new.place.square().sum() + (extras["energy"] * torch.arange(9.0)).sum()).backward()
    for mine, theirs in zip(tensors_of(arguments), tensors_of(copies), strict=True):
        assert mine.grad.shape == theirs.shape
        np.testing.assert_allclose(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)


def test_a_gradient_flows_only_to_inputs_that_ask_for_it():
    body, world, push = swing_arguments(4)
    push.requires_grad_()
    new, _ = fused_swing(body, world, push)
    new.speed.sum().backward()
    np.testing.assert_allclose(push.grad, 0.1 * world["drag"], rtol=1e-6)
    assert world["drag"].grad is None


def test_truth_values_carry_no_gradient():
    body, world, push = swing_arguments(4)
    _, extras = fused_swing(body, world, push.requires_grad_())
    assert extras["energy"].requires_grad
    assert not extras["fast"].requires_grad


def test_a_result_that_depends_on_no_input_has_a_row_per_environment():
    result = fuse(lambda x: (x, torch.tensor([[1.0, 2.0]])))(torch.zeros(3, 1))[1]
    assert torch.equal(result, torch.tensor([[1.0, 2.0]]).expand(3, 2))


def test_inputs_may_lie_in_memory_in_any_way():
    body, world, push = swing_arguments(6)
    expected, _ = fused_swing(body, world, push)
    scattered = torch.zeros(6, 5)[:, ::2][:, :2]
    scattered.copy_(push)
    turned = body.place.mT.contiguous().mT
    same, _ = fused_swing(Body(turned, body.speed), world, scattered)
    assert torch.equal(same.place, expected.place)
    one, _ = fused_swing(body, world, torch.tensor([[0.5, 0.25]]).expand(6, 2))
    other, _ = fused_swing(body, world, torch.tensor([[0.5, 0.25]]))
    assert torch.equal(one.place, other.place)


def test_no_environments_give_no_rows():
    body, _ = fused_swing(*swing_arguments(0, shared=False))
    assert body.place.shape == (0, 2)


# --- one environment's numbers never depend on the others --------------------------------------------------------


def products(x: Tensor, p: Tensor) -> Tensor:
    """Sums of products of own and shared numbers, which a compiler may round in several ways."""
    a, b, c = x.unbind(-1)
    q, r = p.unbind(-1)
    return torch.stack([q * r + a, a * b - q * r, q * a + r * b, torch.tanh(a * b + c * q), torch.exp(a) - b * c], -1)


fused_products = fuse(products)


@pytest.mark.parametrize("n", [1, 3, 16, 17, 1000])
def test_the_batch_size_does_not_change_a_bit(n):
    x = torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    p = torch.tensor([[1.1, -0.3]])
    assert torch.equal(fused_products(x[:n], p), fused_products(x, p)[:n])
    assert torch.equal(fused_products(x[:n], p.expand(n, 2)), fused_products(x, p)[:n])


def test_the_number_of_threads_does_not_change_a_bit():
    x = torch.randn(6 * 2048 + 11, 3, generator=torch.Generator().manual_seed(2))
    p = torch.tensor([[0.7, 1.3]])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = fused_products(x, p)
        for threads in (2, 3, 5):
            torch.set_num_threads(threads)
            assert torch.equal(fused_products(x, p), alone)
    finally:
        torch.set_num_threads(before)


def test_the_batch_size_does_not_change_a_bit_of_a_gradient():
    x = torch.randn(1000, 3, generator=torch.Generator().manual_seed(3))
    gradients = []
    for n in (1, 19, 1000):
        own = x[:n].clone().requires_grad_()
        fused_products(own, torch.tensor([[0.7, 1.3]])).square().sum().backward()
        gradients.append(own.grad)
    for gradient in gradients[:-1]:
        assert torch.equal(gradient, gradients[-1][: len(gradient)])


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_in_its_environment(poison):
    plant = MultirotorPlant(load_robot("crazyflie"), 40, 0.01)
    commands = {"rotor_speed": torch.full((40, 4), 1500.0)}
    plant.step(commands)
    expected = plant._block[:, 0].clone()
    plant.reset(torch.arange(40))
    plant.current.linear_velocity[7, 1] = poison
    plant.step(commands)
    assert not torch.isfinite(plant.current.position[7]).all()
    others = [e for e in range(40) if e != 7]
    assert torch.equal(plant._block[:, others], expected[:, None].expand(-1, 39))


def test_not_a_number_passes_through_every_operation_that_has_a_bound():
    @fuse
    def bounded(x, y):
        return {
            "clamp": torch.clamp(x, 0.0, 1.0),
            "clamp_of_result": torch.clamp(2.0 * x + 1.0, -1.0, 0.5),
            "minimum": torch.minimum(x, y),
            "maximum": torch.maximum(x, y),
            "turned_minimum": torch.minimum(y, x),
            "turned_maximum": torch.maximum(y, x),
            "tanh": torch.tanh(x),
            "exp": torch.exp(x),
            "abs": x.abs(),
            "sqrt": torch.sqrt(x),
            "amax": torch.stack([y, x, y], -1).amax(-1),
        }

    nan, number = torch.full((5,), float("nan")), torch.linspace(-1, 1, 5)
    for name, result in bounded(nan, number).items():
        assert result.isnan().all(), name


def test_comparisons_with_not_a_number_are_false_as_in_torch():
    compare = fuse(lambda x, y: torch.stack([x < y, x <= y, x > y, x >= y, x == y, x != y], -1))
    nan, number = torch.full((3,), float("nan")), torch.zeros(3)
    assert torch.equal(compare(nan, number), compare.function(nan, number))


# --- bound calls --------------------------------------------------------------------------------------------------


def move(body: Body, world: dict, push: Tensor) -> Body:
    return swing(body, world, push)[0]


def rows(tensor: Tensor) -> Tensor:
    """The same numbers, environments neighbours in memory."""
    return tensor.mT.contiguous().mT


def bound_arguments(n: int) -> tuple[Tensor, tuple[Body, dict, Tensor]]:
    """``swing_arguments`` whose body lies in one block."""
    start, world, push = swing_arguments(n)
    block, parts = empty_block(n, [(2,), (2,)])
    for part, value in zip(parts, start, strict=True):
        part[:] = value
    return block, (Body(*parts), {"gravity": world["gravity"], "drag": rows(world["drag"])}, rows(push))


fused_move = fuse(move)


def test_a_bound_call_reads_and_writes_the_same_memory_again():
    _, (body, world, push) = bound_arguments(20)
    call = fused_move.bind(body, world, push, out=body)
    expected = Body(*(part.clone() for part in body))
    for _ in range(3):
        call()
        expected = fused_move(expected, world, push)
        push += 0.25
    assert torch.equal(body.place, expected.place)
    assert torch.equal(body.speed, expected.speed)


def test_results_makes_room_for_bound_calls_one_after_the_other():
    _, (body, world, push) = bound_arguments(20)
    blocks, parts = fused_move.results(body, world, push, copies=3)
    assert blocks.shape == (3, 4, 20)
    calls = [fused_move.bind(start, world, push, out=part) for start, part in zip([body, *parts], parts)]  # noqa: B905
    for call in calls:
        call()
    expected = body
    for part in parts:
        expected = fused_move(expected, world, push)
        assert torch.equal(part.place, expected.place)


def test_a_bound_gradient_is_that_of_autograd_in_the_order_of_the_arguments():
    _, (body, world, push) = bound_arguments(20)
    cotangents = Body(*(torch.randn(2, 20, generator=torch.Generator().manual_seed(7)).mT for _ in body))
    block, out = empty_block(20, [(2,), (2,)])
    fused_move.bind_gradient(body, world, push, cotangents=cotangents, wanted=(body.speed, push), out=out)()
    leaves = [body.speed.clone().requires_grad_(), push.clone().requires_grad_()]
    new = move(Body(body.place, leaves[0]), world, leaves[1])
    torch.autograd.backward([new.place, new.speed], [*cotangents])
    np.testing.assert_allclose(block, torch.cat([leaf.grad.mT for leaf in leaves]), rtol=1e-5, atol=1e-6)


def test_blocks_like_gives_zeroed_room_in_the_same_structure():
    (body, world, _) = swing_arguments(6, shared=False)
    blocks, (first, second) = blocks_like((body, world), 2)
    assert blocks.shape == (2, 2 + 2 + 1 + 2, 6)
    assert isinstance(second[0], Body)
    second[1]["drag"][:] = 3.0
    assert torch.equal(blocks[1, 5:], torch.full((2, 6), 3.0))
    assert not blocks[0].any()
    assert first[1]["gravity"].shape == (6,)


# --- what is refused ----------------------------------------------------------------------------------------------

X = torch.ones(4, 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.cumsum(x, -1), "can't trace torch's 'cumsum'"),
        (lambda x: x.cumsum(-1), "can't trace a tensor's 'cumsum'"),
        (lambda x: x @ torch.eye(3), "unsupported operand type.* for @: 'Symbol'"),
        (lambda x: x if x[:, 0] > 0 else -x, "can't branch on a tensor's value; use torch.where"),
        (lambda x: x if x[:, 0] == 0 else -x, "can't branch on a tensor's value"),
        (lambda x: x - x.mean(0), "can't mix environments"),
        (lambda x: x[:, 0] - x[:, 0].sum(-1), "can't mix environments"),
        (lambda x: x - x.amax(), "can't reduce over environments"),
        (lambda x: x / torch.linalg.vector_norm(x), "can't reduce over environments"),
        (lambda x: torch.linalg.vector_norm(x, 1, -1), "norm of order 2; got 1"),
        (lambda x: x - x[:1], "can't index environments"),
        (lambda x: x[0], "can't index environments with 0"),
        (lambda x: x.unbind()[0], "can't mix environments"),
        (lambda x: x.split(1)[0], "can't mix environments"),
        (lambda x: x.split([1, 1], 1), "whose sum differs"),
        (lambda x: x.flatten(), "can't mix environments"),
        (lambda x: x.sum(2), "dim=2 of 2"),
        (lambda x: x.mT, r"result 0 of fused '<lambda>' has shape \(3, 1\) for one environment; expected \(1, …\)"),
        (lambda x: (x, torch.tensor(1.0)), r"result 1 of .* has shape \(\)"),
        (lambda x: x**-1, "powers of 0.5 and of integers from 1 to 8; got -1"),
        (lambda x: 1.0 * (x > 0), r"can't apply 'mul' to a truth value; use torch.where\(mask, 1.0, 0.0\)"),
        (lambda x: (x > 0).sum(-1), "can't apply 'add' to a truth value"),
        (lambda x: torch.where(x > 0, x > 1, x < 1), "can't apply 'where' to a truth value"),
        (lambda x: torch.where(x, x, 0.0), "can't apply 'where' to a number; compare it first"),
        (lambda x: torch.logical_not(x), "can't apply 'not' to a number"),
        (lambda x: [x], "was given a list; expected tensors, tuples, dictionaries"),
    ],
)
def test_what_can_not_be_traced_is_named(function, message):
    with pytest.raises(TypeError, match=message):
        fuse(function)(X)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_constants_that_are_not_finite_are_those_of_torch(number):
    def function(x):
        return torch.minimum(x, torch.tensor(number)), torch.where(x > 0, number, x)

    for mine, theirs in zip(fuse(function)(X), function(X), strict=True):
        assert torch.equal(mine.nan_to_num(7.0), theirs.nan_to_num(7.0))
        assert torch.equal(mine.isnan(), theirs.isnan())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, torch.ones(2, 3)), r"tensor 1 given to fused 'plus' has shape \(2, 3\); expected \(4, …\) or \(1, …\)"),
        ((X, torch.tensor(1.0)), r"tensor 1 given to fused 'plus' has shape \(\)"),
        ((X.double(), X), "tensor 0 given to fused 'plus' is torch.float64; expected torch.float32"),
        ((X, X > 0), "tensor 1 given to fused 'plus' is torch.bool"),
    ],
)
def test_tensors_that_do_not_fit_are_named(arguments, message):
    def plus(x, y):
        return x + y

    fused = fuse(plus)
    assert torch.equal(fused(X, X), 2 * X)  # the same shapes were good before
    with pytest.raises(ValueError, match=message):
        fused(*arguments)


def test_arguments_that_hold_no_tensors_are_refused():
    with pytest.raises(TypeError, match="was given a float; expected tensors"):
        fused_move(1.0)


@pytest.mark.parametrize("out", [torch.zeros(3, 20).mT, torch.zeros(2, 19).mT, torch.zeros(2, 20).int().mT])
def test_a_bound_call_refuses_room_that_does_not_fit(out):
    _, (body, world, push) = bound_arguments(20)
    with pytest.raises(ValueError, match=r"out of a bound call: .*; expected .*\(20, 2\), torch.float32"):
        fused_move.bind(body, world, push, out=Body(body.place, out))
    with pytest.raises(ValueError, match="out of a bound call"):
        fused_move.bind_gradient(body, world, push, cotangents=body, wanted=body, out=Body(body.place, out))


def test_a_bound_call_refuses_room_of_another_structure():
    _, (body, world, push) = bound_arguments(20)
    with pytest.raises(ValueError, match="out of a bound call of 'move' has another structure than its results"):
        fused_move.bind(body, world, push, out=tuple(body))


def test_a_bound_call_takes_arguments_without_columns():
    """Such as the parameters of objects where there are none, part of wider arrays."""
    place, nothing, out = rows(torch.arange(6.0).reshape(3, 2)), torch.zeros(3, 5)[:, :0], rows(torch.zeros(3, 2))
    fuse(lambda place, nothing: 2.0 * place).bind(place, nothing, out=out)()
    assert torch.equal(out, 2.0 * place)


def test_a_bound_call_refuses_memory_that_it_would_have_to_copy():
    _, (body, world, push) = bound_arguments(20)
    with pytest.raises(ValueError, match="environments are neighbours in memory"):
        fused_move.bind(body, world, push.contiguous(), out=body)
    with pytest.raises(ValueError, match="environments are neighbours in memory"):
        fused_move.bind(body, world, push, out=Body(body.place, torch.zeros(20, 2)))


def test_a_bound_call_of_some_environments_leaves_the_others_as_they_are():
    _, (body, world, push) = bound_arguments(50)
    before, expected = (Body(*(part.clone() for part in value)) for value in (body, fused_move(body, world, push)))
    ids = torch.tensor([40, 3, 17, 0, 49, *range(20, 38)])
    fused_move.bind(body, world, push, out=body)(ids)
    others = [i for i in range(50) if i not in ids]
    for now, old, new in zip(body, before, expected, strict=True):
        assert torch.equal(now[ids], new[ids])
        assert torch.equal(now[others], old[others])


def test_a_bound_call_writes_where_it_is_told():
    _, (body, world, push) = bound_arguments(20)
    _, elsewhere = empty_block(20, [(2,)])
    call = fused_move.bind(body, world, push, out=body)
    expected = fused_move(body, world, push)
    call.redirect(1, elsewhere[0])
    call()
    assert torch.equal(elsewhere[0], expected.speed)
    assert not torch.equal(body.speed, expected.speed)


def test_a_bound_gradient_refuses_what_does_not_fit():
    _, (body, world, push) = bound_arguments(20)
    with pytest.raises(ValueError, match=r"cotangents of a bound call: .*; expected .*\(20, 2\)"):
        fused_move.bind_gradient(body, world, push, cotangents=Body(body.place, X), wanted=body, out=body)
    for stranger in (torch.zeros(20, 2), world["gravity"]):
        with pytest.raises(ValueError, match="not an argument with all environments"):
            fused_move.bind_gradient(body, world, push, cotangents=body, wanted=(stranger,), out=(push,))


@pytest.mark.parametrize("n", [3, 37])
def test_truth_values_of_bound_calls_are_bytes(n):
    _, (body, world, push) = bound_arguments(n)
    block, (room,) = fused_swing.results(body, world, push)
    assert block.shape == (1, 5, n)  # numbers alone
    assert room[1]["fast"].dtype == torch.bool
    fused_swing.bind(body, world, push, out=room)()
    assert torch.equal(room[1]["fast"], fused_swing(body, world, push)[1]["fast"])


def test_a_fused_function_knows_the_function_it_was_made_of():
    assert isinstance(fused_swing, Fused)
    assert fused_swing.function is swing
