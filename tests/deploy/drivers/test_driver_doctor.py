"""The bench check through each driver: what it finds of a robot that is well, and of one that is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.commands.running.doctor import main
from robo_rl.deploy.robot.doctor import Finding, Series
from robo_rl.deploy.robot.driver_doctor import examine_driver
from robo_rl.deploy.robot.drivers.bus_servos.joint_order import examine_order, joints_of

sys.path.append(str(Path(__file__).parent))
SESSIONS = {
    "px4": "pymavlink", "so101": "", "dynamixel": "", "go2": "", "g1": "", "f1tenth": "", "ur": "", "crazyflie": "cflib"
}  # fmt: skip
"""Drivers whose emulator runs in virtual time within this process, and the library that each needs."""
MODULES = {"so101": "arm", "f1tenth": "car"}
LIMP = ("joint_position",)
"""Of arms that hang freely: they still sink when the check begins."""
TIMING = ("reading",)
"""Of this computer, which may be busy."""


def session_of(name: str) -> Any:
    if SESSIONS[name]:
        pytest.importorskip(SESSIONS[name], reason=f"{SESSIONS[name]} is missing: pip install 'robo-rl[{name}]'")
    module = __import__(f"emulated_{MODULES.get(name, name)}")
    return module.Session()


def checked(session: Any, seconds: float = 2.0) -> list[Finding]:
    contract = getattr(session, "contract", None) or session.policy.contract
    return examine_driver(session.driver, contract, seconds, getattr(session, "clock", None) or session.world)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_robot_that_is_well_passes_with_its_rates_and_ages_and_what_it_does_in_silence(name: str) -> None:
    session = session_of(name)
    found = checked(session)
    wrong = [one for one in found if not one.good and one.subject not in (*LIMP, *TIMING)]
    assert not wrong
    subjects = {one.subject for one in found}
    assert {"robot", "silence", "reading", *session.driver.measured} <= subjects
    counted = [one.sentence for one in found if one.subject in ("counter", "measured", "voltage", "temperature")]
    assert counted
    assert all(len(sentence) < 100 for sentence in counted)
    assert not any("degC" in sentence for sentence in counted)
    assert any("Hz" in one.sentence for one in found if one.subject in session.driver.measured)


def test_a_servos_firmware_is_told_as_its_maker_writes_it() -> None:
    """Major and minor number, of a byte each (Feetech's memory table, LeRobot's FIRMWARE_MAJOR_VERSION)."""
    session = session_of("so101")
    assert session.driver.connect().details["firmware"] == "3.10 3.10 3.10 3.10 3.10 3.10"


def test_slow_clocks_lines_and_failsafes_of_px4_are_found_on_the_bench() -> None:
    pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")
    from emulated_px4 import Session

    from robo_rl.deploy.emulate.px4 import DEFAULTS, Vehicle

    slow = {one.subject: one for one in checked(Session(vehicle=Vehicle(clock=0.99)), 8.0)}
    assert slow["clock"].good
    assert "runs at 0.990 of this computer's" in slow["clock"].sentence
    (line,) = checked(Session(vehicle=Vehicle(line=2880.0)))
    assert not line.good
    assert "times a second, the policy needs 50" in line.sentence
    unset = Session()
    unset.vehicle.parameters = dict(DEFAULTS)
    (failsafe,) = checked(unset)
    assert "COM_OF_LOSS_T is 1 s" in failsafe.sentence
    assert not unset.vehicle.armed


def test_a_go2_whose_clock_is_far_off_is_told() -> None:
    from emulated_go2 import Session

    session = Session()
    session.robot.broken.rate = 0.9
    found = {one.subject: one for one in checked(session, 8.0)}
    assert not found["clock"].good
    assert "runs at 0.900" in found["clock"].sentence


@pytest.mark.parametrize("exchanged", [False, True])
def test_servos_that_have_each_others_id_are_found_by_moving_joints_by_hand(exchanged: bool) -> None:
    from emulated_arm import contract

    of, random = contract(), np.random.default_rng(0)
    names = [name for name, *_ in joints_of(of)]
    hands = [*names]
    if exchanged:
        hands[1], hands[2] = hands[2], hands[1]
    times = np.arange(0.0, 2.0 * len(names), of.control_period)
    places = {name: 1e-3 * random.normal(size=len(times)) for name in names}
    for k, name in enumerate(hands):
        at = (times >= 2.0 * k) & (times < 2.0 * k + 1.5)
        places[name] = places[name] + np.where(at, 0.3 * np.sin(np.pi * (times - 2.0 * k)), 0.0)
        places[names[0]] = places[names[0]] - 0.02 * at  # the base, which is not quite held
    series = {
        signal.name: Series(list(times), [0.0] * len(times), list(np.stack([places[e] for e in signal.elements], 1)))
        for signal in of.signals
        if {signal.name} & {measured for _, measured, _ in joints_of(of)}
    }
    (found,) = examine_order(of, series)
    assert found.good != exchanged
    assert not exchanged or f"the servos of {names[2]}, {names[1]} have each other's IDs" in found.sentence
    (still,) = examine_order(
        of, {name: Series(one.times[:40], one.ages[:40], one.values[:40]) for name, one in series.items()}
    )
    assert not still.good
    assert names[-1] in still.sentence
    (nothing,) = examine_order(of, {})
    assert not nothing.good


def test_the_command_tells_what_it_finds_and_fails_where_it_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(Path("zoo:quadrotor-hover"), driver="simulated", seconds=0.2, json=True)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["healthy"] == (code == 0)
    assert "silence" in [one["subject"] for one in found["findings"]]
    with pytest.raises(ValueError, match="--repair: the driver simulated sets no parameters"):
        main(Path("zoo:quadrotor-hover"), driver="simulated", repair=True)
    with pytest.raises(ValueError, match="are for --driver"):
        main(Path("zoo:quadrotor-hover"), port="/dev/ttyACM0")
