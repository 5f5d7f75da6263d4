"""The bandwidth of a rate loop from a log: that of a known loop, and of the emulated PX4."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.commands.running.doctor import main as doctor
from robo_rl.contract import RateLaw
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import LogWriter
from robo_rl.deploy.robot.logs.rate_loop import examine_rate_loop, rate_loop_gains

CONTRACT = Bundle.read("zoo:quadrotor-rates").contract
NAMES = [signal.name for signal in CONTRACT.signals]
AT = sum(signal.size for signal in CONTRACT.signals[: NAMES.index("angular_velocity")])
PERIOD, FINE = 0.02, 0.001


class Step:
    """What of a log's record is read."""

    def __init__(self, time: float, stamp: float, rates: np.ndarray, sent: np.ndarray) -> None:
        self.time, self.stamps = round(1e6 * time), (round(1e6 * stamp),) * len(NAMES)
        self.signals = np.zeros(sum(signal.size for signal in CONTRACT.signals), np.float32)
        self.signals[AT : AT + 3] = rates
        self.sent = np.append(sent, 9.81)


def flown(gains: tuple[float, float, float], delay: float, noise: float = 0.0) -> list[Any]:
    """Ten seconds of a loop w' = g (c − w), solved exactly for commands that are held, told 10 ms late."""
    random = np.random.default_rng(1)
    rates, steps, sent = np.zeros(3), [], [np.zeros(3)]
    past = [rates]
    per, late = round(PERIOD / FINE), round(delay / FINE)
    for i in range(500 * per):
        if i % per == 0:
            told = past[max(0, len(past) - 11)] + noise * random.standard_normal(3)
            sent.append(np.clip(0.8 * sent[-1] + random.normal(0.0, 0.5, 3), -3.0, 3.0))
            steps.append(Step(1.0 + i * FINE, 1.0 + i * FINE - 0.010, told, sent[-1]))
        heard = sent[max(0, 1 + (i - late) // per)] if i >= late else sent[0]
        rates = heard + (rates - heard) * np.exp(-np.array(gains) * FINE)
        past.append(rates)
    return steps


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.025])
def test_the_gains_of_a_known_loop_are_found(delay: float) -> None:
    for gains in ((20.0, 14.0, 2.4), (6.0, 30.0, 8.0)):
        found = rate_loop_gains(CONTRACT, flown(gains, delay, 0.02))
        np.testing.assert_allclose(found, gains, rtol=0.1)


def test_a_loop_that_is_too_slow_is_wrong_and_one_that_does_not_move_tells_nothing() -> None:
    good = {one.subject: one.good for one in examine_rate_loop(CONTRACT, flown((6.0, 20.0, 2.4), 0.01))}
    assert good == {"rate loop x": False, "rate loop y": True, "rate loop z": True}
    law = RateLaw((5.0, 21.0, 1.0), ((14.0,) * 3, (40.0,) * 3))
    other = tuple(replace(one, law=law) if one.name == "body_rate" else one for one in CONTRACT.commands)
    found = examine_rate_loop(replace(CONTRACT, commands=other), flown((6.0, 20.0, 2.4), 0.01))
    assert [one.good for one in found] == [True, False, True]
    assert "about y; the policy needs 21: raise the autopilot's rate gains" in found[1].sentence
    unsaid = tuple(replace(one, law=None) for one in CONTRACT.commands)  # bundles of before
    found = examine_rate_loop(replace(CONTRACT, commands=unsaid), flown((6.0, 20.0, 2.4), 0.01))
    assert [one.good for one in found] == [False, True, True]
    still = [Step(0.02 * i, 0.02 * i - 0.01, np.zeros(3), np.zeros(3)) for i in range(300)]
    assert np.isnan(rate_loop_gains(CONTRACT, still)).all()  # type: ignore[arg-type]
    assert all("too little motion" in one.sentence for one in examine_rate_loop(CONTRACT, still))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected body_rate"):
        rate_loop_gains(Bundle.read("zoo:quadrotor-hover").contract, [])


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("signals", math.nan, "is not always a number from -34.9"), ("signals", 1e30, "is not always a number from"),
        ("sent", math.nan, "commands are not always finite"), ("stamps", (-1,) * len(NAMES), "go backwards"),
        ("time", 0, "go backwards"),
    ],
)  # fmt: skip
def test_a_step_that_no_robot_gives_is_wrong(name: str, value: Any, sentence: str) -> None:
    steps = flown((20.0, 20.0, 2.4), 0.01)
    if isinstance(value, float):
        getattr(steps[200], name)[AT if name == "signals" else 0] = value
    else:
        setattr(steps[200], name, value)
    (found,) = examine_rate_loop(CONTRACT, steps)
    assert not found.good
    assert sentence in found.sentence


@pytest.mark.parametrize("ahead", [1.0, -5.0, 1e8])
def test_stamps_of_another_clock_are_wrong(ahead: float) -> None:
    steps = flown((20.0, 20.0, 2.4), 0.01)
    for step in steps:
        step.stamps = tuple(round(stamp + 1e6 * ahead) for stamp in step.stamps)
    (found,) = examine_rate_loop(CONTRACT, steps)
    assert not found.good
    assert "are they of the same clock?" in found.sentence


def test_a_log_of_another_robot_or_without_a_step_is_refused(tmp_path: Path) -> None:
    for task, sentence in (("quadrotor-hover", "its signals and commands are"), ("quadrotor-rates", "no step in it")):
        contract = Bundle.read(f"zoo:{task}").contract
        LogWriter(tmp_path / f"{task}.mcap", contract, {"wall": "0"}).close()
        with pytest.raises(ValueError, match=sentence):
            doctor("zoo:quadrotor-rates", log=tmp_path / f"{task}.mcap")


def test_the_emulated_px4_s_loop_is_found_in_a_flight() -> None:
    pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")
    sys.path.append(str(Path(__file__).parent / "drivers"))
    from emulated_px4 import Session

    from robo_rl.deploy.emulate.px4 import Vehicle

    session = Session(vehicle=Vehicle())
    session.run("", 8.0, 0.1)
    gains = rate_loop_gains(CONTRACT, [step.record() for step in session.steps[-400:]])
    hover = np.stack([step.record().signals[AT : AT + 2] for step in session.steps[-200:]])
    assert np.sqrt((hover**2).mean(0)).max() < 0.2  # rad/s, noise of the estimate included
    assert all(8.0 < gain < 30.0 for gain in gains[:2])  # 20 1/s, behind rotors that rise in 60 ms
    assert math.isnan(gains[2]) or 0.5 < gains[2] < 6.0
