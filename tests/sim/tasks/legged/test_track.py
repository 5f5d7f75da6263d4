"""Following a clip: what is asked and seen, where episodes begin, when the clip is lost, what travels in a bundle."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.contract import Contract, Network, PositionLaw, Provenance
from robo_rl.learn.adversary import Adversary, undrawn
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.legged.clips import PERIOD, ClipError
from robo_rl.sim.tasks.legged.clips.files import write_clip
from robo_rl.sim.tasks.legged.clips.generated import GENERATED
from robo_rl.sim.tasks.legged.track import AFTER, LegsTrack, TrackWave
from robo_rl.sim.tasks.loading import load_task

MADE, NETWORK = Provenance("ppo", 0, 0, "0" * 64), Network((8,), "tanh", False)
OWN = """
from robo_rl.sim.tasks.legged.track import LegsTrack

class Mine(LegsTrack):
    name = "mine"
    summary = "my own clip"
    clip = "mine.npz"
    files = ("mine.npz",)
"""


@pytest.fixture(scope="module")
def task() -> LegsTrack:
    return LegsTrack()


def begun(task: LegsTrack, n: int = 4, **fixed: float) -> LearningEnv:
    """Episodes as in training."""
    named = {name.replace("__", "/"): value for name, value in fixed.items()}
    return LearningEnv(VecEnv(task, n, seed=0, fixed=named, compiled=False))


def memory(task: LegsTrack, n: int, frame: int, heading: float = 0.0, begun: bool = True) -> dict[str, torch.Tensor]:
    found = task.first_memory(n)
    found["clip"] = torch.tensor([[frame, math.cos(heading), math.sin(heading), float(begun)]]).repeat(n, 1)
    return found


def test_a_humanoid_sees_154_numbers_none_of_them_velocity_or_place_of_its_base(task: LegsTrack) -> None:
    for each, joints in ((task, 12), (TrackWave(), 29)):
        assert each.observation_size == 5 * joints + 9
        signals = {signal.name: torch.zeros(3, signal.size) for signal in each.spec.signals}
        assert set(signals) == {"orientation", "angular_velocity", "joint_position", "joint_velocity"}
        signals["orientation"][:, 3] = 1.0
        assert each.observe(signals, each.first_memory(3)).shape == (3, each.observation_size)
    assert TrackWave().observation_size == 154


def test_the_clip_its_digest_and_its_first_frame_are_in_the_contract(task: LegsTrack) -> None:
    contract = task.spec.contract(MADE, NETWORK)
    clip, (command,) = task.follow.clip, contract.commands
    told = contract.facts["clip"]
    assert (told["name"], told["sha256"], told["frames"]) == ("squat", clip.digest, 201)
    np.testing.assert_allclose(command.start, clip.angles[0], atol=1e-6)  # to which the gate moves before
    np.testing.assert_allclose(told["first"], clip.angles[0], atol=1e-4)
    assert isinstance(command.law, PositionLaw)
    assert command.law.stiffness == tuple(joint.hold_stiffness for joint in load_legged("g1").joints)
    assert task.spec.episode_length == pytest.approx(clip.duration + AFTER)
    assert Contract.from_json(contract.to_json()) == contract


def test_the_frame_follows_from_the_number_of_steps_and_the_last_one_stays(task: LegsTrack) -> None:
    clip, kept = task.follow.clip, task.first_memory(1)
    signals = {signal.name: torch.zeros(1, signal.size) for signal in task.spec.signals}
    signals["orientation"][:, 3] = 1.0
    for step in range(len(clip) + 50):
        commands, kept = task.act(torch.zeros(1, 12), signals, kept)
        speeds = np.gradient(clip.angles, PERIOD, axis=0)[min(step, len(clip) - 1)]
        expected = clip.angles[min(step, len(clip) - 1)] + task._ahead[0].numpy() * speeds
        np.testing.assert_allclose(commands["joint_position_target"][0], expected, atol=0.01)
    assert kept["clip"].tolist() == [[float(len(clip)), 1.0, 0.0, 1.0]]


def test_the_clip_is_turned_to_the_heading_of_the_first_step(task: LegsTrack) -> None:
    """However the robot is headed then, it sees the clip's base straight ahead; what it turns by later, it sees."""

    def seen(yaw: float, memory: dict[str, torch.Tensor]) -> torch.Tensor:
        signals = {signal.name: torch.zeros(1, signal.size) for signal in task.spec.signals}
        signals["orientation"] = torch.tensor([[0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]])
        after = task.remember(memory, signals, {"joint_position_target": torch.zeros(1, 12)})
        assert after["clip"][0, 0] == memory["clip"][0, 0] + 1
        return task.observe(signals, memory)[0, 24:30], after["clip"][0, 1:3]

    straight = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    for yaw in (0.0, 2.0, -3.1, 3.1):
        axes, heading = seen(yaw, memory(task, 1, 0, begun=False))
        torch.testing.assert_close(axes, straight, atol=1e-5, rtol=0)
        torch.testing.assert_close(heading, torch.tensor([math.cos(yaw), math.sin(yaw)]))
    axes, _ = seen(1.5, memory(task, 1, 50, heading=1.0))  # 0.5 rad further than the clip
    c, s = math.cos(0.5), math.sin(0.5)
    torch.testing.assert_close(axes, torch.tensor([c, s, -s, c, 0.0, 0.0]), atol=1e-4, rtol=0)


