"""A shaft on a drive that keeps a current, against scipy's integration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from robo_rl.sim.plants.motor.drive import CurrentDrive
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import DcCard, PmsmCard

PERIOD, LAG = 1e-3, 5e-4
CARDS: dict[str, Any] = {"traction_pmsm": PmsmCard, "gearmotor_37d": DcCard}


def driven(drive: CurrentDrive, commands: np.ndarray) -> np.ndarray:
    """(k, 2) rad/s and A under commands (k,) A, the first of which acts at once."""
    drive.current.pending_current[:] = float(commands[0])
    found = []
    for command in [*commands[1:], commands[-1]]:
        drive.step({"current_target": torch.tensor([[float(command)]])})
        found.append([float(drive.current.rotor_speed), float(drive.current.current)])
    return np.array(found)


@pytest.mark.parametrize("name", CARDS)
def test_it_moves_as_scipy_integrates_it(name: str) -> None:
    card = load_robot(name, CARDS[name])
    drive = CurrentDrive(card, 1, PERIOD, LAG)
    load = 0.2 * card.torque_factor * card.current_nominal
    drive.param("load")[:], drive.param("load_time")[:] = load, 0.1
    commands = card.current_nominal * np.repeat([0.8, 0.4, 0.6], 60)
    found, state = driven(drive, commands), np.zeros(2)
    dry, slow = getattr(card, "dry_friction", 0.0), drive.winding.slow

    def rate(time: float, x: np.ndarray, target: float) -> list[float]:
        torque = card.torque_factor * x[1] - card.friction * x[0] - dry * np.clip(x[0] / slow, -1, 1)
        return [(torque - (load if time >= 0.1 - 1e-9 else 0.0)) / card.inertia, (target - x[1]) / LAG]

    for k, target in enumerate(commands):
        span = (k * PERIOD, (k + 1) * PERIOD)
        state = solve_ivp(rate, span, state, args=(target,), rtol=1e-9, atol=1e-9).y[:, -1]
        assert found[k, 0] == pytest.approx(state[0], abs=0.004 * card.speed_max)
        assert found[k, 1] == pytest.approx(state[1], abs=1e-3 * card.current_nominal)


def test_no_current_flows_that_the_supply_can_not_drive_against_back_emf() -> None:
    card = load_robot("gearmotor_37d", DcCard)
    drive = CurrentDrive(card, 1, PERIOD, LAG)
    speed = 900.0
    drive.param("inertia")[:] = 1.0  # so that the speed stays
    drive.current.rotor_speed[:] = speed
    current = driven(drive, np.full(30, 5.0))[-1, 1]
    assert current == pytest.approx((card.supply_voltage - card.torque_constant * speed) / card.resistance, rel=1e-3)
