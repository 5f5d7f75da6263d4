"""A synchronous machine against scipy's integration, in dq and as three phases, and against closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.plants.motor.pmsm import PmsmOnBench
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import PmsmCard

PERIOD = 1e-4
CARD = load_robot("traction_pmsm", PmsmCard)
IDEAL = {"supply_resistance": 1e-6}


def bench(speed: float, period: float = PERIOD, angle: float = 0.0, current: Any = (0.0, 0.0), **changed: float) -> Any:
    plant = PmsmOnBench(CARD, 1, period)
    for name, value in {**IDEAL, **changed}.items():
        plant.param(name)[:] = value
    state = plant.current
    state.rotor_speed[:] = speed
    state.rotor[:] = torch.tensor([math.cos(angle), math.sin(angle)])
    state.stator_current[:] = torch.tensor(current)
    return plant


def driven(plant: Any, voltages: np.ndarray) -> np.ndarray:
    """(k + 1, 2) A under voltages (k, 2) V, which act a period later; the first one acts at once."""
    plant.current.pending_voltage[:] = torch.from_numpy(voltages[0]).float()
    found = [plant.current.stator_current[0].numpy().copy()]
    for voltage in [*voltages[1:], voltages[-1]]:
        plant.step({"voltage": torch.from_numpy(voltage[None]).float()})
        found.append(plant.current.stator_current[0].numpy().copy())
    return np.array(found)


def linked(i: float, inductance: float, saturation: float) -> float:
    return inductance * i / (1 + saturation * abs(i) / CARD.current_limit)


def slope(i: float, inductance: float, saturation: float) -> float:
    return inductance / (1 + saturation * abs(i) / CARD.current_limit) ** 2


def by_scipy(voltages: np.ndarray, omega: float, period: float, saturation: float = 0.0) -> np.ndarray:
    def rate(_: float, i: np.ndarray, u: np.ndarray) -> list[float]:
        d = (u[0] - CARD.resistance * i[0] + omega * linked(i[1], CARD.inductance_q, saturation)) / slope(
            i[0], CARD.inductance_d, saturation
        )
        back = omega * (linked(i[0], CARD.inductance_d, saturation) + CARD.flux)
        return [d, (u[1] - CARD.resistance * i[1] - back) / slope(i[1], CARD.inductance_q, saturation)]

    found = [np.zeros(2)]
    for u in voltages:
        solved = solve_ivp(rate, (0, period), found[-1], args=(u,), rtol=1e-10, atol=1e-10)
        found.append(solved.y[:, -1])
    return np.array(found)


@pytest.mark.parametrize("speed", [0.0, 150.0, -200.0])
def test_without_saturation_a_period_is_exact(speed: float) -> None:
    voltages = np.random.default_rng(0).uniform(-60, 60, (60, 2))
    expected = by_scipy(voltages, CARD.pole_pairs * speed, PERIOD)
    np.testing.assert_allclose(driven(bench(speed), voltages), expected, atol=2e-3)


def test_with_saturation_its_error_falls_with_the_square_of_the_period() -> None:
    error = []
    for halves in (0, 1):
        period = PERIOD / 2**halves
        voltages = np.repeat([[30.0, 80.0]], 20 * 2**halves, 0)
        expected = by_scipy(voltages, 300.0, period, 0.4)[-1]
        found = driven(bench(100.0, period, saturation=0.4), voltages)[-1]
        error.append(float(np.abs(found - expected).max()))
    assert error[0] < 1.0
    assert 3.0 < error[0] / error[1] < 5.5


def test_three_phases_under_voltages_that_stand_still_do_the_same_in_the_mean() -> None:
    """Flux linkages of three windings in the stator's frame; a modulator advances the angle by half a period."""
    omega, thirds = 450.0, 2 * np.pi / 3 * np.arange(3)
    voltages = np.repeat([[-20.0, 60.0]], 100, 0)

    def currents(time: float, flux: np.ndarray) -> np.ndarray:
        angle = omega * time - thirds
        d = (2 / 3 * np.cos(angle) @ flux - CARD.flux) / CARD.inductance_d
        q = -2 / 3 * np.sin(angle) @ flux / CARD.inductance_q
        return d * np.cos(angle) - q * np.sin(angle)

    flux = CARD.flux * np.cos(-thirds)
    for k, (d, q) in enumerate(voltages):
        middle = omega * PERIOD * (k + 0.5) - thirds
        given = d * np.cos(middle) - q * np.sin(middle)
        solved = solve_ivp(
            lambda t, x, u: u - CARD.resistance * currents(t, x), (k * PERIOD, (k + 1) * PERIOD), flux, args=(given,),
            rtol=1e-9, atol=1e-12,
        )  # fmt: skip
        flux = solved.y[:, -1]
    end = omega * PERIOD * len(voltages)
    phases = currents(end / omega, flux)
    angle = end - thirds
    expected = [2 / 3 * np.cos(angle) @ phases, -2 / 3 * np.sin(angle) @ phases]
    plant = bench(omega / CARD.pole_pairs)
    found = driven(plant, voltages)[-1]
    np.testing.assert_allclose(found, expected, atol=0.01 * CARD.current_nominal)
    np.testing.assert_allclose(plant.current.rotor[0].numpy(), [math.cos(end), math.sin(end)], atol=1e-5)


