"""What a style does to driving in traffic: time gaps, changes of lanes and collisions, from timid to bold.

    python benchmarks/traffic_style.py POLICY [STUDENT]   # runs' folders or bundles; and IDM with MOBIL
    python benchmarks/traffic_style.py plot               # docs/images/traffic-style.png

All levels of car-traffic drive the same held-out roads. "together": all three numbers of the style go from timid to
bold; "switched": the style becomes bold while the cars drive; then, for the first policy, each number alone, while the
others stay in their middle. Means over all that was driven, with 95 % intervals over episodes. The time gap counts
while a vehicle is less than 60 m ahead in the car's lane and the car is faster than 2 m/s.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from results import FOLDER, words, write
from torch import Tensor

from robo_rl.evaluate.evaluation import ControllerPolicy
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.in_lanes import PERIOD
from robo_rl.sim.tasks.car.traffic import BOLD, ROUTE, STYLE, TIMID, CarTraffic
from robo_rl.sim.tasks.car.traffic_lidar import CarTrafficLidar

LEVELS, EPISODES, SEED = 5, 300, 1
RANGES = [f"style/{name.removesuffix('_setpoint')}" for name in STYLE]
SWITCH, SHOWN = 12.0, 30.0  # s: when the style becomes bold; that are plotted
FOLLOWING, MOVING = 60.0, 2.0  # m, m/s


class Switched(CarTraffic):
    """The style becomes bold while the car drives."""

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        now = super().reference(time, goal)
        late = now["time"] > SWITCH
        bold = {name: torch.where(late, value, now[name]) for name, value in zip(STYLE, BOLD, strict=True)}
        return {**now, **bold}


class SwitchedLidar(Switched, CarTrafficLidar):
    """The same by lidar."""


def driven(task: CarTraffic, policy: Any, style: tuple[float, ...]) -> dict[str, Tensor]:
    """Of each episode, (EPISODES,): how it ended, and sums over it; "gap" and "followed" by step, (T, EPISODES)."""
    env = VecEnv(task, EPISODES, SEED, fixed=dict(zip(RANGES, style, strict=True)), evaluation=True)
    state, under_way = policy.initial_state(EPISODES), torch.ones(EPISODES, dtype=torch.bool)
    names = ("success", "collision", "changes", "way", "time")
    found = {name: torch.zeros(EPISODES) for name in names}
    gaps, followed = [], []
    for _ in range(env.episode_steps):
        truth = env.truth()
        gap, speed = truth["gap"][:, 0], truth["velocity"][:, 0]
        follows = under_way & (gap < FOLLOWING) & (speed > MOVING)
        gaps.append(torch.where(follows, gap / speed.clamp(min=MOVING), 0.0))
        followed.append(follows.float())
        found["changes"] = torch.where(under_way, truth["changes"][:, 0], found["changes"])
        found["way"] = torch.where(under_way, 0.001 * ROUTE * truth["progress"][:, 0], found["way"])  # km
        found["time"] += under_way * PERIOD
        commands, state = policy(env.signals(), state)
        step = env.step(commands)
        found["success"] += (under_way & step.succeeded).float()
        found["collision"] += (under_way & step.failed).float()
        under_way = under_way & ~(step.failed | step.succeeded | step.timeout)
        if not under_way.any():
            break
    return {**found, "gap": torch.stack(gaps), "followed": torch.stack(followed)}


def ratio(top: Tensor, bottom: Tensor) -> tuple[float, float]:
    """The quotient of two sums over episodes (n,), and half of its 95 % interval."""
    value = top.sum() / bottom.sum().clamp(min=1e-9)
    error = (top - value * bottom).square().sum().sqrt() / bottom.sum().clamp(min=1e-9)
    return float(value), float(1.96 * error)


def level(task: CarTraffic, policy: Any, style: tuple[float, ...]) -> dict[str, Any]:
    """Figures of one style."""
    found = driven(task, policy, style)
    one = torch.ones(EPISODES)
    return {
        "style": style, "time_gap": ratio(found["gap"].sum(0), found["followed"].sum(0)),
        "lane_changes": ratio(found["changes"], found["way"]), "success": ratio(found["success"], one),
        "failures": ratio(found["collision"], one), "speed": ratio(1000.0 * found["way"], found["time"]),
    }  # fmt: skip


def between(part: float) -> tuple[float, ...]:
    """A style, timid at 0, bold at 1."""
    return tuple(timid + part * (bold - timid) for timid, bold in zip(TIMID, BOLD, strict=True))


def sweep(task: CarTraffic, policy: Any, varied: int | None = None) -> list[dict[str, Any]]:
    """All levels of the whole style, or of one of its numbers, while the others stay in their middle."""
    middle, rows = between(0.5), []
    for part in (k / (LEVELS - 1) for k in range(LEVELS)):
        style = between(part)
        if varied is not None:
            style = (*middle[:varied], style[varied], *middle[varied + 1 :])
        rows.append(level(task, policy, style))
        figures = {key: rows[-1][key] for key in ("time_gap", "lane_changes", "success", "failures", "speed")}
        told = "  ".join(f"{key} {value:.3f} ± {half:.3f}" for key, (value, half) in figures.items())
        print(f"{[round(x, 2) for x in style]!s:<18} {told}", flush=True)
    return rows


def switched(task: CarTraffic, policy: Any) -> list[float]:
    """s: the mean time gap of cars that follow, at every step."""
    found = driven(task, policy, TIMID)
    steps = round(SHOWN / PERIOD)
    return (found["gap"].sum(1) / found["followed"].sum(1).clamp(min=1.0))[:steps].tolist()


def plot(found: dict[str, Any]) -> None:
    """Time gap and changes of lanes by level, and the time gap where the style is switched."""
    from matplotlib.figure import Figure

    figure = Figure((10.0, 3.4), layout="constrained")
    gap, change, switch = figure.subplots(1, 3)
    parts = [k / (LEVELS - 1) for k in range(LEVELS)]
    for place, (name, one) in enumerate(found.items()):
        for axes, key in ((gap, "time_gap"), (change, "lane_changes")):
            values = [row[key] for row in one["together"]]
            axes.errorbar(parts, [v for v, _ in values], [h for _, h in values], fmt=".-", color=f"C{place}", capsize=3)
        switch.plot([k * PERIOD for k in range(len(one["switched"]))], one["switched"], color=f"C{place}", label=name)
    gap.set_ylabel("time gap, s")
    change.set_ylabel("changes of lanes per km")
    for axes in (gap, change):
        axes.set_xlabel("style, from timid to bold")
        axes.set_ylim(0.0)
    switch.axvline(SWITCH, color="0.7")
    switch.set_xlabel("time, s; bold from the line on")
    switch.set_ylabel("time gap, s")
    switch.set_ylim(0.0)
    switch.legend()
    figure.savefig(FOLDER.parents[1] / "docs/images/traffic-style.png", dpi=130)


def main() -> None:
    given = words(__doc__ or "", 2)
    if given == ["plot"]:
        plot(json.loads((FOLDER / "traffic_style.json").read_text())["drivers"])
        return
    sides: list[tuple[str, Any, CarTraffic, CarTraffic]] = []
    for word in given:
        policy = load(word).policy
        lidar = len(sides) > 0
        tasks = (CarTrafficLidar(), SwitchedLidar()) if lidar else (CarTraffic(), Switched())
        sides.append(("lidar student" if lidar else "policy", policy, *tasks))
    sides.append(("IDM and MOBIL", ControllerPolicy(CarTraffic()), CarTraffic(), Switched()))
    found: dict[str, dict[str, Any]] = {}
    for name, policy, task, switching in sides:
        print(name)
        found[name] = {"together": sweep(task, policy), "switched": switched(switching, policy)}
        write("traffic_style", {"episodes": EPISODES, "drivers": found})
    name, policy, task, _ = sides[0]
    for k, varied in enumerate(RANGES):
        print(f"{name}, {varied} alone")
        found[name][varied] = sweep(task, policy, k)
        write("traffic_style", {"episodes": EPISODES, "drivers": found})


if __name__ == "__main__":
    main()
