"""How far an arm may be from its card, and a cube, until zoo:arm-place and zoo:arm-place-so101 fail, one by one.

    python benchmarks/grasp_ranges.py                               the zoo's two, 400 episodes of each condition
    python benchmarks/grasp_ranges.py classical 200                 the script alone
    python benchmarks/grasp_ranges.py zoo 400 SO-ARM100/Simulation/SO101/assets

What is not named is drawn as the task draws it. The servos' damping grows with the root of their stiffness. Fingertips
are the card's pads, thicker or thinner. The third word is a folder with the maker's own meshes of the SO-101
(github.com/TheRobotStudio/SO-ARM100): its jaws are then cut into layers whose convex hulls touch, and as one hull each,
as MuJoCo has them by itself. Without it only the card's jaws are measured. Policies take the place of the zoo's as
NAME=FILE,NAME=FILE in the first word, the names being panda and so101.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from results import words, write

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.evaluate.proportion import wilson
from robo_rl.policies.loading import load
from robo_rl.sim.models import read_model
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.tasks.arm.place import Place

STIFFNESS = (9.0, 15.0, 36.0, 71.0, 178.0, 356.0, 534.0, 712.0, 1000.0)
"""N m/rad."""
NOMINAL = 17.8
"""N m/rad, of the SO-101's motors in its card."""
THICKER = (-0.005, -0.004, -0.002, 0.0, 0.002, 0.004, 0.005)
"""m, of each fingertip on its inner side."""
EDGES = {"panda": (0.025, 0.03, 0.035, 0.04, 0.045, 0.05), "so101": (0.02, 0.025, 0.03)}
"""m."""
LAYER = 0.002
"""m, of a jaw's mesh."""
JAWS = (
    ("fixed pad", "wrist_roll_follower_so101_v1", (0.0, -0.000218214, 0.000949706), (0.0, 1.0, 0.0, 0.0), 2),
    ("moving pad", "moving_jaw_so101_v1", (0.0, 0.0, 0.0189), (1.0, 0.0, 0.0, 0.0), 1),
)
"""Pad of the card, mesh, its place and turn (w first) in the pad's body, and the axis along the jaw; from
so101_new_calib.xml."""
LONG = 0.07
"""m, of a jaw from its tip that is cut into layers; what is behind it is no part of a grasp."""

Plants = Callable[[int], Any] | None
Condition = tuple[str, float | str, dict[str, float], Plants]
"""What is changed, its value, the ranges that it fixes, and the plants."""


def main() -> None:
    given = words(__doc__, 3)
    targets = {"panda": "zoo:arm-place", "so101": "zoo:arm-place-so101"}
    named = given[0] if given else "zoo"
    if named == "classical":
        targets = dict.fromkeys(targets, "classical")
    elif named != "zoo":
        targets = dict(one.split("=", 1) for one in named.split(","))
    episodes = int(given[1]) if len(given) > 1 else 400
    rows = []
    for robot, target in targets.items():
        loaded = load(target, "arm-place" if target == "classical" else None, robot if target == "classical" else None)
        for what, value, fixed, plants in conditions(robot, loaded.task, given[2:]):
            found = rollout(loaded.task, loaded.policy, Conditions(episodes, 1, None, fixed, 0, plants), None).summary()
            low, high = wilson(round(found["success"] * episodes), episodes)
            rows.append({"robot": robot, "what": what, "value": value, "success": found["success"],
                         "low": low, "high": high, "seconds": found["duration_mean_s"]})  # fmt: skip
            print(f"{robot:<6} {what:<34} {value!s:>8} {100 * found['success']:6.1f} % ({100 * low:.1f} to "
                  f"{100 * high:.1f}), {found['duration_mean_s']:.2f} s", flush=True)  # fmt: skip
    write(f"grasp_ranges_{Path(named).stem.split('=')[0]}", {"policies": named, "episodes": episodes, "rows": rows})