def test_a_voltage_acts_a_period_after_it_was_commanded() -> None:
    plant = bench(0.0)
    plant.step({"voltage": torch.tensor([[10.0, 20.0]])})
    assert plant.current.stator_current.abs().max() == 0
    plant.step({"voltage": torch.zeros(1, 2)})
    expected = [10.0 * PERIOD / CARD.inductance_d, 20.0 * PERIOD / CARD.inductance_q]
    np.testing.assert_allclose(plant.current.stator_current[0].numpy(), expected, rtol=5e-3)


def test_the_inverter_keeps_the_voltage_within_its_circle() -> None:
    found = driven(bench(0.0, resistance=1e-4), np.array([[300.0, 400.0]]))[-1]
    most = CARD.supply_voltage / math.sqrt(3)
    np.testing.assert_allclose(
        found, [0.6 * most * PERIOD / CARD.inductance_d, 0.8 * most * PERIOD / CARD.inductance_q], rtol=1e-3
    )


def test_dead_time_takes_four_thirds_of_its_share_along_phase_a() -> None:
    """Phase a carries the current, b and c half of it back: signs 1, -1, -1, whose space vector is 4/3 along a."""
    dead = 1e-6
    loss = 4 / 3 * CARD.supply_voltage * dead / PERIOD
    voltage = CARD.resistance * 50.0 + loss
    plant = bench(0.0, dead_time=dead, current=(50.0, 0.0))
    found = driven(plant, np.repeat([[voltage, 0.0]], 50, 0))
    np.testing.assert_allclose(found, np.broadcast_to([50.0, 0.0], found.shape), atol=0.05)


def test_the_bus_sags_by_what_its_source_drops() -> None:
    resistance, voltage = 0.2, 2.0
    plant = bench(0.0, supply_resistance=resistance)
    driven(plant, np.repeat([[voltage, 0.0]], 2000, 0))
    power = 1.5 * voltage**2 / CARD.resistance
    supply = CARD.supply_voltage
    expected = 0.5 * (supply + math.sqrt(supply**2 - 4 * resistance * power))
    assert float(plant.current.bus_voltage) == pytest.approx(expected, rel=1e-4)


def test_measured_currents_are_rounded_and_carry_the_phases_offsets() -> None:
    plant = bench(0.0, current=(50.0, -20.0))
    plant.param("current_offset")[:] = torch.tensor([[3.0, 0.0]])
    plant.step({"voltage": torch.zeros(1, 2)})
    true, seen = (part[0].numpy() for part in (plant.current.stator_current, plant.current.current))
    np.testing.assert_allclose(seen - true, [3.0, 3.0 / math.sqrt(3)], atol=0.51 * CARD.current_step)
    np.testing.assert_allclose(seen / CARD.current_step, np.rint(seen / CARD.current_step), atol=1e-3)
