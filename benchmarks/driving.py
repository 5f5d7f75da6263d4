"""Cars: simulated steps per second, and laps of classical controllers and, if one is given, a policy.

    OMP_NUM_THREADS=2 python benchmarks/driving.py [--policy POLICY.onnx] [--episodes 200]

Rates are of cars with randomized parameters at random commands: the plant alone, with its lidar of 64 and 1,080 beams,
and the environment of car-race (sensors, reward, resets, new tracks). All drive the same episodes: unseen tracks,
randomized cars, at three widths. Pure pursuit is told the centre line of each track, or a racing line within
it, which the others don't know; it uses the part of the nominal friction with which it drives fastest of those
with which 98 % of its laps have no contact.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import torch
from racing_line import Lines, racing_lines
from results import write
from torch import Tensor

from controllers.car import PurePursuit
from robo_rl.benchmark import rates
from robo_rl.evaluation import ControllerPolicy
from robo_rl.loading import load
from sim.env import VecEnv
from sim.plants.car import CarPlant
from sim.plants.car_on_track import CarOnTrack
from sim.tasks.car.race import AHEAD, PERIOD, CarRace
from sim.tasks.loading import load_task

CARS = 4096
WIDTHS = (2.4, 2.0, 1.6)  # m
GRIPS = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
MARGIN = 0.25  # m between a car on the racing line and the walls
TOLD = torch.tensor((0.0, *AHEAD))
HELD_OUT = 1 << 20
Side = tuple[int, Callable[[], None]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--policy", help="a bundle or a run of car-race, to drive too")
    arguments.add_argument("--episodes", type=int, default=200, help="of every driver at every width")
    given = arguments.parse_args()
    task = load_task("car-race")
    assert isinstance(task, CarRace)
    sides = {"plant": plant_stepper(task), "64 beams": scan_stepper(task, 64), "1080 beams": scan_stepper(task, 1080)}
    found: dict[str, Any] = {"rates": rates({**sides, "environment": environment_stepper(task)}, rounds=4)}
    for name, rate in found["rates"].items():
        print(f"{name:<14} {rate:12,.0f} steps/s")
    found["laps"] = [row for width in WIDTHS for row in laps(task, width, given.episodes, given.policy)]
    write("driving", found)


def commands(n: int, top: float) -> dict[str, Tensor]:
    """At random."""
    return {"steering_angle": torch.empty(n, 1).uniform_(-0.4, 0.4), "speed": torch.empty(n, 1).uniform_(0.5, top)}


def plant_stepper(task: CarRace) -> Side:
    """The plant, without a track."""
    plant, given = CarPlant(task.card, CARS, PERIOD), commands(CARS, 8.0)
    plant.param("friction").uniform_(0.6, 1.1)
    plant.param("mass").uniform_(3.0, 4.5)

    return CARS, lambda: plant.step(given)


def scan_stepper(task: CarRace, beams: int) -> Side:
    """The plant on tracks with a lidar; cars creep in circles, so that they stay near their tracks."""
    env = VecEnv(task, 512, seed=1)
    plant = CarOnTrack(task.card, 512, PERIOD, task.scan, beams, AHEAD)
    task.place(plant, torch.arange(512), env.drawn, torch.zeros(512, 1))
    given = {"steering_angle": torch.full((512, 1), 0.4), "speed": torch.full((512, 1), 0.2)}

    return 512, lambda: plant.step(given)


def environment_stepper(task: CarRace) -> Side:
    """All that training has, under commands at random."""
    env, given = VecEnv(task, CARS, seed=1), commands(CARS, 2.0)

    def step() -> None:
        env.step(given)

    return CARS, step


def laps(task: CarRace, width: float, episodes: int, policy: str | None) -> list[dict[str, Any]]:
    """Of every driver, in the same episodes."""
    env = VecEnv(task, episodes, seed=HELD_OUT, fixed={"track/width": width}, evaluation=True)
    centre = env.plant.tracks.centre[..., :2].clone()
    half = 0.5 * width - 0.5 * task.card.body[1] - MARGIN
    line = Lines(racing_lines(centre, torch.full((episodes,), half)), TOLD)
    told = {
        "pure pursuit, centre line": lambda grip: pursuit(task, Lines(centre, TOLD), grip),
        "pure pursuit, racing line": lambda grip: pursuit(task, line, grip),
    }
    rows = []
    for name, made in told.items():
        tried = {grip: drive(task, width, episodes, made(grip)) for grip in GRIPS}
        safe = [grip for grip, row in tried.items() if row["without_contact"] >= 0.98]
        safe = safe or [max(tried, key=lambda grip: tried[grip]["without_contact"])]
        best = min(safe, key=lambda grip: tried[grip]["lap_time_s"])
        rows.append({"driver": f"{name}, grip {best}", **tried[best]})
    drivers: dict[str, Callable[..., Any]] = {"follow the gap": controller(ControllerPolicy(task))}
    if policy is not None:
        drivers["policy"] = controller(load(policy, task).policy)
    rows += [{"driver": name, **drive(task, width, episodes, driver)} for name, driver in drivers.items()]
    for row in rows:
        print(
            f"{width:.1f} m  {row['driver']:<36} {row['without_contact']:7.2%} without contact, "
            f"{row['finished']:7.2%} finished, lap {row['lap_time_s']:.2f} s, {row['speed_m_s']:.2f} m/s"
        )
    return [{"width_m": width, **row} for row in rows]


def controller(policy: Any) -> Callable[[VecEnv, Any], tuple[Mapping[str, Tensor], Any]]:
    """What acts on signals alone."""

    def act(env: VecEnv, state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return policy(env.signals(), policy.initial_state(env.n) if state is None else state)

    return act


def pursuit(task: CarRace, line: Lines, grip: float) -> Callable[[VecEnv, Any], tuple[Mapping[str, Tensor], Any]]:
    """Pure pursuit of a line."""
    made = PurePursuit(task.card.facts(), TOLD[1:], task.top, grip)

    def act(env: VecEnv, state: Any) -> tuple[Mapping[str, Tensor], Any]:
        truth = env.plant.truth()
        told = {"path": line.ahead(truth["position"], truth["heading"])[:, 1:], "wheel_speed": truth["wheel_speed"]}
        return made(told, torch.zeros(env.n, 0))

    return act


def drive(task: CarRace, width: float, episodes: int, act: Callable[..., Any]) -> dict[str, float]:
    """The first episode of each of so many environments."""
    env = VecEnv(task, episodes, seed=HELD_OUT, fixed={"track/width": width}, evaluation=True)
    running = torch.ones(episodes, dtype=torch.bool)
    times, failed = torch.full((episodes,), torch.nan), torch.zeros(episodes, dtype=torch.bool)
    lengths = env.plant.tracks.length.clone()
    state = None
    for k in range(env.episode_steps):
        with torch.no_grad():
            given, state = act(env, state)
        step = env.step(given)
        times[running & step.succeeded] = (k + 1) * PERIOD
        failed |= running & step.failed
        running &= ~(step.failed | step.succeeded | step.timeout)
        if not running.any():
            break
    done = ~times.isnan()
    return {
        "without_contact": 1 - float(failed.double().mean()),
        "finished": float(done.double().mean()),
        "lap_time_s": float(times[done].mean()),
        "speed_m_s": float((lengths[done] / times[done]).mean()),
    }


if __name__ == "__main__":
    main()
