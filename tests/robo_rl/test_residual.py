"""A correction of a frozen base: it is the base at first, stays near it, and goes to a robot with it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from robo_rl.cli import main
from robo_rl.contract import Base, Contract, ContractError, Provenance
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, BundlePolicy, torch_policy
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, GraphPolicy, rollout_signals
from robo_rl.learn.residual import BaseError, ResidualGraph, file_of
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.arm.insert import Insert
from robo_rl.sim.tasks.arm.place_direct import PlaceDirect
from robo_rl.sim.tasks.loading import load_task

BOUND = 0.25


def clone(task: Task) -> PolicyGraph:
    """A policy whose actions are all over the range."""
    torch.manual_seed(0)
    policy = PolicyGraph(task, (16,), "relu")
    with torch.no_grad():
        policy.network[-1].weight.mul_(60.0)
        policy.network[-1].bias.uniform_(-0.2, 0.2)
    return policy.requires_grad_(False)


def corrected(task: Task, base: PolicyGraph) -> ResidualGraph:
    policy = ResidualGraph(task, (8,), "elu", True, Base("network", BOUND, (16,), "relu"))
    policy.base.load_state_dict(load(file_of(base, task, "base")))
    return policy


def learnt(policy: ResidualGraph) -> ResidualGraph:
    """As if it had been trained."""
    with torch.no_grad():
        policy.network[-1].weight.normal_(0.0, 5.0)
        policy.normalizer.mean.uniform_(-0.1, 0.1)
    return policy.requires_grad_(False)


def test_an_untrained_correction_is_its_base_to_the_bit_whatever_its_normaliser() -> None:
    task = load_task("quadrotor-hover")
    base = clone(task)
    policy = corrected(task, base)
    policy.normalizer.deviation.fill_(0.3)
    conditions = Conditions(episodes=4, seed=3)
    mine, theirs = (rollout_signals(task, GraphPolicy(p.requires_grad_(False)), conditions) for p in (policy, base))
    for name, value in theirs.items():
        assert (mine[name] == value).all(), name


@pytest.mark.parametrize("kind", [Insert, PlaceDirect])
def test_an_untrained_correction_of_a_script_is_the_script(kind: type[Task]) -> None:
    task = kind()
    policy = ResidualGraph(task, (8,), "relu", False, Base("script", BOUND))
    script, state = ControllerPolicy(task), policy.initial_state(5)
    theirs = state.clone()
    torch.manual_seed(1)
    for _ in range(6):
        signals = {s.name: 0.3 * torch.rand(5, *s.dimensions) for s in task.spec.signals}
        with torch.no_grad():
            commands, state = policy(signals, state)
        expected, theirs = script(signals, theirs)
        for name, value in expected.items():
            torch.testing.assert_close(commands[name], torch.as_tensor(value), rtol=0.0, atol=1e-6)


def test_a_correction_is_bounded() -> None:
    task = load_task("quadrotor-hover")
    base = clone(task)
    policy = learnt(corrected(task, base))
    seen = 10.0 * torch.randn(500, task.observation_size)
    away = (policy.network(policy.features(seen)) - base.network(base.features(seen))).abs()
    assert float(away.max()) <= BOUND + 1e-6
    assert float(away.max()) > 0.9 * BOUND


def test_a_bundle_holds_base_and_correction_and_is_the_same_in_torch_and_c(tmp_path: Path) -> None:
    task = load_task("quadrotor-hover")
    policy = learnt(corrected(task, clone(task)))
    bundle = export(policy, Provenance("none", 0, 0, ""), tmp_path / "policy.onnx")
    again = torch_policy(Bundle.read(bundle.path), task)
    assert isinstance(again, ResidualGraph)
    for name, value in policy.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    c, run = compile_host(generate(bundle, tmp_path)), BundlePolicy(bundle)
    state, worst = run.initial_state(50), 0.0
    for _ in range(20):
        signals = {s.name: torch.randn(50, *s.dimensions) for s in task.spec.signals}
        expected, following = run(signals, state)
        with torch.no_grad():
            for other in (again, c):
                given, then = other(signals, state)
                differences = command_differences(bundle.contract, given, expected)
                worst = max(worst, greatest([*differences, (then - following).numpy()]))
        state = following
    assert worst <= PARITY_TOLERANCE


def test_a_contract_tells_of_a_base_only_where_there_is_one() -> None:
    task = Insert()
    base = Base("network", BOUND, (16,), "relu")
    told, plain = (
        policy.contract(Provenance("none", 0, 0, "")) for policy in (corrected(task, clone(task)), clone(task))
    )
    assert Contract.from_json(told.to_json()).network.base == base
    data = json.loads(plain.to_json())
    assert "base" not in data["network"]
    assert Contract.from_json(plain.to_json()) == plain
    data["network"]["base"] = None
    with pytest.raises(ContractError, match=r"network.base is null; expected an object, or no such key"):
        Contract.from_json(json.dumps(data))
    with pytest.raises(ContractError, match=r"network: base: bound is 0.0; expected above 0"):
        dataclasses.replace(base, bound=0.0)


def test_what_can_t_be_corrected_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(
        BaseError, match=r"base is a policy of 'arm-insert' with panda; expected one of 'quadrotor-hover'"
    ):
        file_of(clone(Insert()), load_task("quadrotor-hover"), "base")
    recurrent = PolicyGraph(Insert(), (8,), "tanh", recurrent=4)
    with pytest.raises(BaseError, match="policy is more than a network of a vector"):
        file_of(recurrent, recurrent.task, "policy")
    words = ["train", "quadrotor-hover", "--runs", str(tmp_path)]
    for more, told in (
        (["--algorithm", "ppo", "--base", "script"], "has no script that could be corrected"),
        (["--algorithm", "apg", "--base", "script"], "apg can't correct any; expected ppo or sac"),
        (["--algorithm", "ppo", "--ppo.base", "script"], "--ppo.base is computed; expected --base RUN"),
    ):
        with pytest.raises(SystemExit):
            main([*words, *more])
        assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def run_command(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


def test_a_run_trains_beside_its_base_and_refuses_another(tmp_path: Path) -> None:
    """By the command line: clone, correct by sac, go on after a break; what learns is the correction alone."""
    from robo_rl.learn.experience.demonstrations import demonstrate, write
    from robo_rl.learn.runs.folder import Run, RunError

    task, shown = Insert(), tmp_path / "shown.safetensors"
    write(shown, task, demonstrate(task, 1, seed=2)[0])
    common = ["train", "arm-insert", "--runs", str(tmp_path), "--episodes", "0", "--demonstrations", str(shown)]
    run_command([*common, "--algorithm", "bc", "--name", "base", "--bc.updates", "1", "--bc.hidden", "8"])
    small = [
        "--sac.updates",
        "2",
        "--sac.steps",
        "2",
        "--sac.environments",
        "2",
        "--sac.batch",
        "4",
        "--sac.first",
        "4",
    ]
    words = [*common, *small, "--algorithm", "sac", "--name", "corrected", "--base", str(tmp_path / "base")]
    run_command([*words, "--sac.hidden", "8"])
    base, _ = Run.open(tmp_path / "base").policy()
    policy, _ = Run.open(tmp_path / "corrected").policy()
    untrained = Run.open(tmp_path / "corrected").new_policy()
    seen = torch.randn(20, task.observation_size)
    expected = base.network(base.features(seen))
    assert isinstance(policy, ResidualGraph)
    assert torch.equal(policy.base(seen), expected)
    assert torch.equal(untrained.network(untrained.features(seen)), expected)
    assert not torch.equal(policy.network(policy.features(seen)), expected)
    file = tmp_path / "corrected" / "base.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    with pytest.raises((BaseError, RunError), match="not the base that the run began with"):
        Run.open(tmp_path / "corrected").policy()