def test_training_begins_anywhere_in_the_clip_and_the_policy_knows_where(task: LegsTrack) -> None:
    env = begun(task, 64)
    steps = env.memory["clip"][:, 0]
    assert steps.min() < 30
    assert steps.max() > 170
    truth = env.env.truth()
    errors = task.errors(truth)
    assert errors["drift"].max() < 1e-3
    assert errors["body_error"].max() < 0.06  # by the draw of joint angles alone
    torch.testing.assert_close(env.memory["last_target"], task.follow.start(steps).joint_position)
    off = truth["joint_position"] - torch.from_numpy(task.follow.clip.angles).float()[steps.long()]
    assert off.abs().max() < 0.0501
    assert not task.failed(truth).any()
    ended = env.env.episode.step.clone()
    env.env.episode.step[:8] = env.env.episode_steps - 1
    step = env.step(torch.zeros(64, 12))
    assert set(range(8)) <= set(step.ids.tolist())
    assert (env.memory["clip"][step.ids, 0] * PERIOD - env.env.draws.goal[step.ids, 0]).abs().max() < 1e-4
    assert (ended == 0).all()


def test_start_frames_are_drawn_more_often_where_less_was_earned(task: LegsTrack) -> None:
    """Adaptive sampling beside uniform: of a policy that loses the second half of the clip."""
    chosen = undrawn(task, ["initial/frame"], 256)
    env = VecEnv(task, 256, seed=0, fixed=chosen, compiled=False)
    torch.manual_seed(0)
    adversary = Adversary(env, ["initial/frame"], (2.0, 2.0))
    for update in range(2):
        adversary.plan(8 * update, 9)
        adversary.hear(torch.where(adversary.now[:, 0] > 0.5, 0.0, 30.0), torch.arange(256))
    adversary.plan(16, 17)
    adversary.hear(torch.zeros(256), torch.arange(256))
    drawn = torch.cat([env.levels.fixed["initial/frame"]])
    assert 0.0 <= drawn.min() < 0.3  # none is left out
    assert 0.7 < (drawn > 0.5).float().mean() < 0.99


def test_evaluations_begin_with_the_first_frame(task: LegsTrack) -> None:
    env = LearningEnv(VecEnv(task, 16, seed=0, evaluation=True, compiled=False))
    assert (env.memory["clip"][:, 0] == 0).all()
    assert (env.env.draws.goal[:, 0] == 0).all()


def test_a_perfect_follower_has_no_error_wherever_it_is_and_a_fall_loses_the_clip(task: LegsTrack) -> None:
    quiet = {f"initial__{name}": 0.0 for name in ("linear_velocity", "angular_velocity", "joint_position")}
    env = begun(task, 8, **quiet)
    truth = env.env.truth()
    errors, reward = task.errors(truth), task.reward(truth, idle := {"joint_position_target": torch.zeros(8, 12)}, idle)
    assert errors["body_error"].max() < 0.01
    assert errors["joint_error"].max() < 0.01
    balls = [marker for marker in task.markers(truth) if marker.name == "clip"]
    for name, ball in zip(task.bodies, balls, strict=True):
        torch.testing.assert_close(ball.position, truth[f"{name}_position"], atol=0.02, rtol=0)
    for term in ("anchor_position", "anchor_orientation", "body_position", "joint_position"):
        assert reward[term].min() > 0.98
    moved = {**truth, "position": truth["position"] + torch.tensor([3.0, 4.0, 0.0])}
    for name in task.bodies:
        moved[f"{name}_position"] = truth[f"{name}_position"] + torch.tensor([3.0, 4.0, 0.0])
    assert task.errors(moved)["drift"].min() == pytest.approx(5.0, abs=1e-3)  # which is forgiven
    torch.testing.assert_close(task.errors(moved)["body_error"], errors["body_error"], atol=1e-5, rtol=0)
    low = {**truth, "position": truth["position"] - torch.tensor([0.0, 0.0, 0.3])}
    assert task.failures(low)["base off in height"].all()
    tilted = {**truth, "orientation": torch.tensor([[math.sin(0.6), 0.0, 0.0, math.cos(0.6)]]).repeat(8, 1)}
    assert task.failures(tilted)["tilts by over 60 degrees"].all()
    foot = f"{task.bodies[task._ends[0]]}_position"
    lifted = {**truth, foot: truth[foot] + torch.tensor([0.0, 0.0, 0.3])}
    assert task.failures(lifted)["hand or foot off in height"].all()


def test_a_clip_of_ones_own_is_a_class_with_a_file_beside_it(tmp_path: Path) -> None:
    card = load_legged("g1")
    clip = GENERATED["sway"](card)
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(ValueError, match=r"mine.npz"):
        load_task(f"{tmp_path / 'mine.py'}:Mine")
    write_clip(tmp_path / "mine.npz", clip)
    mine = load_task(f"{tmp_path / 'mine.py'}:Mine")
    assert isinstance(mine, LegsTrack)
    assert mine.spec.facts["clip"]["source"] == "file: mine.npz"
    assert mine.follow.clip.digest == clip.digest
    assert mine.source is not None
    assert tmp_path / "mine.npz" in mine.source.files  # so it travels in the bundle
    with pytest.raises(ValueError, match=ClipError.__name__):
        load_task(f"{tmp_path / 'mine.py'}:Mine", "go2")
