"""Learning from a robot's log and a simulator: the dynamics ratio, transitions out of logs, refusals, and trainings."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from robo_rl.adapters.datasets import recorded
from robo_rl.cli import main
from robo_rl.commands.training.given import require_robot_log
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import BLEND
from robo_rl.deploy.robot.logs.reader import Log, read_log
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience.demonstrations import Transitions, contract_of, demonstrate, digest, write
from robo_rl.learn.experience.robot_log import FILE_NAME, RobotLogError, actions_of, joined, transitions_of
from robo_rl.learn.hybrid import LEAST, MOST, DynamicsRatio
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.sac import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.arm.place_direct import PlaceDirect
from robo_rl.sim.tasks.loading import load_task

BALANCE = f"{Path(__file__).parents[2] / 'examples' / 'own_kind' / 'balance.py'}:Balance"
SECONDS = 12.0
EXACT = {"noise": 0.0, "delay": 0.0}
SIGNALS = ("cart_position", "cart_velocity", "pole_angle", "pole_rate")
SMALL = SacConfig(
    updates=4, steps=3, environments=4, gradient_steps=2, batch=8, first=8, hidden=(8,), critic_hidden=(8, 8)
)


@pytest.fixture(scope="module")
def task() -> Any:
    return load_task(BALANCE)


@pytest.fixture(scope="module")
def bundle_file(trained: Callable[..., Path], exported: Callable[[Path], Path]) -> Path:
    return exported(trained(BALANCE))


@pytest.fixture(scope="module")
def path(task: Any, bundle_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("robot") / "session.mcap"
    _, fell = record(task, Bundle.read(bundle_file), found, SECONDS, 0, EXACT, renew=3.0)
    assert not fell
    return found


@pytest.fixture(scope="module")
def log(path: Path) -> Log:
    return read_log(path)


@pytest.fixture(scope="module")
def tensors(log: Log, task: Any) -> dict[str, Tensor]:
    return transitions_of(log, task)


# --- the dynamics ratio ----------------------------------------------------------------------------------------------

SPREAD, SHIFT = 0.3, 0.2


def gaussian(count: int, place: float, shift: float) -> Transitions:
    """s' = s + a/2 in the first number, and ``shift`` more on average; states are about ``place``."""
    seen, action = place + torch.randn(count, 2), torch.rand(count, 1) * 2.0 - 1.0
    later = seen + SPREAD * torch.randn(count, 2)
    later[:, :1] += 0.5 * action + shift
    return Transitions(seen, action, torch.zeros(count), torch.zeros(count), later)


def learnt(robot_place: float, robot_shift: float) -> DynamicsRatio:
    """Of a robot with the simulator's dynamics or shifted ones, whose log is about another place."""
    torch.manual_seed(0)
    robot = gaussian(3000, robot_place, robot_shift)
    ratio = DynamicsRatio(robot, SacConfig(learning_rate=1e-3))
    for _ in range(1000):
        assert ratio.learn(robot.rows(torch.randint(3000, (256,))), gaussian(256, 0.0, 0.0))
    return ratio


def test_the_ratio_is_that_of_two_gaussians_whatever_states_the_robot_was_in() -> None:
    ratio, met = learnt(0.5, SHIFT), gaussian(2000, 0.25, 0.5 * SHIFT)
    moved = (met.next_observation - met.observation)[:, 0] - 0.5 * met.action[:, 0]
    expected = (moved.square() - (moved - SHIFT).square()) / (2 * SPREAD**2)
    found = ratio(met).detach()
    assert float((found - expected).abs().mean()) < 0.25 < 0.5 * float(expected.abs().mean())
    assert float(torch.corrcoef(torch.stack([found, expected]))[0, 1]) > 0.95


def test_equal_dynamics_weigh_one_whatever_states_the_robot_was_in() -> None:
    weights = learnt(0.5, 0.0).weights(gaussian(2000, 0.25, 0.0))
    assert abs(float(weights.mean()) - 1.0) < 0.1
    assert float((weights.log()).abs().mean()) < 0.2


def test_weights_are_bounded_and_one_before_anything_is_learnt() -> None:
    robot = gaussian(100, 0.0, 0.0)
    ratio = DynamicsRatio(robot, SacConfig())
    torch.testing.assert_close(ratio.weights(robot), torch.ones(100), atol=0.05, rtol=0.0)
    with torch.no_grad():
        ratio.outcome[-1].weight.mul_(1e6)
    far = ratio.weights(gaussian(100, 0.0, 100.0))
    assert LEAST * 0.999 <= float(far.min()) < float(far.max()) <= MOST * 1.001


