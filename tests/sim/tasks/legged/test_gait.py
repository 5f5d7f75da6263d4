"""The trot and the mirror: both sides of the robot are one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.tasks.legged.gait import JOINTS, PACE
from robo_rl.sim.tasks.legged.walk import HISTORY, PERIOD, FlatWalk

N = 64
POLAR, AXIAL = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([-1.0, 1.0, -1.0])
QUATERNION = torch.tensor([-1.0, 1.0, -1.0, 1.0])  # x, y, z, w: the axis of a turn is axial


@pytest.fixture(scope="module")
def task() -> FlatWalk:
    return FlatWalk()


def legs(task: FlatWalk, values: Tensor) -> Tensor:
    """Joints (n, 12 k) of the robot in the mirror."""
    return task.gait.mirrored(values, -torch.ones(len(values), 1), JOINTS)


def signals_in_mirror(task: FlatWalk, signals: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        "orientation": signals["orientation"] * QUATERNION,
        "angular_velocity": signals["angular_velocity"] * AXIAL,
        "joint_position": legs(task, signals["joint_position"]),
        "joint_velocity": legs(task, signals["joint_velocity"]),
        "linear_velocity_command": signals["linear_velocity_command"] * POLAR[:2],
        "yaw_rate_command": -signals["yaw_rate_command"],
    }


def memory_in_mirror(task: FlatWalk, memory: dict[str, Tensor]) -> dict[str, Tensor]:
    histories = {name: legs(task, memory[name].flatten(1)).unflatten(1, (HISTORY, 12)) for name in list(memory)[:2]}
    return {**histories, "gait": memory["gait"] * torch.tensor([-1.0, -1.0, 1.0, -1.0, -1.0])}  # half a stride on


def some_moments(task: FlatWalk, seed: int = 0) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Signals and memories of robots anywhere in their stride, at whole control steps."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(N, *shape, generator=generator)

    signals = {signal.name: random(signal.size) for signal in task.spec.signals}
    signals["orientation"] /= signals["orientation"].norm(dim=-1, keepdim=True)
    angle = 2 * math.pi * PACE * PERIOD * torch.arange(N)
    clock = torch.stack([torch.cos(angle), torch.sin(angle)], -1)
    histories = {name: random(HISTORY, 12) for name in ("joint_history", "target_history")}
    return signals, {**histories, "gait": torch.cat([clock, random(3)], -1)}


def test_the_mirror_undoes_itself_and_exchanges_left_and_right(task: FlatWalk) -> None:
    values = torch.arange(1.0, 25.0)[None]
    twice = legs(task, legs(task, values))
    assert torch.equal(twice, values)
    once = dict(zip(task.card.joint_names, legs(task, values)[0].tolist(), strict=False))
    place = {name: float(i + 1) for i, name in enumerate(task.card.joint_names)}
    assert once["FL_hip_joint"] == -place["FR_hip_joint"]
    assert once["FL_thigh_joint"] == place["FR_thigh_joint"]
    assert once["RR_calf_joint"] == place["RL_calf_joint"]


def test_a_policy_does_in_the_mirror_what_the_mirror_shows(task: FlatWalk) -> None:
    torch.manual_seed(0)
    policy = PolicyGraph(task, (32, 32), "elu", False)
    signals, memory = some_moments(task)
    with torch.no_grad():
        commands, state = policy(signals, policy.pack(memory))
        shown, shown_state = policy(signals_in_mirror(task, signals), policy.pack(memory_in_mirror(task, memory)))
    target = commands["joint_position_target"]
    np.testing.assert_array_equal(legs(task, target), shown["joint_position_target"])
    next_memory = policy.pack(memory_in_mirror(task, policy.unpack(state)))
    np.testing.assert_allclose(next_memory, shown_state, atol=1e-6)
    assert float((legs(task, target) - target).abs().max()) > 0.1  # the moments themselves are not symmetric


def test_the_mirror_is_never_taken_up_where_rounding_decides(task: FlatWalk) -> None:
    clock = torch.tensor([[1.0, 0.0]])
    sides, margins = [], []
    for _ in range(20_000):
        sides.append(float(task.gait.side(clock)))
        angle = math.atan2(float(clock[0, 1]), float(clock[0, 0])) + math.pi / 20
        margins.append(abs(math.sin(angle)))
        clock = task.gait.advance(clock, PERIOD)
    assert min(margins) > 0.1
    assert sides[:20] == [1.0] * 10 + [-1.0] * 10
    assert sides[-20:] == sides[:20]


def test_physics_commutes_with_the_mirror(task: FlatWalk) -> None:
    """To the few thousandths by which the inertia of the real robot's trunk is not symmetric."""
    generator = torch.Generator().manual_seed(1)
    one, two = (MujocoPlant(task.card.mechanism, 8, PERIOD) for _ in range(2))
    ids, still = torch.arange(8), torch.zeros(8, 3)
    tilt = 0.1 * torch.randn(8, 3, generator=generator)
    orientation = torch.cat([tilt, torch.ones(8, 1)], -1)
    orientation /= orientation.norm(dim=-1, keepdim=True)
    velocity = 0.3 * torch.randn(8, 3, generator=generator)
    joints = task.stand + 0.2 * torch.randn(8, 12, generator=generator)
    place = torch.cat([torch.zeros(8, 2), torch.full((8, 1), one.height)], -1)
    one.place(ids, place, orientation, velocity, still, joints, 0 * joints)
    two.place(ids, place, orientation * QUATERNION, velocity * POLAR, still, legs(task, joints), 0 * joints)
    for _ in range(15):
        targets = task.stand + 0.3 * torch.randn(8, 12, generator=generator)
        one.step({"joint_position_target": targets})
        two.step({"joint_position_target": legs(task, targets)})
    found, shown = one.truth(), two.truth()
    assert float((found["position"] - shown["position"])[:, 1].abs().max()) > 0.03  # they are not the same robots
    np.testing.assert_allclose(found["position"] * POLAR, shown["position"], atol=0.005)
    np.testing.assert_allclose(found["orientation"] * QUATERNION, shown["orientation"], atol=0.005)
    np.testing.assert_allclose(legs(task, found["joint_position"]), shown["joint_position"], atol=0.01)


def test_the_critic_sees_the_same_in_the_mirror(task: FlatWalk) -> None:
    env = VecEnv(task, N, 0)
    truth, signals = env.truth(torch.arange(N)), some_moments(task)[0]
    angle = 2 * math.pi * PACE * PERIOD * torch.arange(N)
    truth |= {**signals, "clock": torch.stack([torch.cos(angle), torch.sin(angle)], -1)}
    parameters = env.plant.parameters
    drawn = type(parameters)(*(value.float() for value in parameters))
    pushed = drawn._replace(force=torch.randn(N, 3, generator=torch.Generator().manual_seed(0)))
    side = -torch.ones(N, 1)
    feet = [task.gait.mirrored(truth["foot_position"][:, i::3], side) * sign for i, sign in enumerate(POLAR)]
    shown = {
        **truth,
        **signals_in_mirror(task, signals),
        "linear_velocity": truth["linear_velocity"] * POLAR,
        "joint_torque": legs(task, truth["joint_torque"]),
        "foot_position": torch.stack(feet, -1).flatten(1),
        "foot_force": task.gait.mirrored(truth["foot_force"], side),
        "clock": -truth["clock"],
    }
    seen = task.privileged(truth, pushed)
    np.testing.assert_allclose(seen, task.privileged(shown, pushed._replace(force=pushed.force * POLAR)), atol=1e-5)
