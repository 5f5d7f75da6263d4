"""A task in a user's own file: trained, resumed, evaluated, exported, proved, and refused if it was changed.

The file is the one of docs/own-task.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from robo_rl.cli import main
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.learn import new_learner
from robo_rl.learn.config import ApgConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.runs import training
from robo_rl.learn.runs.folder import Run, RunError
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

ROOT = Path(__file__).parents[2]
(CIRCLE, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-task.md").read_text(), re.S)
COURSE = "SLOWEST, FASTEST = 4.0, 8.0  # s\n"
"""What the test's task imports from beside it."""
SMALL = ["--apg.updates", "2", "--apg.environments", "8", "--apg.horizon", "4", "--apg.hidden", "8", "8"]

Robo = Callable[..., dict[str, Any]]


def write(folder: Path) -> str:
    """The two files; the task's name for commands."""
    folder.mkdir(exist_ok=True)
    text = CIRCLE.replace("import torch\n", "import torch\nfrom course import FASTEST, SLOWEST\n")
    text = text.replace("Range.fixed(4.0, 8.0)", "Range.fixed(SLOWEST, FASTEST)")
    assert text.count("SLOWEST") == 2
    (folder / "circle.py").write_text(text)
    (folder / "course.py").write_text(COURSE)
    return f"{folder / 'circle.py'}:Circle"


def digest_of(folder: Path) -> str:
    """As docs and docstrings say."""
    found = hashlib.sha256()
    for name in ("circle.py", "course.py"):
        data = (folder / name).read_bytes()
        found.update(f"{name}\0{len(data)}\0".encode() + data)
    return found.hexdigest()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("mine"))


