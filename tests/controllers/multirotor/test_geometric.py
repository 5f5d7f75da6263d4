"""The geometric controller: the same on numpy and torch, within limits, and it flies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_rl.controllers.multirotor import Gains, GeometricController, Mixer, Multirotor
from robo_rl.controllers.multirotor.geometric import _together
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks.loading import load_task

PERIOD = 0.01
CALM = {
    "noise": 0.0, "delay": 0.0, "wind": 0.0, "force": 0.0, "torque": 0.0, "mass": 1.0, "inertia": 1.0, "thrust": 1.0,
    "thrust_of_one_rotor": 1.0, "torque_ratio": 1.0, "rise_time": 1.0, "fall_time": 1.0,
}  # fmt: skip


@pytest.fixture(params=["crazyflie", "hummingbird"])
def robot(request: pytest.FixtureRequest) -> Multirotor:
    return load_multirotor(request.param).airframe


def random_signals(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    sizes = {"position": 3, "orientation": 4, "linear_velocity": 3, "angular_velocity": 3}
    signals = {name: generator.normal(size=(n, size)).astype(np.float32) for name, size in sizes.items()}
    signals["orientation"] /= np.linalg.norm(signals["orientation"], axis=-1, keepdims=True)
    signals["position_setpoint"] = generator.normal(size=(n, 3)).astype(np.float32)
    signals["linear_velocity_setpoint"] = generator.normal(size=(n, 3)).astype(np.float32)
    return signals


def level(position: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> dict[str, np.ndarray]:
    zero = np.zeros((1, 3), np.float32)
    signals = dict.fromkeys(("linear_velocity", "angular_velocity", "position_setpoint"), zero)
    orientation = np.array([[0, 0, 0, 1]], np.float32)
    return {
        **signals,
        "linear_velocity_setpoint": zero,
        "position": np.array([position], np.float32),
        "orientation": orientation,
    }


def test_numpy_and_torch_a_batch_and_one_robot_give_the_same(robot: Multirotor) -> None:
    controller, signals = GeometricController(robot, PERIOD), random_signals(64)
    state = controller.first_state(64)
    commands, following = controller(signals, state)
    assert commands["rotor_speed"].dtype == following.dtype == np.float32
    as_torch = {name: torch.from_numpy(value) for name, value in signals.items()}
    torch_commands, torch_following = controller(as_torch, torch.from_numpy(state))
    top = robot.rotors[0].speed_max
    np.testing.assert_allclose(torch_commands["rotor_speed"].numpy(), commands["rotor_speed"], atol=1e-4 * top)
    np.testing.assert_allclose(torch_following.numpy(), following, atol=1e-4 * top)
    alone, _ = controller({name: value[5:6] for name, value in signals.items()}, state[5:6])
    np.testing.assert_allclose(alone["rotor_speed"][0], commands["rotor_speed"][5], atol=1e-4 * top)


def test_at_rest_on_the_set_point_it_commands_hover_speed(robot: Multirotor) -> None:
    controller = GeometricController(robot, PERIOD)
    commands, _ = controller(level(), controller.first_state(1))
    lift = sum(
        np.polyval(rotor.thrust[::-1], speed)
        for rotor, speed in zip(robot.rotors, commands["rotor_speed"][0], strict=True)
    )
    assert lift == pytest.approx(robot.mass * 9.81, rel=1e-4)
    np.testing.assert_allclose(commands["rotor_speed"], controller.hover_speed, rtol=1e-4)


def test_it_pushes_towards_the_set_point_and_learns_what_is_steady(robot: Multirotor) -> None:
    controller = GeometricController(robot, PERIOD)
    state = controller.first_state(1)
    low, _ = controller(level((0, 0, -0.1)), state)
    high, _ = controller(level((0, 0, 0.1)), state)
    assert low["rotor_speed"].min() > controller.hover_speed > high["rotor_speed"].max()
    for _ in range(20):
        _, state = controller(level((0.1, 0.0, 0.0)), state)
    steady = state[0, -3:]
    assert steady[0] < 0
    np.testing.assert_allclose(steady[1:], 0.0, atol=1e-6)


def test_mixer_gives_the_wanted_wrench_while_no_rotor_saturates(robot: Multirotor) -> None:
    controller = GeometricController(robot, PERIOD)
    weight = robot.mass * 9.81
    arm = max(abs(rotor.position[1]) for rotor in robot.rotors)
    thrust = np.array([weight])
    ratio = robot.rotors[0].torque_ratio
    torque = tuple(np.array([x]) for x in (0.05 * weight * arm, -0.04 * weight * arm, 0.1 * weight * ratio))
    (forces,) = controller._mix(thrust, torque, np)
    positions = np.array([rotor.position for rotor in robot.rotors])
    moments = np.cross(positions, forces[:, None] * np.array([0.0, 0.0, 1.0])).sum(0)
    spin = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in robot.rotors])
    yaw = -(spin * ratio * forces).sum()
    assert forces.sum() == pytest.approx(weight, rel=1e-6)
    np.testing.assert_allclose([*moments[:2], yaw], [t[0] for t in torque], rtol=1e-6)


def test_mixer_gives_up_yaw_first(robot: Multirotor) -> None:
    controller, mixer = GeometricController(robot, PERIOD), Mixer.of(robot)
    weight, arm = robot.mass * 9.81, max(abs(rotor.position[1]) for rotor in robot.rotors)
    roll = 0.2 * weight * arm
    torque = (np.array([roll]), np.array([0.0]), np.array([100 * weight]))
    (forces,) = controller._mix(np.array([weight]), torque, np)
    moment = sum(rotor.position[1] * force for rotor, force in zip(robot.rotors, forces, strict=True))
    assert moment == pytest.approx(roll, rel=1e-6)
    assert forces.sum() == pytest.approx(weight, rel=1e-6)
    assert forces.min() >= -1e-9
    assert forces.max() <= mixer.top + 1e-9


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), scale=st.floats(0.0, 1e3))
def test_commands_are_finite_and_within_limits_whatever_the_state(seed: int, scale: float) -> None:
    robot = load_multirotor("crazyflie").airframe
    controller = GeometricController(robot, PERIOD)
    signals = {k: v if k == "orientation" else scale * v for k, v in random_signals(8, seed).items()}
    commands, state = controller(signals, controller.first_state(8))
    assert np.isfinite(state).all()
    assert (commands["rotor_speed"] >= robot.rotors[0].speed_min).all()
    assert (commands["rotor_speed"] <= robot.rotors[0].speed_max).all()


@pytest.mark.parametrize("orientation", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0.7071, 0, 0, 0.7071)])
def test_degenerate_attitudes_give_commands(orientation: tuple[float, ...]) -> None:
    controller = GeometricController(load_multirotor("crazyflie").airframe, PERIOD)
    signals = {**level(), "orientation": np.array([orientation], np.float32)}
    commands, state = controller(signals, controller.first_state(1))
    assert np.isfinite(commands["rotor_speed"]).all()
    assert np.isfinite(state).all()


@pytest.mark.parametrize("name", ["crazyflie", "hummingbird"])
def test_it_recovers_from_45_degrees_of_tilt(name: str) -> None:
    task = load_task("quadrotor-hover", name)
    still = {f"initial/{k}": 0.0 for k in ("yaw", "position", "linear_velocity", "angular_velocity")}
    fixed = {**CALM, **still, "initial/tilt": np.pi / 4}
    summary = rollout(task, ControllerPolicy(task), Conditions(episodes=32, fixed=fixed)).summary()
    assert summary["success"] == 1.0
    assert summary["position_error_mean_m"] < 0.03


@pytest.mark.parametrize("name", ["crazyflie", "hummingbird", "x500"])
def test_it_is_no_straw_man_in_all_that_training_draws(name: str) -> None:
    task = load_task("quadrotor-hover", name)
    assert rollout(task, ControllerPolicy(task), Conditions(episodes=200, seed=7)).summary()["success"] > 0.8


def test_commands_beyond_the_top_speed_are_lowered_together(robot: Multirotor) -> None:
    top = robot.rotors[0].speed_max
    commands = np.array([[1.3, 1.2, 0.9, 1.25], [0.5, 0.6, -0.1, 0.7]]) * top
    wanted = np.array([[1.0, 0.9, 0.6, 0.95], [0.5, 0.6, 0.0, 0.7]]) * top
    np.testing.assert_allclose(_together(commands, 0.0, top, np), wanted)


def test_no_more_force_and_no_more_tilt_is_asked_for_than_there_may_be(robot: Multirotor) -> None:
    controller = GeometricController(robot, PERIOD)
    for up, expected in ((1000.0, controller.strongest), (9.81, 9.81), (-50.0, 0.3 * 9.81)):
        (x,), (y,), (z,) = controller._possible(tuple(np.array([v]) for v in (300.0, 400.0, up)), np)
        assert z == pytest.approx(expected, rel=1e-3)
        assert y / x == pytest.approx(4 / 3)
        assert np.arctan2(np.hypot(x, y), z) == pytest.approx(controller.gains.lean, abs=1e-6)


def test_a_tilt_is_turned_back_by_its_shortest_way_whatever_the_heading(robot: Multirotor) -> None:
    controller = GeometricController(robot, PERIOD)
    for yaw in (0.0, 1.0, 3.0):
        turned = Rotation.from_rotvec([1.2, 0.0, 0.0]) * Rotation.from_rotvec([0.0, 0.0, yaw])
        signals = {**level(), "orientation": turned.as_quat()[None]}
        _, error = controller._tilt(signals, tuple(np.array([v]) for v in (0.0, 0.0, 9.81)), np)
        in_world = turned.apply(np.concatenate(error) * [1, 1, 0])
        np.testing.assert_allclose(in_world, [1.2, 0.0, 0.0], atol=1e-5)
        assert error[2][0] == pytest.approx(min(yaw, controller.gains.turn), abs=1e-6)


def test_rotors_with_a_linear_thrust_curve_are_driven_too() -> None:
    robot = load_multirotor("crazyflie").airframe
    rotors = tuple(dataclasses.replace(rotor, thrust=(0.01, 5e-5, 0.0)) for rotor in robot.rotors)
    controller = GeometricController(dataclasses.replace(robot, rotors=rotors), PERIOD)
    expected = (robot.mass * 9.81 / 4 - 0.01) / 5e-5
    assert controller.hover_speed == pytest.approx(expected)
    commands, _ = controller(level(), controller.first_state(1))
    np.testing.assert_allclose(commands["rotor_speed"], expected, rtol=1e-4)


def test_a_motor_estimate_follows_the_robots_motors() -> None:
    """The state's rotor speeds are those of first-order motors under the commands that were given."""
    robot = load_multirotor("hummingbird").airframe
    controller = GeometricController(robot, PERIOD)
    state, speed = controller.first_state(1), np.full(4, controller.hover_speed)
    for k in range(30):
        commands, state = controller(level((0.1 * np.sin(k), 0.2, -0.1 * k)), state)
        sent = commands["rotor_speed"][0].astype(float)
        lag = np.where(sent > speed, robot.rotors[0].rise, robot.rotors[0].fall)
        speed = sent + (speed - sent) * np.exp(-PERIOD / lag)
    np.testing.assert_allclose(state[0, :4], speed, rtol=1e-4)


def test_gains_slow_down_with_the_motors() -> None:
    robot = load_multirotor("crazyflie").airframe
    slow = dataclasses.replace(robot, rotors=tuple(dataclasses.replace(r, rise=1.0, fall=1.0) for r in robot.rotors))
    fast_gains, slow_gains = Gains.for_robot(robot, PERIOD), Gains.for_robot(slow, PERIOD)
    assert slow_gains.attitude < fast_gains.attitude
    assert slow_gains.position < fast_gains.position
