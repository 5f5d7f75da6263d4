"""robo-rl demos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from robo_rl.console import give, require_place, say

if TYPE_CHECKING:
    from robo_rl.adapters.datasets import Dataset
    from robo_rl.sim.tasks import Task

OURS, HDF5 = (".safetensors",), (".hdf5", ".h5")


def main(
    what: Annotated[Literal["list", "check", "replay", "convert"], tyro.conf.Positional],
    path: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    task: str | None = None,
    robot: str | None = None,
    json: bool = False,
) -> int:
    """List, check, replay and convert demonstrations.

    PATH is a file by 'robo-rl demonstrate' (*.safetensors), the folder of a LeRobotDataset (v3, v2.1), or a file of
    robomimic (*.hdf5); for 'list' a folder that holds some. 'check' refuses what is damaged, and tells what is in it.
    'replay' simulates the recorded actions from the recorded starts, and exits with 1 where anything is not the same,
    bit by bit. 'convert' writes a LeRobotDataset into the new folder OUT, or, of one that robo-rl wrote, the file OUT
    (*.safetensors).

    With --json: path, kind, task, robot, episodes, control_steps, rate_hz, columns, left_out; 'list' gives a list of
    them as found, and refused; 'replay' has same and difference.

    Args:
        what: What to do.
        path: A file or a folder.
        out: What 'convert' writes: a new folder, or a new file (*.safetensors).
        task: FILE.py:CLASS, for demonstrations of a task of your own.
        robot: The robot that they were recorded with, if it is not the task's own.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.adapters.datasets import DatasetError
    from robo_rl.learn.experience.demonstrations import DemonstrationError

    if (out is None) == (what == "convert"):
        raise ValueError(f"--out is {out}; expected a new folder or file for convert, and none for others")
    if what == "list":
        found, refused = [], []
        for place in candidates(path):
            try:
                told = about(place, opened(place, task, robot)[0])
            except (DatasetError, DemonstrationError) as error:
                refused.append(str(error))
                say(f"  {error}", json)
                continue
            found.append(told)
            say(f"  {line(told)}", json)
        if not found and not refused:
            raise ValueError(f"{path}: holds no demonstrations; expected *.safetensors, *.hdf5 or LeRobotDatasets")
        give({"found": found, "refused": refused}, json)
        return 1 if refused else 0
    data, loaded = opened(path, task, robot)
    told = about(path, data)
    if what == "check":
        say(line(told), json)
        for name, width in told["columns"].items():
            say(f"  {name:<28} {width:>4}  {', '.join(data.names.get(name, ()))}", json)
        if data.left_out:
            say(f"  left out (no numbers, or images): {', '.join(data.left_out)}", json)
    elif what == "replay":
        return replayed(path, loaded, told, json)
    else:
        assert out is not None
        converted(path, out, data, loaded)
        say(f"{out}: {told['episodes']} episodes, {told['control_steps']:,} control steps", json)
        told["out"] = str(out)
    give(told, json)
    return 0


def candidates(folder: Path) -> list[Path]:
    """Demonstrations in a folder, by their names, or the folder's own."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected one that holds demonstrations")
    if (folder / "meta/info.json").is_file():
        return [folder]
    inside = sorted(folder.iterdir())
    return [p for p in inside if (p / "meta/info.json").is_file() or (p.is_file() and p.suffix in (*OURS, *HDF5))]


def opened(path: Path, task: str | None, robot: str | None) -> tuple[Dataset, Task | None]:
    """What a file or folder holds, and the task that it is of, where robo-rl recorded it."""
    from robo_rl.adapters.datasets import Dataset, lerobot, recorded, robomimic
    from robo_rl.learn.experience.demonstrations import task_of, tensors_of

    if path.is_dir():
        data = lerobot.read(path)
        inner = path / recorded.BESIDE
        return data, task_of(inner, task, robot) if inner.is_file() else None
    if path.suffix in HDF5:
        return robomimic.read(path), None
    loaded = task_of(path, task, robot)
    tensors = tensors_of(path, loaded)
    shown = {name: value.numpy() for name, value in tensors.items() if "start/" not in name and name != "episode"}
    rate = 1.0 / loaded.spec.control_period
    return Dataset(loaded.name, loaded.spec.robot.name, rate, tensors["episode"].numpy(), shown), loaded


def about(path: Path, data: Dataset) -> dict[str, Any]:
    """For people and programs."""
    version = "v2" if (path / "meta/tasks.jsonl").is_file() else "v3"
    kind = f"LeRobotDataset {version}" if path.is_dir() else "robomimic" if path.suffix in HDF5 else "robo-rl"
    widths = {name: value.shape[1] if value.ndim > 1 else 1 for name, value in data.columns.items()}
    return {
        "path": str(path), "kind": kind, "task": data.task, "robot": data.robot, "episodes": len(data.lengths),
        "control_steps": len(data.episode), "rate_hz": round(data.fps, 6), "columns": widths,
        "left_out": list(data.left_out),
    }  # fmt: skip


def line(told: dict[str, Any]) -> str:
    """One line of it."""
    return (
        f"{told['path']}: {told['kind']}, {told['task'] or 'a task without a name'}"
        f"{', ' + told['robot'] if told['robot'] else ''}, {told['episodes']} episodes, "
        f"{told['control_steps']:,} control steps at {told['rate_hz']:g} Hz"
    )


def replayed(path: Path, task: Task | None, told: dict[str, Any], as_json: bool) -> int:
    """Replay what robo-rl recorded; the exit code."""
    from robo_rl.adapters.datasets.recorded import from_lerobot
    from robo_rl.adapters.datasets.replayed import replay
    from robo_rl.learn.experience.demonstrations import tensors_of

    if task is None:
        raise ValueError(f"{path}: robo-rl did not record it; expected demonstrations by 'robo-rl demonstrate'")
    difference = replay(task, from_lerobot(path, task) if path.is_dir() else tensors_of(path, task))
    if difference is None:
        say(f"{line(told)}: the same, bit by bit", as_json)
    else:
        say(
            f"{path}: episode {difference.episode}, control step {difference.step}: {difference.name} was "
            f"{difference.recorded:.9g}, and is {difference.replayed:.9g}",
            as_json,
        )
    same = {"same": difference is None, "difference": difference._asdict() if difference else None}
    give({**told, **same}, as_json)
    return 0 if difference is None else 1


def converted(path: Path, out: Path, data: Dataset, task: Task | None) -> None:
    """Write a data set in another format."""
    from robo_rl.adapters.datasets import lerobot, recorded
    from robo_rl.files import room_for
    from robo_rl.learn.experience import demonstrations

    if out.exists():
        raise ValueError(f"--out is {out}, which exists; expected a new name")
    if path.is_dir():
        if task is None:
            raise ValueError(
                f"{path}: robo-rl did not write it, and what a policy of a task here saw is not in it; expected a "
                "folder by 'robo-rl demos convert'"
            )
        require_place(out, "--out", *OURS)
        tensors = recorded.from_lerobot(path, task)
        demonstrations.check(tensors, path, task)
        demonstrations.write(out, task, tensors)
        return
    require_place(out, "--out")
    if out.suffix in (*OURS, *HDF5):
        raise ValueError(f"--out is {out}; expected the name of a folder, for a LeRobotDataset")
    with room_for(out, "the files that are there are not whole"):
        if task is None:
            lerobot.write(out, data)
        else:
            recorded.to_lerobot(path, out, task)
