"""Currents for a torque, against a search around the circle and scipy's constrained optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from robo_rl.controllers.motor.operating_points import OperatingPoints, mtpa, torque_of
from robo_rl.sim.robots import load_robot

LIMIT = 360.0  # A


@pytest.fixture(scope="module")
def points() -> OperatingPoints:
    return OperatingPoints.of(load_robot("traction_pmsm").facts(), LIMIT)


def test_no_current_of_the_same_length_gives_more_torque(points: OperatingPoints) -> None:
    angles = np.linspace(0.0, 2 * np.pi, 20_001)
    for length in (10.0, 100.0, LIMIT):
        around = torque_of(points.model, (length * np.cos(angles), length * np.sin(angles)))
        assert float(torque_of(points.model, mtpa(points.model, length))) == pytest.approx(around.max(), rel=1e-6)
    surface = points.model._replace(inductance_q=points.model.inductance_d)
    assert mtpa(surface, 7.0)[0] == 0.0


@pytest.mark.parametrize("share", [0.15, 0.6])
@pytest.mark.parametrize("flux", [0.12, 0.2, 0.5])
def test_currents_are_the_least_that_voltage_and_limit_allow(
    points: OperatingPoints, share: float, flux: float
) -> None:
    m, omega = points.model, 300.0
    voltage = flux * omega + m.resistance * LIMIT
    given = points.current(*(np.array([x]) for x in (share * points.most, omega, voltage)))
    d, q = (float(x[0]) for x in given)

    def room(x: np.ndarray) -> float:
        linked = (m.flux + m.inductance_d * LIMIT * x[0], m.inductance_q * LIMIT * x[1])
        return (flux**2 - linked[0] ** 2 - linked[1] ** 2) / flux**2

    within = [{"type": "ineq", "fun": room}, {"type": "ineq", "fun": lambda x: 1.0 - x @ x}]
    most = max(
        (
            minimize(lambda x: -torque_of(m, LIMIT * x) / 100, start, constraints=within)
            for start in ([-0.5, 0.2], [-0.2, 0.1])
        ),
        key=lambda found: -found.fun,
    )
    wanted = min(share * points.most, -100 * most.fun)
    assert float(torque_of(m, (d, q))) == pytest.approx(wanted, rel=0.03)
    same = {"type": "eq", "fun": lambda x: torque_of(m, LIMIT * x) / wanted - 1.0}
    least = minimize(lambda x: x @ x, most.x, constraints=[*within, same])
    assert np.hypot(d, q) <= 1.03 * LIMIT * np.linalg.norm(least.x) + 1.0
    assert room(np.array([d, q]) / LIMIT) >= -0.03
    back = points.current(*(np.array([x]) for x in (-share * points.most, -omega, voltage)))
    np.testing.assert_allclose([float(back[0][0]), float(back[1][0])], [d, -q], atol=1e-9)
