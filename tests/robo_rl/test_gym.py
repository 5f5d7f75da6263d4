"""Tasks as gymnasium environments, held against gymnasium's own checkers and its own vector environment."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode

import robo_rl.adapters.gym
from robo_rl.adapters.gym import TaskEnv
from robo_rl.sim.pictures.canvas import RenderingError
from robo_rl.sim.robots import load_robot, robot_names
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.legged.clips import ClipError
from robo_rl.sim.tasks.loading import load_task, task_names
from tests.suite import representatives

TASKS = [name for name in task_names() if name != "car-traffic-lidar" and not name.startswith("swarm-")]
"""The 180 beams of one are minutes of a compiler's work; tests/sim/lanes/test_scan.py traces what it sees. The others
are of teams, whose robots are no environment of their own."""
OFTEN = ["quadrotor-hover", "go2-flat", "arm-reach", "car-race", "diff-nav", "omni-nav", "pmsm-current"]
SOME = representatives(TASKS, OFTEN)
ENDLESS = (
    "car-practice", "mobile-place", "car-lanes", "diff-follow", "pmsm-current", "pmsm-speed", "dc-speed", "bldc-speed",
)  # fmt: skip
"""Random actions end them after 20 minutes, 750 and 900 steps only: car-lanes has a guard that keeps it safe, and
motors one that keeps their limits."""


def robots_for(task):
    """The robots that come with robo-rl and can do the task."""
    kind = load_task(task).card_type
    return [name for name in robot_names() if isinstance(load_robot(name), kind) and can_do(name, task)]


def can_do(robot, task):
    """Whether the task does not refuse the robot's card, such as an arm without impedance where contact is felt."""
    try:
        load_task(task, robot)
    except (CardError, ClipError):
        return False
    return True


UNBOUNDED = "ignore:.*A Box observation space (minimum|maximum) value is -?infinity:UserWarning"


def rollout(env, seed, steps, scale=0.5):
    """Observations, rewards and ends of ``steps`` random steps; a single environment begins again where it ended."""
    actions = np.random.default_rng(0).normal(size=(steps, *env.action_space.shape)) * scale
    observation, _ = env.reset(seed=seed)
    seen = [observation]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen += [observation, reward, terminated, truncated]
        if isinstance(env, gymnasium.Env) and (terminated or truncated):
            seen.append(env.reset()[0])
    return seen


@pytest.mark.filterwarnings("error::UserWarning", UNBOUNDED)
@pytest.mark.parametrize("task", SOME)
def test_gymnasiums_checker_has_nothing_to_say_about_any_task(task):
    check(task, None)


@pytest.mark.release
@pytest.mark.filterwarnings("error::UserWarning", UNBOUNDED)
@pytest.mark.parametrize("task", TASKS)
def test_nor_about_any_robot_that_can_do_it(task):
    for robot in robots_for(task):
        check(task, robot)


def check(task, robot):
    env = gymnasium.make(task, robot=robot)
    check_env(env.unwrapped)
    space = env.observation_space
    spaces = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {"policy": space}
    assert {name: part.shape for name, part in spaces.items()} == load_task(task, robot).observation_shapes


@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("task", SOME)
def test_batches_of_any_size_stay_within_their_spaces(task, n):
    envs = gymnasium.make_vec(task, num_envs=n)
    observation, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(20):
        assert observation in envs.observation_space
        observation, reward, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert (reward.shape, terminated.dtype, truncated.dtype) == ((n,), bool, bool)
        assert np.isfinite(reward).all()


def test_make_vec_gives_one_batched_environment_that_restarts_within_the_step():
    envs = gymnasium.make_vec("quadrotor-hover", num_envs=3)
    assert type(envs.unwrapped) is robo_rl.adapters.gym.TaskVectorEnv
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


@pytest.mark.parametrize("task", representatives(TASKS, ["quadrotor-hover", "go2-flat", "diff-nav"]))
def test_a_batch_of_one_does_what_gymnasiums_own_vector_environment_does_with_a_single_one(task):
    theirs = gymnasium.make_vec(
        task, 1, vectorization_mode="sync", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP}
    )
    ours = gymnasium.make_vec(task, 1)
    assert data_equivalence(theirs.reset(seed=5), ours.reset(seed=5), exact=True)
    ends = 0
    for action in np.random.default_rng(0).normal(size=(600, *ours.action_space.shape)) * 0.5:
        (*expected, expected_info), (*given, info) = theirs.step(action), ours.step(action)
        for a, b in zip(expected, given, strict=True):
            np.testing.assert_equal(a, b)
        assert data_equivalence(expected_info, info, exact=True)
        ends += int((expected[2] | expected[3]).sum())
    assert ends > 1 or task in ENDLESS


def test_only_environments_that_ended_have_final_observations():
    envs = gymnasium.make_vec("quadrotor-hover", 32)
    envs.reset(seed=1)
    some = 0
    for action in np.random.default_rng(1).normal(size=(200, 32, 4)):
        observation, _, terminated, truncated, infos = envs.step(action)
        ended = terminated | truncated
        if not ended.any():
            assert "final_obs" not in infos
            continue
        some += 1
        np.testing.assert_array_equal(infos["_final_obs"], ended)
        assert [x is not None for x in infos["final_obs"]] == ended.tolist()
        i = int(np.flatnonzero(ended)[0])
        assert not np.array_equal(infos["final_obs"][i], observation[i])
        np.testing.assert_array_equal(infos["final_info"]["_privileged"], ended)
    assert some > 10


