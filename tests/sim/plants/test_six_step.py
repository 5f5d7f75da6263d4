"""A brushless motor in six-step commutation, against scipy's integration of its circuit, and against its data sheet."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.plants.motor.six_step import HALLS, PULSE, SIX_STEPS, SixStepDrive, hall_sector, switched
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import BldcCard

PERIOD = 5e-4
CARD = load_robot("ec45_flat", BldcCard)
R, L, K = 0.5 * CARD.resistance, 0.5 * CARD.inductance, 0.5 * CARD.torque_constant


def shape(degrees: np.ndarray) -> np.ndarray:
    """A trapezoid by its corners."""
    return np.interp(degrees, [0, 30, 150, 210, 330, 360], [0, 1, 1, -1, -1, 0], period=360.0)


def bridges(degrees: float) -> tuple[int, int, int]:
    """Which phase is up, which down, and which off: those are up and down whose back-EMF is flat in this sector."""
    middle = 60.0 * np.floor((degrees - 30.0) / 60.0) + 60.0
    now = shape(middle - 120.0 * np.arange(3))
    return int(np.argmax(now)), int(np.argmin(now)), int(np.argmin(np.abs(now)))


def integrated(duties: np.ndarray, speed: float, degrees: float, load: float) -> np.ndarray:
    """(k, 4): phase currents and speed after each control period, of the circuit's equations between phases."""
    state, found, volt = np.array([0.0, 0.0, 0.0, speed, degrees]), [], CARD.supply_voltage

    def rate(_: float, x: np.ndarray, up: int, down: int, off: int, duty: float, terminal: float | None) -> np.ndarray:
        current, emf = x[:3], K * x[3] * shape(x[4] - 120.0 * np.arange(3))
        voltage = np.zeros(3)
        voltage[up], voltage[down] = 0.5 * volt * (1.0 + duty), 0.5 * volt * (1.0 - duty)
        rows, driven = np.zeros((3, 3)), np.zeros(3)
        rows[0] = 1.0  # the currents' sum stays zero
        rows[1, up], rows[1, down] = L, -L
        left = voltage - emf - R * current
        driven[1] = left[up] - left[down]
        if terminal is None:
            rows[2, off] = 1.0
        else:
            rows[2, up], rows[2, off] = L, -L
            driven[2] = left[up] - (terminal - emf[off] - R * current[off])
        torque = K * shape(x[4] - 120.0 * np.arange(3)) @ current
        dry = CARD.dry_friction * np.clip(x[3] / (0.005 * CARD.speed_max), -1.0, 1.0)
        turn = (torque - dry - CARD.friction * x[3] - load) / CARD.inertia
        return np.array([*np.linalg.solve(rows, driven), turn, np.degrees(CARD.pole_pairs * x[3])])

    for duty in duties:
        for _ in range(round(PERIOD / PULSE)):
            up, down, off = bridges(state[4])
            begun = 0.0
            if state[off] != 0.0:  # its current flows on through a diode, until it is zero

                def gone(_: float, x: np.ndarray, *rest: object, off: int = off) -> float:
                    return float(x[off])

                gone.terminal, gone.direction = True, -np.sign(state[off])  # type: ignore[attr-defined]
                rest = (up, down, off, duty, 0.0 if state[off] > 0.0 else volt)
                way = solve_ivp(rate, (0.0, PULSE), state, args=rest, events=gone, rtol=1e-7, atol=1e-9)
                begun, state = way.t[-1], way.y[:, -1].copy()
                if way.status == 1:
                    state[off] = 0.0
            if begun < PULSE:
                rest = (up, down, off, duty, None)
                state = solve_ivp(rate, (begun, PULSE), state, args=rest, rtol=1e-7, atol=1e-9).y[:, -1].copy()
        found.append(state[:4].copy())
    return np.array(found)


