"""The generated stride: pendulum against its differential equation, feet against forward kinematics, its mirror."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.accelerate.fuse import fuse
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.footsteps import centre_of_mass, divergence_rate, divergent_at_steps
from robo_rl.sim.tasks.legged.leg_kinematics import reach
from robo_rl.sim.tasks.legged.limbs import foot_pose, standing
from robo_rl.sim.tasks.legged.stride import PHASES, TIME, Stride

VELOCITIES = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [-0.1, 0.2, 0.3], [0.6, -0.1, -0.4]])


@pytest.fixture(scope="module")
def card() -> LeggedCard:
    return load_legged("g1")


@pytest.fixture(scope="module")
def stride(card: LeggedCard) -> Stride:
    return Stride(card)


def clock(phases: np.ndarray) -> torch.Tensor:
    angle = 2 * np.pi * phases / PHASES
    return torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], -1)).float()


# --- the pendulum -------------------------------------------------------------------------------------------------


def test_on_the_spot_the_divergent_component_is_the_closed_form_of_a_periodic_gait() -> None:
    """Between supports at ±d it repeats with x_0 = ±d tanh(w T / 2)."""
    rate, step, d = divergence_rate(0.66), 0.4, 0.1
    supports = np.array([[0.0, d * (-1) ** i] for i in range(40)])
    found = divergent_at_steps(supports, rate, step)
    expected = d * math.tanh(rate * step / 2)
    np.testing.assert_allclose(found[:20, 1], [expected * (-1) ** i for i in range(20)], atol=1e-9)


def test_the_centre_of_mass_obeys_the_pendulum_s_equation() -> None:
    rate, step = divergence_rate(0.66), 0.4
    supports = np.array([[0.2 * i, 0.1 * (-1) ** i] for i in range(6)])
    divergent, times = divergent_at_steps(supports, rate, step), np.linspace(0, step, 9)
    places, speeds = centre_of_mass(supports, divergent, rate, step, times)
    now = np.concatenate([places[0, 0], speeds[0, 0]])
    for i, support in enumerate(supports):
        solved = solve_ivp(
            lambda _, y, p=support: np.concatenate([y[2:], rate**2 * (y[:2] - p)]), (0, step), now, t_eval=times,
            rtol=1e-10, atol=1e-12,
        ).y.T  # fmt: skip
        np.testing.assert_allclose(places[i], solved[:, :2], atol=1e-7)
        np.testing.assert_allclose(speeds[i], solved[:, 2:], atol=1e-6)
        now = solved[-1]


def test_its_divergent_component_is_the_one_that_was_planned() -> None:
    rate, step = 3.8, 0.4
    supports = np.array([[0.2 * i, 0.1 * (-1) ** i] for i in range(8)])
    divergent = divergent_at_steps(supports, rate, step)
    places, speeds = centre_of_mass(supports, divergent, rate, step, np.array([0.0]))
    np.testing.assert_allclose((places + speeds / rate)[1:, 0], divergent[1:], atol=1e-12)


# --- feet ---------------------------------------------------------------------------------------------------------


def test_inverse_kinematics_finds_feet_that_forward_kinematics_puts_there(card: LeggedCard) -> None:
    model, data, indices = standing(card)
    truth, rng = mujoco.MjData(model), np.random.default_rng(0)
    limits = np.array([[joint.lower, joint.upper] for joint in card.joints])[:6]
    stand = np.array([joint.stand for joint in card.joints])
    for _ in range(20):
        truth.qpos[:] = data.qpos
        truth.qpos[indices.position] = stand
        truth.qpos[indices.position[:6]] = np.clip(
            stand[:6] + rng.uniform(-0.25, 0.25, 6) + [0, 0, 0, 0.3, 0, 0], *limits.T
        )
        mujoco.mj_forward(model, truth)
        place, turn = foot_pose(model, truth, "left_foot")
        data.qpos[indices.position] = stand
        off = reach(model, data, "left_foot", indices.position[:6], place, turn, limits)
        mujoco.mj_forward(model, data)
        found, turned = foot_pose(model, data, "left_foot")
        assert off < 1e-4
        np.testing.assert_allclose(found, place, atol=1e-4)
        np.testing.assert_allclose(turned, turn, atol=1e-3)


@pytest.mark.parametrize("velocity", VELOCITIES.tolist())
def test_joint_angles_put_both_feet_where_the_plan_has_them(
    stride: Stride, card: LeggedCard, velocity: list[float]
) -> None:
    """Within what the sum loses of the table: its misfit, at the end of a leg."""
    model, data, indices = standing(card)
    plan = stride.plan(np.array(velocity))
    angles, _ = stride.reference(clock(np.arange(PHASES)), torch.tensor([velocity] * PHASES))
    for phase in range(PHASES):
        data.qpos[indices.position] = angles[phase].numpy()
        mujoco.mj_forward(model, data)
        for foot, name in enumerate(card.feet):
            np.testing.assert_allclose(foot_pose(model, data, name)[0], plan.feet[phase, foot], atol=0.02)
    assert stride.misfit < 0.03


def test_feet_that_stand_do_not_slip(stride: Stride) -> None:
    """Seen from the base, a foot on the ground moves as the base's velocity and turn make it."""
    for velocity in VELOCITIES:
        plan, period = stride.plan(velocity), TIME / PHASES
        for foot in range(2):
            for phase in range(1, PHASES - 1):
                around = plan.feet[phase - 1 : phase + 2, foot]
                if phase % (PHASES // 2) == 0 or (around[:, 2] + stride.height).max() > 0:
                    continue  # the centre of mass is pushed from another foot, or this one is in the air
                moved = (around[2, :2] - around[0, :2]) / (2 * period)
                x, y = around[1, :2]
                expected = -plan.velocity[phase] - velocity[2] * np.array([-y, x])
                np.testing.assert_allclose(moved, expected, atol=0.01)


def test_each_foot_is_in_the_air_for_the_single_support_of_the_other(stride: Stride) -> None:
    swing = stride.swing(torch.sin(2 * math.pi * torch.arange(PHASES) / PHASES)[:, None])
    assert ((swing > 1e-6).sum(0) == 15).all()  # 80 % of half of 40 phases, less the ends, where its height is 0
    assert not ((swing > 1e-6).all(1)).any()
    plan = stride.plan(np.zeros(3))
    np.testing.assert_allclose(plan.feet[..., 2] + stride.height, stride.lift * swing.numpy(), atol=1e-6)


# --- the sum ------------------------------------------------------------------------------------------------------


def test_speeds_are_the_slopes_of_the_angles(stride: Stride) -> None:
    velocity = torch.from_numpy(VELOCITIES).float()
    for phase in np.linspace(0, PHASES, 23):
        before, after = (stride.reference(clock(np.full(4, phase + d)), velocity)[0] for d in (-0.05, 0.05))
        _, speeds = stride.reference(clock(np.full(4, phase)), velocity)
        torch.testing.assert_close((after - before) / (0.1 * TIME / PHASES), speeds, atol=0.02, rtol=0.01)


def test_faster_than_the_table_is_its_fastest(stride: Stride) -> None:
    at = clock(np.array([7.0]))
    fast, faster = (stride.reference(at, torch.tensor([[x, 0.0, 0.0]]))[0] for x in (float(stride.fastest[0]), 2.0))
    torch.testing.assert_close(fast, faster)


def test_the_second_half_is_the_mirror_image_of_the_first(stride: Stride) -> None:
    opposite, signs = list(stride.limbs.opposite), np.array(stride.limbs.signs)
    images = [np.abs(stride.velocities - v * [1, -1, -1]).sum(1).argmin() for v in stride.velocities]
    later = np.roll(stride.table, PHASES // 2, 1)
    np.testing.assert_allclose(later[..., opposite] * signs, stride.table[images], atol=1e-9)


def test_the_native_sum_is_torch_s(stride: Stride) -> None:
    velocity, at = torch.from_numpy(VELOCITIES).float(), clock(np.array([0.0, 3.0, 21.5, 39.0]))
    for ours, theirs in zip(fuse(stride.reference)(at, velocity), stride.reference(at, velocity), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
