"""The examples do what they say: the loop for a robot's computer, and the card of a robot that isn't ours."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.multirotor import GRAVITY
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import located

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


def recorded(example, bundle, rate, lose, seconds=2.0):
    """The exit code, and (time in s, commands or None) of all that was sent."""
    clock, sent = VirtualTime(), []

    class Recorder(example.StandIn):
        def write(self, commands, source):
            sent.append((clock.nanoseconds / 1e9, None if commands is None else np.concatenate([*commands.values()])))
            super().write(commands, source)

    policy = Policy.load(bundle, rate)
    code = example.run(policy, Recorder(policy.contract, lose), seconds, clock, patience=60.0)
    return code, sent


def fly(example, bundle, lose):
    code, sent = recorded(example, bundle, 100, lose)
    armed = [(time, speeds) for time, speeds in sent if speeds is not None]
    return code, np.array([time for time, _ in armed]), np.array([speeds for _, speeds in armed])


def test_the_policy_flies_from_activation_to_the_end_which_is_safe(example, bundle_file):
    code, time, speeds = fly(example, bundle_file, None)
    flying = speeds.max(-1) > 0
    assert code == 0
    assert time.min() == pytest.approx(0.21)  # nothing is sent before
    assert time[flying].min() == pytest.approx(0.22)
    np.testing.assert_array_equal(speeds[-1], 0)
    assert speeds.max() <= load_robot("crazyflie").rotor_speed_max


def test_without_sensors_the_safe_command_comes_within_the_signal_timeout(example, bundle_file):
    timeout = load_task("quadrotor-hover").spec.safety.signal_timeout
    code, time, speeds = fly(example, bundle_file, "sensors")
    last = time[speeds.max(-1) > 0].max()
    assert code == 1
    assert example.LOST_AFTER <= last <= example.LOST_AFTER + timeout + 0.01


def test_without_set_points_the_reserve_takes_over(example, bundle_file):
    code, time, speeds = fly(example, bundle_file, "operator")
    card = load_robot("crazyflie")
    thrust = card.thrust[2] * (speeds[(time > 1.01) & (time < 1.2)] ** 2).sum(-1)
    assert code == 1
    assert 0 < thrust.mean() < 2 * card.mass * GRAVITY  # it would sink; the stand-in hangs where it is


def test_a_walking_robot_moves_slowly_to_its_stance_and_is_stopped_from_where_it_is(example):
    code, sent = recorded(example, located("zoo:go2-flat"), 50, None, seconds=6.0)
    targets = np.array([target for _, target in sent if target is not None])
    stand = np.array(Policy.load(located("zoo:go2-flat"), 50).contract.commands[0].start, np.float32)
    begun = int(np.argmax((targets == stand).all(-1)))
    assert np.abs(np.diff(targets[:begun], axis=0)).max() < 0.03
    assert np.abs(np.diff(targets[-200:], axis=0)).max() < 0.1  # damped: where the joints are, and their sensors' noise
    assert code == 0


def test_the_loop_needs_neither_torch_nor_a_simulator(bundle_file):
    code = (
        "import runpy, sys; sys.modules.update(torch=None, mujoco=None, scipy=None); "
        f"sys.argv = ['run_on_robot.py', {str(bundle_file)!r}, '--seconds', '0.5']; "
        f"runpy.run_path({str(EXAMPLES / 'run_on_robot.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr  # 1 if this machine was too busy to keep the rate
    assert "READY" in done.stdout


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
    from robo_rl.commands.training.train import main
    from robo_rl.learn.config import ApgConfig
    from robo_rl.learn.runs.folder import Run

    short = ApgConfig(updates=3, environments=16, horizon=8)
    assert main("quadrotor-hover", robot=str(EXAMPLES / "own_robot.toml"), runs=tmp_path, episodes=20, apg=short) == 0
    (folder,) = tmp_path.iterdir()
    policy, provenance = Run.open(folder).policy()
    contract = policy.contract(provenance)
    assert contract.robot_name == "own_robot"
    assert contract.command("rotor_speed").elements[0] == "front_left"
    assert len(contract.robot.actuators) == 6
