"""Rigid bodies by MuJoCo Warp, here on the CPU: against MuJoCo itself, and what may not matter.

Warp compiles its kernels when they are first used (a minute and a half of one core) and keeps them on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.loading import load_task

if TYPE_CHECKING:
    from robo_rl.sim.plants.warp import WarpPlant

pytestmark = pytest.mark.slow

CARD = load_legged("go2")
STAND = torch.tensor([[joint.stand for joint in CARD.joints]])
N = 3
TOLERANCE = {
    "position": 1e-4, "orientation": 1e-4, "linear_velocity": 1e-3, "angular_velocity": 5e-3, "joint_position": 2e-4,
    "joint_velocity": 1e-2, "joint_torque": 1e-2, "foot_position": 1e-4, "foot_velocity": 5e-3, "foot_force": 0.5,
}  # fmt: skip
"""Greatest difference between float32 and float64 over one second of trampling: m, m/s, rad, rad/s, N m, N."""


@pytest.fixture(scope="module")
def warp_plant() -> type[WarpPlant]:
    """Imported when a test needs it: that takes seconds of every process that looks for tests."""
    pytest.importorskip("mujoco_warp", reason="mujoco_warp is missing: pip install 'robo-rl[dev]'")
    from robo_rl.sim.plants.warp import WarpPlant

    return WarpPlant


@pytest.fixture(scope="module")
def warp(warp_plant: type[WarpPlant]) -> WarpPlant:
    return warp_plant(CARD.mechanism, N, 0.02, device="cpu")


def draw_parameters(plant: WarpPlant | MujocoPlant) -> None:
    """Other parameters for each of N robots, by the same names in both plants."""
    n = plant.n
    spread = torch.linspace(0.0, 1.0, n)[:, None]
    for name in ("joint_friction", "armature", "stiffness", "damping", "resistance"):
        value = getattr(plant.nominal, name)
        plant.param(name)[:] = (value * (0.8 + 0.4 * spread)).to(value.dtype)
    mass, centers = plant.param("mass"), plant.param("center_of_mass")
    mass[:] = plant.nominal.mass
    mass[:, 0] += spread[:, 0].to(mass.dtype)
    centers[:] = plant.nominal.center_of_mass
    centers[:, 0, 0] += 0.03 * spread[:, 0].to(centers.dtype)
    plant.param("ground_friction")[:] = (0.4 + 0.8 * spread[:, 0]).to(mass.dtype)
    plant.param("command_delay")[:] = (0.02 * spread).to(mass.dtype)


def place(plant: WarpPlant | MujocoPlant, ids: torch.Tensor) -> None:
    m = len(ids)
    turn = torch.tensor([[0.02, -0.03, 0.1, 1.0]]).expand(m, -1)
    plant.place(
        ids,
        torch.tensor([[0.1, 0.2, plant.height + 0.02]]).expand(m, -1),
        turn / turn.norm(dim=1, keepdim=True),
        torch.tensor([[0.3, 0.1, 0.0]]).expand(m, -1),
        torch.tensor([[0.2, -0.1, 0.3]]).expand(m, -1),
        (STAND + 0.05).expand(m, -1),
        torch.full((m, 12), 0.1),
    )


def target(k: int) -> torch.Tensor:
    return (STAND + 0.3 * torch.sin(0.3 * k + torch.arange(12.0))).expand(N, -1)


def begin(plant: WarpPlant | MujocoPlant) -> None:
    draw_parameters(plant)
    place(plant, torch.arange(plant.n))


def states(plant: WarpPlant | MujocoPlant) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in plant.truth().items()}


def test_warp_and_mujoco_agree_over_a_second_for_robots_with_parameters_and_delays_of_their_own(
    warp: WarpPlant,
) -> None:
    cpu = MujocoPlant(CARD.mechanism, N, 0.02)
    for plant in (warp, cpu):
        begin(plant)
    for k in range(50):
        for plant in (warp, cpu):
            plant.param("force")[:] = 40.0 if 20 <= k < 25 else 0.0
            plant.step({"joint_position_target": target(k)})
        for name, value in cpu.truth().items():
            difference = float((warp.truth()[name] - value).abs().max())
            assert difference < TOLERANCE[name], (k, name)
    spread = cpu.truth()["position"]
    assert float((spread[0] - spread[2]).norm()) > 0.01  # robots that differ do move differently


def test_parameters_have_the_same_names_and_nominal_values_in_both_plants(warp: WarpPlant) -> None:
    cpu = MujocoPlant(CARD.mechanism, N, 0.02)
    for name, value in cpu.nominal._asdict().items():
        torch.testing.assert_close(getattr(warp.nominal, name), value.float(), msg=name)
        assert warp.param(name).shape == cpu.param(name).shape, name


def test_robots_that_begin_change_nothing_for_those_under_way(warp: WarpPlant) -> None:
    begin(warp)
    for k in range(10):
        warp.step({"joint_position_target": target(k)})
    undisturbed = warp.save()
    kept = {name: value.clone() for name, value in undisturbed.items()}
    warp.step({"joint_position_target": target(10)})
    expected = states(warp)
    warp.load(kept)
    warp.param("mass")[1] *= 1.3
    place(warp, torch.tensor([1]))
    warp.step({"joint_position_target": target(10)})
    for name, value in expected.items():
        assert torch.equal(warp.truth()[name][[0, 2]], value[[0, 2]]), name
        assert not torch.equal(warp.truth()[name][1], value[1]), name


def test_a_robot_alone_moves_as_it_does_among_others_and_a_saved_plant_goes_on_bit_by_bit(
    warp_plant: type[WarpPlant], warp: WarpPlant
) -> None:
    begin(warp)
    alone = warp_plant(CARD.mechanism, 1, 0.02, device="cpu")
    for name in warp.parameters._fields:
        alone.param(name)[:] = warp.param(name)[2:]
    place(alone, torch.arange(1))
    saved = None
    for k in range(20):
        if k == 10:
            saved = {name: value.clone() for name, value in alone.save().items()}
        for plant in (warp, alone):
            plant.step({"joint_position_target": target(k)[: plant.n]})
    for name, value in alone.truth().items():
        assert torch.equal(value, warp.truth()[name][2:]), name
    last = states(alone)
    assert saved is not None
    alone.load(saved)
    for k in range(10, 20):
        alone.step({"joint_position_target": target(k)[:1]})
    for name, value in last.items():
        assert torch.equal(alone.truth()[name], value), name


def test_more_robots_than_can_begin_at_once_begin_in_turns(warp: WarpPlant) -> None:
    begin(warp)
    expected = states(warp)
    few, warp._few.n = warp._few.n, 2
    try:
        begin(warp)
    finally:
        warp._few.n = few
    for name, value in expected.items():
        assert torch.equal(warp.truth()[name], value), name


def test_tensors_on_another_device_are_refused_not_copied(warp: WarpPlant) -> None:
    elsewhere = torch.zeros(N, 12, device="meta")
    with pytest.raises(ValueError, match="joint_position_target is on meta; expected cpu"):
        warp.step({"joint_position_target": elsewhere})
    with pytest.raises(KeyError, match="no parameter 'colour'"):
        warp.param("colour")


def test_the_task_s_episodes_are_the_same_on_warp_as_on_mujoco(warp_plant: type[WarpPlant]) -> None:
    task = load_task("go2-flat")
    envs = [
        VecEnv(task, N, seed=3, make_plant=lambda n: warp_plant(CARD.mechanism, n, 0.02, device="cpu")),
        VecEnv(task, N, seed=3),
    ]
    for _ in range(15):
        steps = [env.step({"joint_position_target": STAND.expand(N, -1)}) for env in envs]
        torch.testing.assert_close(steps[0].reward, steps[1].reward, atol=1e-3, rtol=1e-3)
        for name, value in steps[1].signals.items():
            torch.testing.assert_close(steps[0].signals[name], value, atol=5e-3, rtol=1e-3, msg=name)
    assert not any(step.failed.any() for step in steps)


def test_a_policy_walks_on_every_kind_of_rough_ground_as_on_mujoco(warp_plant: type[WarpPlant]) -> None:
    loaded, n = load("zoo:go2-rough", None, None), 7
    fixed: dict[str, float | torch.Tensor] = {
        "ground/kind": (torch.arange(n) + 0.5) / 7,
        "ground/difficulty": 0.9,
        "command/x": 0.6,
        "initial/place": 0.3,
    }
    plants = (lambda n: loaded.task.simulate(warp_plant, n, device="cpu"), loaded.task.make_plant)
    after = []
    for make_plant in plants:
        env = VecEnv(loaded.task, n, seed=3, fixed=fixed, make_plant=make_plant)
        signals, state, begun = env.signals(), loaded.policy.initial_state(n), env.plant.truth()["position"].clone()
        for _ in range(40):
            commands, state = loaded.policy(signals, state)
            step = env.step(commands)
            signals = step.signals
        assert not step.failed.any()
        after.append(env.plant.truth())
    assert float((after[1]["position"][:, :2] - begun[:, :2]).norm(dim=1).median()) > 0.25
    for name, apart in {"position": 0.002, "foot_height": 0.01, "height_scan": 0.15}.items():  # m; steps have edges
        torch.testing.assert_close(after[0][name], after[1][name], atol=apart, rtol=0.0, msg=name)