# --- transitions out of a log ----------------------------------------------------------------------------------------


def test_actions_are_those_that_the_policy_took(tensors: dict[str, Tensor], trained: Callable[..., Path]) -> None:
    from robo_rl.learn.runs.folder import Run

    policy, _ = Run.open(trained(BALANCE)).policy()
    wanted = policy.network(policy.features(tensors["observation"]))
    inside = wanted.abs()[:, 0] < 0.99
    assert int(inside.sum()) > 300
    torch.testing.assert_close(tensors["action"][inside], wanted[inside], atol=2e-3, rtol=0.0)


def test_rewards_ends_and_next_observations_are_those_of_the_motion(
    tensors: dict[str, Tensor], log: Log, task: Any
) -> None:
    steps = {step.number: step for step in log.steps}
    rows = [[float(tensors[f"signal/{name}"][k, 0]) for name in SIGNALS] for k in range(len(tensors["reward"]))]
    numbers = {tuple(step.signals[:4].tolist()): number for number, step in steps.items()}
    for k in range(0, len(rows), 17):
        number = numbers[tuple(rows[k])]
        later, sent, before = steps[number + 1].signals, steps[number].sent[0], steps[number - 1].sent[0]
        place, _, angle, rate, goal = later
        expected = 1.0 - 4.0 * (place - goal) ** 2 - 2.0 * angle**2 - 0.01 * rate**2
        expected -= 0.05 * ((sent - before) / task.card.force) ** 2
        assert float(tensors["reward"][k]) == pytest.approx(float(expected), abs=1e-5)
        assert float(tensors["next_observation"][k, 1]) == pytest.approx(float(later[1]), abs=1e-6)
    assert float(tensors["ended"].max()) == 0.0
    same = tensors["episode"][1:] == tensors["episode"][:-1]
    torch.testing.assert_close(tensors["observation"][1:][same], tensors["next_observation"][:-1][same])


def test_an_action_of_several_numbers_is_found_too() -> None:
    hover = load_task("quadrotor-hover")
    torch.manual_seed(0)
    action, memory = 1.8 * torch.rand(50, 4) - 0.9, hover.first_memory(50)
    sent = hover.command(action, memory)["rotor_speed"]
    signals = {signal.name: torch.zeros(50, *signal.dimensions) for signal in hover.spec.signals}
    found, missed = actions_of(hover, signals, memory, sent)
    torch.testing.assert_close(found, action, atol=1e-4, rtol=0.0)
    assert float(missed.max()) < 1e-5


def test_a_command_that_no_action_gives_is_left_out(log: Log, task: Any, tensors: dict[str, Tensor]) -> None:
    middle = log.steps[300]
    hard = dataclasses.replace(middle, sent=np.full_like(middle.sent, task.card.force))  # an action of 1 gives 0.76
    found = transitions_of(_with(log, 300, hard), task)
    assert len(found["reward"]) == len(tensors["reward"]) - 1
    assert int(found["episode"][-1]) == int(tensors["episode"][-1]) + 1


def test_what_comes_after_a_fall_is_left_out(log: Log, task: Any, tensors: dict[str, Tensor]) -> None:
    steps = list(log.steps)
    for k in range(500, len(steps)):
        signals = steps[k].signals.copy()
        signals[2] = 0.8  # rad of the pole: it has fallen
        steps[k] = dataclasses.replace(steps[k], signals=signals)
    found = transitions_of(dataclasses.replace(log, steps=steps), task)
    assert found["ended"].tolist() == [0.0] * (len(found["ended"]) - 1) + [1.0]
    assert len(tensors["reward"]) - len(found["reward"]) == len(steps) - 501


# --- refusals --------------------------------------------------------------------------------------------------------


def _with(log: Log, place: int, step: Any) -> Log:
    steps = [*log.steps[:place], step, *log.steps[place + 1 :]]
    return dataclasses.replace(log, steps=steps)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 60.0])