@pytest.fixture(scope="module")
def run_folder(task: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of it, hardly trained, by the command."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.raises(SystemExit) as done:
        main(["train", task, "--runs", str(runs), "--episodes", "0", *SMALL])
    assert done.value.code == 0
    (folder,) = runs.iterdir()
    return folder


@pytest.fixture(scope="module")
def bundle_file(run_folder: Path) -> Path:
    """The bundle of that run."""
    out = run_folder / "policy.onnx"
    with pytest.raises(SystemExit) as done:
        main(["export", str(run_folder), "--out", str(out)])
    assert done.value.code == 0
    return out


@pytest.fixture
def robo(capsys: pytest.CaptureFixture[str]) -> Robo:
    """Runs ``robo-rl`` with ``--json``: its object, or what it told on standard error if it was to fail."""

    def run(*words: object, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert done.value.code == code, err
        return json.loads(out.splitlines()[-1]) if out else {"told": err}

    return run


def test_the_run_keeps_the_files_of_the_task(task: str, run_folder: Path) -> None:
    mine = Path(task.rpartition(":")[0]).parent
    kept = {path.name: path.read_bytes() for path in (run_folder / "source").iterdir()}
    assert kept == {name: (mine / name).read_bytes() for name in ("circle.py", "course.py")}
    told = json.loads((run_folder / "run.json").read_text())
    assert (told["task_name"], told["source_digest"]) == ("source/circle.py:Circle", digest_of(mine))
    assert run_folder.name == "quadrotor-circle-seed0-1"
    assert "source_digest" in told
    assert str(mine) not in (run_folder / "run.json").read_text()


def test_the_run_flies_without_the_users_own_file(run_folder: Path, tmp_path: Path, robo: Robo) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(run_folder, moved)
    found = robo("evaluate", moved, "--episodes", 4, "--seconds", 1.1)
    assert (found["task"], found["robot"], found["episodes"]) == ("quadrotor-circle", "crazyflie", 4)
    source = load(str(moved)).task.source
    assert source is not None
    assert source.file.parent == moved / "source"


def test_an_interrupted_training_is_resumed_from_the_runs_own_copy(task: str, tmp_path: Path, robo: Robo) -> None:
    settings = dataclasses.asdict(ApgConfig(updates=4, environments=8, horizon=4, hidden=(8,)))
    whole, parts = (Run.create(tmp_path / name, task, None, "apg", 0, settings) for name in ("whole", "parts"))
    for run, part in ((whole, 1.0), (parts, 0.5)):
        torch.manual_seed(0)
        learner = new_learner(run, run.new_policy(), "cpu")
        while learner.done < part * learner.total:
            learner.update()
        training.save(run, learner)
    result = robo("resume", parts.folder, "--episodes", 0)
    assert not result["interrupted"]
    mine, theirs = (run.policy()[0].state_dict() for run in (parts, whole))
    assert all(torch.equal(mine[name], value) for name, value in theirs.items())


def test_a_run_whose_files_were_changed_is_refused(run_folder: Path, tmp_path: Path, robo: Robo) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(run_folder, changed)
    (changed / "source" / "course.py").write_text("SLOWEST, FASTEST = 4.0, 9.0\n")
    for words in (["evaluate", changed, "--episodes", 4], ["export", changed], ["resume", changed]):
        assert "the files of the task were changed since the start of the training" in robo(*words, code=1)["told"]


def test_the_bundle_names_the_file_and_its_digest(task: str, bundle_file: Path) -> None:
    contract = Bundle.read(bundle_file).contract
    assert contract.task == "quadrotor-circle"
    assert contract.provenance.source == "circle.py:Circle"
    assert contract.provenance.source_digest == digest_of(Path(task.rpartition(":")[0]).parent)
    assert "tmp" not in contract.to_json()


def test_run_and_bundle_fly_alike(task: str, run_folder: Path, bundle_file: Path, robo: Robo) -> None:
    few = ["--episodes", 6, "--seconds", 1.5]
    run = robo("evaluate", run_folder, *few, "--against", bundle_file)
    file = robo("evaluate", bundle_file, "--task", task, *few)
    assert run["duration_mean_s"] == pytest.approx(file["duration_mean_s"], abs=0.02)
    assert "comparison" in run


WITHOUT = [
    ["evaluate", "--episodes", "2"],
    ["verify", "--episodes", "2"],
    ["transfer", "--episodes", "2"],
    ["play", "--picture", "x.png"],
    ["report", "--episodes", "20"],
    ["compress", "--updates", "1"],
    ["record", "--seconds", "1", "--out", "x.mcap"],
    ["firmware", "--target", "host", "--fly", "1"],
    ["firmware", "--precision", "int8"],
    ["export", "--out", "x.onnx"],
]


@pytest.mark.parametrize("words", WITHOUT, ids=lambda words: " ".join(words[:2]))
def test_a_bundle_of_it_says_in_one_sentence_what_to_give(
    words: list[str], bundle_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, robo: Robo
) -> None:
    monkeypatch.chdir(tmp_path)
    told = robo(words[0], bundle_file, *words[1:], code=1)["told"]
    sentence = (
        "its task is a program that the file brings, 'circle.py:Circle'; to run it with your rights, add --task inside "
        f"(to read it first:  robo-rl inspect {bundle_file} --extract FOLDER)"
    )
    assert told.splitlines()[-1] == f"robo-rl {words[0]}: {sentence}"
    assert list(tmp_path.iterdir()) == []


def test_what_needs_no_simulation_needs_no_task(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    assert robo("inspect", bundle_file)["contract"]["provenance"]["source"] == "circle.py:Circle"
    made = robo("firmware", bundle_file, "--target", "host", "--run", "--out", tmp_path / "c")
    assert made["passed"]


def test_it_is_verified_and_flown_by_its_firmware(task: str, bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    found = robo("verify", bundle_file, "--task", task, "--episodes", 4, "--min-success", 0)
    assert found["passed"]
    assert found["steps"] > 0
    assert found["episodes"] == 4
    words = ["--target", "host", "--fly", 2, "--out", tmp_path / "c", "--task", task]
    assert robo("firmware", bundle_file, *words)["loop"]["different"] == 0


def test_the_source_in_the_bundle_is_the_one_that_it_was_trained_with(
    task: str, bundle_file: Path, tmp_path: Path, robo: Robo
) -> None:
    found = robo("verify", bundle_file, "--task", "inside", "--episodes", 4, "--min-success", 0)
    assert found["passed"]
    told = robo("inspect", bundle_file, "--extract", tmp_path / "brought")
    assert list(told["attached"]) == ["source/circle.py", "source/course.py"]
    for name in ("circle.py", "course.py"):
        theirs = Path(task.rpartition(":")[0]).parent / name
        assert (tmp_path / "brought" / "source" / name).read_bytes() == theirs.read_bytes()
    assert "is not empty" in robo("inspect", bundle_file, "--extract", tmp_path / "brought", code=1)["told"]


@pytest.mark.parametrize("file", ["circle.py", "course.py"])
def test_changed_files_are_refused_by_what_proves_something(
    file: str, bundle_file: Path, tmp_path: Path, robo: Robo
) -> None:
    other = write(tmp_path / "other")
    path = tmp_path / "other" / file
    path.write_text(path.read_text() + "# another comment\n")
    for words in (
        ["verify", bundle_file, "--episodes", 2],
        ["firmware", bundle_file, "--target", "host", "--out", tmp_path / "c"],
        ["record", bundle_file, "--seconds", 1, "--out", tmp_path / "x.mcap"],
        ["compress", bundle_file, "--updates", 1],
    ):
        told = robo(*words, "--task", other, code=1)["told"]
        assert re.search(
            r"circle.py and what it imports give the SHA-256 \w{12}…, but the policy was trained with", told
        )
    assert not (tmp_path / "c").exists()
    found = robo("evaluate", bundle_file, "--task", other, "--episodes", 2, "--seconds", 1.1)  # proves nothing
    assert found["task"] == "quadrotor-circle"


def test_another_task_is_not_taken_for_it(task: str, bundle_file: Path, robo: Robo) -> None:
    told = robo("verify", bundle_file, "--task", "quadrotor-hover", "--episodes", 2, code=1)["told"]
    assert "its task is from a user's own file, 'circle.py:Circle'; 'quadrotor-hover' is not" in told
    told = robo("verify", "zoo:quadrotor-hover", "--task", task, "--episodes", 2, code=1)["told"]
    assert "its task 'quadrotor-hover' is not from a user's own file; circle.py:Circle is" in told


@pytest.mark.slow
@pytest.mark.parametrize("where", representatives(["its file", "inside"], ["inside"]))
def test_every_other_command_takes_it(where: str, task: str, bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    there = ["--task", task if where == "its file" else where]
    few = ["--episodes", 4, "--seconds", 1.5, "--perturbations", "none"]
    found = robo("transfer", bundle_file, *there, *few, code=1)  # of what nobody survives nothing is kept
    assert [row["engine"] for row in found["engines"]] == ["mujoco"]
    picture = tmp_path / "circle.png"
    assert robo("play", bundle_file, *there, "--picture", picture)["picture"] == str(picture)
    page = tmp_path / "report.html"
    assert robo("report", bundle_file, *there, "--episodes", 20, "--out", page)["bytes"] == page.stat().st_size
    small = tmp_path / "small.onnx"
    assert robo("compress", bundle_file, *there, "--updates", 2, "--out", small, "--episodes", 2)["episodes"] == 2
    assert Bundle.read(small).contract.provenance.source == "circle.py:Circle"
    session = tmp_path / "session.mcap"
    assert robo("record", bundle_file, *there, "--seconds", 1, "--out", session, code=1)["file"] == str(session)
    again = robo("export", bundle_file, *there, "--out", tmp_path / "again.onnx")
    assert again["contract_digest"] == Bundle.read(bundle_file).contract.digest


def test_its_figures_of_training_are_the_tasks(task: str) -> None:
    circle = load_task(task)
    assert circle.update_scale == 3.0
    assert circle.spec.reward["tilt"] == -0.02
    goal = circle.goal({"goal/radius": torch.tensor([0.5]), "goal/period": torch.tensor([2 * torch.pi])})
    at = circle.reference(torch.tensor([torch.pi / 2]), goal)
    np.testing.assert_allclose(at["position_setpoint"], [[0.0, 0.5, 0.0]], atol=1e-6)
    np.testing.assert_allclose(at["linear_velocity_setpoint"], [[-0.5, 0.0, 0.0]], atol=1e-6)


def test_gymnasium_makes_it_single_and_batched(task: str) -> None:
    importlib.import_module("robo_rl.adapters.gym")  # which registers it
    env = gymnasium.make("robo-rl/Task-v0", task=task, robot="hummingbird")
    observation, _ = env.reset(seed=3)
    assert observation.shape == (load_task(task).observation_size,)
    envs = gymnasium.make_vec("robo-rl/Task-v0", num_envs=3, task=task)
    observations, _ = envs.reset(seed=3)
    ours = LearningEnv(VecEnv(load_task(task), 3, seed=0))
    assert observations.shape == ours.observation().shape
    assert np.isfinite(envs.step(envs.action_space.sample())[1]).all()


def test_the_stand_in_robot_does_it(task: str) -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin(task)
    measured = twin.measure()
    assert twin.spec.name == "quadrotor-circle"
    assert measured["position"].shape == (3,)
    twin.step(None)


# --- what training refuses, before it makes a folder ---------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("goal_size = 2", "goal_size = 5"), r"circle.py:Circle can't be trained as it is:\n  goal gives \(2, 2\); "),
        (('["goal/radius"], 2', '["goal/size"], 2'), r"goal: it failed \(circle.py, line \d+: KeyError: 'goal/size'\)"),
        (("import math\n", "import math,\n"), r"circle.py: it can't be imported \(circle.py, line 1: SyntaxError"),
        (("    def goal(self", "    def aim(self"), "circle.py:Circle can't be trained as it is"),
        (
            ("        radius, rate = goal", "        import late\n        radius, rate = goal"),
            r"circle.py:Circle: \['late.py'\] are imported within functions; expected imports at the top",
        ),
        (
            ("class Circle(Qua", "open(__file__.replace('circle.py', 'data.txt'))\nclass Circle(Qua"),
            r"Circle: its copy can't be loaded \(.*circle.py, line \d+: FileNotFoundError: .*whose 'files' name",
        ),
    ],
)  # fmt: skip
def test_a_task_that_can_not_be_trained_is_refused_before_a_run_is_made(
    change: tuple[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(tmp_path / "mine")
    (tmp_path / "mine" / "late.py").write_text("")
    (tmp_path / "mine" / "data.txt").write_text("")
    path = tmp_path / "mine" / "circle.py"
    assert path.read_text().count(change[0]) == 1
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(SystemExit) as done:
        main(["train", name, "--runs", str(tmp_path / "runs"), *SMALL])
    assert done.value.code == 1
    assert re.search(sentence, capsys.readouterr().err)
    assert not list((tmp_path / "runs").glob("*"))


def test_files_that_the_task_names_are_kept_and_a_card_is_called_after_its_robot(tmp_path: Path) -> None:
    from robo_rl.sim.robots import FOLDER

    name = write(tmp_path / "mine")
    path, plain = tmp_path / "mine" / "circle.py", (tmp_path / "mine" / "circle.py").read_text()
    settings = dataclasses.asdict(ApgConfig(updates=1, environments=8, horizon=4, hidden=(8,)))
    for card in ("tiny.toml", "card.toml"):
        shutil.copy(FOLDER / "crazyflie" / "card.toml", tmp_path / "mine" / card)
        text = plain.replace(
            "class Circle", "from robo_rl.sim.robots.multirotor import load_multirotor\n\n\nclass Circle"
        )
        own = f'load_multirotor(__file__.replace("circle.py", "{card}"))'
        init = (
            f"    files = ('{card}',)\n\n    def __init__(self, card=None):\n        super().__init__(card or {own})\n"
        )
        path.write_text(text.replace("    def goal(self", f"{init}\n    def goal(self"))
        if card == "tiny.toml":
            run = Run.create(tmp_path / "runs", name, None, "apg", 0, settings)
            assert (run.folder / "source" / card).is_file()
            assert run.task().spec.robot.name == "tiny"
            continue
        with pytest.raises(
            RunError, match=r"the robot 'mine' is called 'source' where a run keeps it; expected a card"
        ):
            Run.create(tmp_path / "runs", name, None, "apg", 0, settings)
