"""Latency and noise of signals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.contract import Signal
from sim.sensors import Sensors

PERIOD = 0.01
XYZ = ("x", "y", "z")
LIMITS = ((-1e3,) * 3, (1e3,) * 3)
POSITION = Signal("position", XYZ, "m", "world", *LIMITS, noise=(0.1, 0.2, 0.3), delay=(0.0, 0.03))
TURN = Signal("orientation", (*XYZ, "w"), "1", "world", (-2.0,) * 4, (2.0,) * 4, kind="quaternion", noise=(0.1,) * 4)
WISH = Signal("setpoint", XYZ, "m", "world", *LIMITS, source="operator")


def ramp(sensors: Sensors, delays: torch.Tensor, steps: int) -> torch.Tensor:
    """Readings (steps, n, 3) of a position that grows by 1 m per control step, from a standstill at 0."""
    n = len(delays)
    truth = {"position": torch.zeros(n, 3)}
    delay_buffer, read = sensors.start(truth), []
    for k in range(1, steps + 1):
        signals, delay_buffer = sensors.measure(
            {"position": torch.full((n, 3), float(k))}, delay_buffer, delays, torch.zeros(n, 3)
        )
        read.append(signals["position"])
    return torch.stack(read)


def test_delay_of_a_ramp_is_exact_also_between_steps() -> None:
    delays = torch.tensor([0.0, 0.004, 0.01, 0.0175, 0.03])
    read = ramp(Sensors([POSITION], PERIOD), delays, 10)
    for k in range(4, 10):  # from when on the standstill is out of the delay_buffer
        torch.testing.assert_close(read[k, :, 0], k + 1 - delays / PERIOD, atol=1e-4, rtol=0.0)


def test_a_whole_number_of_steps_gives_back_the_past() -> None:
    read = ramp(Sensors([POSITION], PERIOD), torch.tensor([0.02]), 6)
    assert read[:, 0, 0].tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_line_is_as_long_as_asked_for() -> None:
    read = ramp(Sensors([POSITION], PERIOD, longest_delay=0.06), torch.tensor([0.06]), 8)
    assert read[:, 0, 0].tolist() == pytest.approx([0, 0, 0, 0, 0, 0, 1, 2], abs=1e-4)


def test_quaternions_keep_unit_norm_and_operator_signals_pass_through() -> None:
    sensors = Sensors([POSITION, TURN, WISH], PERIOD)
    orientation = torch.nn.functional.normalize(torch.randn(500, 4), dim=-1)
    truth = {"position": torch.zeros(500, 3), "orientation": orientation, "setpoint": torch.randn(500, 3)}
    noise = torch.randn(500, 7) * sensors.noise
    signals, _ = sensors.measure(truth, sensors.start(truth), torch.full((500,), 0.01), noise)
    assert list(signals) == ["position", "orientation", "setpoint"]
    torch.testing.assert_close(signals["orientation"].norm(dim=-1), torch.ones(500))
    assert (signals["setpoint"] == truth["setpoint"]).all()
    assert not torch.equal(signals["orientation"], orientation)


def test_noise_has_the_standard_deviation_of_the_contract() -> None:
    sensors = Sensors([POSITION], PERIOD)
    truth = {"position": torch.zeros(50_000, 3)}
    noise = torch.randn(50_000, 3, generator=torch.Generator().manual_seed(0)) * sensors.noise
    signals, _ = sensors.measure(truth, sensors.start(truth), torch.zeros(50_000), noise)
    np.testing.assert_allclose(signals["position"].std(0).numpy(), POSITION.noise, rtol=0.02)
