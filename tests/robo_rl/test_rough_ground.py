"""From a teacher on rough ground to a policy for robots: warm start, distillation, evaluate_terrain, refusals."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from robo_rl.commands.training import resume, train
from robo_rl.commands.training.distill import main
from robo_rl.evaluate.evaluation import GraphPolicy, StopPolicy
from robo_rl.evaluate.terrain_evaluation import evaluate_terrain
from robo_rl.learn import new_learner
from robo_rl.learn.config import DistillConfig, PpoConfig
from robo_rl.learn.distill import distill
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.runs.warm_start import begin_from, narrow, widen
from robo_rl.policies.loading import load
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task


@pytest.fixture(scope="module")
def teacher() -> PolicyGraph:
    torch.manual_seed(0)
    policy = PolicyGraph(load_task("go2-rough-teacher"), (16,), "elu", normalize=True)
    with torch.no_grad():
        policy.network[-1].weight.mul_(30.0)  # so that there is something to learn,
        policy.network[0].weight[:, load_task("go2-rough").observation_size :] = 0.0  # and it can be learnt
    return policy.requires_grad_(False).eval()


def test_a_widened_policy_commands_what_the_narrow_one_did() -> None:
    torch.manual_seed(1)
    flat, rough = (PolicyGraph(load_task(name), (16,), "elu", normalize=True) for name in ("go2-flat", "go2-rough"))
    with torch.no_grad():
        flat.normalizer.mean.uniform_(-1, 1)
    widen(rough, flat.state_dict(), "here")
    seen = torch.randn(5, rough.task.observation_size)
    known = seen[:, : flat.task.observation_size]
    ours, theirs = rough.network(rough.normalizer(seen)), flat.network(flat.normalizer(known))
    torch.testing.assert_close(ours, theirs)


def test_rough_ground_is_seen_after_all_that_is_seen_on_flat_ground() -> None:
    flat, rough, teacher = (load_task(name) for name in ("go2-flat", "go2-rough", "go2-rough-teacher"))
    everything = {s.name: torch.randn(3, s.size) for s in teacher.spec.signals}
    everything["orientation"] /= everything["orientation"].norm(dim=1, keepdim=True)
    memory = {name: value + 0.1 * torch.randn_like(value) for name, value in teacher.first_memory(3).items()}
    on_flat, on_rough, by_teacher = (task.observe(everything, memory) for task in (flat, rough, teacher))
    torch.testing.assert_close(on_rough[:, : on_flat.shape[1]], on_flat)
    torch.testing.assert_close(by_teacher[:, : on_rough.shape[1]], on_rough)


def test_networks_of_other_layers_are_refused() -> None:
    flat = PolicyGraph(load_task("go2-flat"), (8,), "elu")
    with pytest.raises(ValueError, match=r"run 1 has 'network.0.weight' of shape \(8, 113\); expected \(16, 161\)"):
        widen(PolicyGraph(load_task("go2-rough"), (16,), "elu"), flat.state_dict(), "run 1")


def test_a_run_of_another_algorithm_is_no_beginning(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, {"hidden": [8], "activation": "tanh"})
    with pytest.raises(ValueError, match="was trained by apg; expected one by this training's algorithm"):
        begin_from(SimpleNamespace(), run)


def test_a_run_of_an_older_version_is_no_beginning(tmp_path: Path) -> None:
    few = PpoConfig(environments=4, horizon=4, hidden=(8,), critic_hidden=(8,))
    run = Run.create(tmp_path, "quadrotor-hover", None, "ppo", 0, dataclasses.asdict(few))
    checkpoint.save(run.checkpoint_file, {"actor/distribution.std_param": torch.ones(4)}, {"done": 1})
    with pytest.raises(ValueError, match="is of an older version, without the tensors needed; train it again"):
        begin_from(new_learner(run, run.new_policy()), run)


def test_a_run_remembers_with_which_policy_it_began(tmp_path: Path) -> None:
    chosen = dataclasses.asdict(PpoConfig())
    first = Run.create(tmp_path, "go2-flat", None, "ppo", 0, chosen)
    first.checkpoint_file.write_bytes(b"learnt")
    second = Run.create(tmp_path, "go2-rough", None, "ppo", 0, chosen, origin=first)
    assert second.begun_from == hashlib.sha256(b"learnt").hexdigest()
    assert Run.open(second.folder).begun_from == second.begun_from
    assert first.begun_from is None


def test_a_run_whose_task_has_no_student_is_no_teacher(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "go2-flat", None, "ppo", 0, dataclasses.asdict(PpoConfig()))
    with pytest.raises(ValueError, match="is of task 'go2-flat', which has no student: its policy needs no teacher"):
        main(run.folder)


def test_a_recurrent_teacher_is_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "go2-rough-teacher", None, "ppo", 0, dataclasses.asdict(PpoConfig(recurrent=8)))
    with pytest.raises(ValueError, match="has a recurrent network; distillation is for policies without one"):
        main(run.folder, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_several_processes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path, "go2-rough-teacher", None, "ppo", 0, dataclasses.asdict(PpoConfig()))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="there are 2 processes; distillation is for one"):
        main(run.folder, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_taught_student_is_nearer_to_its_teacher_than_an_untaught_one(teacher: PolicyGraph) -> None:
    torch.manual_seed(2)
    student = PolicyGraph(load_task("go2-rough"), (16,), "elu", normalize=True)
    lessons = DistillConfig((16,), "elu", updates=60, environments=32, mixed=4, learning_rate=0.01)
    untaught = distill(teacher, copy.deepcopy(student), dataclasses.replace(lessons, learning_rate=1e-12))
    taught = distill(teacher, student, lessons)
    assert sum(taught.losses[-10:]) < 0.5 * sum(untaught.losses[-10:])
    assert taught.environment_steps == 60 * 32


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The runs of a teacher and of its student, hardly trained."""
    root = tmp_path_factory.mktemp("taught")
    few = PpoConfig(updates=1, environments=8, horizon=4, hidden=(16,), critic_hidden=(16,), activation="elu")
    assert train.main("go2-rough-teacher", "ppo", runs=root, episodes=0, ppo=few) == 0
    teacher = Run.open(root / "go2-rough-teacher-ppo-seed0-1")
    assert main(teacher.folder, updates=3, runs=root, episodes=0) == 0
    return teacher, Run.open(root / "go2-rough-distilled-seed0-1")


