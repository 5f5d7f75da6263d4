"""Which way from a log to a policy, where the simulator can't express the robot: five of them, on the robot's physics.

The task is examples/own_kind/balance.py, whose simulator has viscous friction and a constant push alone. The "robot" is
that simulator with what no parameter of it expresses, one of two things:

    cable       beyond 0.1 m from the middle of the track the cart's cable is taut, and pulls it back
    sticks      dry friction of the cart, greater at rest (Stribeck)

30 s of it are recorded under a mediocre policy, in sessions of up to 6 s. From this log and with as many steps of the
optimiser, by soft actor-critic:

    simulator   the task's ranges, no log
    log         the log alone, near the actions in it
    half        half of each batch from the log, half from the simulator (RLPD)
    ratio       the same, simulated errors weighed by the dynamics ratio (H2O)
    sysid       the simulator's parameters fitted to the log, ranges of 3 % about them, no log in the batches

All of them, and the mediocre policy, are evaluated in the same held-out episodes on the robot.

    python benchmarks/hybrid.py                 # cable, 5 seeds, 20 rounds
    python benchmarks/hybrid.py sticks 2 10
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from results import words, write
from scipy.optimize import least_squares
from scipy.stats import t as student
from torch import Tensor

from robo_rl.commands.exporting.export import main as export
from robo_rl.commands.training.train import main as train
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import ApgConfig, SacConfig
from robo_rl.learn.experience.robot_log import joined, transitions_of
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

BALANCE = f"{Path(__file__).parents[1] / 'examples' / 'own_kind' / 'balance.py'}:Balance"
SLACK, STIFFNESS = 0.1, 15.0
"""m and N/m of the cable, chosen: 1.5 N at the farthest set-point, a fifth of the motor's greatest force."""
STATIC, KINETIC, STRIBECK = 1.6, 1.0, 0.05
"""N, N and m/s of the dry friction, chosen: a fifth and an eighth of the motor's greatest force."""
AT_REST = 0.01
"""m/s, below which the cart counts as at rest."""
FINE = 10
"""Steps of the robot's physics in a control period."""
ROBOT = {
    "cart_mass": 1.0, "pole_mass": 1.0, "pole_length": 1.0, "friction": 1.0, "gain": 1.0, "push": 0.0, "delay": 0.0,
}  # fmt: skip
"""The robot's factors of the card's figures: all else is as in the simulator."""
SECONDS, SESSION, GOALS = 30.0, 6.0, 2.5
"""s of the log in all, of a session at most, and between two set-points."""
GIVEN_UP = 1.2
"""rad of the pole, at which a session ends; at 0.7 rad the task has failed."""
MEDIOCRE = ApgConfig(updates=30)
SETTINGS = SacConfig(
    updates=20, gradient_steps=8, learning_rate=1e-3, target_rate=0.01, hidden=(64, 64), critic_hidden=(64, 64)
)
IMITATION = 1.0
FITTED = ("cart_mass", "pole_mass", "pole_length", "friction")
"""What a log tells: masses and friction per force of the motor, so its gain stays as it is."""
WINDOW, POSSIBLE, MARGIN = 10, (0.5, 2.0), 0.03
"""Control steps that are predicted in the fit, limits of factors, and the margin of ``retrain``."""
EPISODES = 1000
FIGURES = ("success", "cart_position_error_mean_m", "pole_angle_rms_rad")
WAYS = ("simulator", "log", "half", "ratio", "sysid")


def cable(place: Tensor, velocity: Tensor) -> Tensor:
    """N that the cable pulls a cart at ``place`` (m) back with."""
    return STIFFNESS * (place - place.clamp(-SLACK, SLACK))


def sticks(place: Tensor, velocity: Tensor) -> Tensor:
    """N against the motion of a cart at ``velocity`` (m/s), beside the viscous friction."""
    return (KINETIC + (STATIC - KINETIC) * torch.exp(-((velocity / STRIBECK) ** 2))) * torch.tanh(velocity / AT_REST)


Force = Callable[[Tensor, Tensor], Tensor]
FORCES: dict[str, Force] = {"cable": cable, "sticks": sticks}


def robot_of(task: Task, force: Force) -> Callable[..., Any]:
    """Makes plants with the robot's physics: the simulator's derivative less ``force``, by semi-implicit steps."""
    known: Any = type(task.make_plant(1, "cpu"))
    derivative = sys.modules[known.__module__]._derivative

    class Robot(known):  # type: ignore[misc]
        dynamics = None  # so that the environment calls ``step``

        def step(self, commands: Any) -> None:
            x, v, angle, rate = (part[:, 0].clone() for part in self.current)
            p, h = self.parameters, self.period / FINE
            applied = p.gain * commands["cart_force"][:, 0] + p.push
            for _ in range(FINE):
                _, acceleration, _, turning = derivative((x, v, angle, rate), applied - force(x, v), p)
                v, rate = v + h * acceleration, rate + h * turning
                x, angle = x + h * v, angle + h * rate
            for mine, new in zip(self.current, (x, v, angle, rate), strict=True):
                mine[:, 0] = new

    return lambda n, device="cpu": Robot(task.card, n, task.spec.control_period, device)


