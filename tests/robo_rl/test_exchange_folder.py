"""The folder that a robot and its learner share: what is wrong there is left out, and hides nothing that is right."""

from __future__ import annotations

import copy
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import spans
from robo_rl.deploy.robot.logs.step_log import Flag, Sizes, StepWriter, files
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.successors import Successors, next_file
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import (
    FILE_NAME,
    SIGNAL,
    DemonstrationError,
    Transitions,
    digest,
    read,
    write,
)
from robo_rl.learn.runs.checkpoint import CheckpointError
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.training import NotFiniteError
from robo_rl.online import cloning as live
from robo_rl.online.interventions import InterventionPolicy, export_again
from robo_rl.online.learner import LiveLearner
from robo_rl.online.received import StepFolder
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

STEPS = 30
Led = tuple[InterventionPolicy, Bundle]


def robot(folder: Path, bundle: Bundle, changes: dict[int, dict[str, Any]] | None = None, steps: int = STEPS) -> Path:
    """A file of a robot's steps, at some of which signals, memory, command or flags are others."""
    sizes, writer = Sizes.of(bundle.contract), StepWriter(folder, bundle.contract, pytest.fail)
    for k in range(steps):
        parts: dict[str, Any] = {name: np.full(size, 0.01, np.float32) for name, size in sizes._asdict().items()}
        parts["signals"][spans(bundle.contract)["orientation"]] = (0.0, 0.0, 0.0, 1.0)
        other = (changes or {}).get(k, {})
        for name, (place, value) in other.items():
            if name != "flags":
                parts[name][place] = value
        flags = other["flags"][1] if "flags" in other else Flag.NONE
        writer.add(k, k, flags, "", parts["signals"], parts["memory"], parts["commands"])
    writer.close()
    return writer.path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"signals": (0, math.nan)}, "step 9: position.x is not finite; expected -100 to 100"),
        ({"signals": (1, 1e6)}, r"step 9: position.y is 1e\+06; expected -100 to 100"),
        ({"signals": (6, 0.5)}, "step 9: orientation has the length 0.5; expected a unit quaternion"),
        ({"signals": (3, 2.0)}, "step 9: orientation.x is 2; expected -1.01 to 1.01"),
        ({"memory": (0, math.inf)}, "step 9: .* is not finite"),
        ({"memory": (-1, 1e9)}, r"step 9: .* is 1e\+09; expected -1e\+06 to 1e\+06"),
        ({"commands": (0, math.nan)}, r"step 9: command\[0\] is not finite"),
        ({"flags": (0, 1 << 20)}, "step 9 has unknown flags"),
    ],
)
def test_a_step_that_can_not_be_learnt_from_is_left_out_and_told(
    change: dict[str, Any], reason: str, led_policy: Led, tmp_path: Path
) -> None:
    graph, bundle = led_policy
    path, said = robot(tmp_path, bundle, {9: change, 20: change}), list[str]()
    found = StepFolder(tmp_path, graph, bundle.contract, said.append).new()
    assert len(found.led) == STEPS - 1 - 4  # each is in two transitions
    assert all(bool(value.isfinite().all()) for value in found.transitions)
    (sentence,) = said
    assert sentence.startswith(f"{path}: ")
    assert re.search(reason, sentence), sentence


def test_a_damaged_frame_and_what_is_no_file_lose_nothing_else(led_policy: Led, tmp_path: Path) -> None:
    graph, bundle = led_policy
    first, second = robot(tmp_path, bundle), robot(tmp_path, bundle)
    data = bytearray(first.read_bytes())
    size = Sizes.of(bundle.contract).frame.itemsize
    data[len(data) - 10 * size + 20] ^= 1
    first.write_bytes(data)
    os.mkfifo(tmp_path / "steps-000003.log")
    (tmp_path / "steps-000004.log").mkdir()
    (tmp_path / "steps-000005.log").symlink_to("/dev/zero")
    with (tmp_path / "steps-000006.log").open("wb") as hole:
        hole.truncate(1 << 40)
    (tmp_path / "steps-99999999999999999999.log").write_bytes(b"x")
    said: list[str] = []
    folder = StepFolder(tmp_path, graph, bundle.contract, said.append)
    counts = [len(folder.new().led) for _ in range(4)]
    assert counts == [2 * (STEPS - 1) - 10, 10 - 2, 0, 0]
    assert len(said) == 5
    assert sum(f"{first}: damaged at byte" in sentence for sentence in said) == 1
    assert robot(tmp_path, bundle).name == "steps-000007.log"
    assert second in files(tmp_path)


def test_a_frame_that_is_whole_at_the_second_look_is_learnt_from(led_policy: Led, tmp_path: Path) -> None:
    graph, bundle = led_policy
    path = robot(tmp_path, bundle)
    whole = path.read_bytes()
    path.write_bytes(whole[:-500] + bytes(500))  # room that is there before what is in it
    folder = StepFolder(tmp_path, graph, bundle.contract, lambda sentence: None)
    first = len(folder.new().led)
    path.write_bytes(whole)
    assert first < STEPS - 1
    assert first + len(folder.new().led) == STEPS - 1


def changed(policy: InterventionPolicy, by: float) -> InterventionPolicy:
    other = copy.deepcopy(policy)
    with torch.no_grad():
        for value in other.network.parameters():
            value.add_(by)
    return other


