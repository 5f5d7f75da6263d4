"""Latency, noise and bias of signals; slow sensors, measurements that drop out, and their ages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.contract import Signal
from robo_rl.sim.accelerate.fuse import fuse, streams
from robo_rl.sim.ranges import Range
from robo_rl.sim.sensors import Chance, SensorDraws, Sensors

PERIOD = 0.01
XYZ = ("x", "y", "z")
LIMITS = ((-1e3,) * 3, (1e3,) * 3)
POSITION = Signal("position", XYZ, "m", "world", *LIMITS, noise=(0.1, 0.2, 0.3), delay=(0.0, 0.03))
TURN = Signal("orientation", (*XYZ, "w"), "1", "world", (-2.0,) * 4, (2.0,) * 4, kind="quaternion", noise=(0.1,) * 4)
WISH = Signal("setpoint", XYZ, "m", "world", *LIMITS, source="operator")
EXACT = Signal("position", XYZ, "m", "world", *LIMITS, delay=(0.0, 0.03))


def measured(sensors: Sensors, draws: SensorDraws, steps: int, n: int, phases: tuple = (), **uniform: Any) -> dict:
    """Signals (steps, n, k) of quantities that all grow by 1 per control step, from 0 at the start."""
    names = [signal.name for signal in sensors.sensed]
    sizes = [signal.size for signal in sensors.sensed]
    truth = {name: torch.zeros(n, size) for name, size in zip(names, sizes, strict=True)}
    quiet = torch.zeros(n, sensors.size)
    chances = uniform.get("uniform", torch.ones(steps + 1, n, len(sensors.dropouts)))
    state = sensors.start(truth, phases)
    first, state = sensors.measure(truth, state, draws, Chance(quiet, chances[0]), first=True)
    seen = [first]
    for k in range(1, steps + 1):
        now = {name: torch.full_like(value, float(k)) for name, value in truth.items()}
        signals, state = sensors.measure(now, state, draws, Chance(quiet, chances[k]))
        seen.append(signals)
    return {name: torch.stack([moment[name] for moment in seen]) for name in first}


def test_delay_of_a_ramp_is_exact_also_between_steps() -> None:
    delays = torch.tensor([0.0, 0.004, 0.01, 0.0175, 0.03])
    read = measured(Sensors([EXACT], PERIOD), SensorDraws(delay=delays[:, None]), 10, 5)["position"]
    for k in range(4, 11):  # from when on the standstill is out of the past
        torch.testing.assert_close(read[k, :, 0], k - delays / PERIOD, atol=1e-4, rtol=0.0)


def test_a_whole_number_of_steps_gives_back_the_past() -> None:
    read = measured(Sensors([EXACT], PERIOD), SensorDraws(delay=torch.tensor([[0.02]])), 6, 1)["position"]
    assert read[:, 0, 0].tolist() == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("given", [{"ranges": {"delay": Range.fixed(0.0, 0.06)}}, {"fixed": {"delay/position": 0.06}}])
def test_the_past_is_as_long_as_the_longest_latency(given: dict) -> None:
    read = measured(Sensors([EXACT], PERIOD, **given), SensorDraws(delay=torch.tensor([[0.06]])), 8, 1)["position"]
    assert read[:, 0, 0].tolist() == pytest.approx([0, 0, 0, 0, 0, 0, 0, 1, 2], abs=1e-4)


def test_quaternions_keep_unit_norm_and_operator_signals_pass_through() -> None:
    sensors = Sensors([POSITION, TURN, WISH], PERIOD)
    orientation = torch.nn.functional.normalize(torch.randn(500, 4), dim=-1)
    truth = {"position": torch.zeros(500, 3), "orientation": orientation, "setpoint": torch.randn(500, 3)}
    chance = Chance(torch.randn(500, 7), ())
    draws = SensorDraws(delay=torch.full((500, 1), 0.01))
    signals, _ = sensors.measure(truth, sensors.start(truth), draws, chance)
    assert list(signals) == ["position", "orientation", "setpoint"]
    torch.testing.assert_close(signals["orientation"].norm(dim=-1), torch.ones(500))
    assert (signals["setpoint"] == truth["setpoint"]).all()
    assert not torch.equal(signals["orientation"], orientation)


def test_noise_has_the_standard_deviation_of_the_contract_times_the_factor() -> None:
    sensors = Sensors([POSITION, TURN], PERIOD, {"noise": Range.fixed(0.0, 2.0)})
    n = 50_000
    truth = {"position": torch.zeros(n, 3), "orientation": torch.tensor([[0.0, 0.0, 0.0, 1.0]]).repeat(n, 1)}
    chance = sensors.chance(streams(0, n), torch.ones(n))
    for factor in (1.0, 2.0):
        draws = SensorDraws(delay=torch.zeros(n, 1), noise=torch.full((n,), factor))
        signals, _ = sensors.measure(truth, sensors.start(truth), draws, chance)
        np.testing.assert_allclose(signals["position"].std(0).numpy(), factor * np.array(POSITION.noise), rtol=0.02)


def test_bias_is_constant_through_an_episode() -> None:
    sensors = Sensors([EXACT, TURN], PERIOD, {"bias/position": Range.fixed(-1.0, 1.0, count=3)})
    drawn = {"delay/position": torch.zeros(4), "bias/position": torch.rand(4, 3)}
    draws = sensors.draws(drawn)
    assert (draws.bias[:, 3:] == 0).all()
    read = measured(sensors, draws, 3, 4)["position"]
    for k in range(4):
        torch.testing.assert_close(read[k], k + drawn["bias/position"])


# --- which draw is whose latency -----------------------------------------------------------------------------------


def other(name: str, delay: tuple[float, float]) -> Signal:
    return Signal(name, ("x",), "m", "world", (-1e3,), (1e3,), delay=delay)


def test_latencies_are_the_signals_own_the_common_one_or_those_that_signals_alike_share() -> None:
    signals = [other("a", (0.0, 0.01)), other("b", (0.0, 0.01)), other("c", (0.02, 0.02)), other("d", (0.0, 0.0))]
    own = Sensors(signals, PERIOD)
    assert own.delays == ["delay/a", "delay/c"]
    assert own.ranges == {"delay/a": Range.fixed(0.0, 0.01), "delay/c": Range.fixed(0.02, 0.02)}
    common = Sensors(signals, PERIOD, {"delay": Range.fixed(0.0, 0.05)})
    assert common.delays == ["delay"]
    assert common.ranges == {}
    one_apart = Sensors(signals, PERIOD, {"delay": Range.fixed(0.0, 0.05), "delay/c": Range.fixed(0.1, 0.2)})
    assert one_apart.delays == ["delay", "delay/c"]
    read = measured(one_apart, SensorDraws(delay=torch.tensor([[0.01, 0.03]])), 6, 1)
    assert [read[name][-1, 0, 0].item() for name in "abcd"] == pytest.approx([5.0, 5.0, 3.0, 5.0], abs=1e-4)


def test_sensors_that_are_never_late_keep_no_past() -> None:
    sensors = Sensors([other("d", (0.0, 0.0))], PERIOD)
    assert sensors.delays == []
    assert sensors.start({"d": torch.zeros(2, 1)}).past == ()


# --- slow sensors, dropouts, ages ----------------------------------------------------------------------------------


def slow(name: str = "position", period: float = 0.04, delay: tuple[float, float] = (0.0, 0.0)) -> Signal:
    return Signal(name, XYZ, "m", "world", *LIMITS, delay=delay, period=period)


AGE = Signal("position_age", ("s",), "s", "body", (0.0,), (0.1,), source="runtime", age_of="position")


def test_a_slow_sensor_is_sampled_and_held() -> None:
    sensors = Sensors([slow(), AGE], PERIOD)
    read = measured(sensors, SensorDraws(), 12, 4, (torch.tensor([0.0, 0.25, 0.5, 0.75]),))
    expected = [[0, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9], [0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10]]
    assert read["position"][:, :2, 0].T.tolist() == expected
    assert read["position"][:, 3, 0].tolist() == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12]
    age = torch.arange(13)[:, None] - read["position"][:, :, 0]
    torch.testing.assert_close(read["position_age"][:, :, 0], PERIOD * age)


def test_a_slow_sensor_that_is_late_holds_a_late_reading_and_tells_its_age() -> None:
    sensors = Sensors([slow(delay=(0.0, 0.03)), AGE], PERIOD)
    assert list(sensors.ranges) == ["delay/position", "phase/position"]
    read = measured(sensors, SensorDraws(delay=torch.tensor([[0.02]])), 9, 1, (torch.tensor([0.0]),))
    assert read["position"][:, 0, 0].tolist() == [0, 0, 0, 0, 0, 3, 3, 3, 3, 7]
    torch.testing.assert_close(read["position_age"][5:, 0, 0], torch.tensor([0.02, 0.03, 0.04, 0.05, 0.02]))


def test_a_period_need_not_be_a_whole_number_of_control_steps() -> None:
    read = measured(Sensors([slow(period=1 / 30)], PERIOD), SensorDraws(), 300, 1, (torch.tensor([0.0]),))
    arrivals = np.flatnonzero(np.diff(read["position"][:, 0, 0].numpy()))
    assert len(arrivals) == 91  # in 3 s, both ends included
    assert set(np.diff(arrivals)) == {3, 4}


def test_the_age_saturates_at_the_signals_limit() -> None:
    read = measured(Sensors([slow(period=1.0), AGE], PERIOD), SensorDraws(), 30, 1, (torch.tensor([0.9]),))
    assert read["position_age"].max() == pytest.approx(0.1)


def test_a_measurement_that_drops_out_leaves_the_last_one_which_ages() -> None:
    sensors = Sensors([EXACT, AGE], PERIOD, {"dropout/position": Range.fixed(0.0, 1.0), "delay": Range.fixed(0, 0)})
    uniform = torch.tensor([[[0.9]], [[0.9]], [[0.1]], [[0.1]], [[0.9]]])
    draws = SensorDraws(delay=torch.zeros(1, 1), dropout=torch.tensor([[0.5]]))
    read = measured(sensors, draws, 4, 1, uniform=uniform)
    assert read["position"][:, 0, 0].tolist() == [0, 1, 1, 1, 4]
    torch.testing.assert_close(read["position_age"][:, 0, 0], torch.tensor([0.0, 0.0, 0.01, 0.02, 0.0]))


def test_as_many_measurements_drop_out_as_the_probability_tells() -> None:
    n = 20_000
    sensors = Sensors([EXACT], PERIOD, {"dropout/position": Range.fixed(0.0, 1.0)})
    truth = {"position": torch.zeros(n, 3)}
    draws = SensorDraws(delay=torch.zeros(n, 1), dropout=torch.full((n, 1), 0.3))
    chance = sensors.chance(streams(0, n), torch.ones(n))
    signals, _ = sensors.measure({"position": torch.ones(n, 3)}, sensors.start(truth), draws, chance)
    assert float((signals["position"][:, 0] == 0).float().mean()) == pytest.approx(0.3, abs=0.015)


def test_the_age_of_a_sensor_that_always_measures_is_its_latency() -> None:
    sensors = Sensors([EXACT, AGE], PERIOD)
    read = measured(sensors, SensorDraws(delay=torch.tensor([[0.015]])), 3, 1)
    torch.testing.assert_close(read["position_age"][:, 0, 0], torch.full((4,), 0.015))


def test_fused_sensors_are_those_of_tensors() -> None:
    """Slow, late, dropping out, biased, and aged all at once."""
    ranges = {
        "dropout/position": Range.fixed(0, 1),
        "bias/orientation": Range.fixed(0, 1, 4),
        "noise": Range.fixed(0, 1),
    }
    signals = [slow(delay=(0.0, 0.03)), TURN, AGE, WISH]
    sensors, n = Sensors(signals, PERIOD, ranges), 9
    draws = SensorDraws(torch.rand(n, 1) * 0.03, torch.rand(n), 0.1 * torch.rand(n, 7), torch.full((n, 1), 0.4))
    truth = {"position": torch.rand(n, 3), "orientation": torch.rand(n, 4), "setpoint": torch.rand(n, 3)}
    state, stream = sensors.start(truth, (torch.rand(n),)), streams(1, n)
    step = lambda truth, state, draws, stream, k: sensors.measure(truth, state, draws, sensors.chance(stream, k))  # noqa: E731
    fused, ours, theirs = fuse(step), state, state
    for k in range(1, 12):
        truth = {name: value + 0.1 for name, value in truth.items()}
        found, ours = fused(truth, ours, draws, stream, torch.full((n,), float(k)))
        expected, theirs = step(truth, theirs, draws, stream, torch.full((n,), float(k)))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-5)


def test_a_shaped_signal_has_noise_for_all_numbers_or_for_those_of_its_last_dimension() -> None:
    n = 20_000
    for noise, expected in ((0.5, (0.5, 0.5, 0.5)), ((0.1, 0.2, 0.3), (0.1, 0.2, 0.3))):
        scan = Signal("scan", (), "m", "body", 0.0, 10.0, noise=noise, shape=(2, 3))
        sensors = Sensors([scan], PERIOD)
        truth = {"scan": torch.full((n, 2, 3), 5.0)}
        chance = sensors.chance(streams(0, n), torch.ones(n))
        signals, _ = sensors.measure(truth, sensors.start(truth), SensorDraws(), chance)
        assert signals["scan"].shape == (n, 2, 3)
        np.testing.assert_allclose(signals["scan"].std(0), np.broadcast_to(expected, (2, 3)), rtol=0.03)
