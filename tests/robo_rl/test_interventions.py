"""A policy that an operator can take over from, its successors at work, and what is learnt from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.deploy.robot.actor import INTERVENTION
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import spans
from robo_rl.deploy.robot.logs.step_log import Flag, Sizes, StepWriter
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.successors import Successors, files, number_of
from robo_rl.online.interventions import DONE, OWN, InterventionPolicy, export_again
from robo_rl.online.received import StepFolder
from robo_rl.policy import PolicyGraph
from robo_rl.zoo import located

RATE = 100


@pytest.fixture
def graph(led_policy: tuple[InterventionPolicy, Bundle]) -> InterventionPolicy:
    return led_policy[0]


@pytest.fixture
def first(led_policy: tuple[InterventionPolicy, Bundle]) -> Bundle:
    return led_policy[1]


def changed(graph: InterventionPolicy, by: float) -> InterventionPolicy:
    """Another policy of the same shape."""
    other = InterventionPolicy(PolicyGraph(graph.task, graph.shape.hidden)).requires_grad_(False)
    other.load_state_dict({name: value + by for name, value in graph.state_dict().items()})
    return other


def at(policy: Policy, k: int) -> dict[str, np.ndarray]:
    """Signals of the policy's own golden vectors."""
    return {name: value[k] for name, value in policy.bundle.golden.signals.items()}


def test_the_operator_replaces_the_action_and_the_memory_tells_both(graph: InterventionPolicy) -> None:
    task = graph.task
    plain = PolicyGraph(task, graph.shape.hidden)
    plain.load_state_dict(graph.state_dict())
    signals = {s.name: torch.rand(3, s.size) * 0.1 for s in task.spec.signals}
    wanted = torch.tensor([[0.3, -0.2, 0.1, 0.4]]).expand(3, -1)
    engaged = torch.tensor([[0.0], [1.0], [0.4]])
    state = graph.initial_state(3)
    commands, after = graph({**signals, INTERVENTION: torch.cat([engaged, wanted], 1)}, state)
    alone, alone_after = plain(signals, plain.initial_state(3))
    led = task.command(wanted, task.first_memory(3))
    for name, value in commands.items():
        assert torch.equal(value[[0, 2]], alone[name][[0, 2]])
        torch.testing.assert_close(value[1], led[name][1])
    memory = graph.unpack(after)
    assert torch.equal(memory[DONE][1], wanted[1])
    assert torch.equal(memory[DONE][0], memory[OWN][0])
    assert torch.equal(after[0, : alone_after.shape[1]], alone_after[0])


def test_a_successor_goes_on_with_the_memory_and_only_a_good_one(
    graph: InterventionPolicy, first: Bundle, tmp_path: Path
) -> None:
    said: list[str] = []
    policy, kept = Policy.load(first.path, RATE), Policy.load(first.path, RATE)
    successors = Successors(tmp_path, policy, said.append)

    def offered(name: str, data: bytes) -> Policy | None:
        (tmp_path / name).write_bytes(data)
        successors.look()
        return successors.take()

    good = export_again(changed(graph, 0.01), first, tmp_path / "made.onnx").path.read_bytes()
    other = located("zoo:quadrotor-hover").read_bytes()
    assert offered("policy-000002.onnx", good[:-100]) is None
    assert offered("policy-000003.onnx", good.replace(b"own_action", b"own_actiom", 1)) is None
    assert offered("policy-000004.onnx", other) is None
    assert offered("policy-000005.onnx", b"\x80\x04.") is None
    reasons = ("digest", "changed or damaged", "its contract has other signals", "no digest")
    for sentence, reason in zip(said, reasons, strict=True):
        assert "refused, the policy goes on: " in sentence
        assert reason in sentence
    assert successors.refused == 4
    successor = offered("policy-000006.onnx", good)
    assert successor is not None
    assert successors.take() is None  # once
    for k in range(20):
        policy.step(at(policy, k))
        kept.step(at(kept, k))
    successor.continue_from(policy)
    assert np.array_equal(successor.state, kept.state)
    ours, theirs = successor.step(at(kept, 20)), kept.step(at(kept, 20))
    assert all(np.abs(ours[name] - theirs[name]).max() > 0 for name in ours)  # it is another policy
    twin = Policy.load(first.path, RATE)
    twin.continue_from(kept)
    for k in range(21, 40):  # one policy in two objects, by turns, is that policy
        kept, twin = twin, kept
        kept.continue_from(twin)
        assert all(np.array_equal(kept.step(at(kept, k))[n], v) for n, v in twin.step(at(twin, k)).items())