def conditions(robot: str, task: Place, meshes: list[str]) -> Iterator[Condition]:
    """Of one robot; ``meshes`` is the maker's folder or nothing."""
    yield "as trained", "", {}, None
    size = task.card.grasp.size
    for edge in EDGES[robot]:
        yield "edge of the cube, m", edge, {"cube_size": edge / size}, None
    if robot == "panda":
        known = {"bias/gripper_position": 0.0}  # the fingertips are the model's
        for more in THICKER:
            yield (
                "fingertips thicker, m",
                more,
                known,
                plants_of(task, lambda spec, more=more: thicken(spec, task, more)),
            )
        for more in (THICKER[0], THICKER[-1]):
            for edge in (EDGES[robot][0], EDGES[robot][-1]):
                plants = plants_of(task, lambda spec, more=more: thicken(spec, task, more))
                yield f"fingertips thicker, cube of {edge:g} m", more, {**known, "cube_size": edge / size}, plants
        return
    jaws: list[tuple[str, Plants]] = [("card's", None)]
    for folder in meshes:
        for name, layer in (("maker's, in layers", LAYER), ("maker's, one hull each", math.inf)):
            change = lambda spec, folder=folder, layer=layer: use_meshes(spec, Path(folder), layer)  # noqa: E731
            jaws.append((name, plants_of(task, change)))
    for name, plants in jaws:
        if plants is not None:
            yield "jaws", name, {}, plants
    for name, plants in jaws[:2]:
        for stiffness in STIFFNESS:
            fixed = {"stiffness": 1.0, "log_stiffness": math.log(stiffness / NOMINAL)}
            yield f"stiffness, N m/rad, {name} jaws", stiffness, fixed, plants


def plants_of(task: Place, change: Callable[[Any], None]) -> Callable[[int], Any]:
    """Plants of a task whose robot's model is changed."""
    spec = read_model(task.card.model)
    change(spec)
    spec.compile()
    file = Path(tempfile.mkdtemp()) / task.card.model.name
    file.write_text(spec.to_xml())
    mechanism = dataclasses.replace(task.card.mechanism, model=file, objects=task.objects())
    physics = dataclasses.replace(GRASP, contacts="model", impratio=10.0, tolerance=1e-6)
    return lambda n: MujocoPlant(mechanism, n, task.period, physics=physics)


def thicken(spec: Any, task: Place, more: float) -> None:
    """Pads whose inner faces are farther from their fingers by ``more`` (m)."""
    for name in task.card.gripper.pads:
        pad = spec.geom(name)
        pad.size[1] += 0.5 * more
        pad.pos[1] -= math.copysign(0.5 * more, pad.pos[1])


def use_meshes(spec: Any, folder: Path, layer: float) -> None:
    """The maker's jaws in place of the card's, whose pads only feel then: in layers, or (inf) as one hull."""
    for name, mesh, place, turn, axis in JAWS:
        pad, body = spec.geom(name), spec.geom(name).parent
        for geom in body.geoms:
            if geom.name.startswith(name.split()[0]) or layer == math.inf:
                geom.contype = geom.conaffinity = 0
        pad.size[:] = 0.05
        for i, points in enumerate(layers(placed(triangles(folder / f"{mesh}.stl"), place, turn), axis, layer)):
            spec.add_mesh(name=f"{name} {i}", uservert=points.ravel())
            body.add_geom(
                name=f"{name} layer {i}", type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"{name} {i}", contype=1,
                conaffinity=1, mass=0.0, density=0.0, friction=pad.friction, condim=4,
            )  # fmt: skip


def triangles(file: Path) -> np.ndarray:
    """(n, 3, 3) m, of a binary STL."""
    data = file.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    return np.frombuffer(data, kind, count, 84)["corners"].astype(float)


def placed(shape: np.ndarray, place: tuple[float, ...], turn: tuple[float, ...]) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(turn))
    return shape @ matrix.reshape(3, 3).T + np.array(place)


def layers(shape: np.ndarray, axis: int, thick: float) -> Iterator[np.ndarray]:
    """(k, 3) m: the corners of a shape (n, 3, 3) between planes across ``axis``, from its tip; all of it if endless."""
    tip, root = shape[..., axis].min(), shape[..., axis].max()
    if thick == math.inf:
        yield np.unique(shape.reshape(-1, 3), axis=0)
        return
    for low in np.arange(tip, min(tip + LONG, root), thick):
        inside = shape.reshape(-1, 3)
        inside = inside[(inside[:, axis] >= low) & (inside[:, axis] <= low + thick)]
        points = np.concatenate([inside, *(cut(shape, axis, at) for at in (low + 1e-6, low + thick - 1e-6))])
        yield np.unique(points.round(7), axis=0)


def cut(shape: np.ndarray, axis: int, at: float) -> np.ndarray:
    """(k, 3) m: where the edges of a shape pass a plane."""
    first, second = shape, np.roll(shape, -1, 1)
    before, after = first[..., axis] - at, second[..., axis] - at
    passing = before * after < 0
    part = (before[passing] / (before - after)[passing])[:, None]
    return first[passing] + part * (second[passing] - first[passing])


if __name__ == "__main__":
    main()