def test_a_planted_number_hides_no_policy_and_a_file_that_was_not_whole_is_looked_at_again(
    led_policy: Led, tmp_path: Path
) -> None:
    graph, first = led_policy
    said: list[str] = []
    robots = Successors(tmp_path, Policy.load(first.path, 100.0), said.append)
    good = [export_again(changed(graph, k / 100), first, tmp_path / f"made{k}").path.read_bytes() for k in (1, 2, 3)]
    (tmp_path / "policy-999999999.onnx").write_bytes(b"planted")
    (tmp_path / "policy-99999999999999999999.onnx").write_bytes(good[0])
    (tmp_path / "policy-000002.onnx").write_bytes(good[0][:1000])
    os.mkfifo(tmp_path / "policy-000007.onnx")
    (tmp_path / "policy-000008.onnx").mkdir()
    (tmp_path / "policy-000009.onnx").symlink_to("/dev/zero")
    robots.look()
    assert robots.take() is None
    assert robots.refused == 2
    robots.look()
    assert robots.refused == 2  # told once
    (tmp_path / "policy-000002.onnx").write_bytes(good[0])
    robots.look()
    assert robots.take() is not None
    shutil.copy(tmp_path / "policy-000002.onnx", tmp_path / "policy-888888888.onnx")  # whole, and old
    robots.look()
    assert robots.take() is None
    place = next_file(tmp_path, first.path)
    assert place.name == "policy-000003.onnx"
    place.write_bytes(good[1])
    robots.look()
    assert robots.take() is not None
    other = next_file(tmp_path, tmp_path / "policy-999999999.onnx")
    assert other.name == "policy-000001.onnx"
    other.write_bytes(good[2])
    robots.look()
    assert robots.take() is not None


def shown(folder: Path, **changes: float) -> Path:
    """Demonstrations of hovering, some numbers of which are others."""
    task = load_task("quadrotor-hover")
    count = 20
    tensors = {
        "observation": torch.zeros(count, task.observation_size), "action": torch.zeros(count, task.action_size),
        "reward": torch.ones(count), "ended": torch.zeros(count),
        "next_observation": torch.zeros(count, task.observation_size),
        "episode": torch.zeros(count, dtype=torch.int64),
        **{SIGNAL + s.name: torch.zeros(count, *s.dimensions) for s in task.spec.signals},
        SIGNAL + "orientation": torch.eye(4)[3].expand(count, 4).contiguous(),
    }  # fmt: skip
    for name, value in changes.items():
        tensors[name if name in tensors else SIGNAL + name].view(count, -1)[7, 0] = value
    write(folder / FILE_NAME, task, tensors)
    return folder / FILE_NAME


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"position": 101.0}, "step 7: position.x is 101; expected -100 to 100"),
        ({"orientation": -3.0}, "step 7: orientation.x is -3; expected -1.01 to 1.01"),
        ({"observation": 1e12}, r"step 7: observation\[0\] is 1e\+12; expected -1e\+06 to 1e\+06"),
        ({"reward": 1e24}, r"step 7: reward is 1e\+24"),
    ],
)
def test_demonstrations_beyond_what_a_robot_can_measure_are_refused(
    change: dict[str, float], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DemonstrationError, match=reason):
        read(shown(tmp_path, **change), load_task("quadrotor-hover"))


def test_demonstrations_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="reward has numbers that are not finite; nothing was written"):
        shown(tmp_path, reward=math.nan)
    assert not (tmp_path / FILE_NAME).exists()


def begun(led_policy: Led, tmp_path: Path) -> LiveLearner:
    """A learner that clones, in whose folder there are a policy and an operator's steps."""
    run = Run.create(tmp_path, "quadrotor-hover", None, "bc", 0, {"hidden": (8,), "activation": "tanh"}, name="live")
    settings = BcConfig(hidden=(8,), activation="tanh", updates=1, demonstrations=digest(shown(run.folder)))
    task = load_task("quadrotor-hover")
    algorithm = live.Cloning(task, PolicyGraph(task, (8,)), settings, 0, run.folder)
    robots = run.folder / "robot"
    robots.mkdir()
    shutil.copy(led_policy[1].path, robots)
    robot(robots, led_policy[1], {k: {"flags": (0, Flag.OPERATOR)} for k in range(STEPS)})
    learner = LiveLearner(run, algorithm, robots, 1.0, lambda sentence: None)
    learner.begin()
    return learner


def test_planted_numbers_do_not_push_the_newest_policy_out(
    led_policy: Led, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = begun(led_policy, tmp_path)
    monkeypatch.setattr("robo_rl.online.learner.KEPT", 2)
    for number in (7, 8, 9):
        (learner.folder / f"policy-99999999{number}.onnx").write_bytes(b"planted")
    learner.publish()
    assert learner.bundle is not None
    assert Bundle.read(learner.bundle.path).digest == learner.bundle.digest


def test_a_live_learner_ends_before_it_keeps_or_gives_away_what_is_not_finite(led_policy: Led, tmp_path: Path) -> None:
    learner = begun(led_policy, tmp_path)
    run, robots, task, algorithm = learner.run, learner.folder, learner.average.task, learner.algorithm
    assert isinstance(algorithm, live.Cloning)
    before, policies = run.checkpoint_file.read_bytes(), sorted(robots.glob("policy-*"))
    nothing = torch.full((1, task.observation_size), math.nan)
    algorithm.add(
        Transitions(nothing, torch.zeros(1, 4), torch.zeros(1), torch.zeros(1), nothing), torch.tensor([True])
    )
    algorithm.observation[:] = math.nan
    with pytest.raises(NotFiniteError, match="gradients of 10 mini-batches in a row were not finite"):
        learner.learn()
    assert all(bool(value.isfinite().all()) for value in learner.average.state_dict().values())
    next(iter(learner.average.parameters()))[0] = math.inf
    with pytest.raises(CheckpointError, match="has numbers that are not finite; nothing was written"):
        learner.publish()
    assert run.checkpoint_file.read_bytes() == before
    assert sorted(robots.glob("policy-*")) == policies
