"""Getting up: how robots begin, and when they have failed."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.legged.recover import REACH, TIME, attitude
from robo_rl.sim.tasks.loading import load_task


def test_attitudes_are_uniform_over_all_rotations() -> None:
    """Of a rotation drawn uniformly, every element of the matrix has mean 0 and variance 1/3."""
    tilt, lean, yaw = torch.rand(3, 20000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    quaternions = attitude(tilt, 2 * np.pi * lean, 2 * np.pi * yaw)
    np.testing.assert_allclose(quaternions.norm(dim=1), 1.0, atol=1e-6)
    matrices = np.zeros((len(quaternions), 9))
    for row, (x, y, z, w) in zip(matrices, quaternions.tolist(), strict=True):
        mujoco.mju_quat2Mat(row, np.array([w, x, y, z]))
    np.testing.assert_allclose(matrices.mean(0), 0.0, atol=0.02)
    np.testing.assert_allclose(matrices.var(0), 1 / 3, atol=0.01)


def test_robots_are_dropped_from_where_nothing_touches_the_ground() -> None:
    env = VecEnv(load_task("go2-recover"), 200, seed=1, evaluation=True)
    plant, data = env.plant, mujoco.MjData(env.plant.model)
    truth = plant.truth()
    tilts = env.task.errors(env.truth(torch.arange(200)))["tilt_error"]
    assert tilts.max() > 2.8
    for robot in range(200):
        x, y, z, w = truth["orientation"][robot].tolist()
        data.qpos[plant.indices.free_position :][:7] = [*truth["position"][robot].tolist(), w, x, y, z]
        data.qpos[plant.indices.position] = truth["joint_position"][robot]
        mujoco.mj_forward(plant.model, data)
        assert data.ncon == 0
        assert (data.geom_xpos[:, 2] >= 0.0).all()


def test_tilt_begins_small_and_ends_upside_down() -> None:
    task = load_task("go2-recover")
    begun, ended = (VecEnv(task, 400, seed=2, evaluation=evaluation) for evaluation in (False, True))
    tilts = [env.task.errors(env.truth(torch.arange(400)))["tilt_error"].max() for env in (begun, ended)]
    assert 0.5 < tilts[0] < np.arccos(0.8) + 1e-3  # 0.1 is half of one less the cosine
    assert tilts[1] > 2.9


def test_targets_are_told_from_where_the_joints_were() -> None:
    task = load_task("go2-recover")
    memory = task.first_memory(2)
    memory["joint_history"][:, 0] += 0.2
    action = torch.linspace(-0.4, 0.4, 12).expand(2, -1)
    target = task.command(action, memory)["joint_position_target"]
    torch.testing.assert_close(target, memory["joint_history"][:, 0] + 0.5 * action)
    assert (task.command(100.0 * action.abs(), memory)["joint_position_target"] == task.upper).all()


def test_who_stands_does_not_fail_and_who_lies_does_when_the_time_is_over() -> None:
    env = LearningEnv(VecEnv(load_task("go2-recover"), 4, seed=0, fixed={"initial/easy": 0.0}))
    plant = env.env.plant
    joints = env.env.task.stand
    upside_down = torch.tensor([[1.0, 0.0, 0.0, 0.0]])  # half a turn about x
    plant.place(torch.tensor([2, 3]), position=torch.tensor([[0.0, 0.0, 0.2]]), orientation=upside_down)

    def stay() -> torch.Tensor:
        return (joints[:1] - env.memory["joint_history"][:, 0]).float() / REACH

    failures = torch.stack([env.step(stay()).failed for _ in range(round(TIME / 0.02) + 2)])
    assert failures[:, :2].sum() == 0
    assert failures[:-3, 2:].sum() == 0
    assert failures[-3:, 2:].sum(0).tolist() == [1, 1]
