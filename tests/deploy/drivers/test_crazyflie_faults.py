"""Whatever happens to a Crazyflie, its motors end off and it is on the ground; what is normal on its link is borne."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cflib", reason="cflib is missing: pip install 'robo-rl[crazyflie]'")

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.crazyflie.supervisor import State as Supervisor
from robo_rl.deploy.emulate.crazyflie.wire import FAULTS
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_crazyflie import HEIGHT, Session

AT, SECONDS = 1.8, 1.6  # s: of flight before the fault, and after it
PERIOD = 0.02
SLOW = {
    "battery empty": 1.3,
    "commands lost": 1.0,
    "all damaged": 1.0,
    "another commander": 0.8,
    "estimate unsure": 0.6,
}
"""s until it shows: the battery may sag for a second, what it follows is told 50 times a second."""
UNHEARD = ("commands lost", "unplugged", "silent vehicle")
"""The firmware levels it after 0.5 s, and stops its motors after 1 s."""
BLIND = ("estimate diverges", "estimate unsure", "estimate jumps")
"""It comes down level, a little too light."""


def flown(fault: str) -> Session:
    """The session, the program's end, and until it lies with its motors off."""
    session = Session()
    session.run(fault, AT, SECONDS)
    session.driver.close()
    for _ in range(500):
        if down(session):
            break
        session.world.sleep(PERIOD)
    return session


def down(session: Session) -> bool:
    return session.vehicle.off and session.vehicle.truth["position"][2] < 0.02


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_link_is_borne_and_the_vehicle_lands_at_the_end(fault: str) -> None:
    session = flown(fault)
    during = session.steps[session.at : session.at + round(SECONDS / PERIOD) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert not session.problems
    places = np.array(session.places[session.at : session.at + len(during)])
    assert np.abs(places - [0.0, 0.0, HEIGHT]).max() < 0.2
    assert down(session)
    assert session.sink < 0.8


ENDING = [name for name, one in FAULTS.items() if not one.borne]


@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::3]))
def test_the_gate_stops_and_the_vehicle_ends_on_the_ground_with_its_motors_off(fault: str) -> None:
    session = flown(fault)
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + round(SLOW.get(fault, 0.3) / PERIOD)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    assert down(session)
    one = FAULTS[fault]
    if not (one.falls or fault in UNHEARD or fault == "another commander"):
        assert session.sink < (2.5 if fault in BLIND else 0.8)


@pytest.mark.parametrize("watchdog", [True, False])
def test_a_program_that_is_killed_leaves_a_vehicle_that_levels_and_stops_its_motors_in_time(watchdog: bool) -> None:
    session = Session(file=CrazyflieFile(watchdog=watchdog))

    def die(of: Session) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run("", AT, SECONDS, die)
    assert session.vehicle.truth["position"][2] > HEIGHT - 0.2
    session.world.sleep(0.7)
    assert session.vehicle.supervisor.state is Supervisor.LEVELS
    assert not session.vehicle.off
    session.world.sleep(0.5 if watchdog else 1.5)
    assert session.vehicle.off
    assert session.vehicle.supervisor.state is Supervisor.LOCKED
    session.driver.session.close()
