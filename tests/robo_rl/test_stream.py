"""Learning on a microcontroller: C as in Python to the bit, here and on an emulated Cortex-M4F; and its guards."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.commands.exporting import pull_weights
from robo_rl.contract import Network, Provenance
from robo_rl.deploy.build import learning as build
from robo_rl.deploy.build.c.generate import Generated, Options, generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.c.learning import Learning
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.firmware.build import build_replay
from robo_rl.deploy.build.firmware.emulate import replay
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.learning import LearningError, learned_policy, learning_of, weights_of
from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.learn.factory import graph_of
from robo_rl.learn.stream import Net, StreamConfig, StreamLearner, cosine_of_turns, logarithm, normal, philox
from robo_rl.sim.tasks.loading import load_task

CONFIG = StreamConfig(gamma=0.9, lam=0.8, deviation=0.1, bound=0.05, block=100, warm_up=100, worse=0.5, seed=3)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    torch.manual_seed(0)
    policy = graph_of(load_task("pmsm-current"), Network((12, 12), "tanh", False)).requires_grad_(False)
    policy.network[-1].bias.uniform_(-0.1, 0.1)
    return export(policy, Provenance("none", 0, 0, ""), tmp_path_factory.mktemp("stream") / "motor.onnx")


@pytest.fixture(scope="module")
def learning(bundle: Bundle) -> Learning:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "STEPS", 150)
        patch.setattr(build, "ROUNDS", 20)
        return learning_of(bundle, task_of(bundle), CONFIG)


class Chip:
    """The generated learner, on this computer."""

    def __init__(self, bundle: Bundle, learning: Learning, folder: Path) -> None:
        self.made = generate(bundle, folder, Options(learning=learning))
        compile_host(self.made)
        self.functions = ctypes.CDLL(str(folder / "libpolicy.so"))
        self.functions.policy_learn_act.argtypes = [ctypes.c_void_p, ctypes.c_float, ctypes.c_void_p]
        self.sizes = learning.start.sizes

    def allow(self, now: bool) -> None:
        self.functions.policy_learn_allow(ctypes.c_uint8(now))

    def act(self, observation: np.ndarray, reward: float) -> np.ndarray:
        action = np.zeros(self.sizes[-1], np.float32)
        self.functions.policy_learn_act(observation.ctypes.data, reward, action.ctypes.data)
        return action

    def progress(self) -> dict[str, int]:
        now = np.zeros(7, np.uint32)
        self.functions.policy_learn_progress_now(now.ctypes)
        return dict(zip(("steps", "learnt", "spikes", "returns", "off"), now.tolist(), strict=False))

    def save(self, sequence: int) -> bytes:
        slot = np.zeros(88 + 4 * Net.count(self.sizes), np.uint8)
        self.functions.policy_learn_save(ctypes.c_uint32(sequence), slot.ctypes)
        return slot.tobytes()

    def restore(self, first: bytes, second: bytes) -> int:
        return self.functions.policy_learn_restore(first, second)


def walk(chip: Chip, learner: StreamLearner | None, steps: int, seed: int = 0) -> int:
    """Compare steps with random observations, rewards and pauses; how many were equal in every bit."""
    draw, equal = np.random.default_rng(seed), 0
    for step in range(steps):
        observation = draw.normal(size=chip.sizes[0]).astype(np.float32)
        reward, allowed = np.float32(draw.normal()), step % 97 != 96
        if step == steps // 2:
            reward = np.float32(1e4)  # a spike
        chip.allow(allowed)
        given = chip.act(observation, float(reward))
        equal += learner is not None and given.tobytes() == learner.act(observation, reward, allowed).tobytes()
    return equal


def test_c_learns_as_python_does_to_the_bit(bundle: Bundle, learning: Learning, tmp_path: Path) -> None:
    steps = 1500
    config = dataclasses.replace(CONFIG, block=200, warm_up=50, worse=0.0)
    chip = Chip(bundle, dataclasses.replace(learning, config=config), tmp_path)
    learner = StreamLearner(learning.start, config)
    assert walk(chip, learner, steps) == steps
    _, weights = weights_of(chip.save(1), bundle)
    assert weights.tobytes() == learner.actor.parameters.tobytes()
    told = chip.progress()
    assert (told["steps"], told["learnt"], told["returns"]) == (learner.steps, learner.learnt, learner.returns)
    assert learner.returns > 0, "with no loss allowed, the exported weights come back"


def test_weights_move_but_stay_within_the_bound(bundle: Bundle, learning: Learning, tmp_path: Path) -> None:
    chip = Chip(bundle, learning, tmp_path)
    walk(chip, None, 1000)
    _, weights = weights_of(chip.save(7), bundle)
    moved = np.abs(weights - learning.start.actor)
    assert 0.0 < moved.max() <= CONFIG.bound * 1.001
    learnt = learned_policy(bundle, task_of(bundle), chip.save(7))
    flat = torch.cat([p.flatten() for p in learnt.network.parameters()]).numpy()
    assert flat.tobytes() == weights.tobytes()


def test_nothing_is_learnt_or_tried_without_leave_and_after_a_number_that_is_none(
    bundle: Bundle, learning: Learning, tmp_path: Path
) -> None:
    chip = Chip(bundle, learning, tmp_path)
    golden = Net(learning.start.sizes, learning.start.actor)
    observation = np.linspace(-1, 1, learning.start.sizes[0], dtype=np.float32)
    expected = golden.forward(observation)[-1].tobytes()
    assert all(chip.act(observation, 1.0).tobytes() == expected for _ in range(300))  # not allowed at power-up
    assert chip.progress()["steps"] == 0
    walk(chip, None, 400)
    chip.allow(True)
    chip.act(observation, 0.0)
    assert chip.act(observation, math.nan).tobytes() == expected
    assert chip.progress()["off"] == 1
    assert chip.act(observation, 1.0).tobytes() == expected


def test_the_newest_whole_slot_counts_wherever_writing_was_cut_off(
    bundle: Bundle, learning: Learning, tmp_path: Path
) -> None:
    chip = Chip(bundle, learning, tmp_path)
    walk(chip, None, 400)
    old = chip.save(1)
    walk(chip, None, 400, seed=1)
    new, blank = chip.save(2), b"\xff" * len(old)
    assert old[84:-4] != new[84:-4]
    assert chip.restore(old, new) == 2
    assert chip.save(2) == new
    for cut in (0, 1, 83, 84, len(new) // 2, len(new) - 1):  # the other slot was being overwritten
        assert chip.restore(old, new[:cut] + blank[cut:]) == 1
        assert chip.save(1) == old
        assert chip.restore(new[:cut] + blank[cut:], blank) == 0
    damaged = bytearray(new)
    damaged[100] ^= 1
    assert chip.restore(bytes(damaged), blank) == 0
    _, weights = weights_of(chip.save(3), bundle)
    assert weights.tobytes() == learning.start.actor.tobytes(), "the exported weights"
    with pytest.raises(LearningError, match="its CRC is wrong"):
        weights_of(bytes(damaged), bundle)
    with pytest.raises(LearningError, match="no learnt weights"):
        weights_of(blank, bundle)


@pytest.mark.release
def test_a_bundle_is_made_of_what_was_learnt(
    bundle: Bundle, learning: Learning, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chip = Chip(bundle, learning, tmp_path)
    walk(chip, None, 600)
    first, second, out = tmp_path / "a.bin", tmp_path / "b.bin", tmp_path / "learnt.onnx"
    first.write_bytes(chip.save(5))
    second.write_bytes(b"\xff" * len(chip.save(5)))
    assert pull_weights.main(bundle.path, (first, second), out, episodes=100, json=True) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["sequence"] == 5
    assert 0.0 < told["moved"] <= CONFIG.bound * 1.001
    learnt = Bundle.read(out)
    assert learnt.contract.provenance.algorithm == "none-stream"
    flat = torch.cat([p.flatten() for p in learned_policy(learnt, task_of(learnt), None).network.parameters()]).numpy()
    assert flat.tobytes() == weights_of(chip.save(5), bundle)[1].tobytes()
    with pytest.raises(LearningError, match="no learnt weights"):
        pull_weights.main(bundle.path, (second,), out)
    with pytest.raises(LearningError, match="no such file; expected a slot's bytes"):
        pull_weights.main(bundle.path, (second.with_name("no.bin"),), out)


def test_numbers_are_those_that_they_should_be() -> None:
    draw = np.random.default_rng(0)
    for x in (*draw.uniform(1e-7, 2.0, 300), 1.0, 2.0**-24, 1e30):
        value = np.float32(x)
        assert abs(float(logarithm(value)) - math.log(value)) <= 4e-7 * max(1.0, abs(math.log(value)))
    for x in (*draw.uniform(0.0, 1.0, 300), 0.0, 0.125, 0.5, 1 - 2.0**-24):
        assert abs(float(cosine_of_turns(np.float32(x))) - math.cos(2 * math.pi * float(np.float32(x)))) < 5e-7
    # of Random123's known answers, kat_vectors: philox2x32 10
    assert philox(0, 0) == (0xFF1DAE59, 0x6CD10DF2)
    assert philox(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF) == (0x2C3F628B, 0xAB4FD7AD)
    drawn = np.array([normal(k, 0) for k in range(4000)])
    assert abs(drawn.mean()) < 4 / math.sqrt(4000)
    assert abs(drawn.std() - 1.0) < 0.05


def test_traces_are_the_decayed_sums_of_gradients() -> None:
    """By autograd, on a network that stays as it is."""
    sizes = (3, 10, 9, 2)
    draw = np.random.default_rng(1)
    net = Net(sizes, draw.normal(size=Net.count(sizes)).astype(np.float32))
    layers: list[torch.nn.Module] = []
    for k in range(3):
        layers += [torch.nn.Linear(sizes[k], sizes[k + 1]), torch.nn.Tanh()]
    twin = torch.nn.Sequential(*layers[:-1])
    torch.nn.utils.vector_to_parameters(torch.from_numpy(net.parameters), twin.parameters())
    expected = torch.zeros(len(net.parameters))
    for _ in range(5):
        x, weight = (draw.normal(size=k).astype(np.float32) for k in (3, 2))
        values = net.forward(x)
        net.trace(values, weight, np.float32(0.7))
        output = twin(torch.from_numpy(x))
        torch.testing.assert_close(torch.from_numpy(values[-1]), output.detach(), rtol=1e-4, atol=1e-5)
        gradient = torch.autograd.grad((output * torch.from_numpy(weight)).sum(), list(twin.parameters()))
        expected = 0.7 * expected + torch.cat([g.flatten() for g in gradient])
    torch.testing.assert_close(torch.from_numpy(net.traces), expected, rtol=1e-3, atol=1e-4)
    assert float(net.norm) == pytest.approx(float(expected.abs().sum()), rel=1e-4)


def _recorded(bundle: Bundle, steps: int) -> np.ndarray:
    """Signals (1, steps, N) within what was seen."""
    draw = np.random.default_rng(2)
    rows = [
        np.concatenate([bundle.golden.signals[s.name][k % 64].ravel() for s in bundle.contract.signals])
        for k in range(steps)
    ]
    return (np.stack(rows) * draw.uniform(0.5, 1.5, (steps, 1)))[None].astype(np.float32)


def _apart(bundle: Bundle, learning: Learning, folder: Path, steps: int) -> int:
    """In how many of the commands an emulated Cortex-M4F and this computer differ, while both learn."""
    flags = ["-DPOLICY_LEARN_ALLOWED=1u"]
    made: Generated = generate(bundle, folder, Options(learning=learning))
    signals = _recorded(bundle, steps)
    theirs = replay(build_replay(made, TARGETS["cortex-m4"], flags), TARGETS["cortex-m4"], signals, 2)[0]
    ours, state = compile_host(made, flags), bundle.contract.initial_state[None]
    given: list[Any] = []
    for row in signals[0]:
        parts = np.split(row, np.cumsum([s.size for s in bundle.contract.signals])[:-1])
        named = {s.name: part[None] for s, part in zip(bundle.contract.signals, parts, strict=True)}
        commands, state = ours.run(named, state)
        given.append(commands["voltage"][0])
    return int((np.stack(given).view(np.uint32) != theirs.view(np.uint32)).any(1).sum())


needs_arm = pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is missing")


@needs_arm
def test_a_microcontroller_learns_as_this_computer_does(bundle: Bundle, learning: Learning, tmp_path: Path) -> None:
    assert _apart(bundle, learning, tmp_path, 3000) == 0


@needs_arm
@pytest.mark.release
def test_a_microcontroller_learns_as_this_computer_does_for_a_million_steps(
    bundle: Bundle, learning: Learning, tmp_path: Path
) -> None:
    assert _apart(bundle, learning, tmp_path, 1_000_000) == 0
