"""robo-rl train, and the end of robo-rl resume and distill, which is the same."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from robo_rl.commands.training.given import (
    require_base,
    require_demonstrations,
    require_reset_states,
    require_robot_log,
)
from robo_rl.console import STARTED, give, require_port, say, say_next, told_if_long
from robo_rl.files.escaping import shell_word
from robo_rl.learn.config import CONFIGS, ApgConfig, BcConfig, PpoConfig, SacConfig

if TYPE_CHECKING:
    from robo_rl.learn.runs.folder import Run

Flag = tyro.conf.FlagCreatePairsOff
ON_DEVICES = ("apg", "ppo")
"""Algorithms that learn on a GPU as well."""


def main(
    task: Annotated[str, tyro.conf.Positional],
    algorithm: Literal["apg", "bc", "ppo", "sac"] = "apg",
    seed: int = 0,
    robot: str | None = None,
    runs: Path = Path("runs"),
    name: str | None = None,
    device: str = "cpu",
    processes: int = 1,
    plant: Literal["mujoco", "warp"] | None = None,
    ranges: Path | None = None,
    bounds: tuple[str, ...] = (),
    begin_from: Path | None = None,
    demonstrations: Path | None = None,
    robot_log: tuple[Path, ...] = (),
    reset_states: Path | None = None,
    base: str | None = None,
    stop_below: tuple[str, ...] = (),
    episodes: int = 500,
    checkpoint_seconds: float = 5.0,
    wandb: str | None = None,
    live: bool = False,
    port: int = 0,
    no_open: bool = False,
    json: bool = False,
    apg: ApgConfig = ApgConfig(),  # noqa: B008 (immutable)
    bc: BcConfig = BcConfig(),  # noqa: B008
    ppo: PpoConfig = PpoConfig(),  # noqa: B008
    sac: SacConfig = SacConfig(),  # noqa: B008
    words: tyro.conf.Suppress[tuple[str, ...]] = (),
) -> int:
    """Train a policy on a task, then evaluate it.

    'robo-rl train TASK --help' shows the defaults for the task. Ctrl-C saves and stops; 'robo-rl resume RUN'
    continues. With --json: run, task, algorithm, seed, train_seconds, compile_seconds, wall_seconds,
    environment_steps, steps_per_second, simulation_steps_per_second, interrupted, and what 'evaluate' gives.

    Args:
        task: Name of the task; 'robo-rl tasks' lists them. For a task in your own file: FILE.py:CLASS.
        algorithm: apg: analytic policy gradient, seconds. ppo: proximal policy optimisation, minutes. sac: soft
            actor-critic, minutes, for rewards that are rare. bc: behaviour cloning of demonstrations, seconds.
        seed: Random seed: the same seed gives the same policy, bit for bit, on the same machine.
        robot: Another robot: a name from 'robo-rl tasks', or the path of a card (*.toml).
        runs: Folder in which the run's folder is created.
        name: The run folder's name, in place of the task, the seed and a number. It must be free.
        device: cpu or cuda, for simulation and networks.
        processes: Train one policy in so many processes of this computer; goes on where one is lost. ppo only.
        plant: Physics engine: mujoco (default on cpu) or warp (on cuda; slow on cpu).
        ranges: A file with other bounds for some of the task's ranges (*.toml).
        bounds: NAME:LOW:HIGH, one or several: other bounds for these ranges, as in delay:0:0.01.
        begin_from: A trained run's folder, whose networks are the initial networks: of the same task (also distilled),
            or of a task whose observation this task's observation extends (go2-flat for go2-rough).
        demonstrations: A file by 'robo-rl demonstrate', for sac and bc; the run keeps a copy.
        robot_log: What a robot did whose physics the simulator can't express, for sac: logs (*.mcap), also files and
            LeRobotDatasets by 'robo-rl demonstrate' and 'robo-rl demos convert'. A part of every batch is from them
            (docs/retrain.md); the run keeps a copy.
        reset_states: A file by 'robo-rl reset-states', for ppo and sac: episodes begin with its states, as often as
            reset_weights tell; the run keeps a copy.
        base: A frozen policy that the new one corrects, for ppo and sac: a run's folder (of bc, for instance), a .onnx
            file, or 'script', the task's own. The first policy is the base; the run keeps a copy.
        stop_below: UPDATE:REWARD, one or several: a training whose reward is lower after this update ends there.
        episodes: Number of held-out episodes after training; 0 for none.
        checkpoint_seconds: Time (s) between checkpoints.
        wandb: Publish the run in this project of Weights & Biases when it is done (pip install 'robo-rl[track]').
        live: Serve a page while the training goes on: curves, reward terms, lengths of episodes, and robots that the
            newest policy moves. Of a finished or interrupted run, 'robo-rl play RUN' shows it.
        port: Port of the page; 0 for any free one.
        no_open: Don't open a browser.
        json: Print one JSON object on the last line of stdout.
        apg: Hyperparameters of apg.
        bc: Hyperparameters of bc.
        ppo: Hyperparameters of ppo.
        sac: Hyperparameters of sac.
        words: Of the command line, all.
    """
    from robo_rl.commands.training import resume
    from robo_rl.files import write
    from robo_rl.learn.distributed import launch
    from robo_rl.learn.distributed import processes as joined
    from robo_rl.learn.experience.demonstrations import FILE_NAME
    from robo_rl.learn.experience.reset_states import FILE_NAME as RESET_STATES
    from robo_rl.learn.experience.robot_log import FILE_NAME as ROBOT_LOG
    from robo_rl.learn.residual import FILE_NAME as BASE
    from robo_rl.learn.runs.folder import Run, free_name, label_of
    from robo_rl.sim.ranges import parse_bounds, read_ranges, replaced
    from robo_rl.sim.tasks.loading import load_task

    require_device(device, algorithm)
    require_plant(plant, task, device)
    require_times(episodes, checkpoint_seconds)
    require_port(port)
    if live and processes * joined.count() > 1:
        raise ValueError(f"--live, and --processes {processes}; expected one process, or 'robo-rl play RUN' beside it")
    if wandb is not None:
        from robo_rl.learn.runs.trackers import require_wandb

        require_wandb()
    loaded = load_task(task, robot)
    if not loaded.algorithms:
        raise ValueError(f"'{task}' has nothing to train: robo-rl export {task} --out FILE writes its policy")
    if algorithm not in loaded.algorithms:
        raise ValueError(f"algorithm is {algorithm}; expected one of {list(loaded.algorithms)} for '{task}'")
    require_own_settings(words, algorithm)
    count = joined.count() * launch.checked(processes)
    if count > 1 and algorithm != "ppo":
        raise ValueError(f"algorithm is {algorithm}, in {count} processes; expected ppo")
    floors = floors_of(stop_below)
    if processes > 1:
        name = name or free_name(runs, label_of(loaded, algorithm, seed))
        first = ["train", *launch.without(words), "--name", name]
        again = resume.words_of(runs / name, device, episodes, checkpoint_seconds, json)
        code = launch.train(first, again, runs / name, processes, json)
        return code or published(runs / name, wandb, json)
    device = joined.join(device)
    settings: dict[str, ApgConfig | BcConfig | PpoConfig | SacConfig] = {"apg": apg, "bc": bc, "ppo": ppo, "sac": sac}
    chosen = dataclasses.asdict(settings[algorithm])
    shown = require_demonstrations(demonstrations, algorithm, loaded, chosen)
    driven = require_robot_log(robot_log, algorithm, loaded, chosen, json)
    stored = require_reset_states(reset_states, algorithm, loaded, chosen)
    corrected = require_base(base, algorithm, loaded, chosen, begin_from)
    origin = Run.open(begin_from) if begin_from else None
    other = read_ranges(ranges, loaded.name, loaded.spec.ranges) if ranges else {}
    other |= parse_bounds(bounds, loaded.name, loaded.spec.ranges)
    replaced(loaded.spec.ranges, other)  # refused before there is a run
    if plant is None and loaded.plants:
        plant = "mujoco" if device == "cpu" else "warp"
    run = None
    if joined.rank() == 0:
        run = Run.create(runs, task, robot, algorithm, seed, chosen, other, origin, plant, name, floors)
        if shown is not None:
            write(run.folder / FILE_NAME, shown)
        if driven is not None:
            write(run.folder / ROBOT_LOG, driven)
        if stored is not None:
            write(run.folder / RESET_STATES, stored)
        if corrected is not None:
            write(run.folder / BASE, corrected)
    folder = joined.from_first(run and run.folder)
    page = (port, no_open) if live else None
    run = run or Run.open(folder)
    code = learn(run, device, episodes, checkpoint_seconds, json, resumed=False, origin=origin, page=page)
    return code or published(folder, wandb if joined.rank() == 0 else None, json)


def published(folder: Path, project: str | None, as_json: bool) -> int:
    """Publish a finished run in a project of Weights & Biases, if there is one; the exit code."""
    if project is None:
        return 0
    from robo_rl.learn.runs.table import found
    from robo_rl.learn.runs.trackers import PublishingError, to_wandb

    rows = found([folder])
    try:
        to_wandb(rows, project, rows[0].run.task_name)
    except PublishingError as error:
        again = f"robo-rl runs {shell_word(folder)} --wandb {shell_word(project)}"
        raise PublishingError(f"the run is done, but {error}; to publish it:  {again}") from None
    say(f"Published in {project}", as_json)
    return 0


def command(words: Sequence[str]) -> Callable[..., int]:
    """``main`` with the defaults that suit the task among the words of a command line, so that --help shows them."""
    given = [word for word in words if not word.startswith("-")]
    if not given:
        return main  # tasks are made of torch, whose import takes a second

    from robo_rl.sim.tasks.loading import FILE, load_task, task_names

    known = task_names()
    named = dict.fromkeys(word for word in given if word in known or FILE.fullmatch(word))
    chosen = _task_among(words) if len(named) > 1 else next(iter(named), None)
    if chosen not in named:
        return main
    task = load_task(chosen)
    kinds = {"apg": ApgConfig, "bc": BcConfig, "ppo": PpoConfig, "sac": SacConfig}
    suited = {name: kind(**task.settings.get(name, {})) for name, kind in kinds.items()}
    return functools.partial(main, algorithm=task.algorithms[0], **suited, words=tuple(words))


def _task_among(words: Sequence[str]) -> str | None:
    """The task that words of a command line name, some of which may be values of options; None on wrong usage."""

    @functools.wraps(main)
    def chosen(task: str, **others: Any) -> str:
        return task

    plain = [word for word in words if word not in ("-h", "--help")]
    silence = io.StringIO()
    try:
        with contextlib.redirect_stderr(silence), contextlib.redirect_stdout(silence):
            return tyro.cli(chosen, args=plain, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit:
        return None


def require_own_settings(words: Sequence[str], algorithm: str) -> None:
    """Refuse hyperparameters of an algorithm that does not train here: they would change nothing."""
    others = "|".join(name for name in CONFIGS if name != algorithm)
    for word in words:
        if given := re.match(rf"--({others})\.[^=]*", word):
            raise ValueError(
                f"{given[0]} is given, but the algorithm is {algorithm}; "
                f"expected --{algorithm}.… or --algorithm {given[1]}"
            )


def require_device(device: str, algorithm: str = "ppo") -> None:
    """Refuse a device that is not there, or that an algorithm can't use, before there is a run's folder."""
    import torch

    if device != "cpu" and not device.startswith("cuda"):
        raise ValueError(f"device is '{device}'; expected cpu or cuda")
    if device != "cpu" and algorithm not in ON_DEVICES:
        raise ValueError(f"device is '{device}', but {algorithm} learns on the cpu alone; expected cpu")
    if device != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"device is '{device}', but torch finds none here; expected cpu")


def require_times(episodes: int, checkpoint_seconds: float) -> None:
    """Refuse numbers that would only fail, or harm, in the course of the training."""
    if episodes < 0:
        raise ValueError(f"--episodes is {episodes}; expected 0 or more")
    if not 0 < checkpoint_seconds < float("inf"):
        raise ValueError(f"--checkpoint-seconds is {checkpoint_seconds:g}; expected a positive number")


def floors_of(stop_below: Sequence[str]) -> dict[str, float]:
    """Reward by update of --stop-below."""
    floors = {}
    for text in stop_below:
        update, _, reward = text.partition(":")
        try:
            floor = float(reward)
        except ValueError:
            floor = float("nan")
        if not (update.isdecimal() and update.isascii() and len(update) < 10 and math.isfinite(floor)):
            raise ValueError(f"--stop-below is {text!r}; expected UPDATE:REWARD, as in 100:0.4")
        floors[update] = floor
    return floors


def require_plant(plant: str | None, task: str, device: str) -> None:
    """Refuse an engine that the task's robots can't be simulated by, before a run's folder is."""
    from robo_rl.sim.tasks.loading import load_task

    loaded = load_task(task)
    loaded.require_device(device)
    known = loaded.plants
    if plant is not None and plant not in known:
        raise ValueError(
            f"plant is '{plant}'; expected {f'one of {list(known)}' if known else 'none'} for task '{task}'"
        )
    if plant == "mujoco" and device != "cpu":
        raise ValueError(f"plant is 'mujoco', which is on the CPU, but device is '{device}'; expected warp")