def test_new_weights_in_the_old_file_are_what_an_export_gives(
    graph: InterventionPolicy, first: Bundle, tmp_path: Path
) -> None:
    other = changed(graph, 0.02)
    quick = export_again(other, first, tmp_path / "policy-000002.onnx")
    assert quick.golden_error() < 1e-5
    assert dataclasses.replace(quick.contract) == first.contract
    state = other.initial_state(1)
    signals = {name: torch.from_numpy(value[:1]) for name, value in quick.golden.signals.items()}
    commands, after = other(signals, state)
    found, found_after = quick.run({name: v.numpy() for name, v in signals.items()}, state.numpy())
    for name, value in found.items():
        np.testing.assert_allclose(value, commands[name].numpy(), rtol=1e-5)
    np.testing.assert_allclose(found_after, after.numpy(), atol=1e-5)


def test_transitions_are_what_happened(graph: InterventionPolicy, first: Bundle, tmp_path: Path) -> None:
    """Two episodes out of frames, one led for two steps; the one that was cut off gives no last transition."""
    contract, sizes = first.contract, Sizes.of(first.contract)
    writer, rng = StepWriter(tmp_path, contract, pytest.fail), np.random.default_rng(0)
    signals = rng.uniform(-0.1, 0.1, (9, sizes.signals)).astype(np.float32)
    signals[:, spans(contract)["orientation"]] = (0.0, 0.0, 0.0, 1.0)
    memory = rng.uniform(-1, 1, (9, sizes.memory)).astype(np.float32)
    last = Flag.LAST | Flag.SUCCEEDED
    flags = [Flag.NONE, Flag.OPERATOR, Flag.OPERATOR, Flag.NONE, last, Flag.NONE, Flag.NONE, Flag.NONE, Flag.NONE]
    for k, flag in enumerate(flags):
        writer.add(k, k, flag, first.digest, signals[k], memory[k], np.zeros(sizes.commands, np.float32))
    writer.close()
    (tmp_path / "steps-000002.log").write_bytes(b"nothing")
    said: list[str] = []
    found = StepFolder(tmp_path, graph, contract, said.append).new()
    assert found.led.tolist() == [False, True, True, False, False, False, False]
    assert found.outcomes == [(3, True)]
    assert found.transitions.ended.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert found.transitions.reward.tolist() == found.transitions.ended.tolist()
    done = graph.unpack(torch.from_numpy(memory))[DONE]
    assert torch.equal(found.transitions.action, done[[1, 2, 3, 4, 6, 7, 8]])
    flat, place, named = torch.from_numpy(signals), 0, {}
    for signal in contract.signals:
        named[signal.name], place = flat[:, place : place + signal.size], place + signal.size
    seen = graph.task.observe(named, graph.unpack(torch.from_numpy(memory)))
    assert torch.equal(found.transitions.observation, seen[[0, 1, 2, 3, 5, 6, 7]])
    assert torch.equal(found.transitions.next_observation, seen[[1, 2, 3, 4, 6, 7, 8]])
    assert len(said) == 1
    assert "steps-000002.log: it begins with" in said[0]


def test_files_count_upwards(tmp_path: Path) -> None:
    for name in ("policy-000002.onnx", "policy-000010.onnx", "policy-x.onnx", "policy-000001.onnx.partial"):
        (tmp_path / name).touch()
    assert [number_of(path) for path in files(tmp_path)] == [2, 10]