def driven(duties: np.ndarray, speed: float, degrees: float, load: float = 0.0) -> tuple[SixStepDrive, np.ndarray]:
    """The drive, and (k, 4) as ``integrated``: the first duty acts at once."""
    drive, found = SixStepDrive(CARD, 1, PERIOD), []
    drive.param("supply_resistance")[:] = 0.0
    drive.param("load")[:] = load
    drive.current.shaft_speed[:], drive.current.turn[:] = speed, degrees / 360.0
    drive.current.pending_duty[:] = float(duties[0])
    for duty in [*duties[1:], duties[-1]]:
        drive.step({"duty": torch.tensor([[float(duty)]])})
        found.append([*drive.current.phase_current[0].tolist(), float(drive.current.shaft_speed)])
    return drive, np.array(found)


@pytest.mark.parametrize(("speed", "duties"), [(120.0, (0.45, -0.1)), (-450.0, (-0.75, -0.5))])
def test_its_currents_and_speed_are_those_that_scipy_integrates(speed: float, duties: tuple[float, float]) -> None:
    every, load = np.repeat(duties, 12), 0.02
    _, found = driven(every, speed, 77.0, load)
    expected = integrated(every, speed, 77.0, load)
    assert np.abs(expected[:, :3]).max() > 3.0
    off = np.abs(found[:, :3] - expected[:, :3]).max(1)
    assert np.quantile(off, 0.8) < 0.06
    assert off.max() < 0.4  # where a commutation comes a PWM period sooner or later
    np.testing.assert_allclose(found[:, 3], expected[:, 3], atol=0.5)


def test_it_turns_as_its_data_sheet_says() -> None:
    """6250 rpm with some 0.24 A without load, and at low speed, where commutations are seldom, 6.92 rpm less for each
    mN m; at full speed it is more, for the winding's current has no time to follow."""
    free, found = driven(np.full(500, 1.0), 600.0, 0.0)
    assert found[-1, 3] * 60.0 / (2.0 * np.pi) == pytest.approx(6250.0, rel=0.02)
    assert float(np.abs(found[-100:, :3]).max()) < 1.0
    assert float(free.current.rotor_speed) == pytest.approx(found[-1, 3], rel=2e-3)
    slow = [driven(np.full(800, 0.1), 50.0, 0.0, load)[1][-200:, 3].mean() for load in (0.01, 0.03)]
    assert (slow[0] - slow[1]) * 60.0 / (2.0 * np.pi) == pytest.approx(6.92 * 20.0, rel=0.1)


def test_the_sectors_are_those_in_which_back_emf_is_flat_and_hall_sensors_change() -> None:
    for degrees in np.arange(1.0, 360.0, 2.0):
        sector = int(hall_sector(torch.tensor([degrees / 360.0]))[0])
        up, down, off = bridges(degrees)
        phases = SIX_STEPS[sector]
        assert (phases[up], phases[down], phases[off]) == (1, -1, 0)
        assert tuple(int(gate) for gate in switched(torch.tensor([float(sector)]))) == phases
        high = [(degrees - first) % 360.0 < 180.0 for first in (30.0, 150.0, 270.0)]
        assert HALLS[sector] == "".join(str(int(bit)) for bit in high)


def test_the_speed_of_hall_sensors_comes_with_the_second_edge_and_falls_when_edges_stay_away() -> None:
    drive, _ = driven(np.zeros(1), 0.0, 40.0)
    drive.param("inertia")[:] = 1.0  # so that the speed stays
    drive.current.shaft_speed[:] = 50.0
    sixth, seen = 2.0 * np.pi / (6.0 * CARD.pole_pairs), []
    for _ in range(16):
        drive.step({"duty": torch.zeros(1, 1)})
        seen.append(float(drive.current.rotor_speed))
    edges = np.array([50.0, 110.0]) / 360.0 * 2.0 * np.pi / CARD.pole_pairs / 50.0  # s, from 40 degrees on
    first, second = (int(np.ceil(edge / PERIOD)) - 1 for edge in edges)
    assert seen[:second] == [0.0] * second
    assert first < second
    assert seen[second:] == pytest.approx([50.0] * (16 - second), rel=5e-3)
    drive.current.shaft_speed[:] = 0.0
    for _ in range(20):
        drive.step({"duty": torch.zeros(1, 1)})
    since = float(drive.current.since_edge)
    assert since > 0.009
    assert float(drive.current.rotor_speed) == pytest.approx(sixth / since, rel=1e-3)