def learn(
    run: Run,
    device: str,
    episodes: int,
    checkpoint_seconds: float,
    as_json: bool,
    resumed: bool,
    origin: Run | None = None,
    after: Callable[[], dict[str, Any]] | None = None,
    page: tuple[int, bool] | None = None,
) -> int:
    """Build the learner, train, evaluate, print the result. HeldError if another process works on the run.

    ``after`` a training that was not interrupted gives more figures of the result. ``page``: port of the live page, and
    whether not to open a browser; None for no page.
    """
    from robo_rl.files import held
    from robo_rl.learn.distributed import processes

    with held(run.folder) if processes.rank() == 0 else contextlib.nullcontext():
        return _learn(run, device, episodes, checkpoint_seconds, as_json, resumed, origin, after, page)


def _learn(
    run: Run, device: str, episodes: int, checkpoint_seconds: float, as_json: bool, resumed: bool, origin: Run | None,
    after: Callable[[], dict[str, Any]] | None, page: tuple[int, bool] | None,
) -> int:  # fmt: skip
    import torch

    from robo_rl.commands.beside import start
    from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, outcome, rollout
    from robo_rl.learn import new_learner
    from robo_rl.learn.distributed import processes
    from robo_rl.learn.runs import training
    from robo_rl.learn.runs.warm_start import begin_from
    from robo_rl.metrics_table import lines

    torch.manual_seed(run.seed)
    begun = time.perf_counter()
    with torch.device(device):  # the task's constants are where its robots are
        policy = run.new_policy()
    if processes.rank() == 0:
        say(f"{policy.task.name}: {run.algorithm}, seed {run.seed}, in {run.folder}", as_json)
    policy.task.plant = run.plant
    waiting = told_if_long("Preparing the simulation; what is compiled is kept for the next time", as_json)
    with waiting if processes.rank() == 0 else contextlib.nullcontext():
        learner = new_learner(run, policy, device)
    if origin:
        begin_from(learner, origin)
        if processes.rank() == 0:
            training.save(run, learner)  # 'resume' needs no other run
    if resumed:
        training.resume(run, learner)
    compile_seconds = time.perf_counter() - begun
    if processes.rank() > 0:
        torch.manual_seed(processes.own_seed(run.seed) + learner.done)
        training.assist(learner)
        processes.leave()
        return 0
    with contextlib.ExitStack() as beside:
        if page is not None:
            training.save(run, learner)  # so that there is a policy to look at
            viewer = start(run.folder, *page)
            say("The live page starts beside the training; its address follows in some seconds", as_json)
            beside.callback(viewer.wait)
            beside.callback(viewer.stdin.close)  # type: ignore[union-attr]
        trained = training.train(run, learner, checkpoint_seconds)
    processes.leave()
    result = {
        "run": str(run.folder),
        "task": policy.task.name,
        "algorithm": run.algorithm,
        "seed": run.seed,
        "train_seconds": trained.seconds,
        "compile_seconds": compile_seconds,
        "environment_steps": learner.environment_steps,
        **trained.rates,
        "interrupted": trained.interrupted,
        "diverged": learner.diverged,
        "skipped": learner.skipped,
    }
    say(
        f"{learner.environment_steps:,} control steps in {trained.seconds:.1f} s, "
        f"after {compile_seconds:.1f} s of compilation",
        as_json,
    )
    units = {measure.error: measure.unit for measure in policy.task.measures}
    for line in lines((run.metrics() or [{}])[-1], units):
        say(f"  {line}", as_json)
    if learner.diverged or learner.skipped:
        say(
            f"{learner.diverged:,} episodes ended because a number was not finite or too large; "
            f"{learner.skipped:,} steps along gradients that were not finite were skipped",
            as_json,
        )
    if trained.stopped:
        result["stopped_at"] = learner.done
        say(f"Ended at update {learner.done} of {learner.total}: its reward was below --stop-below", as_json)
    if trained.interrupted:
        say(f"Stopped at update {learner.done} of {learner.total}. To continue:  robo-rl resume {run.folder}", as_json)
    elif episodes:
        policy, _ = run.policy()
        flights = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=episodes)).summary()
        result |= flights
        say(outcome(policy.task, flights, seed=0, held_out=True), as_json)
        word = shell_word(run.folder)
        shown = [f"play {word}", f"export {word} --out policy.onnx", f"report {word}", f"evaluate {word} --sweep"]
        say_next([f"robo-rl {words}" for words in shown], as_json)
    if after is not None and not trained.interrupted:
        result |= after()
    result["wall_seconds"] = time.monotonic() - STARTED
    if not trained.interrupted:
        run.finish(result)
    give(result, as_json)
    return 130 if trained.interrupted else 0