def test_a_number_that_is_not_finite_or_out_of_range_is_refused(value: float, log: Log, task: Any) -> None:
    step = log.steps[400]
    signals = step.signals.copy()
    signals[3] = value
    with pytest.raises(RobotLogError, match=rf"session\.mcap: step {step.number}: pole_rate.*expected -40 to 40"):
        transitions_of(_with(log, 400, dataclasses.replace(step, signals=signals)), task)


@pytest.mark.parametrize(
    ("shift", "sentence"), [(-(10**7), "step {}: stamps go backwards"), (10**9, "s old on average, by their stamps")]
)
def test_stamps_that_are_none_of_measurements_for_their_steps_are_refused(
    shift: int, sentence: str, log: Log, task: Any
) -> None:
    steps = [dataclasses.replace(s, stamps=tuple(t - max(shift, 0) for t in s.stamps)) for s in log.steps]
    steps[400] = dataclasses.replace(steps[400], stamps=tuple(t + min(shift, 0) for t in steps[400].stamps))
    with pytest.raises(RobotLogError, match=sentence.format(steps[400].number)):
        transitions_of(dataclasses.replace(log, steps=steps), task)


def test_a_log_of_another_task_is_refused(log: Log) -> None:
    with pytest.raises(RobotLogError, match=r"recorded at task 'balance' .* are not those of 'quadrotor-hover'"):
        transitions_of(log, load_task("quadrotor-hover"))


def test_a_log_without_the_task_s_memory_is_refused(log: Log, task: Any) -> None:
    other = dataclasses.replace(log, contract=dataclasses.replace(log.contract, state=()))
    with pytest.raises(RobotLogError, match=r"memory has no \['last_force'\]"):
        transitions_of(other, task)


@pytest.mark.parametrize("gate", [{"state": State.FAULT}, {"mode": BLEND - 1}])
def test_a_log_in_which_nothing_was_sent_is_refused(gate: dict[str, int], log: Log, task: Any) -> None:
    idle = [dataclasses.replace(s, gate={**s.gate, **gate}) for s in log.steps]
    with pytest.raises(RobotLogError, match="under an ACTIVE gate that sent its commands"):
        transitions_of(dataclasses.replace(log, steps=idle), task)


def test_too_short_a_log_is_refused(log: Log, task: Any, path: Path) -> None:
    short = transitions_of(dataclasses.replace(log, steps=log.steps[:200]), task)
    with pytest.raises(RobotLogError, match=r"s can be learnt from; expected at least 10 s"):
        joined([(path, short)], task)
    whole = joined([(path, short)] * 3, task)
    assert len(whole["reward"]) == 3 * len(short["reward"])
    assert whole["episode"].unique().tolist() == [0, 1, 2]


def test_a_task_that_rewards_what_no_signal_measures_is_refused(log: Log, task: Any) -> None:
    class Hot(type(task)):  # type: ignore[misc]
        def reward(self, truth: Any, commands: Any, previous: Any) -> Any:
            return {**super().reward(truth, commands, previous), "alive": -truth["heat"][:, 0]}

    with pytest.raises(RobotLogError, match="rewards, or ends by, 'heat', which no signal of the robot measures"):
        transitions_of(log, Hot())


# --- trainings -------------------------------------------------------------------------------------------------------


def kept_in(folder: Path, tensors: dict[str, Tensor], task: Any) -> str:
    checkpoint.save(folder / FILE_NAME, tensors, {"task": task.name, "contract": contract_of(task).to_json()})
    return digest(folder / FILE_NAME)


def learner(folder: Path, config: SacConfig) -> Learner:
    torch.manual_seed(0)
    fresh = load_task(BALANCE)
    return Learner(fresh, PolicyGraph(fresh, config.hidden, config.activation), config, 0, folder=folder)


@pytest.mark.parametrize(("part", "from_the_log"), [(0.5, 4), (0.25, 2), (1.0, 8)])
def test_a_part_of_every_batch_is_of_the_log(
    part: float, from_the_log: int, tmp_path: Path, tensors: dict[str, Tensor], task: Any
) -> None:
    config = dataclasses.replace(SMALL, robot_log=kept_in(tmp_path, tensors, task), log_part=part)
    trained = learner(tmp_path, config)
    trained.collect()
    trained.collect()
    known = {tuple(row) for row in tensors["observation"].tolist()}
    of_the_log = [tuple(row) in known for row in trained.batch().observation.tolist()]
    assert of_the_log == [True] * from_the_log + [False] * (8 - from_the_log)


