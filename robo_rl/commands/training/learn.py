"""robo-rl learn."""

from __future__ import annotations

import dataclasses
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from robo_rl.console import give, say
from robo_rl.learn.config import BcConfig, SacConfig

if TYPE_CHECKING:
    from robo_rl.learn.runs.folder import Run
    from robo_rl.online.learner import Algorithm

LITTLE_NOISE = SacConfig(
    first=500, warm_up=5, imitation=10.0, initial_deviation=0.04, greatest_deviation=0.06, initial_temperature=2e-3,
    target_entropy=-2.0,
)  # fmt: skip
"""Of sac: a robot explores with deviations of about 0.03 of an action; the operator shows what is farther away."""


def main(
    task: Annotated[str, tyro.conf.Positional],
    demonstrations: Path | None = None,
    algorithm: Literal["bc", "sac"] = "bc",
    seed: int = 0,
    robot: str | None = None,
    runs: Path = Path("runs"),
    name: str | None = None,
    folder: Path | None = None,
    ratio: float = 4.0,
    every: float = 10.0,
    seconds: float = float("inf"),
    json: bool = False,
    bc: BcConfig = BcConfig(),  # noqa: B008 (a frozen dataclass)
    sac: SacConfig = LITTLE_NOISE,
) -> int:
    """Learn while a robot runs, from what it does and from an operator who takes over when it goes wrong.

    A policy is learnt from demonstrations first. Then 'robo-rl run', or the ROS node, runs it and writes its steps into
    a folder; this process learns from them and puts better policies there, which the robot takes over as it runs.
    Either process may end, or be killed, and be started again. Ctrl-C ends this one with all saved; 'robo-rl evaluate',
    'export' and 'report' take the run as any other. With --json: run, folder, control_steps, minibatches,
    intervention_rate and success of the last 10 minutes of robot time, bundles.

    Args:
        task: Name of a task, or the folder of a run of this command, to go on.
        demonstrations: What 'robo-rl demonstrate' wrote for the task (*.safetensors).
        algorithm: bc clones demonstrations and interventions; sac learns from success too, and explores.
        seed: Random seed.
        robot: Another robot: a name from 'robo-rl tasks', or the path of a card (*.toml).
        runs: Folder in which the run's folder is made.
        name: Name of the run's folder; by default after task, algorithm and seed.
        folder: What the robot shares with this process; by default the folder 'robot' in the run's.
        ratio: Mini-batches per control step of the robot.
        every: Time (s) between policies for the robot.
        seconds: How long to learn.
        json: Print one JSON object on the last line of stdout.
        bc: Hyperparameters of bc; updates and steps are those before the robot runs.
        sac: Hyperparameters of sac.
    """
    import torch

    from robo_rl.deploy.robot.successors import files
    from robo_rl.files import held
    from robo_rl.online.learner import ROBOT, LiveLearner, learn

    if not 0 < ratio <= 1000:
        raise ValueError(f"--ratio is {ratio:g}; expected a positive number, at most 1000")
    if not 0 < every < float("inf"):
        raise ValueError(f"--every is {every:g}; expected a positive number of seconds")
    run = opened(task, demonstrations, algorithm, seed, robot, runs, name, bc if algorithm == "bc" else sac)
    folder = folder or run.folder / ROBOT
    torch.manual_seed(run.seed)
    end = time.monotonic() + seconds
    with held(run.folder):
        learner = LiveLearner(run, algorithm_of(run), folder, ratio, lambda sentence: say(sentence, json))
        say(f"{learner.average.task.name}: {run.algorithm} in {run.folder}; robots share {folder}", json)
        learner.begin()
        asked: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: asked.append(1))
        learn(learner, every, lambda: bool(asked) or time.monotonic() > end)
        run.finish({"run": str(run.folder), "task": learner.average.task.name, "algorithm": run.algorithm})
    rates = learner.rates()
    figures = {"control_steps": learner.steps, "minibatches": learner.learnt, "bundles": len(files(folder))}
    told = {name: rates[name] for name in ("intervention_rate", "success")}
    give({"run": str(run.folder), "folder": str(folder), **figures, **told}, json)
    return 0


def algorithm_of(run: Run) -> Algorithm:
    """What learns in a run of this command."""
    from robo_rl.learn import config_of
    from robo_rl.online.cloning import Cloning
    from robo_rl.online.sac import Reinforcement

    kinds = {"bc": Cloning, "sac": Reinforcement}
    if run.algorithm not in kinds:
        raise ValueError(f"{run.folder}: a run of {run.algorithm}; expected one of 'robo-rl learn', bc or sac")
    policy = run.new_policy()
    return kinds[run.algorithm](policy.task, policy, config_of(run), run.seed, run.folder)


def opened(
    task: str, demonstrations: Path | None, algorithm: str, seed: int, robot: str | None, runs: Path,
    name: str | None, config: BcConfig | SacConfig,
) -> Run:  # fmt: skip
    """The run in the folder ``task``, or a new one of a task with demonstrations."""
    from robo_rl.commands.training.given import require_demonstrations
    from robo_rl.files import write
    from robo_rl.learn.experience.demonstrations import FILE_NAME
    from robo_rl.learn.runs.folder import Run
    from robo_rl.online.sac import refuse
    from robo_rl.sim.tasks.loading import load_task

    if (Path(task) / "run.json").is_file():
        if demonstrations is not None:
            raise ValueError(f"--demonstrations is {demonstrations}, but {task} goes on with those that it began with")
        return Run.open(task)
    loaded = load_task(task, robot)
    if algorithm not in loaded.algorithms:
        raise ValueError(f"algorithm is {algorithm}; expected one of {list(loaded.algorithms)} for '{task}'")
    if isinstance(config, SacConfig):
        refuse(config)
    chosen = dataclasses.asdict(config)
    shown = require_demonstrations(demonstrations, algorithm, loaded, chosen)
    if shown is None:
        raise ValueError(f"{algorithm} on a robot begins with demonstrations; expected --demonstrations FILE")
    run = Run.create(runs, task, robot, algorithm, seed, chosen, name=name)
    write(run.folder / FILE_NAME, shown)
    return run
