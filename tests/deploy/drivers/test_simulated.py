"""The simulated robot as a driver: of any task, and of a robot of one's own."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from robo_rl.commands.running.run import main
from robo_rl.deploy.emulate import simulated_time
from robo_rl.deploy.emulate.driver import SimulatedRobot, make
from robo_rl.deploy.emulate.simulated_time import SimulatedTime
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.deploy.robot.logs.step_log import Flag
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import located


@pytest.mark.parametrize("task", ["diff-nav", "car-race", "quadrotor-hover"])
def test_a_robot_waits_at_rest_until_the_policy_takes_over(task: str) -> None:
    """Of tasks, too, that have nothing in hand that would have to be held."""
    contract = contract_of(load_task(task))
    driver = make(contract, Settings())
    driver.connect()
    for step in range(3):
        samples = driver.read(step * 100_000)
        assert set(samples) == {signal.name for signal in contract.signals}
        assert all(np.isfinite(value).all() for value, _ in samples.values())
        driver.write({c.name: np.zeros(c.size, np.float32) for c in contract.commands}, Mode.POLICY)


def test_a_robot_of_ones_own_is_simulated_by_its_card_and_no_other(tmp_path: Path) -> None:
    text = (Path(load_robot.__code__.co_filename).parent / "turtlebot3" / "card.toml").read_text()
    for name, radius in (("jackal", "0.34"), ("other", "0.3")):
        (tmp_path / f"{name}.toml").write_text(text.replace("value = 0.105", f"value = {radius}"))
    contract = contract_of(load_task("diff-nav", str(tmp_path / "jackal.toml")))
    assert contract.robot_name == "jackal"
    assert make(contract, Settings(file=str(tmp_path / "jackal.toml"))).connect().robot == "jackal"
    with pytest.raises(DriverError, match=r"robot 'jackal' is not known; .* as --robot-file, the card of yours"):
        make(contract, Settings())
    with pytest.raises(DriverError, match=r"other\.toml is not the robot of the contract, 'jackal'"):
        make(contract, Settings(file=str(tmp_path / "other.toml")))


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated time that waits for nothing, and no operator."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(simulated_time.time, "sleep", lambda seconds: None)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("name", ["go2-flat", "quadrotor-hover", "g1-walk", "diff-nav"])
def test_a_policy_runs_for_as_long_as_was_asked_without_an_operator(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A walker stands until the policy takes over."""
    assert main(Path(f"zoo:{name}"), "simulated", arm=True, seconds=6.0) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if line.isupper()] == ["READY ARMED", "ACTIVE ACTIVATED", "IDLE DISARMED"]


def test_what_the_operator_types_sets_signals_that_the_robot_s_task_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "linear_velocity_command 0.4 0\nlinear_velocity_command 9\nheight 1\nquit\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert main(Path("zoo:go2-flat"), "simulated", seconds=20.0) == 0
    told = capsys.readouterr().out
    assert told.count("linear_velocity_command") == 2, (
        "the second is refused, and a name that is none is told the known"
    )
    assert "'height' is not one of arm, go, stop" in told


@pytest.mark.usefixtures("fast")
def test_after_an_episode_it_is_told_and_armed_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Path("zoo:arm-reach"), "simulated", arm=True, seconds=8.0) == 0
    told = capsys.readouterr().out
    ends = told.count("the episode succeeded; the simulated robot begins another one")
    assert ends
    assert told.count("ACTIVE ACTIVATED") in (ends, ends + 1)
    assert "FAULT" not in told


def test_a_learner_s_episodes_have_an_end_and_others_have_none() -> None:
    contract = contract_of(load_task("quadrotor-hover"))
    endless, ending = make(contract, Settings()), make(contract, Settings(learning=True))
    assert isinstance(endless, SimulatedRobot)
    assert isinstance(ending, SimulatedRobot)
    assert ending.env.episode_length == load_task("quadrotor-hover").spec.episode_length
    assert endless.env.episode_length > 1e5


def test_a_multirotor_stays_where_it_is_until_the_policy_takes_over_and_falls_when_it_is_stopped() -> None:
    contract = contract_of(load_task("quadrotor-hover"))
    robot = make(contract, Settings(port="1"))
    start = {c.name: np.zeros(c.size, np.float32) for c in contract.commands}
    first, stamp = robot.read(0)["position"]
    for step in range(1, 400):
        if step > 200:
            robot.write(start, Mode.HOLD)  # armed
        place, at = robot.read(step * 10_000)["position"]
        assert at == stamp + step * 10_000
        np.testing.assert_allclose(place, first, atol=0.02)  # noise
    robot.write(start, Mode.POLICY)
    for _ in range(30):
        robot.write(start, Mode.SAFE)
    assert robot.read(10_000_000)["position"][0][2] < first[2] - 0.2


def test_the_others_of_a_team_fly_themselves() -> None:
    """All eight had the command of the policy's one: none of its episodes succeeded, of 78 % in an evaluation."""
    policy = Policy.load(located("zoo:swarm-swap"), 50)
    ends = []
    for seed in ("2", "3"):
        robot = make(policy.contract, Settings(port=seed))
        assert isinstance(robot, SimulatedRobot)
        policy.reset()
        for step in range(500):
            signals = {name: value for name, (value, _) in robot.read(20_000 * step).items()}
            robot.write(policy.step(signals), Mode.POLICY)
            if robot.ended is not None:
                ends.append(robot.ended.flags)
                break
    assert Flag.SUCCEEDED in ends


def test_legs_stand_until_they_are_armed_and_go_with_the_gains_of_the_policy() -> None:
    robot = make(contract_of(load_task("go2-flat")), Settings())
    assert isinstance(robot, SimulatedRobot)
    own = robot.env.plant.nominal.stiffness[0]
    for step in range(200):
        samples = robot.read(step * 20_000)
        assert abs(samples["orientation"][0][:2]).max() < 0.1
    drawn = robot.env.drawn["stiffness"][0]
    np.testing.assert_allclose(robot.env.plant.param("stiffness")[0], 3 * drawn * own, rtol=1e-6)
    start = {c.name: np.array(c.start, np.float32) for c in robot.task.spec.commands}
    for step in range(25):
        robot.write(start, Mode.HOLD)
        robot.read(step * 20_000)
    np.testing.assert_allclose(robot.env.plant.param("stiffness")[0], drawn * own, rtol=1e-6)


def test_simulated_time_goes_on_in_sleep_alone_and_no_faster_than_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept, real = SimulatedTime(), [], time.monotonic()
    monkeypatch.setattr(simulated_time.time, "monotonic", lambda: real)
    monkeypatch.setattr(simulated_time.time, "sleep", slept.append)
    clock = SimulatedTime()
    before = clock.monotonic_ns()
    clock.sleep(0.02)
    real += 5.0  # the computer is busy
    assert clock.monotonic_ns() - before == 20_000_000
    clock.sleep(0.02)
    clock.sleep(0.02)
    assert slept == pytest.approx([0.02, 0.0, 0.02])  # what was lost is not made up for
    assert clock.monotonic_ns() - before == 60_000_000
