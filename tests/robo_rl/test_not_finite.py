"""What is not finite, or too large to be a robot's, ends its episode and is not learnt from, wherever it comes from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from robo_rl.adapters.gym import TaskEnv
from robo_rl.commands.training.train import learn
from robo_rl.learn import new_learner
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.finite import MOST_SKIPPED
from robo_rl.learn.runs import checkpoint, training
from robo_rl.learn.runs.checkpoint import CheckpointError
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.training import NotFiniteError
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

PATHS = {"native": "quadrotor-hover", "tensors": "arm-reach"}
"""A task whose step is one native loop, and one whose plant is MuJoCo."""
PROMPT = {"delay": 0.0}
"""Sensors that tell of a step when it is over."""
VALUES = (math.nan, math.inf, 1e8, 1e12, 1e24)


def poisoned(name: str, source: str, value: float) -> Task:
    """A task whose reward or observation, the ``source``, is ``value`` where a robot is that ``mark`` has moved."""
    base = type(load_task(name))

    class Poisoned(base):  # type: ignore[misc, valid-type]
        def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
            terms = dict(super().reward(truth, commands, previous))
            if source == "reward":
                first = next(iter(terms))
                terms[first] = torch.where(marked(truth), value, terms[first])
            return terms

        def observe(self, signals: Tensors, memory: Tensors) -> Any:
            seen = super().observe(signals, memory)
            return torch.where(marked(signals)[:, None], value, seen) if source == "observation" else seen

    def marked(quantities: Mapping[str, Any]) -> Any:
        if "position" in quantities:
            return quantities["position"][:, 0] > 0.5
        return quantities["tool_position"][:, 1] > 0.3

    return Poisoned()


def mark(env: VecEnv, robot: int) -> None:
    """Put a robot where ``poisoned`` tasks are wrong."""
    put(env, robot, ("plant/position", "plant/qpos"), 0.7 if env.fused else 1.3)


def break_plant(env: VecEnv, robot: int, value: float) -> None:
    put(env, robot, ("plant/linear_velocity", "plant/qvel"), value)


def put(env: VecEnv, robot: int, names: tuple[str, ...], value: float) -> None:
    """Change one number of a robot's state."""
    ids = torch.tensor([robot])
    state = env.state(ids)
    state[next(name for name in names if name in state)][:, 0] = value
    env.set_state(ids, state)


@pytest.mark.parametrize("n", representatives([1, 5], [5]))
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("source", ["plant", "reward", "observation"])
def test_what_diverges_ends_its_episode_and_touches_nobody(source: str, path: str, n: int) -> None:
    prompt = PROMPT if path == "native" else {"delay/tool_position": 0.0}
    for value in VALUES if path == "native" else VALUES[:3]:
        task = poisoned(PATHS[path], source, value)
        env, clean = (LearningEnv(VecEnv(task, n, seed=1, fixed=prompt, evaluation=True)) for _ in range(2))
        idle = torch.zeros(n, task.action_size)
        for one in (env, clean):
            one.step(idle)
        if source == "plant":
            break_plant(env.env, n - 1, value)
        else:
            mark(env.env, n - 1)
        before = env.observation()
        step, expected = env.step(idle), clean.step(idle)
        assert env.env.diverged == 1, value
        assert step.ids.tolist() == [n - 1]
        assert step.failed.tolist() == [False] * (n - 1) + [True]
        assert float(step.reward[n - 1]) == 0.0
        for part in step:
            for tensor in part.values() if isinstance(part, dict) else (part,):
                assert bool(tensor.isfinite().all())
        if source == "plant" and path == "native":
            torch.testing.assert_close(step.final_observation[0], before[n - 1])
        assert torch.equal(step.observation[: n - 1], expected.observation[: n - 1])
        assert torch.equal(step.reward[: n - 1], expected.reward[: n - 1])
        assert float(step.privileged.abs().max()) < 1e6
        assert not env.step(idle).failed.any()
        assert all(bool(tensor.isfinite().all()) for tensor in env.save().values())


# --- trainings -----------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"environments": 8, "horizon": 8, "mini_batches": 2, "hidden": [16], "critic_hidden": [16]},
    "sac": {"environments": 4, "steps": 4, "gradient_steps": 2, "first": 16, "batch": 8, "hidden": [16]},
    "apg": {"environments": 8, "horizon": 8, "hidden": [16]},
}
FILE = """
import torch
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

class {name}(QuadrotorHover):
    algorithms = ("apg", "ppo", "sac")

    def reward(self, truth, commands, previous):
        terms = dict(super().reward(truth, commands, previous))
        first = next(iter(terms))
        terms[first] = {reward}
        return terms

    def observe(self, signals, memory):
        seen = super().observe(signals, memory)
        return {observation}
"""


def own_run(
    folder: Path, algorithm: str, updates: int, reward: str = "terms[first]", observation: str = "seen", **changes: Any
) -> Run:
    """A run of a user's own task, whose reward and observation are these."""
    path = folder / "own.py"
    path.write_text(FILE.format(name="Own", reward=reward, observation=observation))
    from robo_rl.learn.config import CONFIGS

    settings = {**SETTINGS[algorithm], **changes, "updates": updates}
    chosen = vars(CONFIGS[algorithm](**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}))
    return Run.create(folder / "runs", f"{path}:Own", None, algorithm, 0, dict(chosen))


def finite_file(run: Run) -> bool:
    return all(bool(value.isfinite().all()) for value in checkpoint.load(run.checkpoint_file)[0].values())


