"""Flow policies: one of two ways instead of their mean, chunks that are executed, noise that is the same anywhere."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from robo_rl.contract import Contract, ContractError, Flow, Network, Provenance
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, BundlePolicy, task_of, torch_policy
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.learn import bc
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import FILE_NAME, demonstrate, digest, write
from robo_rl.policy.flow import CHUNK, LEFT, NOISE, FlowGraph, chunks, following, uniform
from robo_rl.policy.networks import MLP
from robo_rl.sim.tasks.arm.insert import Insert
from robo_rl.sim.tasks.loading import load_task

WAY = 0.6
"""Of actions to one side or the other."""


def exact(x: torch.Tensor, steps: int) -> torch.Tensor:
    """Where so many Euler steps lead from x (n,), by the velocity of uniform noise and two sides that are alike.

    At x and t there was noise (x − t s WAY) / (1 − t) for each side s, if that lies within ± 1; all count alike.
    """
    sides = torch.tensor([[-WAY], [WAY]])
    for t in (k / steps for k in range(steps)):
        noise = (x - t * sides) / (1.0 - t)
        possible = (noise.abs() <= 1.0).float()
        nearest = (noise.abs() == noise.abs().amin(0)).float()
        weight = torch.where(possible.sum(0) > 0, possible, nearest)
        x = x + (weight * (sides - noise)).sum(0) / weight.sum(0) / steps
    return x


def test_a_flow_goes_one_of_two_ways_as_the_exact_one_does_where_a_clone_goes_between_them() -> None:
    torch.manual_seed(0)
    policy = FlowGraph(load_task("quadrotor-hover"), (64, 64), "relu", Flow(4, 1))
    clone = MLP(2, (8,), 1)
    optimizer = torch.optim.Adam([*policy.network.parameters(), *clone.parameters()], 5e-3)
    features = torch.zeros(512, policy.task.observation_size)
    for step in range(600):
        optimizer.param_groups[0]["lr"] = 5e-3 * (1.0 - step / 600)
        action = torch.zeros(512, 1, 4)
        action[:, 0, 0] = WAY * (2.0 * torch.randint(2, (512,)) - 1.0)
        loss = policy.loss(features, action) + (clone(torch.zeros(512, 2)) - action[:, :, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    noise = [policy.unpack(policy.initial_state(1))[NOISE]]
    for _ in range(511):
        noise.append(following(noise[-1]))
    source = uniform(torch.cat(noise))
    with torch.no_grad():
        found = policy.planned(features, source)[:, 0]
        assert abs(float(clone(torch.zeros(1, 2)))) < 0.1
    expected = exact(source[:, 0], 4)
    assert float((found.sort().values - expected.sort().values).abs().mean()) < 0.15  # Wasserstein's distance
    assert float(((found.abs() - WAY).abs() < 0.25).float().mean()) > 0.7
    assert 0.4 < float((found > 0.0).float().mean()) < 0.6
    assert float((exact(source[:, 0], 1)).abs().max()) < 1e-6  # one step is the mean, as a clone's


def test_noise_comes_back_only_after_all_of_it_and_is_uniform() -> None:
    counter, seen = torch.tensor([7.0]), []
    for _ in range(4096):
        seen.append(float(counter))
        counter = following(counter)
    assert sorted(seen) == list(range(4096))
    assert float(counter) == 7.0
    numbers = uniform(torch.arange(4096.0))
    assert float(numbers.min()) > -1.0
    assert float(numbers.max()) < 1.0
    assert abs(float(numbers.mean())) < 1e-6


def test_chunks_hold_what_was_done_from_a_step_on_and_stay_at_the_end_of_an_episode() -> None:
    action = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    found = chunks(action, torch.tensor([0, 0, 0, 1, 1]), 3)
    assert found[..., 0].tolist() == [[1, 2, 3], [2, 3, 3], [3, 3, 3], [4, 5, 5], [5, 5, 5]]


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    torch.manual_seed(0)
    policy = FlowGraph(load_task("quadrotor-hover"), (16,), "relu", Flow(2, 3))
    with torch.no_grad():
        policy.network[-1].weight.mul_(50.0)
        policy.network[-1].bias.uniform_(-0.2, 0.2)
    policy.requires_grad_(False)
    return export(policy, Provenance("none", 0, 0, ""), tmp_path_factory.mktemp("flow") / "policy.onnx")


def test_torch_onnxruntime_and_c_plan_the_same_and_execute_it(planner: Bundle, tmp_path: Path) -> None:
    policy = torch_policy(planner, task_of(planner))
    assert isinstance(policy, FlowGraph)
    run, others = BundlePolicy(planner), (policy, compile_host(generate(planner, tmp_path)))
    state, worst, before = run.initial_state(20), 0.0, None
    for step in range(12):
        signals = {s.name: torch.randn(20, *s.dimensions) for s in policy.task.spec.signals}
        commands, then = run(signals, state)
        with torch.no_grad():
            for other in others:
                given, after = other(signals, state)
                differences = command_differences(planner.contract, given, commands)
                worst = max(worst, greatest([*differences, (then - after).numpy()]))
        memory = policy.unpack(then)
        assert memory[LEFT].unique().tolist() == [2.0 - step % 3]
        if step % 3:
            assert before is not None
            assert torch.equal(memory[CHUNK][:, 0], before[CHUNK][:, 1])
            assert torch.equal(memory[NOISE], before[NOISE])
        elif before is not None:
            assert not torch.equal(memory[NOISE], before[NOISE])
        state, before = then, memory
    assert worst <= PARITY_TOLERANCE
    assert planner.golden_error() <= PARITY_TOLERANCE


def test_a_contract_tells_of_a_flow_and_refuses_what_can_t_be(planner: Bundle) -> None:
    assert Contract.from_json(planner.contract.to_json()).network.flow == Flow(2, 3)
    with pytest.raises(ContractError, match=r"network: flow: steps is 0; expected 1 to 16"):
        Flow(0, 3)
    with pytest.raises(ContractError, match="no base or flow beside the others"):
        Network((8,), "relu", False, 4, flow=Flow(1, 1))


def test_a_flow_s_cloning_that_was_killed_goes_on_bit_by_bit(tmp_path: Path) -> None:
    task, file = Insert(), tmp_path / FILE_NAME
    write(file, task, demonstrate(task, 1, seed=2)[0])
    config = BcConfig(updates=3, steps=4, batch=16, hidden=(8,), flow=2, chunk=4, demonstrations=digest(file))

    def learner() -> bc.Learner:
        torch.manual_seed(0)
        return bc.Learner(task, FlowGraph(task, (8,), "relu", Flow(2, 4)), config, 0, folder=tmp_path)

    whole = learner()
    first = whole.update()["error"]
    tensors, numbers = whole.save()
    kept = {name: value.clone() for name, value in tensors.items()}
    policy = {name: value.clone() for name, value in whole.policy.state_dict().items()}
    random = torch.get_rng_state()
    last = whole.update()["error"]
    assert last < first
    resumed = learner()
    resumed.policy.load_state_dict(policy)
    resumed.load(kept, numbers)
    torch.set_rng_state(random)
    assert resumed.update()["error"] == last
    for name, value in whole.policy.state_dict().items():
        assert torch.equal(value, resumed.policy.state_dict()[name]), name
    with pytest.raises(ValueError, match="chunk is 4; expected 1 without a flow"):
        dataclasses.replace(config, flow=0)