def recorded(folder: Path, make_plant: Any, task: Task) -> list[Path]:
    """Sessions of the robot under a mediocre policy, of ``SECONDS`` in all."""
    quietly(train, BALANCE, algorithm="apg", runs=folder, name="mediocre", episodes=0, apg=MEDIOCRE)
    quietly(export, folder / "mediocre", out=folder / "mediocre.onnx")
    bundle = Bundle.read(folder / "mediocre.onnx")
    robot: Any = load_task(BALANCE)
    robot.make_plant = make_plant
    robot.failed = lambda truth: truth["pole_angle"][:, 0].abs() > GIVEN_UP  # a little after it has failed
    logs, seconds = list[Path](), 0.0
    while seconds < SECONDS:
        logs.append(folder / f"log{len(logs)}.mcap")
        most = min(SESSION, max(1.0, SECONDS - seconds))
        record(robot, bundle, logs[-1], most, len(logs), ROBOT, renew=GOALS)
        seconds += len(transitions_of(read_log(logs[-1]), task)["reward"]) * task.spec.control_period
    return logs


def fitted(task: Task, logs: list[Path]) -> dict[str, float]:
    """Factors of the simulator's parameters that predict the logs best, ``WINDOW`` steps ahead."""
    rows = joined([(path, transitions_of(read_log(path), task)) for path in logs], task)
    plant: Any = task.make_plant(1, "cpu")
    spreads = [signal.noise[0] for signal in task.spec.signals[:4]]  # of the state's four numbers
    state = torch.cat([rows[f"signal/{signal.name}"] for signal in task.spec.signals[:4]], 1)
    force, episode = rows["command/cart_force"], rows["episode"]
    starts = (episode[WINDOW:] == episode[:-WINDOW]).nonzero()[:, 0]

    def errors(factors: np.ndarray) -> np.ndarray:
        named = dict(zip(FITTED, factors.tolist(), strict=True))
        p = plant.nominal._replace(**{name: getattr(plant.nominal, name) * factor for name, factor in named.items()})
        now, wrong = type(plant.current)(*state[starts].split(1, 1)), []
        for k in range(1, WINDOW + 1):
            now = plant.dynamics(now, {"cart_force": force[starts + k - 1]}, p)
            wrong.append((torch.cat(now, 1) - state[starts + k]) / torch.tensor(spreads))
        return torch.cat(wrong).numpy().ravel()

    found = least_squares(errors, np.ones(len(FITTED)), bounds=POSSIBLE, loss="soft_l1", diff_step=1e-3)
    return dict(zip(FITTED, found.x.tolist(), strict=True))


def trained(
    folder: Path, row: str, seed: int, settings: SacConfig, logs: list[Path], task: Task
) -> tuple[PolicyGraph, dict[str, Any]]:
    """The policy of one way, and what is to be told of it."""
    name, told = f"{row}{seed}", dict[str, Any]()
    changed: dict[str, Any] = {
        "log": {"log_part": 1.0, "imitation": IMITATION},
        "ratio": {"dynamics_ratio": True},
    }.get(row, {})
    bounds: tuple[str, ...] = ()
    if row == "sysid":
        told["fitted"] = fitted(task, logs)
        bounds = tuple(f"{n}:{f * (1 - MARGIN)}:{f * (1 + MARGIN)}" for n, f in told["fitted"].items())
    given = tuple(logs) if row in ("log", "half", "ratio") else ()
    begun = time.perf_counter()
    quietly(
        train, BALANCE, algorithm="sac", seed=seed, runs=folder, name=name, episodes=0, bounds=bounds, robot_log=given,
        sac=SacConfig(**{**vars(settings), **changed}),
    )  # fmt: skip
    run = Run.open(folder / name)
    told["seconds"] = time.perf_counter() - begun
    if row == "ratio":
        told["mean_weight"] = run.metrics()[-1]["dynamics_ratio"]
    return run.policy()[0], told


def quietly(command: Callable[..., Any], *given: Any, **options: Any) -> None:
    """A command of robo-rl in this process, whose text is not shown."""
    with contextlib.redirect_stdout(io.StringIO()):
        command(*given, **options)


def evaluated(task: Task, make_plant: Any, policy: PolicyGraph) -> dict[str, float]:
    """Held-out episodes on the robot."""
    conditions = Conditions(EPISODES, fixed=ROBOT, make_plant=make_plant)
    return rollout(task, GraphPolicy(policy), conditions, None).summary()


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """By way and figure: the mean over seeds, and its 95 % interval by Student's t."""
    found: dict[str, dict[str, list[float]]] = {}
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        found[way] = {}
        for name in FIGURES:
            values = np.array([row[name] for row in mine])
            half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5 if len(mine) > 1 else 0
            found[way][name] = [float(values.mean()), float(values.mean() - half), float(values.mean() + half)]
    return found


def main(robot: str = "cable", seeds: int = 5, updates: int = SETTINGS.updates) -> None:
    torch.set_num_threads(1)
    task, rows = load_task(BALANCE), list[dict[str, Any]]()
    make_plant, settings = robot_of(task, FORCES[robot]), dataclasses.replace(SETTINGS, updates=updates)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = recorded(folder, make_plant, task)
        mediocre = evaluated(task, make_plant, Run.open(folder / "mediocre").policy()[0])
        for seed in range(seeds):
            for way in WAYS:
                policy, told = trained(folder, way, seed, settings, logs, task)
                rows.append({"way": way, "seed": seed, **told, **evaluated(task, make_plant, policy)})
                print(seed, way, *(f"{n} {rows[-1][n]:.4g}" for n in FIGURES), flush=True)
                found = {
                    "episodes": EPISODES,
                    "updates": updates,
                    "log_s": SECONDS,
                    "mediocre": mediocre,
                    "ways": summary(rows),
                }
                write(f"hybrid_{robot}", {**found, "trainings": rows})


if __name__ == "__main__":
    given = words(__doc__, 3)
    if given and (given[0] not in FORCES or not all(word.isdecimal() for word in given[1:])):
        sys.exit(f"hybrid.py: {' '.join(given)}: expected one of {list(FORCES)}, numbers of seeds and rounds")
    main(*given[:1], *map(int, given[1:]))
