"""Walking and standing on any number of legs: what is asked, what is seen, the mirror, where episodes begin."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from robo_rl.contract import Contract, Network, PositionLaw, Provenance
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.legged.legs_stand import LegsStand
from robo_rl.sim.tasks.legged.legs_walk import SCALE, LegsWalk
from robo_rl.sim.tasks.legged.on_legs import PERIOD
from robo_rl.sim.tasks.legged.ranges import PUSH_TIME
from robo_rl.sim.tasks.legged.stride import TIME
from robo_rl.sim.tasks.loading import load_task

MADE, NETWORK = Provenance("ppo", 0, 0, "0" * 64), Network((8,), "tanh", False)
SENSED = {"orientation", "angular_velocity", "joint_position", "joint_velocity"}


@pytest.fixture(scope="module")
def task() -> LegsWalk:
    return LegsWalk()


def drawn(n: int, task: LegsWalk, phase: int, seed: int = 0) -> tuple[dict, dict, torch.Tensor]:
    """Signals, a memory at a phase of the stride, and actions, at random."""
    rng = torch.Generator().manual_seed(seed)
    signals = {s.name: torch.randn(n, s.size, generator=rng) * 0.3 for s in task.spec.signals}
    signals["orientation"] = signals["orientation"] + torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    signals["orientation"] /= torch.linalg.vector_norm(signals["orientation"], dim=-1, keepdim=True)
    angle = 2 * math.pi * phase / 40
    clock = torch.tensor([[math.cos(angle), math.sin(angle)]]).repeat(n, 1)
    velocity = torch.randn(n, 3, generator=rng) * 0.2
    memory = {
        "last_target": torch.randn(n, 12, generator=rng) * 0.3,
        "gait": torch.cat([clock, velocity, torch.ones(n, 1)], 1),
    }
    return signals, memory, torch.randn(n, 12, generator=rng)


def image(task: LegsWalk, joints: torch.Tensor) -> torch.Tensor:
    """Joints of the robot in the mirror, by the names of left and right, roll and yaw."""
    names = task.card.joint_names
    swap = {"left": "right", "right": "left"}
    order = [names.index(name.replace(name.split("_")[0], swap[name.split("_")[0]], 1)) for name in names]
    signs = torch.tensor([-1.0 if "roll" in name or "yaw" in name else 1.0 for name in names])
    return joints[:, order] * signs


def test_no_signal_is_one_that_the_robot_can_not_measure(task: LegsWalk) -> None:
    for each in (task, LegsStand()):
        assert {s.name for s in each.spec.signals if s.source == "sensor"} == SENSED
    assert {s.name for s in task.spec.signals if s.source == "operator"} == {
        "linear_velocity_command",
        "yaw_rate_command",
    }


def test_the_contract_tells_gains_start_and_stop_and_reads_back(task: LegsWalk) -> None:
    contract = task.spec.contract(MADE, NETWORK)
    (command,) = contract.commands
    assert isinstance(command.law, PositionLaw)
    assert command.law.stiffness == (100.0, 100.0, 100.0, 150.0, 40.0, 40.0) * 2
    assert (command.stop, command.safe, contract.safety.on_fault) == ("damp", "hold", "stop")  # a fault while walking
    assert command.start == tuple(joint.stand for joint in task.card.joints)
    assert Contract.from_json(contract.to_json()) == contract


@pytest.mark.parametrize("phase", range(0, 20, 3))
def test_half_a_stride_later_the_mirror_image_is_seen_and_answered_alike(task: LegsWalk, phase: int) -> None:
    """Exactly: every bit of what is seen is the same, and every bit of what is commanded is mirrored."""
    signals, memory, action = drawn(32, task, phase)
    x, y, z, w = signals["orientation"].unbind(-1)
    mirrored = {
        "orientation": torch.stack([-x, y, -z, w], -1),
        "angular_velocity": signals["angular_velocity"] * torch.tensor([-1.0, 1.0, -1.0]),
        "joint_position": image(task, signals["joint_position"]),
        "joint_velocity": image(task, signals["joint_velocity"]),
        "linear_velocity_command": signals["linear_velocity_command"] * torch.tensor([1.0, -1.0]),
        "yaw_rate_command": -signals["yaw_rate_command"],
    }
    later = {
        "last_target": image(task, memory["last_target"]),
        "gait": memory["gait"] * torch.tensor([-1.0, -1.0, 1.0, -1.0, -1.0, 1.0]),
    }
    assert torch.equal(task.observe(signals, memory), task.observe(mirrored, later))
    (ours,), (theirs,) = (task.command(action, each).values() for each in (memory, later))
    # a stop of the left hip's roll is that of the right one, the other way round
    assert torch.equal(image(task, ours), theirs)


def test_the_clock_goes_once_round_in_a_stride_and_is_the_reference_s(task: LegsWalk) -> None:
    memory, signals = task.first_memory(1), drawn(1, task, 0)[0]
    for step in range(int(2 * TIME / PERIOD)):
        told = task.reference(torch.tensor([step * PERIOD]), torch.zeros(1, task.goal_size))["clock"]
        torch.testing.assert_close(memory["gait"][:, :2], told, atol=1e-5, rtol=0)
        memory = task.remember(memory, signals, {"joint_position_target": task.stand})


def test_a_command_that_jumps_is_taken_up_slowly_but_the_first_one_at_once(task: LegsWalk) -> None:
    signals, memory = drawn(1, task, 0)[0], task.first_memory(1)
    walked = []
    for command in [0.5] * 3 + [-0.1] * 100:
        signals["linear_velocity_command"] = torch.tensor([[command, 0.0]])
        memory = task.remember(memory, signals, {"joint_position_target": task.stand})
        walked.append(float(memory["gait"][0, 2]))
    assert walked[:3] == pytest.approx([0.5] * 3)
    assert np.abs(np.diff(walked)).max() == pytest.approx(PERIOD * 1.0, abs=1e-6)  # 1 m/s²
    assert walked[-1] == pytest.approx(-0.1)


def test_without_an_action_the_stride_is_commanded_ahead_of_the_motors_lag(task: LegsWalk) -> None:
    _, memory, _ = drawn(8, task, 3)
    angles, speeds = task.stride.reference(memory["gait"][:, :2], memory["gait"][:, 2:5])
    lag = torch.tensor([joint.damping / joint.stiffness for joint in task.card.joints])
    target = task.command(torch.zeros(8, 12), memory)["joint_position_target"]
    torch.testing.assert_close(target, torch.clamp(angles + lag * speeds, task.lower, task.upper))
    more = task.command(torch.ones(8, 12), memory)["joint_position_target"]
    assert float((more - target).max()) == pytest.approx(SCALE, abs=1e-5)


def test_training_begins_in_mid_stride_at_its_velocity_and_evaluation_from_a_stand(task: LegsWalk) -> None:
    still = {f"initial/{name}": 0.0 for name in ("yaw", "joint_position", "linear_velocity", "angular_velocity")}
    still |= {"bias/joint_position": 0.0, "command/x": 0.5, "command/y": 0.0, "command/yaw": 0.0, "command/rest": 1.0}
    env = VecEnv(task, 64, fixed={**still, "initial/standing": 0.0})
    truth = env.truth()
    angles, _ = task.stride.reference(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.0, 0.0]]))
    torch.testing.assert_close(truth["joint_position"], angles.expand(64, -1), atol=1e-5, rtol=0)
    assert float(truth["linear_velocity"][:, 0].mean()) == pytest.approx(0.59, abs=0.03)  # of the pendulum
    np.testing.assert_allclose(truth["foot_position"][:, 2::3], 0.0, atol=0.01)
    env = VecEnv(task, 64, fixed=still, evaluation=True)
    torch.testing.assert_close(env.truth()["joint_position"], task.stand.expand(64, -1), atol=1e-5, rtol=0)
    assert float(env.truth()["linear_velocity"].abs().max()) == 0.0
    easy = VecEnv(task, 512)
    standing = (easy.drawn["initial/standing"] >= 0.8).float().mean()
    assert 0.1 < float(standing) < 0.3


@pytest.mark.parametrize("name", ["g1-stand", "g1-walk"])
def test_a_push_changes_the_velocity_by_half_a_metre_a_second(name: str) -> None:
    task = load_task(name)
    env = VecEnv(task, 128, evaluation=True)
    begun, x, y = env.draws.goal[:, task.pushed : task.pushed + 3].unbind(-1)
    np.testing.assert_allclose(torch.hypot(x, y) * PUSH_TIME / 33.341, 0.5, rtol=1e-3)
    for time, on in ((begun - 0.01, False), (begun + 0.5 * PUSH_TIME, True)):
        force = task.disturb(time, env.draws.goal * 1.0)["force"]
        alone = (env.draws.goal[:, task.pushed + 3 :: 3] - time[:, None]).abs().amin(1) > 0.3
        np.testing.assert_allclose(force[alone][:, 0], (x if on else 0 * x)[alone], atol=1e-3)


def test_a_robot_that_strides_and_survives_is_asked_for_more_and_one_that_stands_is_not(task: LegsWalk) -> None:
    env = VecEnv(task, 4)
    good = 0.8 * PERIOD * task.weights["stride"]
    stride, survived = torch.tensor([good, 0.0, good, 0.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    terms = {name: torch.zeros(4) for name in task.spec.reward} | {"stride": stride, "survived": survived}
    level = 0.5 * torch.ones(4, len(env.levels.names))
    moved = env.levels.moved(level, terms)
    for name in ("command/x", "command/yaw", "push/speed", "initial/standing"):
        column = env.levels.names.index(name)
        np.testing.assert_allclose(moved[:, column], [0.6, 0.5, 0.5, 0.4], atol=1e-6)


@pytest.mark.parametrize("name", ["g1-stand", "g1-walk"])
def test_robots_that_only_repeat_the_plan_fall(name: str) -> None:
    """Zero actions fail within an episode, so there is something to learn, and the causes are told."""
    task = load_task(name)
    env, memory = VecEnv(task, 32), task.first_memory(32)
    failed = torch.zeros(32, dtype=torch.bool)
    for _ in range(600):
        signals = env.signals()
        commands, memory = task.act(torch.zeros(32, 12), signals, memory)
        failed |= env.step(commands).failed
        if failed.all():
            break
    assert failed.float().mean() > 0.9


def test_another_robot_stands_and_one_that_can_not_is_refused() -> None:
    task = load_task("g1-stand", "go2")
    assert task.action_size == 12
    assert load_task("g1-walk", "go2").stride.sets == [-1.0, 1.0, 1.0, -1.0]  # FR, FL, RR, RL: diagonals
    with pytest.raises(CardError, match="g1 has 2 feet; expected four legs of three joints each"):
        load_task("go2-flat", "g1")
