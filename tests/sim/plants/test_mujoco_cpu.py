"""Rigid bodies on the CPU: the batch against plain mj_step, statics, motors, and what may not matter."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.controllers.rotation import matrix
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import load_legged

PERIOD = 0.02
CARD = load_legged("go2")
STAND = torch.tensor([[joint.stand for joint in CARD.joints]])


def plant_of(n: int, **options) -> MujocoPlant:
    return MujocoPlant(CARD.mechanism, n, PERIOD, threads=options.pop("threads", 1), physics=Physics(**options))


def targets(n: int, steps: int, seed: int = 0) -> torch.Tensor:
    """(steps, n, 12) rad, about the stand."""
    generator = torch.Generator().manual_seed(seed)
    return STAND + 0.3 * torch.randn(steps, n, len(CARD.joints), generator=generator)


def drive(plant: MujocoPlant, commands: torch.Tensor) -> None:
    for command in commands:
        plant.step({"joint_position_target": command})


def state_of(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    return state


@pytest.mark.parametrize("contacts", ["points", "all"])
def test_a_batch_of_one_steps_exactly_like_mj_step(contacts: str) -> None:
    plant = plant_of(1, contacts=contacts)
    plant.param("command_delay")[:] = 0.01
    plant.param("mass")[:] *= 1.1
    plant.refresh(torch.arange(1))
    model = plant.batch.get_model(0)
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, plant.batch.state[0], mujoco.mjtState.mjSTATE_INTEGRATION)
    for command in targets(1, 50):
        plant.step({"joint_position_target": command})
        data.ctrl[:] = command[0].numpy()
        for _ in range(plant.substeps):
            mujoco.mj_step(model, data)
        np.testing.assert_array_equal(plant.batch.state[0], state_of(model, data))
        np.testing.assert_array_equal(plant.batch.bind("sensordata")[0], data.sensordata)


def test_results_depend_neither_on_batch_size_nor_on_threads() -> None:
    commands = targets(9, 40)
    alone, together, threaded = plant_of(1), plant_of(9), plant_of(9, threads=3)
    drive(together, commands)
    drive(threaded, commands)
    drive(alone, commands[:, 4:5])
    np.testing.assert_array_equal(together.batch.state, threaded.batch.state)
    np.testing.assert_array_equal(together.batch.state[4:5], alone.batch.state)
    for name, value in together.truth().items():
        assert torch.equal(value, threaded.truth()[name]), name
        assert torch.equal(value[4:5], alone.truth()[name]), name


def test_the_robot_weighs_what_unitree_says() -> None:
    plant = plant_of(1)
    assert float(plant.nominal.mass.sum()) == pytest.approx(15.0, abs=0.1)  # Unitree: about 15 kg with battery


def test_a_standing_robot_presses_on_the_ground_with_its_weight() -> None:
    plant = plant_of(1)
    plant.param("stiffness")[:] = 200.0  # a sag of joints would spread the legs
    plant.param("damping")[:] = 5.0
    drive(plant, STAND.expand(150, 1, -1))
    truth = plant.truth()
    weight = float(plant.nominal.mass.sum()) * 9.81
    assert float(truth["foot_force"].sum()) == pytest.approx(weight, rel=0.01)
    assert float(truth["position"][0, 2]) == pytest.approx(plant.height, abs=0.02)
    np.testing.assert_allclose(truth["linear_velocity"][0].numpy(), 0.0, atol=1e-3)


def test_a_falling_robot_falls_as_galileo_says() -> None:
    plant = plant_of(1)
    place, still = torch.tensor([[0.0, 0.0, 10.0]]), torch.zeros(1, 3)
    upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    plant.place(torch.arange(1), place, upright, still, still, STAND, torch.zeros_like(STAND))
    drive(plant, STAND.expand(25, 1, -1))
    truth = plant.truth()
    assert float(truth["linear_velocity"][0, 2]) == pytest.approx(-9.81 * 0.5, rel=1e-3)
    assert float(truth["position"][0, 2]) == pytest.approx(10.0 - 9.81 * 0.5**2 / 2, abs=0.03)  # semi-implicit Euler


def test_quaternions_are_x_y_z_w_and_turn_the_base_s_axes_as_mujoco_does() -> None:
    plant = plant_of(1)
    drive(plant, targets(1, 20))
    rows = matrix(plant.truth()["orientation"].double().unbind(-1))
    found = np.array([[float(entry) for entry in row] for row in rows])
    data = plant.batch.get_data(0)
    mujoco.mj_kinematics(plant.model, data)
    np.testing.assert_allclose(found, data.xmat[plant.indices.base].reshape(3, 3), atol=1e-6)


def test_velocities_are_the_rates_of_positions_in_the_frames_they_are_said_to_be_in() -> None:
    plant = plant_of(1, timestep=0.0005)
    plant = MujocoPlant(CARD.mechanism, 1, 0.0005, Physics(timestep=0.0005), threads=1)
    turn = torch.tensor([[0.3, -0.2, 0.1, 0.9]])
    plant.place(
        torch.arange(1), torch.tensor([[0.0, 0.0, 2.0]]), turn / turn.norm(), torch.tensor([[1.0, -0.5, 0.2]]),
        torch.tensor([[0.5, 1.0, -2.0]]), STAND, torch.zeros_like(STAND),
    )  # fmt: skip
    before = {name: value.clone().double() for name, value in plant.truth().items()}
    plant.step({"joint_position_target": STAND})
    after = plant.truth()
    moved = (after["position"].double() - before["position"]) / 0.0005
    np.testing.assert_allclose(moved.numpy(), after["linear_velocity"].numpy(), atol=1e-3)
    old, new = (
        np.array([[float(e) for e in row] for row in matrix(q["orientation"].double().unbind(-1))])
        for q in (before, after)
    )
    spin = old.T @ new  # a small rotation about the base's own axes
    rates = np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2 / 0.0005
    np.testing.assert_allclose(rates, after["angular_velocity"][0].numpy(), atol=5e-3)


def hanging() -> MujocoPlant:
    """A robot whose joints move without gravity, friction or ground."""
    plant = plant_of(1, timestep=0.0005)
    plant.batch.expand("opt.gravity")[:] = 0.0
    plant.param("joint_friction")[:] = 0.0
    place, still = torch.tensor([[0.0, 0.0, 5.0]]), torch.zeros(1, 3)
    plant.place(
        torch.arange(1), place, torch.tensor([[0.0, 0.0, 0.0, 1.0]]), still, still, STAND, torch.zeros_like(STAND)
    )
    return plant


def test_motors_give_the_torque_of_the_position_control_that_the_card_tells() -> None:
    plant = hanging()
    for _ in range(5):
        plant.step({"joint_position_target": STAND + 0.1})
    truth = {name: value.clone() for name, value in plant.truth().items()}
    model, data = plant.model, plant.batch.get_data(0)
    q, v = data.qpos[plant.indices.position], data.qvel[plant.indices.velocity]
    expected = [
        joint.stiffness * (joint.stand + 0.1 - angle) - joint.damping * speed
        for joint, angle, speed in zip(CARD.joints, q, v, strict=True)
    ]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.actuator_force, expected, rtol=1e-5, atol=1e-5)
    assert float(truth["joint_torque"].abs().max()) > 0.1


def test_torque_falls_with_speed_on_a_straight_line_to_nothing_at_the_motor_s_greatest_speed() -> None:
    plant = hanging()
    for share in (0.0, 0.5, 0.9):
        speed = torch.tensor([[share * joint.velocity for joint in CARD.joints]])
        place, still = torch.tensor([[0.0, 0.0, 5.0]]), torch.zeros(1, 3)
        upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
        middle = torch.tensor([[(joint.lower + joint.upper) / 2 for joint in CARD.joints]])
        plant.place(torch.arange(1), place, upright, still, still, middle, speed)
        data = plant.batch.get_data(0)
        data.ctrl[:] = middle[0].numpy() + 100.0  # asks for far more than there is
        model = plant.batch.get_model(0)
        model.actuator_delay[:] = 0.0
        mujoco.mj_forward(model, data)
        expected = [joint.effort * (1 - share) for joint in CARD.joints]
        np.testing.assert_allclose(data.actuator_force, expected, rtol=1e-5)


def test_a_delayed_target_moves_the_joints_that_much_later() -> None:
    prompt, late = (plant_of(1, timestep=0.005) for _ in range(2))
    late.param("command_delay")[:] = 0.02
    late.refresh(torch.arange(1))
    commands = targets(1, 6, seed=3)
    drive(prompt, commands)
    late.step({"joint_position_target": STAND})
    quiet = plant_of(1, timestep=0.005)
    quiet.step({"joint_position_target": STAND})
    assert torch.equal(late.truth()["joint_position"], quiet.truth()["joint_position"])
    late.step({"joint_position_target": commands[0]})
    quiet.step({"joint_position_target": STAND})
    assert torch.equal(late.truth()["joint_position"], quiet.truth()["joint_position"])  # not yet there
    late.step({"joint_position_target": STAND})
    assert not torch.allclose(late.truth()["joint_position"], quiet.truth()["joint_position"], atol=1e-3)


def test_a_delay_is_as_long_after_half_a_minute_as_at_the_start() -> None:
    """MuJoCo adds steps up to a time in doubles, which is a little off what a delay of whole steps is compared with."""
    early, late = (plant_of(1, timestep=0.01) for _ in range(2))
    for plant in (early, late):
        plant.param("command_delay")[:] = 0.02
        plant.refresh(torch.arange(1))
    still = STAND.expand(1, -1)
    for _ in range(1620):  # 32.4 s
        late.step({"joint_position_target": still})
    state = early.state(torch.arange(1))
    late.set_state(torch.arange(1), late.state(torch.arange(1))._replace(qpos=state.qpos, qvel=state.qvel))
    late.refresh(torch.arange(1))
    for target in targets(1, 6, seed=3):
        early.step({"joint_position_target": target})
        late.step({"joint_position_target": target})
    reached, expected = late.truth()["joint_position"], early.truth()["joint_position"]
    np.testing.assert_allclose(reached, expected, atol=1e-3)


def test_parameters_are_live_views_that_change_their_own_robot_alone() -> None:
    plant, other = plant_of(3), plant_of(3)
    for name in ("mass", "ground_friction", "joint_friction", "armature", "stiffness", "damping", "resistance"):
        plant.param(name)[1] *= 0.7
    plant.param("center_of_mass")[1, 0] += 0.02
    plant.param("command_delay")[1] = 0.01
    plant.refresh(torch.arange(3))
    commands = targets(3, 25)
    drive(plant, commands)
    drive(other, commands)
    np.testing.assert_array_equal(plant.batch.state[[0, 2]], other.batch.state[[0, 2]])
    assert not np.allclose(plant.batch.state[1], other.batch.state[1])
    model = plant.batch.get_model(1)
    np.testing.assert_allclose(model.body_mass, 0.7 * plant.model.body_mass)
    np.testing.assert_allclose(model.body_subtreemass[plant.indices.base], 0.7 * plant.model.body_mass.sum())
    np.testing.assert_allclose(model.actuator_gainprm[:, 4], 0.7 * plant.model.actuator_gainprm[:, 4])
    assert model.geom_friction[plant.indices.ground, 0] == pytest.approx(0.7)


def test_a_push_is_a_force_on_the_base() -> None:
    plant = hanging()
    plant.param("force")[:] = torch.tensor([30.0, 0.0, 0.0], dtype=torch.float64)
    drive(plant, STAND.expand(5, 1, -1))
    data = plant.batch.get_data(0)
    mujoco.mj_forward(plant.model, data)
    mujoco.mj_subtreeVel(plant.model, data)
    speed = 30.0 * 5 * PERIOD / float(plant.nominal.mass.sum())
    assert data.subtree_linvel[plant.indices.base, 0] == pytest.approx(speed, rel=0.01)


def test_a_saved_plant_continues_bit_by_bit() -> None:
    first, second = plant_of(4), plant_of(4)
    first.param("mass")[:] *= torch.tensor([[0.9], [1.0], [1.1], [1.2]], dtype=torch.float64)
    first.param("stiffness")[2] *= 1.3
    first.param("command_delay")[3] = 0.02
    first.refresh(torch.arange(4))
    commands = targets(4, 30)
    drive(first, commands[:15])
    saved = {name: value.clone() for name, value in first.save().items()}
    second.load(saved)
    for name, value in first.truth().items():
        assert torch.equal(value, second.truth()[name]), name
    drive(first, commands[15:])
    drive(second, commands[15:])
    np.testing.assert_array_equal(first.batch.state, second.batch.state)


def test_a_placed_robot_forgets_what_it_was() -> None:
    used, new = plant_of(2), plant_of(2)
    for plant in (used, new):
        plant.param("command_delay")[:] = 0.02
        plant.refresh(torch.arange(2))
    drive(used, targets(2, 10))
    for plant in (used, new):
        still = torch.zeros(2, 3)
        upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]]).expand(2, -1)
        place = torch.tensor([[0.0, 0.0, plant.height]]).expand(2, -1)
        stand = STAND.expand(2, -1)
        plant.place(torch.arange(2), place, upright, still, still, stand, torch.zeros_like(stand))
    np.testing.assert_array_equal(used.batch.state, new.batch.state)
    drive(used, targets(2, 5))
    drive(new, targets(2, 5))
    np.testing.assert_array_equal(used.batch.state, new.batch.state)


def test_a_state_that_is_not_finite_stays_visible_and_leaves_others_alone() -> None:
    plant, other = plant_of(2), plant_of(2)
    torch.from_numpy(plant.batch.bind("qvel"))[1, 0] = float("nan")
    commands = targets(2, 5)
    drive(plant, commands)
    drive(other, commands)
    assert not torch.isfinite(plant.truth()["position"][1]).all()
    assert torch.equal(plant.truth()["position"][0], other.truth()["position"][0])


def test_truth_has_a_shape_for_every_quantity() -> None:
    plant = plant_of(3)
    sizes = {name: tuple(value.shape) for name, value in plant.truth().items()}
    assert tuple(sizes) == (
        "position", "orientation", "linear_velocity", "angular_velocity", "joint_position", "joint_velocity",
        "joint_torque", "foot_position", "foot_velocity", "foot_force",
    )  # fmt: skip
    assert sizes["foot_position"] == (3, 12)
    assert sizes["foot_force"] == (3, 4)
    assert all(value.dtype == torch.float32 for value in plant.truth().values())


def test_models_that_do_not_fit_their_card_are_refused_by_what_is_missing(tmp_path: Path) -> None:
    strange = dataclasses.replace(CARD, feet=("FL_toe",))
    with pytest.raises(CardError, match=r"FL_toe.*points 'foot'"):
        assemble(strange.mechanism, Physics())
    with pytest.raises(CardError, match=r"trunk.*base"):
        assemble(dataclasses.replace(CARD, base="trunk").mechanism, Physics())
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body></mujoco>")
    with pytest.raises(CardError, match=r"broken\.xml"):
        assemble(dataclasses.replace(CARD, model=broken).mechanism, Physics())


def test_wrong_periods_and_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple"):
        MujocoPlant(CARD.mechanism, 1, 0.015)
    with pytest.raises(KeyError, match="colour"):
        plant_of(1).param("colour")


def test_joints_follow_the_card_s_order_in_every_array() -> None:
    plant = plant_of(1)
    indices = find_indices(plant.model, CARD.mechanism)
    names = [plant.model.joint(int(np.flatnonzero(plant.model.jnt_qposadr == i)[0])).name for i in indices.position]
    assert tuple(names) == CARD.joint_names
    assert tuple(plant.model.actuator(i).name for i in range(plant.model.nu)) == CARD.joint_names


def test_the_solver_s_tolerance_matters_far_less_than_the_time_step() -> None:
    usual, exact, finer = (plant_of(16, **options) for options in ({}, {"tolerance": 1e-12}, {"timestep": 0.005}))
    for plant in (usual, exact, finer):
        drive(plant, targets(16, 15))
    joints = [plant.truth()["joint_position"] for plant in (usual, exact, finer)]
    assert float((joints[0] - joints[1]).abs().median()) < 0.02 * float((joints[0] - joints[2]).abs().median())


VECTORS = Path(__file__).parents[2] / "vectors/go2_trot.json"
"""What this trot gave before plants knew other robots (commit 861c069): truth after steps 1, 13 and 25."""


@pytest.mark.parametrize("contacts", ["points", "all"])
def test_a_trotting_go2_moves_as_it_did_before_plants_knew_other_robots(contacts: str) -> None:
    plant, spread = plant_of(3, contacts=contacts), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    plant.param("mass")[:, 0] += 2 * spread
    plant.param("center_of_mass")[:, 0, 0] += 0.03 * spread
    plant.param("ground_friction")[:] = 0.4 + 0.8 * spread
    plant.param("command_delay")[:] = 0.02 * spread[:, None]
    for name, factor in (("resistance", 0.2), ("armature", 0.2), ("joint_friction", 0.5)):
        plant.param(name)[:] *= (1 + factor * spread)[:, None]
    plant.place(
        torch.arange(3),
        position=torch.tensor([[0.1, 0.2, plant.height + 0.02]]),
        orientation=torch.tensor([[0.0, 0.0, 0.6, 0.8]]),
        linear_velocity=torch.tensor([[0.3, 0.1, 0.0]]),
        angular_velocity=torch.tensor([[0.2, -0.1, 0.3]]),
        joint_position=STAND + 0.05,
        joint_velocity=torch.full((3, 12), 0.1),
    )
    expected = json.loads(VECTORS.read_text())[contacts]
    for k in range(25):
        plant.param("force")[:] = 20.0 if 10 <= k < 15 else 0.0
        plant.step({"joint_position_target": (STAND + 0.25 * torch.sin(0.4 * k + torch.arange(12.0))).expand(3, -1)})
        if k % 12 == 0:
            for name, value in expected[k // 12].items():
                np.testing.assert_allclose(plant.truth()[name].numpy(), value, rtol=1e-5, atol=1e-5, err_msg=name)
