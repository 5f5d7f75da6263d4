"""The plain loop has what the ROS node has: the ladder, the orientation monitor, and an eye on the bundle's file."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Event, Reason, Request, State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located
from tests.suite import representatives

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))
from test_enabling import SETPOINTS, Robot
from test_loop import PATIENCE, VirtualTime
from test_loop import Robot as Bare


def run(mode: str, robot: Any, policy: Policy, seconds: float, act: Any = None) -> list[Step]:
    """Armed, and active as soon as may be, in virtual time."""
    steps: list[Step] = []

    def note(step: Step) -> None:
        steps.append(step)
        if step.number == 5:
            loop.request(Request.ARM)
        elif loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if act is not None:
            act(loop, step)

    loop = Loop(policy, robot, note, clock=VirtualTime(), patience=PATIENCE, mode=mode, blend_time=1.0)
    loop.run(seconds)
    return steps


@pytest.mark.parametrize("mode", ["dry_run", "shadow"])
def test_below_blend_nothing_is_enabled_or_sent_and_the_policy_is_stepped(mode: str) -> None:
    policy = Policy.load(located("zoo:go2-flat"), 50)
    robot = Robot(policy.contract)
    steps = run(mode, ForLoop(robot, policy.contract, SETPOINTS), policy, 3.0)
    assert State.ACTIVE in [step.output.state for step in steps]
    assert not {"enable", "write"} & set(robot.asked)
    assert all(step.decision.send is None for step in steps)


def test_in_blend_the_policy_gets_its_authority_in_time_and_may_be_promoted() -> None:
    policy = Policy.load(located("zoo:quadrotor-hover"), 100)

    def act(loop: Loop, step: Step) -> None:
        if step.decision.authority == 1.0 and step.mode == "blend":
            loop.session.promote()

    steps = run("blend", Bare(policy), policy, 4.0, act)
    active = [step for step in steps if step.output.state == State.ACTIVE]
    assert [step.decision.authority for step in active[:3]] == pytest.approx([0.0, 0.01, 0.02])
    assert sum(step.mode == "blend" for step in active) == pytest.approx(100, abs=2)
    assert steps[-1].mode == "live"


def test_demoted_where_nothing_moves_the_controller_has_the_robot_at_once() -> None:
    policy = Policy.load(located("zoo:quadrotor-hover"), 100)
    said: list[str] = []

    def act(loop: Loop, step: Step) -> None:
        if step.number == 100:
            loop.request(Request.HALT)
        if step.number == 110:
            said.append(loop.session.demote())
            loop.request(Request.RESET)
        if step.number == 115:
            loop.request(Request.ARM)

    steps = run("live", Bare(policy), policy, 2.0, act)
    assert said == ["mode is now 'blend', the policy's authority 0; the gate is FAULT"]
    after = [step for step in steps if step.number > 110]
    assert State.ACTIVE in {step.output.state for step in after}
    assert {step.decision.authority for step in after} == {0.0}


def test_a_quaternion_in_another_order_is_refused_at_arming() -> None:
    policy = Policy.load(located("zoo:quadrotor-hover"), 100)
    robot = Bare(policy)
    robot.places["orientation"] = np.array([1.0, 0.0, 0.0, 0.0])
    steps = run("live", robot, policy, 1.0)
    assert State.READY not in [step.output.state for step in steps]
    assert [step.number for step in steps if "Is its order x, y, z, w" in step.refused] == [6]  # told where it is asked


def test_an_orientation_that_jumps_in_flight_stops_the_robot() -> None:
    policy = Policy.load(located("zoo:quadrotor-hover"), 100)
    robot = Bare(policy)

    def act(loop: Loop, step: Step) -> None:
        if step.number == 300:
            robot.places["orientation"] = np.array([0.0, 0.0, 1.0, 0.0])  # half a turn about z within 10 ms

    steps = run("live", robot, policy, 4.0, act)
    fault = next(step for step in steps if step.output.events & Event.FAULTED)
    assert fault.number == 301
    assert "turned by 180 degrees in 10 ms" in fault.sentence


def test_a_bundle_that_is_changed_while_it_runs_stops_the_robot(tmp_path: Path) -> None:
    file = Path(shutil.copy(located("zoo:quadrotor-hover"), tmp_path / "policy.onnx"))
    policy, changed = Policy.load(file, 100), []
    steps: list[Step] = []

    def note(step: Step) -> None:
        steps.append(step)
        if step.number == 5:
            file.write_bytes(Path(located("zoo:go2-flat")).read_bytes())
            changed.append(1)
        if step.output.problem.reason == Reason.BUNDLE:
            loop.end()
        elif changed and step.number % 20 == 0:  # a busy computer is another fault
            loop.request(Request.RESET if step.output.state == State.FAULT else Request.ARM)

    loop = Loop(policy, Bare(policy), note, patience=5.0)
    thread = threading.Thread(target=loop.run, args=(20.0,))
    thread.start()
    thread.join(60.0)
    told = [step for step in steps if step.output.problem.reason == Reason.BUNDLE]
    assert told
    assert "another bundle than the one that was verified" in told[0].sentence
    assert Bundle.read(file).contract != policy.contract


GATED = """
import sys, time
sys.path[:0] = [{here!r}, {above!r}]
from test_enabling import Robot
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.gated import Gated, own_contract
from robo_rl.zoo import located
contract = Bundle.read(located("zoo:go2-flat")).contract
class Told(Robot):
    def __init__(self, contract, takes):
        super().__init__(contract, takes)
        self.modes_written = []
    def write(self, commands, mode):
        super().write(commands, mode)
        self.modes_written.append(mode.value)
    def close(self):
        print("closed", self.modes_written[-1:], flush=True)
robot = Told(contract, {takes})
gated = Gated(robot, own_contract(contract, robot))
{program}
"""
ENDS = {
    "the end of the block": "with gated as g:\n    g.arm()",
    "an exception": "with gated as g:\n    g.arm()\n    raise KeyError('a bug')",
    "no close": "gated.start()\ngated.arm()",
    "an exception without close": "gated.start()\ngated.arm()\n1 / 0",
    "sys.exit": "gated.start()\ngated.arm()\nsys.exit(3)",
    "SIGTERM": "import os\ngated.start()\ngated.arm()\nos.kill(os.getpid(), 15)\ntime.sleep(30)",
    "Ctrl-C": "import os\ngated.start()\ngated.arm()\nos.kill(os.getpid(), 2)\ntime.sleep(30)",
    "close twice": "gated.start()\ngated.arm()\ngated.close()\ngated.close()",
}


@pytest.mark.parametrize("how", representatives(list(ENDS), ["the end of the block", "no close", "SIGTERM", "Ctrl-C"]))
def test_a_gated_robot_is_stopped_and_closed_once_however_its_program_ends(how: str, tmp_path: Path) -> None:
    import subprocess

    here = Path(__file__).parent
    text = GATED.format(here=str(here), above=str(here.parent), takes=0.3, program=ENDS[how])
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines() == ["closed ['hold']"], done.stderr
