"""The examples do what they say: the loop for a robot's computer, and the card of a robot that isn't ours."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deploy.runtime import Policy
from robo_rl.zoo import located
from sim.robots import load_robot
from sim.robots.multirotor import GRAVITY
from sim.tasks.loading import load_task

EXAMPLES = Path(__file__).parent.parent / "examples"


class VirtualTime:
    """A clock for which a computer is never too slow."""

    def __init__(self) -> None:
        self.nanoseconds = 0

    def monotonic_ns(self) -> int:
        return self.nanoseconds

    def sleep(self, seconds: float) -> None:
        self.nanoseconds += round(seconds * 1e9)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("run_on_robot", EXAMPLES / "run_on_robot.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fly(example, bundle_file, lose, seconds=2.0):
    """The exit code, and (time in s, rotor speeds) of all that was sent."""
    clock, sent = VirtualTime(), []

    class Recorder(example.StandIn):
        def send(self, commands):
            sent.append((clock.nanoseconds / 1e9, commands["rotor_speed"]))

    policy = Policy.load(bundle_file, 100)
    code = example.run(policy, Recorder(policy.contract, lose), seconds, clock)
    return code, np.array([t for t, _ in sent]), np.array([speeds for _, speeds in sent])


def test_the_policy_flies_from_activation_to_the_end_which_is_safe(example, bundle_file):
    code, time, speeds = fly(example, bundle_file, None)
    flying = speeds.min(-1) > 0
    assert code == 0
    assert time[flying].min() == pytest.approx(0.21)
    np.testing.assert_array_equal(np.flatnonzero(~flying), [*range(21), 200])
    assert speeds.max() <= load_robot("crazyflie").rotor_speed_max


def test_without_sensors_the_safe_command_comes_within_the_signal_timeout(example, bundle_file):
    timeout = load_task("quadrotor-hover").spec.safety.signal_timeout
    code, time, speeds = fly(example, bundle_file, "sensors")
    last = time[speeds.max(-1) > 0].max()
    assert code == 1
    assert example.LOST_AFTER <= last <= example.LOST_AFTER + timeout + 0.01


def test_without_set_points_the_reserve_carries_the_weight(example, bundle_file):
    code, time, speeds = fly(example, bundle_file, "operator")
    card = load_robot("crazyflie")
    thrust = card.thrust[2] * (speeds[(time > 1.05) & (time < 1.95)] ** 2).sum(-1)
    assert code == 1
    assert thrust.mean() == pytest.approx(card.mass * GRAVITY, rel=0.3)  # less than hovering: it wants to sink


def test_the_loop_needs_neither_torch_nor_a_simulator(bundle_file):
    code = (
        "import runpy, sys; sys.modules.update(torch=None, mujoco=None, scipy=None); "
        f"sys.argv = ['run_on_robot.py', {str(bundle_file)!r}, '--seconds', '0.5']; "
        f"runpy.run_path({str(EXAMPLES / 'run_on_robot.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr  # 1 if this machine was too busy to keep the rate
    assert "READY" in done.stdout


def test_a_policy_for_legs_is_refused_by_the_loop_for_multirotors():
    words = [sys.executable, EXAMPLES / "run_on_robot.py", located("zoo:go2-flat"), "--rate", "50"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "is for 'go2', a legged robot; expected a multirotor's policy" in done.stderr


def test_the_fireflys_rotors_are_a_regular_hexagon_that_carries_its_weight():
    card = load_robot(str(EXAMPLES / "own_robot.toml"))
    places = np.array([rotor.position for rotor in card.rotors])
    np.testing.assert_allclose(places[:, :2].sum(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.hypot(*places[:, :2].T), 0.215, atol=1e-6)
    np.testing.assert_allclose(np.diff(np.unwrap(np.arctan2(places[:, 1], places[:, 0]))), np.pi / 3, atol=1e-5)
    assert [rotor.spin for rotor in card.rotors] == ["ccw", "cw"] * 3
    # RotorS: 8.54858e-6 N s² times 6 rotors times Ω² = m g
    assert card.hover_speed == pytest.approx((1.53 * 9.81 / (6 * 8.54858e-6)) ** 0.5, rel=1e-6)


def test_a_policy_is_trained_for_a_robot_of_ones_own_with_its_six_rotors(tmp_path):
    from robo_rl.algorithms.config import ApgConfig
    from robo_rl.commands.train import main
    from robo_rl.runs import Run

    short = ApgConfig(updates=3, environments=16, horizon=8)
    assert main("quadrotor-hover", robot=str(EXAMPLES / "own_robot.toml"), runs=tmp_path, episodes=20, apg=short) == 0
    (folder,) = tmp_path.iterdir()
    policy, provenance = Run.open(folder).policy()
    contract = policy.contract(provenance)
    assert contract.robot_name == "own_robot"
    assert contract.command("rotor_speed").elements[0] == "front_left"
    assert len(contract.robot.actuators) == 6