def test_a_log_that_was_changed_after_the_training_began_is_refused(
    tmp_path: Path, tensors: dict[str, Tensor], task: Any
) -> None:
    kept_in(tmp_path, tensors, task)
    with pytest.raises(RobotLogError, match="not the robot's log that the run began with"):
        learner(tmp_path, dataclasses.replace(SMALL, robot_log="0" * 64))


def test_a_hybrid_training_that_was_killed_goes_on_bit_by_bit(
    tmp_path: Path, tensors: dict[str, Tensor], task: Any
) -> None:
    config = dataclasses.replace(SMALL, robot_log=kept_in(tmp_path, tensors, task), dynamics_ratio=True)
    whole = learner(tmp_path, config)
    whole.update()
    whole.update()
    assert whole.ratio is not None
    assert whole.ratio.loss > 0.0
    saved, numbers = whole.save()
    kept = {name: value.detach().clone() for name, value in saved.items()}
    policy = {name: value.clone() for name, value in whole.policy.state_dict().items()}
    random = torch.get_rng_state()
    whole.update()
    resumed = learner(tmp_path, config)
    resumed.policy.load_state_dict(policy)
    resumed.load(kept, numbers)
    torch.set_rng_state(random)
    resumed.update()
    for name, value in whole.save()[0].items():
        assert torch.equal(value, resumed.save()[0][name]), name


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


SHORT = ("--sac.updates", 2, "--sac.first", 100, "--sac.hidden", 8, "--sac.critic-hidden", 8, "--episodes", 0)


def test_the_command_trains_from_a_log_and_keeps_it(path: Path, tmp_path: Path, tensors: dict[str, Tensor]) -> None:
    words = ("--algorithm", "sac", "--robot-log", path, "--sac.dynamics-ratio", "--runs", tmp_path)
    assert run("train", BALANCE, *words, *SHORT, "--name", "hybrid") == 0
    kept, _ = checkpoint.load(tmp_path / "hybrid" / FILE_NAME)
    assert torch.equal(kept["reward"], tensors["reward"])
    described = json.loads((tmp_path / "hybrid" / "run.json").read_text())
    assert described["hyperparameters"]["robot_log"] == digest(tmp_path / "hybrid" / FILE_NAME)
    last = json.loads((tmp_path / "hybrid" / "metrics.jsonl").read_text().splitlines()[-1])
    assert LEAST <= last["dynamics_ratio"] <= MOST
    assert last["loss/ratio"] > 0.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--algorithm", "ppo", "--robot-log", "LOG"), "but ppo can't learn from any; expected sac"),
        (("--algorithm", "sac", "--sac.dynamics-ratio"), "expected --robot-log FILE"),
        (("--algorithm", "sac", "--robot-log", "LOG", "--sac.log-part", "1", "--sac.dynamics-ratio"),
         "log_part is 1; expected above 0 and below 1"),
        (("--algorithm", "sac", "--robot-log", "LOG", "--sac.robot-log", "0" * 64), "is a digest that is computed"),
        (("--algorithm", "sac", "--robot-log", "missing.mcap"), "missing.mcap: the file does not exist"),
    ],
)  # fmt: skip
def test_the_command_refuses_before_there_is_a_run(
    words: tuple[str, ...], sentence: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(path) if word == "LOG" else word for word in words]
    assert run("train", BALANCE, *given, "--runs", tmp_path / "runs") != 0
    assert sentence in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (tmp_path / "runs").exists()


def test_a_lerobot_dataset_is_the_same_log_as_the_file_that_it_was_made_of(tmp_path: Path) -> None:
    placing, chosen = PlaceDirect(), [dataclasses.asdict(SacConfig()) for _ in range(2)]
    write(tmp_path / "shown.safetensors", placing, demonstrate(placing, 4, seed=4)[0])
    recorded.to_lerobot(tmp_path / "shown.safetensors", tmp_path / "set", placing)
    given = (tmp_path / "shown.safetensors", tmp_path / "set")
    contents = [
        require_robot_log([place], "sac", placing, settings, True)
        for place, settings in zip(given, chosen, strict=True)
    ]
    one, other = (safetensors.torch.load(content) for content in contents)
    assert one.keys() == other.keys() >= set(Transitions._fields)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert [told["robot_log"] for told in chosen] == [hashlib.sha256(content).hexdigest() for content in contents]
