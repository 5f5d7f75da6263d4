"""Cars in corridors: laps of a policy and of follow-the-gap in maps that no training has seen; and laps of files.

    python benchmarks/halls.py [--policy zoo:car-race] [--episodes 200]
    python benchmarks/halls.py --tracks Spielberg_centerline.csv …     # tracks that exist, at the full grip

Corridors are outlines of random heaps of cells of a lattice, whose two directions are 60° to 90° apart, so that the
lane turns by 60° to 120°, with walls that meet in corners or, on the outside, are round. With ``--tracks``, pure
pursuit drives too: along the centre line and along the racing line, with the part of the friction that is fastest
without contact.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from contourpy import contour_generator
from first_episodes import Act, by_controller, by_policy, first_episodes
from PIL import Image, ImageDraw
from racing import figures
from racing_line import Lines, racing_lines
from results import write
from scipy import ndimage
from torch import Tensor

from robo_rl.controllers.car import PurePursuit
from robo_rl.evaluate.evaluation import HELD_OUT, ControllerPolicy
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.scenes.tracks.courses import Course, CourseError, evenly, read_course
from robo_rl.sim.tasks.car.race import AHEAD, CarRace

WIDTHS = (2.0, 3.0, 3.8, 4.5)  # m
MAPS = 12
"""Of each width."""
CELL = 0.05  # m
SKIN = 1.5
"""Cells of a wall that are seen before it, so that a normal that passes a sharp corner meets it."""
GRIPS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MARGIN = 0.3  # m between a car on the racing line and the walls
TOLD = torch.tensor((0.0, *AHEAD))


def heap(random: np.random.Generator, count: int) -> np.ndarray:
    """(6, 6) whether a cell belongs to it: connected, without holes, and nowhere joined by a corner alone."""
    while True:
        cells = np.zeros((8, 8), bool)
        cells[tuple(random.integers(2, 6, 2))] = True
        while cells.sum() < count:
            near = ndimage.binary_dilation(cells) & ~cells
            near[[0, -1]] = near[:, [0, -1]] = False
            cells[tuple(random.choice(np.argwhere(near)))] = True
        diagonal = cells[:-1, :-1] & cells[1:, 1:] & ~cells[:-1, 1:] & ~cells[1:, :-1]
        other = ~cells[:-1, :-1] & ~cells[1:, 1:] & cells[:-1, 1:] & cells[1:, :-1]
        if ndimage.label(~cells)[1] == 1 and not diagonal.any() and not other.any():
            return cells[1:-1, 1:-1]


def outline(cells: np.ndarray) -> np.ndarray:
    """(k, 2) the corners of a heap, anticlockwise."""
    steps: dict[tuple[int, int], tuple[int, int]] = {}
    for i, j in np.argwhere(cells):
        for a, b, beyond in (((0, 0), (1, 0), (0, -1)), ((1, 0), (1, 1), (1, 0)), ((1, 1), (0, 1), (0, 1)),
                             ((0, 1), (0, 0), (-1, 0))):  # fmt: skip
            there = i + beyond[0], j + beyond[1]
            if not (min(there) >= 0 and max(there) < len(cells) and cells[there]):
                steps[i + a[0], j + a[1]] = (i + b[0], j + b[1])
    way = [next(iter(steps))]
    while (after := steps[way[-1]]) != way[0]:
        way.append(after)
    points = np.array(way)
    ahead, behind = np.roll(points, -1, 0) - points, points - np.roll(points, 1, 0)
    return points[(ahead != behind).any(1)]


def hall(random: np.random.Generator, width: float) -> Course:
    """A corridor of so many m, as fields of distances have it.

    The centre line is half a width from the island in the middle, and rounded where the island has a bay; the walls
    are where its normals meet what is not free.
    """
    angle, side = random.uniform(np.pi / 3, np.pi / 2), 1.25 * width + random.uniform(0.5, 4.0)
    lattice = side * np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    corners = outline(heap(random, random.integers(2, 7))) @ lattice
    corners -= corners.min(0) - 3 * width
    width += 2 * SKIN * CELL
    island, free = drawn(corners, width, bool(random.random() < 0.5))
    half, round_by = 0.5 * width / CELL, 0.55 * width / CELL
    grown = distance(~island) <= half + round_by
    lines = contour_generator(z=distance(grown)).lines(round_by)
    line = max((np.asarray(one) for one in lines), key=len)[:-1]
    if np.sum(line[:, 0] * np.roll(line[:, 1], -1) - line[:, 1] * np.roll(line[:, 0], -1)) < 0:
        line = line[::-1]
    points = 2048
    centre = ndimage.gaussian_filter1d(evenly(line, points), 6.0 / len(line) * points, axis=0, mode="wrap")
    centre = evenly(centre, points)
    way = np.roll(centre, -6, 0) - np.roll(centre, 6, 0)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    normal = np.stack([-way[:, 1], way[:, 0]], 1)
    inside = distance(free) - distance(~free) - SKIN
    left, right = (centre + sense * first_wall(inside, centre, sense * normal) * normal for sense in (1.0, -1.0))
    length = CELL * np.linalg.norm(np.roll(centre, -1, 0) - centre, axis=1).sum()
    return Course("hall", CELL * centre, CELL * left, CELL * right, float(length))


def drawn(corners: np.ndarray, width: float, sharp: bool) -> tuple[np.ndarray, np.ndarray]:
    """Cells of the island inside a corridor along a closed line (k, 2) m, and its free ones.

    Outside, walls meet (``sharp``) or are everywhere half a width from the line.
    """
    cells = corners / CELL
    columns, rows = np.ceil(cells.max(0) + 3 * width / CELL).astype(int)
    way = np.roll(cells, -1, 0) - cells
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    normal = np.stack([-way[:, 1], way[:, 0]], 1)
    both = normal + np.roll(normal, 1, 0)
    mitre = 0.5 * width / CELL * both / (1 + (normal * np.roll(normal, 1, 0)).sum(1, keepdims=True))

    def filled(points: np.ndarray) -> np.ndarray:
        image = Image.new("1", (int(columns), int(rows)))
        ImageDraw.Draw(image).polygon([tuple(point) for point in points], fill=1)
        return np.asarray(image)

    island, whole = filled(cells + mitre), filled(cells - mitre)
    if not sharp:
        whole = whole & (distance(~filled(cells)) <= 0.5 * width / CELL)
    return island, whole & ~island


def distance(cells: np.ndarray) -> np.ndarray:
    """Of those ``cells`` to the nearest other one."""
    return ndimage.distance_transform_edt(cells)


def first_wall(inside: np.ndarray, start: np.ndarray, way: np.ndarray) -> np.ndarray:
    """(k, 1) cells from ``start`` (k, 2) along ``way`` to where the field ``inside`` becomes less than nothing."""
    far = np.arange(0.0, 1.3 * len(inside), 0.5)
    x, y = (start[:, None] + far[:, None] * way[:, None]).transpose(2, 0, 1)
    field = ndimage.map_coordinates(inside, [y, x], order=1, cval=-1.0)
    return far[(field < 0).argmax(1)][:, None]


def race(tracks: Sequence[Course]) -> CarRace:
    class Given(CarRace):
        courses = tuple(tracks)

    return Given()


def drive(act: Act, env: VecEnv) -> dict[str, Any]:
    lengths = env.plant.tracks.length.clone()
    return figures(first_episodes(env, act), lengths)


def told(task: CarRace, env: VecEnv, grip: float, lines: Tensor) -> Act:
    """Pure pursuit along ``lines`` (n, p, 2) m."""
    line, driver = Lines(lines, TOLD), PurePursuit(task.card.facts(), TOLD[1:], task.top, grip)

    def act(env: VecEnv, state: Any, running: Tensor) -> tuple[Any, Any]:
        truth = env.plant.truth()
        points = line.ahead(truth["position"], truth["heading"])[:, 1:]
        return driver({"path": points, "wheel_speed": truth["wheel_speed"]}, torch.zeros(env.n, 0))

    return act


def show(place: str, driver: str, row: dict[str, Any]) -> dict[str, Any]:
    lap = f"lap {row['lap_time_s']:.2f} s, {row['speed_m_s']:.2f} m/s" if row["lap_time_s"] else "no lap"
    print(f"{place:<28} {driver:<34} {row['without_contact']:7.2%} without contact, {lap}", flush=True)
    return {"place": place, "driver": driver, **row}


def in_halls(policy: str, episodes: int) -> list[dict[str, Any]]:
    random, rows = np.random.default_rng(7), []
    for width in WIDTHS:
        task = race([hall(random, width) for _ in range(MAPS)])
        for name in ("policy", "follow the gap"):
            env = VecEnv(task, episodes, seed=HELD_OUT, evaluation=True)
            act = by_policy(load(policy, task).policy) if name == "policy" else by_controller(ControllerPolicy(task))
            rows.append(show(f"corridors of {width} m", name, drive(act, env)))
    return rows


def on_files(policy: str, episodes: int, files: Sequence[str]) -> list[dict[str, Any]]:
    """Every driver at the full grip of the card, in both directions."""
    rows = []
    for file in files:
        try:
            course = read_course(file)
        except CourseError as error:
            print(f"left out: {error}", flush=True)
            continue
        task = race([course])

        def env(task: CarRace = task) -> VecEnv:
            return VecEnv(task, episodes, seed=HELD_OUT, fixed={"friction": 1.0}, evaluation=True)

        centre = env().plant.tracks.centre[..., :2].clone()
        half = float(course.width.min()) / 2 - 0.5 * task.card.body[1] - MARGIN
        forward = env().plant.param("track_direction") >= 0
        lines = centre.clone()[:, ::2]
        for way in (forward, ~forward):
            if way.any():
                lines[way] = racing_lines(centre[way][:1], torch.tensor([half]))
        rows.append(show(course.name, "policy", drive(by_policy(load(policy, task).policy), env())))
        for name, points in (("pursuit, centre line", centre), ("pursuit, racing line", lines)):
            tried = {g: drive(told(task, e := env(), g, points), e) for g in GRIPS}
            safe = [g for g, row in tried.items() if row["without_contact"] == 1.0 and row["lap_time_s"]]
            if safe:
                best = min(safe, key=lambda g: tried[g]["lap_time_s"])
                rows.append(show(course.name, f"{name}, grip {best}", tried[best]))
            else:
                best = max(tried, key=lambda g: tried[g]["without_contact"])
                rows.append(show(course.name, f"{name}, grip {best}, unsafe", tried[best]))
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--policy", default="zoo:car-race", help="a bundle or a run of car-race")
    arguments.add_argument("--episodes", type=int, default=200, help="of every driver in every place")
    arguments.add_argument("--tracks", nargs="*", default=(), help="files of tracks that exist, instead of corridors")
    given = arguments.parse_args()
    if given.tracks:
        rows = on_files(given.policy, given.episodes, given.tracks)
    else:
        rows = in_halls(given.policy, given.episodes)
    write("halls_files" if given.tracks else "halls", {"episodes": given.episodes, "laps": rows})


if __name__ == "__main__":
    main()
