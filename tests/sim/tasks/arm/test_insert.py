"""The insertion task: where episodes begin, what counts as inserted, how hard the arm presses, and its script."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.controllers.skills.inserting import WIDEST
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.insert import BELOW, DEEP, HELD, HOLE, KNOWN, LENGTH, RIM, Insert

N = 32


@pytest.fixture(scope="module")
def task() -> Insert:
    return Insert()


@pytest.fixture(scope="module")
def env(task: Insert) -> VecEnv:
    return VecEnv(task, N, seed=3, evaluation=True)


def test_episodes_begin_with_the_peg_in_the_hand_above_the_block(env: VecEnv) -> None:
    env.seed(3)
    env.reset()
    truth = env.truth(torch.arange(N))
    end = truth["peg_position"][:, 2] - LENGTH
    assert float((end - RIM).min()) > 0.005
    held = truth["tool_position"] - truth["peg_position"]
    assert float((held - torch.tensor([0.0, 0.0, BELOW])).abs().max()) < 0.004
    away = (truth["tool_position"] - truth["hole_position"])[:, :2]
    assert float(away.abs().max()) < 0.045
    assert 0.01 < float(away.abs().mean()) < 0.03
    measured = env.signals()["hole_position"] - truth["hole_position"]
    assert float(measured.abs().max()) < KNOWN + 0.002
    assert float(measured.abs().mean()) > 0.3 * KNOWN


def test_the_tool_can_search_around_every_hole(task: Insert) -> None:
    env = VecEnv(task, 256, seed=7, evaluation=True)
    hole = env.truth(torch.arange(256))["hole_position"][:, :2]
    low, high = torch.tensor(task.space.lower[:2]), torch.tensor(task.space.upper[:2])
    assert float(torch.minimum(hole - low, high - hole).min()) > 2.0 * KNOWN + WIDEST


def test_the_peg_is_narrower_than_the_hole_by_the_clearance(task: Insert) -> None:
    for clearance in (0.003, 0.001):
        env = VecEnv(task, 2, seed=1, fixed={"clearance": clearance})
        width = 2.0 * env.plant.param("object_size")[:, 0, :2]
        torch.testing.assert_close(2.0 * HOLE - width, torch.full_like(width, clearance), atol=1e-6, rtol=0.0)


def test_a_peg_counts_as_inserted_only_deep_in_the_hole_and_for_a_while(task: Insert) -> None:
    hole = torch.tensor([[0.5, 0.1, RIM]])

    def truth(x: float, depth: float, steps: float) -> dict[str, torch.Tensor]:
        return {
            "hole_position": hole,
            "peg_position": hole + torch.tensor([[x, 0.0, LENGTH - depth]]),
            "peg_orientation": torch.tensor([[0.0, 0.0, 0.0, 1.0]]),
            "been_in": torch.full((1, 1), steps),
        }

    assert bool(task.succeeded(truth(0.0, DEEP + 0.001, HELD)))
    assert not bool(task.succeeded(truth(0.0, DEEP - 0.001, HELD)))
    assert not bool(task.succeeded(truth(2.0 * HOLE, DEEP + 0.001, HELD)))  # beside the block's hole
    assert not bool(task.succeeded(truth(0.0, DEEP + 0.001, 0.0)))
    assert float(task.advance(truth(0.0, DEEP + 0.001, 1.0), torch.zeros(1, 1))) == 2.0
    assert float(task.advance(truth(0.0, 0.0, 3.0), torch.zeros(1, 1))) == 0.0


def test_the_static_force_on_the_block_is_at_most_stiffness_times_clip(task: Insert) -> None:
    n = 4
    nominal = dict.fromkeys(("stiffness", "damping", "armature", "peg_mass", "peg_friction"), 1.0)  # as in the model
    env = VecEnv(task, n, seed=4, fixed=nominal)
    law = task.card.impedance
    assert law is not None
    allowed = law.stiffness[0] * law.clip[0]  # N
    beside = env.truth(torch.arange(n))["hole_position"] + torch.tensor([0.02, 0.0, 0.0])  # on a wall of the block
    forces = []
    for step in range(80):
        target = beside + torch.tensor([0.0, 0.0, 0.06 if step < 30 else -1.0])
        env.step({"tool_position_target": target, "gripper_position_target": torch.zeros(n, 1)})
        if step >= 65:
            forces.append([pressed(env, i) for i in range(n)])
    static = np.mean(forces, 0)
    assert static.max() <= 1.1 * allowed
    assert static.min() > 0.5 * allowed  # it does press


def pressed(env: VecEnv, i: int) -> float:
    """N, upwards on the peg, by whatever is not the hand."""
    model = env.plant.model
    data, state = mujoco.MjData(model), env.plant.state(torch.tensor([i]))
    data.qpos[:], data.qvel[:], data.ctrl[:] = (x[0].numpy() for x in (state.qpos, state.qvel, state.ctrl))
    mujoco.mj_forward(model, data)
    peg, pads = model.geom("peg").id, {model.geom(name).id for name in env.task.spec.robot.gripper.pads}
    total, wrench = 0.0, np.zeros(6)
    for k, contact in enumerate(data.contact):
        if peg in contact.geom and not pads & set(contact.geom.tolist()):
            mujoco.mj_contactForce(model, data, k, wrench)
            force = contact.frame.reshape(3, 3).T @ wrench[:3]
            total += float(force[2]) * (1.0 if contact.geom[1] == peg else -1.0)
    return total


def test_an_arm_without_an_impedance_is_refused() -> None:
    with pytest.raises(CardError, match=r"has no \[impedance\]"):
        Insert(load_arm("so101"))


@pytest.mark.slow
def test_the_script_inserts_most_pegs_with_3_mm_of_clearance(task: Insert) -> None:
    n = 48
    env, script = VecEnv(task, n, seed=11, evaluation=True), task.controller()
    state, signals = torch.from_numpy(script.first_state(n)), env.signals()
    won, over = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
    while not over.all():
        commands, state = script(signals, state)
        step = env.step(commands)
        won |= ~over & step.succeeded
        over[step.ids] = True
        signals = step.signals
    assert float(won.float().mean()) > 0.9
    assert env.diverged == 0
