"""The quadrotor tasks: what is observed, commanded, remembered, drawn and failed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task, task_names
from robo_rl.sim.tasks.multirotor.quadrotor import FIGURE_EIGHT, HISTORY

NAMES = ["quadrotor-hover", "quadrotor-track"]


@pytest.fixture(params=[(name, robot) for name in NAMES for robot in ("crazyflie", "hummingbird")])
def task(request: pytest.FixtureRequest):
    return load_task(*request.param)


def some_signals(n: int, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    names = ("position", "linear_velocity", "angular_velocity", "position_setpoint", "linear_velocity_setpoint")
    signals = {name: 0.4 * torch.randn(n, 3, generator=generator) for name in names}
    orientation = torch.randn(n, 4, generator=generator)
    return {**signals, "orientation": orientation / orientation.norm(dim=-1, keepdim=True)}


def turned(vectors: torch.Tensor, turn: Rotation) -> torch.Tensor:
    return torch.from_numpy(turn.apply(vectors.double().numpy())).float()


def test_all_tasks_are_listed_and_unknown_names_are_refused() -> None:
    assert set(NAMES) <= set(task_names())
    with pytest.raises(ValueError, match=r"quadrotor-hoover.*did you mean 'quadrotor-hover'\? Expected one of"):
        load_task("quadrotor-hoover")
    with pytest.raises(ValueError, match="robot 'crazy' is not known"):
        load_task("quadrotor-hover", "crazy")


def test_zero_action_is_hover_and_extreme_actions_are_the_limits(task) -> None:
    count = len(task.spec.robot.rotors)
    hover = task.command(torch.zeros(1, count))["rotor_speed"]
    torch.testing.assert_close(hover, torch.full((1, count), task.spec.robot.hover_speed), rtol=1e-5, atol=0.0)
    (command,) = task.spec.commands
    for action, limit in ((-1e3, command.lower), (1e3, command.upper)):
        given = task.command(torch.full((1, count), action))["rotor_speed"][0]
        torch.testing.assert_close(given, torch.tensor(limit))


def test_observation_has_its_size_and_is_finite(task) -> None:
    observation = task.observe(some_signals(7), task.first_memory(7))
    assert observation.shape == (7, task.observation_size)
    assert torch.isfinite(observation).all()


def test_a_turn_of_the_world_about_z_changes_the_heading_alone(task) -> None:
    signals, memory = some_signals(50), task.first_memory(50)
    signals["linear_velocity_setpoint"] *= 0.01  # its change counts as an acceleration, up to 10 m/s²
    signals["position"] = signals["position_setpoint"] + 0.5 * signals["position"].clamp(-1, 1)  # errors to 1 m
    turn = Rotation.from_euler("z", 1.1)
    other = {k: turned(v, turn) for k, v in signals.items() if k not in ("orientation", "angular_velocity")}
    other["angular_velocity"] = signals["angular_velocity"]
    orientation = (turn * Rotation.from_quat(signals["orientation"].double().numpy())).as_quat()
    other["orientation"] = torch.from_numpy(orientation).float()
    first, second = task.observe(signals, memory), task.observe(other, memory)
    cosine_and_sine = [12, 13]
    rest = [i for i in range(task.observation_size) if i not in cosine_and_sine]
    torch.testing.assert_close(first[:, rest], second[:, rest], atol=2e-4, rtol=0.0)
    angle = lambda o: torch.atan2(o[:, 13], o[:, 12])  # noqa: E731
    change = torch.remainder(angle(second) - angle(first), 2 * math.pi)
    torch.testing.assert_close(change, torch.full((50,), 1.1), atol=1e-3, rtol=0.0)


def test_memory_shifts_commands_and_integrates_the_position_error(task) -> None:
    memory = task.first_memory(2)
    signals = {name: torch.zeros(2, 4 if name == "orientation" else 3) for name in some_signals(1)}
    signals["position"] = torch.tensor([[0.1, 0.0, -5.0]] * 2)
    sent = []
    for k in range(HISTORY + 2):
        action = torch.full((2, task.action_size), 0.1 * k)
        commands = task.command(action)
        sent.append(commands["rotor_speed"] / task.top * 2 - (1 + task.hover))
        memory = task.remember(memory, signals, commands)
    newest_first = torch.stack(sent[::-1][:HISTORY], 1)
    torch.testing.assert_close(memory["command_history"], newest_first, atol=1e-5, rtol=1e-5)
    steps, gain = HISTORY + 2, 10.0  # 1/(m s), over steps of 10 ms; errors count up to 0.05 m
    expected = torch.tensor([[steps * 0.05 * gain * 0.01, 0.0, -steps * 0.05 * gain * 0.01]] * 2)
    torch.testing.assert_close(memory["position_error_integral"], expected)


def test_flights_start_as_wide_as_promised() -> None:
    env = VecEnv(load_task("quadrotor-hover"), 20_000, seed=3, evaluation=True)
    truth = env.truth(torch.arange(env.n))
    tilt = torch.arccos((1 - 2 * truth["orientation"][:, :2].square().sum(-1)).clamp(-1, 1))
    assert tilt.max() <= math.pi / 2 + 1e-3
    assert tilt.max() > math.pi / 2 - 0.01
    offset = truth["position"] - truth["position_setpoint"]
    for value, bound in ((offset, 0.2), (truth["linear_velocity"], 1.0), (truth["angular_velocity"], 1.0)):
        assert bound * 0.99 < value.abs().max() <= bound * (1 + 1e-5)
    yaw = Rotation.from_quat(truth["orientation"].numpy()).as_euler("ZYX")[:, 0]
    assert np.histogram(yaw, 8, (-math.pi, math.pi))[0].min() > 0.08 * len(yaw)


@pytest.mark.parametrize(
    ("position", "rate", "failed"), [(0.99, 0.0, False), (1.01, 0.0, True), (0.0, 34.8, False), (0.0, -35.0, True)]
)
def test_a_flight_fails_beyond_one_metre_or_the_gyroscopes_range(position: float, rate: float, failed: bool) -> None:
    task = load_task("quadrotor-hover")
    zero = torch.zeros(1, 3)
    truth = {"position": torch.tensor([[0.0, position, 0.0]]), "angular_velocity": torch.tensor([[0.0, 0.0, rate]])}
    assert bool(task.failed({**truth, "position_setpoint": zero})) is failed


def test_velocity_set_points_are_the_derivative_of_position_set_points() -> None:
    task = load_task("quadrotor-track")
    env = VecEnv(task, 200, seed=1, evaluation=True)
    goal = env.draws.goal.double()
    time = torch.full((200,), 0.5, dtype=torch.double)  # before any step
    h = 1e-5
    before, after = (task.reference(time + d, goal)["position_setpoint"] for d in (-h, h))
    velocity = task.reference(time, goal)["linear_velocity_setpoint"]
    torch.testing.assert_close((after - before) / (2 * h), velocity, atol=1e-6, rtol=1e-6)


def test_the_figure_eight_is_two_metres_by_one_in_five_and_a_half_seconds() -> None:
    task = load_task("quadrotor-track")
    env = VecEnv(task, 1, fixed=FIGURE_EIGHT, evaluation=True)
    times = torch.linspace(0, 5.5, 2201)
    points = task.reference(times, env.draws.goal.expand(len(times), -1))["position_setpoint"]
    torch.testing.assert_close(points.amax(0), torch.tensor([1.0, 0.5, 0.0]), atol=1e-3, rtol=0.0)
    torch.testing.assert_close(points.amin(0), torch.tensor([-1.0, -0.5, 0.0]), atol=1e-3, rtol=0.0)
    torch.testing.assert_close(points[0], points[-1], atol=1e-3, rtol=0.0)


def test_a_step_moves_the_whole_course_at_its_time() -> None:
    task = load_task("quadrotor-track")
    env = VecEnv(task, 50, seed=2, fixed={"goal/step_time": 2.0}, evaluation=True)
    goal = env.draws.goal
    before, after = (task.reference(torch.full((50,), t), goal)["position_setpoint"] for t in (1.9999, 2.0001))
    torch.testing.assert_close(after - before, goal[:, 5:8], atol=1e-3, rtol=0.0)


def test_at_the_set_point_nothing_but_being_alive_counts(task) -> None:
    at_rest = {name: torch.zeros(1, 3) for name in some_signals(1)}
    at_rest["orientation"] = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    hover = task.command(torch.zeros(1, task.action_size))
    terms = task.reward(at_rest, hover, hover)
    assert set(terms) == set(task.spec.reward)
    for name, value in terms.items():
        assert float(value) == pytest.approx(1.0 if name == "alive" else 0.0)
    away = task.reward({**at_rest, "position": torch.ones(1, 3)}, hover, hover)
    assert float(away["near"]) > 0
    assert float(away["far"]) > 0
    assert task.spec.reward["near"] < 0
    assert task.spec.reward["far"] < 0


def test_privileged_observation_tells_the_drawn_parameters() -> None:
    task = load_task("quadrotor-hover")
    env = VecEnv(task, 300, seed=0, evaluation=True)
    seen = env.privileged()
    mass = seen[:, -4]
    torch.testing.assert_close(mass, env.plant.param("mass") / task.card.mass - 1, atol=1e-6, rtol=0.0)
    assert 0.09 < mass.max() <= 0.1 + 1e-5