def test_a_student_gets_a_run_of_its_own(taught: tuple[Run, Run]) -> None:
    teacher, student = taught
    policy, made = student.policy()
    assert policy.task.name == "go2-rough"
    assert (made.algorithm, made.environment_steps, policy.shape.hidden) == ("distilled", 3 * 256, (16,))
    assert student.begun_from == hashlib.sha256(teacher.checkpoint_file.read_bytes()).hexdigest()
    assert (student.folder / "metrics.jsonl").read_text().count('"error"') == 3


def test_ppo_begins_as_the_student_with_the_teachers_critic_and_levels(taught: tuple[Run, Run]) -> None:
    teacher, student = taught
    tensors = checkpoint.load(teacher.checkpoint_file)[0]
    tensors["env/env/levels"][:, -1] = torch.linspace(0.0, 1.0, 8)
    checkpoint.save(teacher.checkpoint_file, tensors, checkpoint.load(teacher.checkpoint_file)[1])
    assert main(teacher.folder, updates=1, runs=student.folder.parent, episodes=0) == 0
    student = Run.open(student.folder.parent / "go2-rough-distilled-seed0-2")
    few = PpoConfig(updates=1, environments=12, horizon=4, hidden=(16,), critic_hidden=(16,), activation="elu")
    run = Run.create(student.folder.parent, "go2-rough", None, "ppo", 0, dataclasses.asdict(few), origin=student)
    learner = new_learner(run, run.new_policy())
    begin_from(learner, student)
    seen = torch.randn(5, learner.policy.task.observation_size)
    policy, _ = student.policy()
    torch.testing.assert_close(
        learner.policy.network(learner.policy.features(seen)), policy.network(policy.features(seen))
    )
    for name, value in learner.critic.state_dict().items():
        torch.testing.assert_close(value, tensors[f"critic/{name}"])
    torch.testing.assert_close(learner.deviation.detach(), tensors["deviation"])
    torch.testing.assert_close(learner.normalizer.deviation, policy.normalizer.deviation)
    levels = learner.env.env.levels.level[:, -1]
    torch.testing.assert_close(levels, torch.linspace(0.0, 1.0, 8)[torch.arange(12) % 8])


