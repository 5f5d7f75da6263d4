"""Action chunks: what one inference gives is executed step by step, alike in torch, onnxruntime and C."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
import torch

from robo_rl.contract import Chunk, Contract, ContractError, Network, Provenance
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, BundlePolicy, task_of, torch_policy
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.evaluate.decision_rate import HeldPolicy, decision_rates, require_every
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.factory import graph_of
from robo_rl.learn.ppo import Learner, advantages
from robo_rl.policy import PolicyGraph
from robo_rl.policy.chunk import LEFT, PLANNED
from robo_rl.sim.tasks.loading import load_task

LENGTH = 3


def planning(length: int = LENGTH) -> PolicyGraph:
    """A policy whose actions differ within a chunk."""
    torch.manual_seed(0)
    policy = graph_of(load_task("quadrotor-hover"), Network((16,), "tanh", False, chunk=Chunk(length)))
    with torch.no_grad():
        policy.network[-1].weight.mul_(50.0)
        policy.network[-1].bias.uniform_(-0.3, 0.3)
    return policy


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export(
        planning().requires_grad_(False), Provenance("none", 0, 0, ""), tmp_path_factory.mktemp("c") / "p.onnx"
    )


def test_a_chunk_is_the_network_s_answer_at_its_first_step_in_all_runtimes(planner: Bundle, tmp_path: Path) -> None:
    policy = torch_policy(planner, task_of(planner))
    made = generate(planner, tmp_path)
    run, others = BundlePolicy(planner), (policy, compile_host(made))
    plain = load_task("quadrotor-hover")
    state, worst = run.initial_state(20), 0.0
    for step in range(4 * LENGTH):
        signals = {s.name: torch.randn(20, *s.dimensions) for s in plain.spec.signals}
        with torch.no_grad():
            if step % LENGTH == 0:
                seen = policy.task.observe(signals, policy.unpack(state))
                answer = policy.network(seen).unflatten(1, (LENGTH, 4))
            commands, then = run(signals, state)
            expected = plain.command(answer[:, step % LENGTH])["rotor_speed"]
            for other in others:
                given, after = other(signals, state)
                differences = command_differences(planner.contract, given, commands)
                worst = max(worst, greatest([*differences, (then - after).numpy()]))
        torch.testing.assert_close(commands["rotor_speed"], expected, rtol=1e-5, atol=0.1)  # rad/s, of 2,600
        assert policy.unpack(then)[LEFT].unique().tolist() == [LENGTH - 1 - step % LENGTH]
        state = then
    assert worst <= PARITY_TOLERANCE
    assert planner.golden_error() <= PARITY_TOLERANCE
    code = (tmp_path / "policy.c").read_text()
    begin = code.index("if (state->chunk_left[0] < 0.5f) {")
    block = code[begin : code.index("\n    }\n", begin)]
    assert code.count(" linear(weights") == block.count(" linear(weights") == 2, "a step between does no inference"


def test_a_policy_that_takes_over_begins_a_chunk_of_its_own(planner: Bundle) -> None:
    """As after a fault: what is left of a chunk from before is not executed."""
    policy = Policy(planner)
    signals = {s.name: planner.golden.signals[s.name][0] for s in planner.contract.signals}
    first = policy.step(signals)["rotor_speed"]
    policy.step(signals)
    policy.reset()
    assert (policy.step(signals)["rotor_speed"] == first).all()


def test_rewards_of_all_steps_of_a_chunk_teach_the_network() -> None:
    policy = planning()
    signals = {s.name: torch.randn(4, *s.dimensions) for s in policy.task.spec.signals}
    state = policy.initial_state(4)
    for step in range(LENGTH):
        commands, state = policy(signals, state)
        (gradient,) = torch.autograd.grad(commands["rotor_speed"].sum(), [policy.network[-1].bias], retain_graph=True)
        taught = gradient.reshape(LENGTH, 4).abs().sum(1) > 0
        assert taught.tolist() == [k == step for k in range(LENGTH)]


def test_a_contract_tells_of_chunks_and_refuses_what_can_t_be(planner: Bundle) -> None:
    contract = planner.contract
    assert Contract.from_json(contract.to_json()).network.chunk == Chunk(LENGTH)
    assert contract.inference_period == pytest.approx(LENGTH * contract.control_period)
    without = dataclasses.replace(contract, network=dataclasses.replace(contract.network, chunk=None))
    assert '"chunk": {' not in without.to_json().replace('":{', '": {')
    with pytest.raises(ContractError, match=r"network: chunk: length is 1; expected 2 to 64"):
        Chunk(1)
    with pytest.raises(ContractError, match="network: chunk"):
        Network((8,), "tanh", False, 4, chunk=Chunk(2))
    with pytest.raises(ContractError, match=f"state is .*{PLANNED}"):
        dataclasses.replace(contract, network=dataclasses.replace(contract.network, chunk=Chunk(LENGTH + 1)))


class Counting(GraphPolicy):
    """Counts how often it is asked."""

    asked = 0

    def __call__(
        self, signals: dict[str, torch.Tensor], state: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        self.asked += 1
        return super().__call__(signals, state)


def test_a_held_policy_is_asked_at_every_k_th_step_and_its_commands_stay(planner: Bundle) -> None:
    policy = Counting(planning())
    held, task = HeldPolicy(policy, 4, policy.policy.task), policy.policy.task
    state, sent = held.initial_state(5), []
    for _ in range(9):
        commands, state = held({s.name: torch.randn(5, *s.dimensions) for s in task.spec.signals}, state)
        sent.append(commands["rotor_speed"])
    assert policy.asked == 3
    changed = [not torch.equal(a, b) for a, b in itertools.pairwise(sent)]
    assert changed == [False, False, False, True, False, False, False, True]
    conditions = Conditions(20, seconds=0.5)
    rows = decision_rates(task, policy, (1, 4), conditions)
    assert [row["inferences"] for row in rows] == [17, 5]  # of 50 and 13 steps, three actions each
    assert rows[0]["success"] == rollout(task, policy, conditions).summary()["success"]
    with pytest.raises(ValueError, match="--every is 0; expected 1 to 500"):
        require_every((0,), task)


def test_advantages_of_chunks_are_those_of_decisions_that_last_several_steps() -> None:
    """Generalised advantages of the semi-Markov process: one reward and one value per decision."""
    gamma, lam, decisions = 0.9, 0.8, 4
    draw = torch.Generator().manual_seed(0)
    reward, value = torch.randn(decisions * LENGTH, 1, generator=draw), torch.randn(13, 1, generator=draw)
    done = torch.zeros_like(reward, dtype=torch.bool)
    done[7] = True  # within the third chunk: the steps after it are those of a new one
    decided = torch.zeros_like(done)
    starts = [0, 3, 6, 8, 11]
    decided[starts] = True
    expected, later = torch.zeros(len(starts)), torch.zeros(())
    for place in reversed(range(len(starts))):
        begin, end = starts[place], [*starts, 12][place + 1]
        steps = torch.arange(begin, end)
        over = bool(done[begin:end].any())
        after = torch.zeros(()) if over else gamma ** len(steps) * value[end, 0]
        surprise = (gamma ** (steps - begin) * reward[begin:end, 0]).sum() + after - value[begin, 0]
        later = expected[place] = surprise + (0.0 if over else gamma ** len(steps) * lam * later)
    found = advantages(reward, value[:-1], value[-1], done, gamma, lam, decided)
    torch.testing.assert_close(found[starts, 0], expected)


def test_ppo_learns_from_the_steps_with_an_inference() -> None:
    config = PpoConfig(
        updates=1, environments=8, horizon=7, hidden=(16,), critic_hidden=(16,), mini_batches=2, chunk=LENGTH
    )
    policy = planning()
    learner = Learner(load_task("quadrotor-hover"), policy, config, seed=0)
    base = learner.env.env
    base.episode.step[5] = base.episode_steps - 2  # its episode ends with the second step
    before = policy.network[-1].bias.detach().clone()
    assert "kl" in learner.update()
    usual = [True, False, False, True, False, False, True]
    assert learner.samples.decided[:, 0].tolist() == usual
    assert learner.samples.decided[:, 5].tolist() == [True, False, *usual[:5]]
    assert not torch.equal(policy.network[-1].bias, before)
    with pytest.raises(ValueError, match="chunk is 2; expected 1 with a recurrent network"):
        PpoConfig(chunk=2, recurrent=8)
