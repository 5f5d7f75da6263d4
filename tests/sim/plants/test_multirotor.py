"""The multirotor plant against conservation laws and closed forms; its parameters, steps and checkpoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.multirotor import MultirotorParameters, MultirotorPlant, MultirotorState, advance
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.multirotor import GRAVITY

PERIOD = 0.01
CRAZYFLIE, HUMMINGBIRD = load_robot("crazyflie"), load_robot("hummingbird")
EVERYTHING = {
    "force": (0.02, -0.03, 0.01), "torque": (1e-5, -2e-5, 1e-5), "wind": (1.5, -2.0, 0.5), "body_drag": 0.003,
}  # fmt: skip


def plant_of(card=CRAZYFLIE, n: int = 1, **parameters: Any) -> MultirotorPlant:
    plant = MultirotorPlant(card, n, PERIOD)
    for name, value in parameters.items():
        plant.param(name)[:] = torch.as_tensor(value, dtype=torch.float32)
    return plant


def run(plant: MultirotorPlant, speed: float | torch.Tensor, steps: int) -> None:
    commands = {"rotor_speed": torch.as_tensor(speed, dtype=torch.float32).expand(plant.n, len(plant.card.rotors))}
    for _ in range(steps):
        plant.step(commands)


def test_without_rotors_it_falls_freely() -> None:
    plant = plant_of(rotor_drag=0.0)
    plant.current.rotor_speed[:] = 0.0
    plant.current.linear_velocity[0] = torch.tensor([1.0, 2.0, 3.0])
    run(plant, 0.0, 100)
    np.testing.assert_allclose(plant.current.position[0], [1.0, 2.0, 3.0 - GRAVITY / 2], atol=1e-4)
    np.testing.assert_allclose(plant.current.linear_velocity[0], [1.0, 2.0, 3.0 - GRAVITY], atol=1e-4)


@pytest.mark.parametrize("card", [CRAZYFLIE, HUMMINGBIRD], ids=lambda card: card.name)
def test_at_hover_speed_it_stays_where_it_is(card) -> None:
    plant = plant_of(card)
    run(plant, card.hover_speed, 500)
    np.testing.assert_allclose(plant.current.position[0], 0.0, atol=5e-3)
    np.testing.assert_allclose(plant.current.orientation[0], [0, 0, 0, 1], atol=1e-3)


def test_motors_follow_their_commands_exponentially_faster_up_than_down() -> None:
    plant = plant_of(n=2, rise_time=0.06, fall_time=0.25)
    plant.current.rotor_speed[:] = torch.tensor([[500.0] * 4, [2000.0] * 4])
    plant_commands = torch.tensor([[2000.0] * 4, [500.0] * 4])
    for _ in range(10):
        plant.step({"rotor_speed": plant_commands})
    up, down = 2000 - 1500 * math.exp(-0.1 / 0.06), 500 + 1500 * math.exp(-0.1 / 0.25)
    np.testing.assert_allclose(plant.current.rotor_speed[:, 0], [up, down], rtol=1e-5)


def test_yaw_spins_up_at_drag_torque_over_inertia() -> None:
    """Counter-clockwise rotors alone: their drag turns the body clockwise, steadily."""
    plant = plant_of(rotor_inertia=0.0, rotor_drag=0.0)
    spin = plant.parameters.spin[0]
    speed = 1500.0 * (spin > 0).float()
    plant.current.rotor_speed[:] = speed
    run(plant, speed, 20)
    thrust = 2 * CRAZYFLIE.thrust[2] * 1500.0**2
    rate = -CRAZYFLIE.torque_ratio * thrust / CRAZYFLIE.inertia[2] * 0.2
    assert float(plant.current.angular_velocity[0, 2]) == pytest.approx(rate, rel=1e-4)


def test_accelerating_rotors_turn_the_body_the_other_way_and_keep_angular_momentum() -> None:
    plant = plant_of(torque_ratio=0.0, rotor_inertia=3e-8)
    spin = plant.parameters.spin[0]
    speed = torch.where(spin > 0, 2000.0, 500.0)
    plant.current.rotor_speed[:] = 500.0
    run(plant, speed, 50)
    gained = float((spin * (plant.current.rotor_speed[0] - 500.0)).sum()) * 3e-8
    assert float(plant.current.angular_velocity[0, 2]) * CRAZYFLIE.inertia[2] == pytest.approx(-gained, rel=1e-4)


def test_free_rotation_keeps_energy_and_angular_momentum_in_the_world() -> None:
    plant = plant_of(inertia=(1e-5, 2e-5, 3e-5), rotor_drag=0.0, rotor_inertia=0.0)
    plant.current.rotor_speed[:] = 0.0
    plant.current.angular_velocity[0] = torch.tensor([3.0, 12.0, 5.0])
    inertia = np.array([1e-5, 2e-5, 3e-5])

    def momentum_and_energy() -> tuple[np.ndarray, float]:
        omega = plant.current.angular_velocity[0].double().numpy()
        turn = Rotation.from_quat(plant.current.orientation[0].double().numpy())
        return turn.apply(inertia * omega), 0.5 * float(omega @ (inertia * omega))

    momentum, energy = momentum_and_energy()
    run(plant, 0.0, 300)
    later, later_energy = momentum_and_energy()
    np.testing.assert_allclose(later, momentum, atol=2e-3 * np.linalg.norm(momentum))
    assert later_energy == pytest.approx(energy, rel=1e-3)


def test_a_fall_ends_at_the_terminal_velocity_of_body_drag() -> None:
    plant = plant_of(rotor_drag=0.0, body_drag=0.01)
    plant.current.rotor_speed[:] = 0.0
    run(plant, 0.0, 1000)
    assert float(plant.current.linear_velocity[0, 2]) == pytest.approx(-math.sqrt(0.027 * GRAVITY / 0.01), rel=1e-4)


def test_wind_pushes_downwind_and_drag_acts_on_air_speed() -> None:
    plant = plant_of(n=2, wind=[[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    plant.current.linear_velocity[1, 0] = 2.0  # flies with the wind
    run(plant, CRAZYFLIE.hover_speed, 1)
    assert float(plant.current.linear_velocity[0, 0]) > 1e-4
    assert float(plant.current.linear_velocity[1, 0]) == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(
    ("stronger", "axis", "sign"),
    [("left", 0, 1), ("right", 0, -1), ("rear", 1, 1), ("front", 1, -1), ("cw", 2, 1), ("ccw", 2, -1)],
)
def test_stronger_rotors_turn_the_body_the_right_way(stronger: str, axis: int, sign: int) -> None:
    """x forward, y left, z up: left up is a roll to the right, +x; rear up is nose down, +y."""
    chosen = {
        "left": lambda r: r.position[1] > 0, "right": lambda r: r.position[1] < 0,
        "front": lambda r: r.position[0] > 0, "rear": lambda r: r.position[0] < 0,
        "ccw": lambda r: r.spin == "ccw", "cw": lambda r: r.spin == "cw",
    }[stronger]  # fmt: skip
    plant = plant_of()
    speed = torch.tensor([CRAZYFLIE.hover_speed * (1.1 if chosen(rotor) else 1.0) for rotor in CRAZYFLIE.rotors])
    run(plant, speed, 5)
    rates = plant.current.angular_velocity[0]
    assert sign * float(rates[axis]) > 0.01
    others = [float(rates[i].abs()) for i in range(3) if i != axis]
    assert max(others) < 0.02 * float(rates[axis].abs())


def test_orientation_keeps_unit_norm_over_many_steps() -> None:
    plant = plant_of(n=64)
    plant.current.angular_velocity[:] = 8 * torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    run(plant, CRAZYFLIE.hover_speed, 10_000)
    np.testing.assert_allclose(plant.current.orientation.norm(dim=-1), 1.0, atol=1e-5)


def test_gradients_are_those_of_finite_differences() -> None:
    plant = plant_of(**EVERYTHING)
    parameters = MultirotorParameters(*(value.double() for value in plant.parameters))
    generator = torch.Generator().manual_seed(0)
    start = [value.double() for value in plant.current]
    state = MultirotorState(*(x + 0.1 * torch.rand(x.shape, generator=generator) for x in start))
    command = torch.full((1, 4), 1700.0, dtype=torch.double)

    def final(*numbers: torch.Tensor) -> torch.Tensor:
        moved = advance(MultirotorState(*numbers[:5]), numbers[5], parameters._replace(mass=numbers[6]), PERIOD)
        return torch.cat(moved, -1)

    inputs = [x.clone().requires_grad_() for x in (*state, command, parameters.mass)]
    assert torch.autograd.gradcheck(final, inputs, eps=1e-6, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", MultirotorParameters._fields)
def test_every_parameter_is_reachable_by_name_and_changes_that_vehicles_flight_alone(name: str) -> None:
    plant = plant_of(n=3, wind=(1.0, 1.0, 1.0))
    for each in MultirotorParameters._fields:
        plant.param(each)
    plant.current.angular_velocity[:] = torch.tensor([4.0, -5.0, 6.0])
    value = plant.param(name)
    assert value.shape[0] == 3
    change = value[1].abs().mean() * 0.3 + (1e-3 if name in ("force", "wind", "torque", "body_drag") else 0.0)
    value[1] += change
    for speed in (1700.0, 1200.0):  # up and down
        run(plant, torch.tensor([speed, speed * 0.9, speed * 1.05, speed]), 10)
    flown = torch.cat(plant.current, -1)
    assert torch.equal(flown[0], flown[2])
    assert not torch.equal(flown[0], flown[1])


def test_an_unknown_parameter_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="no parameter 'masss'"):
        plant_of().param("masss")


def test_a_step_in_place_is_the_pure_dynamics() -> None:
    plant = plant_of(n=40, **EVERYTHING)
    plant.current.angular_velocity[:] = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    commands = {"rotor_speed": 2000 * torch.rand(40, 4, generator=torch.Generator().manual_seed(1))}
    expected = plant.dynamics(plant.current, commands, plant.parameters)
    plant.step(commands)
    for found, wanted, scale in zip(plant.current, expected, (1, 1, 1, 10, 1000), strict=True):
        torch.testing.assert_close(found, wanted, atol=2e-6 * scale, rtol=1e-5)


def test_a_reset_puts_chosen_vehicles_at_rest_and_a_checkpoint_goes_on_bit_by_bit() -> None:
    plant, other = plant_of(n=4, mass=0.03), plant_of(n=4)
    plant.current.angular_velocity[:] = 3.0
    run(plant, 1500.0, 10)
    plant.reset(torch.tensor([1]))
    assert float(plant.current.position[1].abs().max()) == 0.0
    assert float(plant.current.position[0].abs().max()) > 0.0
    other.load({name: value.clone() for name, value in plant.save().items()})
    run(plant, 1400.0, 50)
    run(other, 1400.0, 50)
    assert torch.equal(torch.cat(plant.current, -1), torch.cat(other.current, -1))


def test_on_the_ground_it_lies_still_and_takes_off_again() -> None:
    plant = MultirotorPlant(CRAZYFLIE, 2, PERIOD, ground=True)
    plant.current.position[0, 2] = 0.5
    plant.current.linear_velocity[0, 0] = 1.0
    run(plant, 0.0, 300)
    assert float(plant.current.position[0, 2]) >= -1e-6
    np.testing.assert_allclose(plant.current.linear_velocity[0], 0.0, atol=0.02)
    run(plant, CRAZYFLIE.rotor_speed_max, 100)
    assert float(plant.current.position[0, 2]) > 0.5


def test_it_slides_to_a_stop_under_a_friction_of_half_its_weight() -> None:
    plant = MultirotorPlant(CRAZYFLIE, 1, PERIOD, ground=True)
    plant.param("rotor_drag")[:] = 0.0
    plant.current.rotor_speed[:] = 0.0
    plant.current.linear_velocity[0, 1] = 2.0
    run(plant, 0.0, 100)
    assert float(plant.current.position[0, 1]) == pytest.approx(2.0**2 / (2 * 0.5 * GRAVITY), rel=0.03)
    assert float(plant.current.linear_velocity.abs().max()) < 1e-3


def test_rotation_on_the_ground_dies_away_and_the_pure_dynamics_know_the_ground() -> None:
    plant = MultirotorPlant(CRAZYFLIE, 1, PERIOD, ground=True)
    plant.current.position[:, 2] = -1e-3
    plant.current.angular_velocity[0, 2] = 5.0
    commands = {"rotor_speed": torch.zeros(1, 4)}
    expected = plant.dynamics(plant.current, commands, plant.parameters)
    plant.step(commands)
    assert float(expected.position[0, 2]) == 0.0
    torch.testing.assert_close(plant.current.angular_velocity, expected.angular_velocity)
    run(plant, 0.0, 30)
    assert float(plant.current.angular_velocity[0, 2]) < 0.1


def test_drag_of_the_rotors_brings_it_to_the_speed_of_the_wind_exponentially() -> None:
    plant = plant_of(wind=(2.0, 0.0, 0.0))
    run(plant, CRAZYFLIE.hover_speed, 200)
    rate = CRAZYFLIE.rotor_drag[0] * 4 * CRAZYFLIE.hover_speed / CRAZYFLIE.mass
    assert float(plant.current.linear_velocity[0, 0]) == pytest.approx(2.0 * (1 - math.exp(-2.0 * rate)), rel=1e-3)


def test_a_fall_with_body_drag_follows_the_hyperbolic_tangent() -> None:
    plant = plant_of(rotor_drag=0.0, body_drag=0.01)
    plant.current.rotor_speed[:] = 0.0
    run(plant, 0.0, 40)
    terminal = math.sqrt(CRAZYFLIE.mass * GRAVITY / 0.01)
    expected = -terminal * math.tanh(0.4 * GRAVITY / terminal)
    assert float(plant.current.linear_velocity[0, 2]) == pytest.approx(expected, rel=1e-4)


def test_a_symmetric_body_precesses_at_the_rate_of_eulers_equations() -> None:
    plant = plant_of(inertia=(1e-5, 1e-5, 3e-5), rotor_drag=0.0, rotor_inertia=0.0)
    plant.current.rotor_speed[:] = 0.0
    plant.current.angular_velocity[0] = torch.tensor([3.0, 0.0, 5.0])
    run(plant, 0.0, 100)
    angle = (3e-5 - 1e-5) / 1e-5 * 5.0  # rad after 1 s
    expected = [3.0 * math.cos(angle), 3.0 * math.sin(angle), 5.0]
    np.testing.assert_allclose(plant.current.angular_velocity[0], expected, atol=0.01)


def test_a_parameter_of_a_single_vehicle_can_be_changed_without_changing_the_nominal_one() -> None:
    plant = plant_of(n=1, mass=0.05, rotor_drag=0.0)
    assert float(plant.nominal.mass) == pytest.approx(CRAZYFLIE.mass)
    run(plant, CRAZYFLIE.hover_speed, 100)
    fall = -0.5 * GRAVITY * (1 - CRAZYFLIE.mass / 0.05)
    assert float(plant.current.position[0, 2]) == pytest.approx(fall, rel=0.01)
