"""Currents and torque in a report on a motor."""

from __future__ import annotations

import numpy as np
import pytest

from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.motor import loci, torque, torques
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import PmsmCard

CARD = load_robot("traction_pmsm", PmsmCard)


def recorded() -> Episodes:
    """Two episodes of 20 steps at standing currents, the first of which ends after 10."""
    current = np.zeros((20, 2, 2), np.float32)
    current[:, 0], current[:, 1] = (-100.0, 200.0), (0.0, 50.0)
    return Episodes(
        survived=np.ones(2, bool), success=np.ones(2, bool), duration=np.array([1e-3, 2e-3]), measures=(), errors={},
        recording={"stator_current": current, "current_setpoint": current},
    )  # fmt: skip


def test_torque_has_the_magnets_part_and_the_reluctance_s() -> None:
    """1.5 · 3 · (0.066 + (0.37 − 1.2) mH · −100 A) · 200 A."""
    assert torque(np.array([-100.0, 200.0]), CARD) == pytest.approx(4.5 * (0.066 + 0.083) * 200)
    assert torque(np.array([0.0, 240.0]), CARD) == pytest.approx(CARD.torque_factor * 240)


def test_plots_end_with_their_episodes_and_show_the_limit() -> None:
    (axes,) = loci(recorded(), 1e-4, CARD.current_limit).axes
    lengths = [len(line.get_xdata()) for line in axes.lines]
    assert lengths[:4] == [10, 10, 20, 20]
    assert np.hypot(*axes.lines[-1].get_data()) == pytest.approx(400.0)
    (axes,) = torques({"policy": recorded()}, 1e-4, CARD).axes
    assert axes.lines[0].get_ydata() == pytest.approx(4.5 * 0.149 * 200)
