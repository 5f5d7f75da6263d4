"""A student that sees: taught by a teacher that is told, exported, and the same in the plain loop and in C."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.contract import Image, Provenance
from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.build.verify import PARITY_TOLERANCE
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy, SignalError
from robo_rl.learn.config import DistillConfig
from robo_rl.learn.distill import distill
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.place_depth import NAME, SHAPE, PlaceDepth

PROVENANCE = Provenance("distilled", 0, 0, "0" * 64)
STEPS = 64


def student() -> PolicyGraph:
    torch.manual_seed(1)
    return PolicyGraph(PlaceDepth(), (32,), "elu")


def test_a_taught_student_knows_better_where_the_cube_is_than_an_untaught_one() -> None:
    torch.manual_seed(0)
    teacher = PolicyGraph(Place(), (16,), "elu").requires_grad_(False).eval()  # untrained, it is its script
    first = student()
    config = DistillConfig((32,), "elu", updates=60, environments=8, mixed=4, learning_rate=3e-3, teacher_part=0.5)
    untaught = distill(teacher, copy.deepcopy(first), dataclasses.replace(config, learning_rate=1e-12))
    taught = distill(teacher, first, config)
    assert sum(taught.losses[-15:]) < 0.6 * sum(untaught.losses[-15:])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Of an untrained student that looks about."""
    policy = student().requires_grad_(False).eval()
    policy.network[-1].weight.mul_(60.0)
    policy.network[-1].bias.uniform_(-0.1, 0.1)
    env, seen = VecEnv(policy.task, 2, seed=1, evaluation=True), []
    state = policy.initial_state(2)
    for _ in range(STEPS):
        seen.append(env.signals())
        commands, state = policy(seen[-1], state)
        env.step(commands)
    signals = {name: np.stack([moment[name].numpy() for moment in seen]) for name in seen[0]}
    return write_bundle(policy, PROVENANCE, signals, tmp_path_factory.mktemp("depth") / "policy.onnx")


def test_its_contract_has_an_image_with_holes_and_no_place_of_a_cube(bundle: Bundle) -> None:
    image = bundle.contract.signal(NAME)
    assert isinstance(image.layout, Image)
    assert (image.shape, image.unit, image.layout.encoding) == (SHAPE, "m", "depth with holes")
    assert image.period == pytest.approx(1 / 30)
    assert "cube_position" not in [signal.name for signal in bundle.contract.signals]
    assert bundle.golden_error() <= PARITY_TOLERANCE


def test_in_the_plain_loop_it_gives_the_graph_s_commands_and_refuses_other_images(bundle: Bundle) -> None:
    policy, golden = Policy.load(bundle.path, 1 / bundle.contract.control_period), bundle.golden
    state = bundle.contract.initial_state[None]
    for k in range(3):
        now = {name: value[k] for name, value in golden.signals.items()}
        found = policy.step(now)
        expected, state = bundle.run({name: value[None] for name, value in now.items()}, state)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value[0])
    with pytest.raises(SignalError, match=r"'wrist_depth' has shape \(32, 32\); expected \(36, 64\)"):
        policy.step({**now, NAME: np.full((32, 32), 0.3, np.float32)})
    with pytest.raises(SignalError, match=r"'wrist_depth': 0_0 is nan m; expected a number from 0 to 0\.5"):
        policy.step({**now, NAME: np.full(SHAPE, np.nan, np.float32)})


def test_firmware_takes_the_image_and_passes_its_self_test(bundle: Bundle, tmp_path: Path) -> None:
    compiled = compile_host(generate(bundle, tmp_path, Options(golden_steps=STEPS)))  # the first ones see nothing
    assert compiled.self_test() <= PARITY_TOLERANCE
    header = (tmp_path / "policy.h").read_text()
    assert f"float {NAME}[{SHAPE[0] * SHAPE[1]}]; /* m, camera: 36 x 64, row by row */" in header


def test_a_simulated_robot_of_it_sends_images_as_they_are_in_training() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("arm-place-depth", delay=0.02, noise=0.0)
    images = []
    for _ in range(6):
        images.append(twin.measure()[NAME])
        twin.step(None)
    first = images[0]
    assert first.shape == SHAPE
    assert first.dtype == np.float32
    assert float(np.median(first)) > 0.1
    again = twins.make_twin("arm-place-depth", delay=0.02, noise=0.0)
    np.testing.assert_array_equal(again.measure()[NAME], first)
    held = [np.array_equal(a, b) for a, b in itertools.pairwise(images)]
    assert any(held)  # 30 images a second at 50 Hz
    assert not all(held)  # other pixels are holes