def weights(learner: Any) -> list[Tensor]:
    return [*learner.policy.state_dict().values(), *learner.save()[0].values()]


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_a_robot_that_diverges_in_a_training_is_counted_and_spoils_nothing(algorithm: str, tmp_path: Path) -> None:
    run = own_run(tmp_path, algorithm, 4)
    torch.manual_seed(0)
    learner = new_learner(run, run.new_policy())
    env = learner.env if algorithm == "apg" else learner.env.env
    for value in (math.nan, 1e8):
        learner.update()
        env.plant.param("force")[1, 0] = value  # N
    learner.update()
    assert learner.diverged == 2
    assert all(bool(value.isfinite().all()) for value in weights(learner))
    if algorithm == "ppo":
        assert float(learner.critic.normalizer.deviation.max()) < 100.0


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize("source", ["reward", "observation"])
@pytest.mark.parametrize("value", representatives([math.nan, 1e24], [1e24]))
def test_a_training_of_which_nothing_is_finite_ends_in_a_sentence_with_what_was_good_before(
    algorithm: str, source: str, value: float, tmp_path: Path
) -> None:
    run = own_run(tmp_path, algorithm, 30)
    torch.manual_seed(0)
    policy = run.new_policy()
    own: Any = type(policy.task)
    if source == "reward":
        reward = own.reward
        own.reward = lambda *of: {name: term * 0.0 + value for name, term in reward(*of).items()}
    else:
        observe = own.observe
        own.observe = lambda *of: observe(*of) * 0.0 + value
    learner = new_learner(run, policy)
    with pytest.raises(NotFiniteError, match="nothing finite could be learnt in 10 updates in a row"):
        training.train(run, learner, 1e9)
    assert learner.done <= MOST_SKIPPED + 5  # sac first collects
    assert learner.skipped >= MOST_SKIPPED
    assert all(bool(value.isfinite().all()) for value in learner.policy.state_dict().values())
    assert not run.checkpoint_file.exists()
    assert run.metrics()[-1]["skipped"] == learner.skipped


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_a_training_goes_on_after_not_a_number_and_resumes_from_what_is_finite(algorithm: str, tmp_path: Path) -> None:
    run = own_run(tmp_path, algorithm, 30)
    torch.manual_seed(0)
    learner: Any = new_learner(run, run.new_policy())
    whole = learner.update
    damaged = range(5, 9)

    def update() -> dict[str, float]:
        optimizers = [value for value in vars(learner).values() if isinstance(value, torch.optim.Optimizer)]
        handles = []
        if learner.done in damaged:
            for optimizer in optimizers:
                handle = optimizer.param_groups[0]["params"][-1].register_hook(lambda gradient: gradient * math.nan)
                handles.append(handle)
        found = whole()
        for handle in handles:
            handle.remove()
        return found

    if algorithm != "apg":  # whose gradient is not autograd's
        learner.update = update
    else:
        backward = learner.tape.backward

        def poisoned_backward() -> None:
            backward()
            if learner.done in damaged:
                learner.tape.layers[0].weight.grad[0, 0] = math.nan

        learner.tape.backward = poisoned_backward
    training.train(run, learner, 1e-9)
    assert learner.done == 30
    assert learner.skipped > 0
    assert finite_file(run)
    again = Run.open(run.folder)
    other = new_learner(again, again.new_policy())
    training.resume(again, other)
    assert (other.done, other.skipped, other.diverged) == (30, learner.skipped, learner.diverged)


def test_a_checkpoint_with_a_number_that_is_not_finite_is_neither_written_nor_read(tmp_path: Path) -> None:
    run = own_run(tmp_path, "ppo", 4)
    learner: Any = new_learner(run, run.new_policy())
    learner.update()
    training.save(run, learner)
    before = run.checkpoint_file.read_bytes()
    learner.critic.normalizer.mean[0] = math.inf
    with pytest.raises(CheckpointError, match=r"critic/normalizer.mean has numbers that are not finite; nothing was"):
        training.save(run, learner)
    assert run.checkpoint_file.read_bytes() == before
    tensors, numbers = checkpoint.load(run.checkpoint_file)
    tensors["policy/network.0.weight"][0, 0] = math.nan
    checkpoint.save(run.checkpoint_file, tensors, numbers)
    for use in (lambda: training.resume(run, learner), run.policy):
        with pytest.raises(CheckpointError, match=r"policy/network.0.weight has numbers that are not finite"):
            use()


def test_the_summary_and_the_metrics_tell_of_what_diverged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reward = "torch.where(truth['position'][:, 2] < -0.02, 1e24, terms[first])"
    run = own_run(tmp_path, "ppo", 6, reward=reward)
    assert learn(run, "cpu", 0, 1e9, True, resumed=False) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["diverged"] > 0
    assert (run.done() or {})["diverged"] == told["diverged"] == run.metrics()[-1]["diverged"]
    assert finite_file(run)


def test_gymnasium_ends_an_episode_whose_observation_is_no_number(tmp_path: Path) -> None:
    own_run(tmp_path, "ppo", 1, observation="torch.where(signals['position'][:, :1] > 0.5, float('nan'), seen)")
    env = TaskEnv(f"{tmp_path / 'own.py'}:Own", fixed=PROMPT)
    env.reset(seed=1)
    env.step(env.action_space.sample() * 0.0)
    mark(env.observed.env, 0)
    seen, reward, terminated, truncated, _ = env.step(env.action_space.sample() * 0.0)
    assert terminated
    assert not truncated
    assert reward == 0.0
    assert bool(torch.from_numpy(seen).isfinite().all())
