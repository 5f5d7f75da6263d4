"""States of robots: saved, moved to another place or another plant, and set again, they repeat the future."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.articulated import ArticulatedState
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.drawing import draw
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP, Physics
from robo_rl.sim.robots.legged import load_legged
from tests.suite import representatives

GO2 = load_legged("go2")
CASES = {
    "go2": (lambda machines: GO2.mechanism, Physics(contacts="all")),
    "go2 with warm start": (lambda machines: GO2.mechanism, Physics(solver="cg")),
    "arm": (lambda machines: machines.arm(law="position"), Physics(timestep=0.005)),
    "six_axes": (lambda machines: machines.six_axes(), Physics(timestep=0.005, contacts="all")),
    "gripper": (lambda machines: machines.gripper(), GRASP),
    "watcher": (lambda machines: machines.watcher(), Physics(timestep=0.005, contacts="all")),
}
N, K = 5, 30
Case = tuple[Any, Physics]


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest, machines) -> Case:
    """A robot and physics."""
    make, physics = CASES[request.param]
    return make(machines), physics


def randomize(plant: Any) -> None:
    """Every robot with parameters of its own."""
    spread = torch.linspace(0.8, 1.2, plant.n)
    for name in ("mass", "stiffness", "joint_friction", "object_mass", "object_size", "impedance_stiffness"):
        value = plant.param(name)
        value *= spread.to(value).reshape(-1, *[1] * (value.ndim - 1))
    for name in ("command_delay", "impedance_delay"):
        if plant.param(name).shape[1]:
            plant.param(name)[:] = (0.01 * torch.arange(plant.n)).to(plant.param(name))[:, None]
    plant.place(torch.arange(plant.n))


def commands(plant: Any, k: int) -> dict[str, torch.Tensor]:
    """Something that moves all of a robot, other for each of N."""
    random = torch.Generator().manual_seed(k)
    told = {}
    for group in plant.mechanism.groups:
        if group.law != "none":
            home = torch.tensor([[joint.home for joint in group.joints]])
            scale = 0.01 if group.slides else 0.3
            told[group.command] = home + scale * torch.randn(N, home.shape[1], generator=random)
    for impedance in plant.mechanism.impedances:
        told[f"{impedance.name}_position_target"] = torch.tensor([0.5, 0.0, 0.2]) + 0.2 * torch.randn(
            N, 3, generator=random
        )
    return told


def chosen(told: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, torch.Tensor]:
    return {name: value[rows] for name, value in told.items()}


def goes_on_alike(make, case: Case, folder: Path) -> None:
    """Run, save, run on; then set the states in other places of another plant, and run there."""
    mechanism, physics = case
    first, second = make(mechanism, N, 0.02, physics), make(mechanism, N, 0.02, physics)
    randomize(first)
    for k in range(K):
        first.step(commands(first, k))
        if not mechanism.fixed and k == K - 2:
            first.param("force")[1, 0] = 20.0  # a push that is under way
    everyone = torch.arange(N)
    save_file({name: value.contiguous() for name, value in first.state(everyone)._asdict().items()}, folder / "s")
    state, now = ArticulatedState(**load_file(folder / "s")), truth(first)
    moved = torch.tensor([3, 0, 4, 1, 2])  # place k of the second plant has what was in place moved[k] of the first
    for name in first.parameters._fields:
        if name not in ("force", "torque", "ground_friction") and first.param(name).numel():
            second.param(name)[:] = first.param(name)[moved]
    second.refresh(everyone)
    half = [torch.tensor([4, 1]), torch.tensor([0, 2, 3])]  # in two parts, in any order
    for part in half:
        second.set_state(part, ArticulatedState(*(value[moved[part]] for value in state)))
    compare(truth(second), now, moved)
    for k in range(K, K + 20):
        told = commands(first, k)
        first.step(told)
        second.step(chosen(told, moved))
        compare(truth(second), truth(first), moved)
    for one, other in zip(second.state(everyone), first.state(everyone), strict=True):
        assert torch.equal(one, other[moved])


def truth(plant: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in plant.truth().items()}


def compare(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], moved: torch.Tensor) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value[moved]), name


def test_a_state_that_is_set_elsewhere_repeats_the_future_bit_by_bit(case: Case, tmp_path: Path) -> None:
    goes_on_alike(MujocoPlant, case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", representatives(list(CASES), ["go2", "gripper"]), indirect=True)
def test_a_state_that_is_set_elsewhere_repeats_the_future_bit_by_bit_on_warp(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("mujoco_warp", reason="mujoco_warp is missing: pip install 'robo-rl[dev]'")
    from robo_rl.sim.plants.warp import WarpPlant

    goes_on_alike(lambda *arguments: WarpPlant(*arguments, device="cpu"), case, tmp_path)


def test_what_is_set_changes_nothing_for_other_robots(case: Case) -> None:
    mechanism, physics = case
    plant, other = (MujocoPlant(mechanism, N, 0.02, physics, threads=1) for _ in range(2))
    for k in range(5):
        plant.step(commands(plant, k))
        other.step(commands(plant, k))
        plant.set_state(torch.tensor([2]), plant.state(torch.tensor([0])))
    for name, value in other.truth().items():
        kept = torch.tensor([0, 1, 3, 4])
        assert torch.equal(plant.truth()[name][kept], value[kept]), name


def test_a_robot_in_the_air_goes_on_nearly_exactly_in_bullet_and_one_on_its_feet_within_millimetres(machines) -> None:
    bullet = pytest.importorskip("robo_rl.sim.plants.bullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    apart = {}
    for name, height in (("air", 3.0), ("ground", 0.3)):
        first, second = (bullet.BulletPlant(GO2.mechanism, 1, 0.02) for _ in range(2))
        only, stand = torch.arange(1), torch.tensor([[joint.stand for joint in GO2.joints]])
        first.param("command_delay")[:] = 0.02
        second.param("command_delay")[:] = 0.02
        first.place(only, position=torch.tensor([[0.0, 0.0, height]]))
        for k in range(10):
            first.step({"joint_position_target": stand + 0.1 * np.sin(k)})
        second.set_state(only, first.state(only))
        for name_, value in first.truth().items():
            torch.testing.assert_close(second.truth()[name_], value, atol=2e-6, rtol=1e-5, msg=name_)
        for k in range(10, 20):
            for plant in (first, second):
                plant.step({"joint_position_target": stand + 0.1 * np.sin(k)})
        apart[name] = float((first.truth()["joint_position"] - second.truth()["joint_position"]).abs().max())
    assert apart["air"] < 1e-5  # rad
    assert apart["ground"] < 0.02  # contacts of the step before, from which the solver starts, are lost


def test_a_saved_plant_goes_on_bit_by_bit(case: Case) -> None:
    mechanism, physics = case
    first, second = (MujocoPlant(mechanism, N, 0.02, physics, threads=1) for _ in range(2))
    randomize(first)
    for k in range(10):
        first.step(commands(first, k))
    second.load({name: value.clone() for name, value in first.save().items()})
    for k in range(10, 20):
        first.step(commands(first, k))
        second.step(commands(first, k))
    np.testing.assert_array_equal(first.batch.state, second.batch.state)


def test_what_is_placed_is_there_and_the_rest_at_home(machines, engine) -> None:
    plant = engine(machines.gripper(), 2, 0.02, GRASP)
    turn = torch.tensor([[0.0, 0.0, 0.6, 0.8]])
    plant.place(torch.tensor([1]), finger_position=torch.tensor([[0.01]]), cube_orientation=turn)
    truth = plant.truth()
    np.testing.assert_allclose(truth["finger_position"][:, 0].numpy(), [0.03, 0.01], atol=1e-6)
    np.testing.assert_allclose(truth["cube_orientation"][1].numpy(), turn[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(truth["cube_position"].numpy(), [[0, 0, 0.02]] * 2, atol=1e-6)
    np.testing.assert_allclose(plant.state(torch.arange(2)).qpos[:, 3].numpy(), [0.03, 0.01], atol=1e-6)  # coupled
    with pytest.raises(KeyError, match="has no \\['thumb_position'\\]; it has \\['lift_position'"):
        plant.place(torch.arange(2), thumb_position=torch.zeros(2, 1))


def test_drives_and_tools_hold_what_they_were_placed_at(machines, engine) -> None:
    plant = engine(machines.six_axes(), 1, 0.02, Physics(timestep=0.002))
    joints = torch.tensor([[0.4, -0.5, 1.0, 0.1, 0.8, -0.3]])
    plant.place(torch.arange(1), joint_position=joints)
    for _ in range(10):
        plant.step({})
    torch.testing.assert_close(plant.truth()["joint_position"], joints, atol=1e-4, rtol=0.0)


def test_a_push_changes_the_velocity_of_a_free_base(machines, engine) -> None:
    plant = engine(machines.watcher(), 3, 0.02, Physics(timestep=0.005, contacts="all"))
    before = plant.truth()["linear_velocity"].clone()
    plant.push(torch.tensor([2]), torch.tensor([0.5, -0.2, 0.1]))
    after = plant.truth()["linear_velocity"]
    torch.testing.assert_close(after[2] - before[2], torch.tensor([0.5, -0.2, 0.1]), atol=1e-5, rtol=0.0)
    assert torch.equal(after[:2], before[:2])


def test_a_push_changes_the_velocity_of_the_tool_of_a_fixed_robot_with_the_least_energy(machines, engine) -> None:
    plant = engine(machines.six_axes(), 2, 0.02, Physics(timestep=0.002))
    plant.push(torch.tensor([1]), torch.tensor([0.1, 0.2, -0.1]))
    velocity = plant.truth()["tool_linear_velocity"]
    torch.testing.assert_close(velocity[1], torch.tensor([0.1, 0.2, -0.1]), atol=1e-4, rtol=0.0)
    torch.testing.assert_close(velocity[0], torch.zeros(3), atol=1e-4, rtol=0.0)


def test_what_is_drawn_has_the_bodies_and_joints_of_what_moves(case: Case) -> None:
    mechanism, physics = case
    moved, drawing = assemble(mechanism, physics), draw(mechanism)
    for count, part in (("nbody", "body"), ("njnt", "joint")):
        names = [[getattr(model, part)(i).name for i in range(getattr(model, count))] for model in (moved, drawing)]
        assert names[0] == names[1]
    np.testing.assert_array_equal(moved.jnt_qposadr, drawing.jnt_qposadr)
    np.testing.assert_allclose(moved.body_pos, drawing.body_pos)
    np.testing.assert_allclose(moved.body_quat, drawing.body_quat)


def test_poses_are_those_of_every_body_in_the_world(machines, engine) -> None:
    plant = engine(machines.gripper(), 2, 0.02, GRASP)
    turn = torch.tensor([[0.1, 0.2, 0.3, 0.9]])
    place = torch.tensor([[0.1, 0.2, 0.3]])
    plant.place(torch.tensor([1]), cube_position=place, cube_orientation=turn / turn.norm())
    drawing, poses = plant.drawing(), plant.poses(torch.tensor([1]))
    assert poses.shape == (1, drawing.nbody - 1, 7)
    cube, hand = (poses[0, drawing.body(name).id - 1] for name in ("cube", "hand"))
    np.testing.assert_allclose(cube[:3], place[0].numpy(), atol=1e-6)
    assert (Rotation.from_quat(cube[3:]).inv() * Rotation.from_quat(turn[0].numpy())).magnitude() < 1e-6
    np.testing.assert_allclose(hand[:3], [0.0, 0.0, 0.12], atol=1e-6)
