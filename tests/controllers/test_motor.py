"""Classical current control of motors against matrix exponentials and textbook properties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from robo_rl.contract import ContractError
from robo_rl.controllers.motor import Deadbeat, FieldOriented, PmsmModel
from robo_rl.sim.plants.motor.pmsm import PmsmOnBench
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import CARD as ANY
from robo_rl.sim.robots.motor import PmsmCard

PERIOD = 1e-4
CARD = load_robot("traction_pmsm", PmsmCard)
MODEL = PmsmModel.of(CARD.facts(), PERIOD)


def exact(current: np.ndarray, voltage: np.ndarray, omega: float) -> np.ndarray:
    """A period later, by the matrix exponential."""
    d, q, r = CARD.inductance_d, CARD.inductance_q, CARD.resistance
    a = np.array([[-r / d, omega * q / d], [-omega * d / q, -r / q]])
    driven = (voltage - [0.0, omega * CARD.flux]) / [d, q]
    whole = np.zeros((3, 3))
    whole[:2, :2], whole[:2, 2] = a, driven
    return (expm(whole * PERIOD) @ [*current, 1.0])[:2]


@pytest.mark.parametrize("omega", [0.0, 450.0, -600.0])
def test_its_model_is_the_matrix_exponential_and_its_inverse(omega: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        current, voltage = random.uniform(-240, 240, 2), random.uniform(-150, 150, 2)
        after = exact(current, voltage, omega)
        np.testing.assert_allclose(MODEL.predict(tuple(current), tuple(voltage), omega), after, atol=0.01)
        np.testing.assert_allclose(MODEL.deadbeat(tuple(current), tuple(after), omega), voltage, atol=0.01)


def run(controller: Deadbeat | FieldOriented, goal: tuple[float, float], steps: int, **changed: float) -> np.ndarray:
    """(steps, 2) A on a machine that turns with 100 rad/s."""
    plant = PmsmOnBench(CARD, 1, PERIOD)
    plant.param("supply_resistance")[:] = 1e-6
    for name, factor in changed.items():
        plant.param(name)[:] *= factor
    plant.current.rotor_speed[:] = 100.0
    state, found = torch.from_numpy(controller.first_state(1)), []
    for _ in range(steps):
        signals = {name: part.clone() for name, part in plant.truth().items()}
        signals |= {"current": signals["stator_current"], "current_setpoint": torch.tensor([goal])}
        commands, state = controller(signals, state)
        assert commands["voltage"].norm() <= signals["bus_voltage"] / 3**0.5 + 1e-3
        plant.step(commands)
        found.append(plant.current.stator_current[0].numpy().copy())
    return np.array(found)


def test_deadbeat_is_there_after_two_periods_and_stays() -> None:
    found = run(Deadbeat(CARD.facts(), PERIOD), (4.0, 5.0), 300)
    settled = found[150:]  # the observer forgets that the first prediction knew of no rotation
    np.testing.assert_allclose(settled, np.broadcast_to([4.0, 5.0], settled.shape), atol=0.05)
    controller = Deadbeat(CARD.facts(), PERIOD)
    jump = run(controller, (4.0, 5.0), 3)
    assert np.abs(jump[2] - [4.0, 5.0]).max() < 0.35 * 5.0


def test_its_observer_leaves_no_error_with_wrong_figures() -> None:
    wrong = {"resistance": 1.5, "inductance_d": 0.8, "inductance_q": 1.2, "flux": 0.9}
    found = run(Deadbeat(CARD.facts(), PERIOD), (-60.0, 80.0), 400, **wrong)[-20:]
    np.testing.assert_allclose(found, np.broadcast_to([-60.0, 80.0], found.shape), atol=0.1)


def test_the_magnitude_optimum_overshoots_by_some_4_percent() -> None:
    """A damping of 0.707 has an overshoot of 4.3 %."""
    d = run(FieldOriented(CARD.facts(), PERIOD), (-10.0, 0.0), 400)[:, 0] / -10.0
    assert 0.01 < d.max() - 1.0 < 0.09
    assert abs(d[60:] - 1.0).max() < 0.03


def test_its_integral_does_not_wind_up() -> None:
    q = run(FieldOriented(CARD.facts(), PERIOD), (0.0, 220.0), 600)[:, 1]
    assert q.max() < 220.0 * 1.06
    assert q[-1] == pytest.approx(220.0, abs=2.0)


def test_a_dc_motor_has_no_such_controller() -> None:
    with pytest.raises(ContractError, match="facts: machine is 'dc'; expected 'pmsm'"):
        PmsmModel.of(load_robot("gearmotor_37d", ANY).facts(), PERIOD)
