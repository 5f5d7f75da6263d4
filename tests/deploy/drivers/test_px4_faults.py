"""Whatever happens to a vehicle with PX4, it lands, or somebody else has it; what is normal on its line is borne."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.px4 import Vehicle
from robo_rl.deploy.emulate.px4.wire import FAULTS
from robo_rl.deploy.robot.drivers.mavlink.modes import LAND, POSITION, RETURN

sys.path.append(str(Path(__file__).parent))
from emulated_px4 import HEIGHT, Session

from tests.suite import representatives

AT, SECONDS = 5.0, 2.0  # s: of flight before the fault, and after it
PERIOD = 0.02
SLOW = {
    "battery empty": 0.8,
    "commands lost": 1.5,
    "commands damaged": 1.5,
    "another commander": 1.0,
    "pilot": 1.5,
    "failsafe": 1.5,
    "killed": 1.5,
}
"""s until it shows: PX4's own time-out, and its heartbeats once a second."""
UNHEARD = ("commands lost", "commands damaged", "unplugged", "another commander")
"""PX4 goes on for 0.2 s (COM_OF_LOSS_T) by what it was told last, or by somebody else."""
VERSIONS = ((1, 12), (1, 16))
"""Of PX4, on either side of what was rewritten in 1.14."""
TAKEN = {"pilot": POSITION, "failsafe": RETURN}


def flown(fault: str, version: tuple[int, int]) -> Session:
    """The session, the program's end, and 12 s more: since 1.14 PX4 holds its place for 5 s before it lands."""
    session = Session(vehicle=Vehicle(version=version))
    session.run(fault, AT, SECONDS)
    session.driver.close()
    for _ in range(600):
        session.world.sleep(PERIOD)
        session.watch()
    return session


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("version", representatives(VERSIONS, VERSIONS[1:]))
@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_line_is_borne_and_the_vehicle_lands_at_the_end(
    fault: str, version: tuple[int, int]
) -> None:
    session = flown(fault, version)
    during = session.steps[session.at : session.at + round(SECONDS / PERIOD) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert not session.problems
    places = np.array(session.places[session.at : session.at + len(during)])
    assert np.abs(places - [0.0, 0.0, HEIGHT]).max() < 0.3
    assert not session.vehicle.armed
    assert session.vehicle.truth["position"][2] < 0.05


ENDING = [name for name, one in FAULTS.items() if not one.borne]


@pytest.mark.parametrize("version", representatives(VERSIONS, VERSIONS[1:]))
@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::2]))
def test_the_gate_stops_and_the_vehicle_comes_down_softly_or_somebody_else_has_it(
    fault: str, version: tuple[int, int]
) -> None:
    session = flown(fault, version)
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + round(SLOW.get(fault, 0.3) / PERIOD)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    vehicle, sink = session.vehicle, -np.array(session.speeds)[session.at :, 2].min()
    if fault in TAKEN:
        assert vehicle.mode == TAKEN[fault]
        assert vehicle.armed, "nothing of ours is sent any more"
        assert session.driver.health().problems
        return
    assert not vehicle.armed
    assert vehicle.truth["position"][2] < 0.05
    if not FAULTS[fault].falls:
        assert vehicle.mode == LAND
        assert sink < (4.5 if fault in UNHEARD else 1.2)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_that_is_killed_leaves_a_vehicle_that_lands_by_itself(version: tuple[int, int]) -> None:
    session = Session(vehicle=Vehicle(version=version))

    def die(of: Session) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run("", AT, SECONDS, die)
    place = session.vehicle.truth["position"]
    assert place[2] > 1.5
    for _ in range(700):
        session.world.sleep(PERIOD)
        session.watch()
    tilts = [math.acos(min(1.0, 1.0 - 2.0 * (x * x + y * y))) for x, y, _, _ in session.turns]
    assert max(tilts[-700:]) < math.radians(15.0)
    assert np.linalg.norm(session.vehicle.truth["position"][:2] - place[:2]) < 0.5
    assert session.vehicle.mode == LAND
    assert not session.vehicle.armed
    assert session.vehicle.truth["position"][2] < 0.05