def test_hovering_is_truncated_when_the_tasks_time_is_over_and_falling_is_terminated_before():
    spec = load_task("quadrotor-hover").spec
    calm = {name: 0.0 for name in spec.ranges if name.startswith("initial/")} | {"initial/rotor_speed": 1.0}
    calm |= dict.fromkeys(("mass", "thrust", "thrust_of_one_rotor"), 1.0) | dict.fromkeys(
        ("force", "torque", "wind"), 0.0
    )
    ends = {}
    for action in (0.0, -1.0):
        env = gymnasium.make("quadrotor-hover", fixed=calm)
        env.reset(seed=0)
        steps, terminated, truncated = 0, False, False
        while not (terminated or truncated):
            _, _, terminated, truncated, _ = env.step(np.full(4, action))
            steps += 1
        ends[action] = (steps, terminated, truncated)
    assert ends[0.0] == (spec.episode_steps, False, True)
    # at -1 every rotor gives next to nothing: about a free fall of 1 m, which takes 0.45 s, after the motors' lag
    steps, terminated, _ = ends[-1.0]
    assert terminated
    assert 0.45 < steps * spec.control_period < 1.0


@pytest.mark.parametrize("make", [gymnasium.make, lambda task: gymnasium.make_vec(task, 16)], ids=["single", "batch"])
def test_the_same_seed_gives_the_same_flights_whatever_was_flown_before(make):
    fresh = rollout(make("quadrotor-hover"), seed=3, steps=300)
    used = make("quadrotor-hover")
    rollout(used, seed=8, steps=300)
    again = rollout(used, seed=3, steps=300)
    other = rollout(make("quadrotor-hover"), seed=4, steps=300)
    assert all(np.array_equal(a, b) for a, b in zip(fresh, again, strict=True))
    assert not np.array_equal(fresh[0], other[0])


def test_without_a_seed_two_environments_differ():
    first, second = (gymnasium.make("quadrotor-hover").reset()[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_evaluation_draws_start_attitudes_from_the_full_range():
    lowest = {}
    for evaluation in (False, True):
        envs = gymnasium.make_vec("quadrotor-hover", 2000, evaluation=evaluation)
        observation, _ = envs.reset(seed=0)
        up = observation[:, 11]  # 9 of position, velocity and integral; then the body's z axis
        lowest[evaluation] = np.rad2deg(np.arccos(up.clip(-1, 1))).max()
    assert 58 < lowest[False] < 62  # the curriculum begins at 60 degrees
    assert 85 < lowest[True] < 92


@pytest.mark.parametrize(
    ("action", "message"),
    [(np.zeros(3), r"shape \(1, 3\); expected \(1, 4\)"), ([0, 0, np.nan, 0], "expected finite numbers")],
)
def test_wrong_actions_are_refused(action, message):
    env = gymnasium.make("quadrotor-hover")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robot": "zeppelin"}, "robot 'zeppelin' is not known"),
        ({"fixed": {"weight": 1.0}}, "is not one of the task's ranges"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gymnasium.make("quadrotor-hover", **options)


def test_naming_the_module_in_the_id_needs_no_import():
    code = "import gymnasium; print(gymnasium.make('robo_rl.adapters.gym:quadrotor-hover').reset(seed=0)[0].shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "(49,)", done.stderr


def test_pictures_show_the_robot_where_it_is() -> None:
    env = gymnasium.make("quadrotor-hover", render_mode="rgb_array")
    env.reset(seed=1)
    try:
        first = np.asarray(env.render())
    except RenderingError as missing:
        pytest.skip(str(missing))
    assert first.shape == (480, 480, 3)
    assert first.dtype == np.uint8
    assert env.metadata["render_fps"] == 100
    for _ in range(20):
        env.step(env.action_space.sample())
    assert (np.asarray(env.render()) != first).mean() > 0.001
    env.close()
    envs = gymnasium.make_vec("go2-flat", num_envs=2, render_mode="rgb_array")
    envs.reset(seed=1)
    one, other = envs.render()  # type: ignore[misc]
    assert (one.mean(-1) < 60).sum() > 300  # dark parts of a robot
    assert (one != other).mean() > 0.01
    envs.close()


def test_other_render_modes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"render_mode is 'movie'; expected one of \['human', 'rgb_array'\]"):
        TaskEnv("quadrotor-hover", render_mode="movie")


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_human_rendering_is_a_page_on_which_the_robots_are_where_they_are(make, capsys):
    env = make("quadrotor-hover", render_mode="human")
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)
    window = env.unwrapped._window
    for _ in range(window.every * 4 - 1):  # with the reset, some whole frames
        env.step(action)
    assert env.render() is None
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+", capsys.readouterr().out)
    with urllib.request.urlopen(address) as page:
        assert page.status == 200
    where = env.unwrapped.observed.env.plant.poses(torch.tensor([0]))[0, 0, :3]
    handle, members, bodies = window.scene._groups[0]
    shown = np.linalg.norm(handle.batched_positions - where, axis=1) - np.linalg.norm(
        [member.position for member in members], axis=1
    )
    assert np.abs(shown[bodies == 0]).max() < 1e-5
    env.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address)