def test_a_distillation_that_was_interrupted_goes_on(taught: tuple[Run, Run], tmp_path: Path) -> None:
    student = taught[1]
    folder = tmp_path / student.folder.name
    shutil.copytree(student.folder, folder)
    described = json.loads((folder / "run.json").read_text())
    described["hyperparameters"]["updates"] = 5
    (folder / "run.json").write_text(json.dumps(described))
    assert resume.main(folder, episodes=0) == 0
    assert Run.open(folder).policy()[1].environment_steps == 5 * 256


def test_a_distillation_whose_teacher_is_gone_says_where_it_was(taught: tuple[Run, Run], tmp_path: Path) -> None:
    folder = tmp_path / "student"
    shutil.copytree(taught[1].folder, folder)
    described = json.loads((folder / "run.json").read_text())
    described["hyperparameters"]["teacher"] = str(tmp_path / "gone")
    (folder / "run.json").write_text(json.dumps(described))
    with pytest.raises(ValueError, match=r"gone/run.json does not exist; expected the folder of a run"):
        resume.main(folder, episodes=0)


def test_a_student_begins_with_its_teachers_weights_of_what_it_sees(teacher: PolicyGraph) -> None:
    student = PolicyGraph(load_task("go2-rough"), (16,), "elu", normalize=True)
    narrow(student, teacher)
    seen = torch.randn(5, student.task.observation_size)
    unseen = teacher.normalizer.mean[student.task.observation_size :].expand(5, -1)  # tells nothing
    expected = teacher.network(teacher.normalizer(torch.cat([seen, unseen], 1)))
    torch.testing.assert_close(student.network(student.normalizer(seen)), expected)


def test_crossings_tell_of_every_kind_and_height_with_an_interval() -> None:
    task = load_task("go2-rough")
    student = PolicyGraph(task, (8,), "elu")
    table = evaluate_terrain(task, GraphPolicy(student), each=1, seconds=1.0)
    assert len(table) == 7 * 6
    assert {(row["kind"], row["height"]) for row in table} >= {("stairs up", "10 cm"), ("slope down", "20°")}
    assert all(0.0 <= row["crossed_low"] <= row["crossed"] <= row["crossed_high"] <= 1.0 for row in table)


def test_crossings_may_be_of_some_patches_alone() -> None:
    task = load_task("go2-rough")
    policy = GraphPolicy(PolicyGraph(task, (8,), "elu"))
    table = evaluate_terrain(task, policy, each=3, seconds=0.5, fixed={"ground/difficulty": 0.75, "command/x": 0.3})
    assert [(row["kind"], row["walks"]) for row in table] == [(kind, 3) for kind in task.ground.kinds]
    assert {row["height"] for row in table} >= {"10 cm", "20°"}
    (row,) = evaluate_terrain(task, policy, each=2, seconds=0.5, fixed={"ground/difficulty": 1.0, "ground/kind": 2 / 7})
    assert (row["kind"], row["height"]) == ("slope up", "24°")
    (row,) = evaluate_terrain(task, policy, each=2, seconds=0.5, fixed={"ground/difficulty": -1.0, "ground/kind": 1.0})
    assert (row["kind"], row["height"]) == ("stairs up", "2 cm")


STAIRS = {"ground/difficulty": 0.75, "ground/kind": 0.0}  # the first kind, 10 cm high


@pytest.mark.slow
def test_who_climbs_has_crossed_and_who_stands_has_not() -> None:
    """Whole crossings of 3.6 m: the shipped policy climbs, and one that stands gets nowhere without falling."""
    shipped = load("zoo:go2-rough")
    (row,) = evaluate_terrain(shipped.task, shipped.policy, each=24, fixed=STAIRS)
    assert (row["kind"], row["height"]) == ("stairs up", "10 cm")
    assert row["crossed"] > 0.8
    assert row["crossed"] + row["fell"] <= 1.0
    (row,) = evaluate_terrain(shipped.task, StopPolicy(shipped.task), each=24, fixed=STAIRS)
    assert row["crossed"] == 0.0
