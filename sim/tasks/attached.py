"""What a bundle brings of a task that robo-rl does not come with: the robot's card and model, and the task's source."""

from __future__ import annotations

from pathlib import Path

from robo_rl.deploy.robot.bundle.attachment import (
    MAX_BYTES,
    MAX_FILES,
    SOURCE,
    Attached,
    AttachmentError,
    require_names,
)
from robo_rl.sim.models import to_be_seen
from robo_rl.sim.robots import load_robot, place_of
from robo_rl.sim.tasks import Task


def attached_of(task: Task) -> Attached:
    """What a bundle must bring for ``task``: its card with its model, and its source, where they are a user's own."""
    card, files = "", {}
    if task.card_file is not None:
        read = load_robot(str(task.card_file), task.card_type)
        card = f"{read.name}.toml"  # a file card.toml is called after its folder, which it now leaves
        files[card] = task.card_file.read_bytes()
        needed = read.files()
        if len(needed) > MAX_FILES or sum(path.stat().st_size for path in needed) > MAX_BYTES:
            needed = tuple(path for path in needed if path not in _to_be_seen(read.files()))
        for path in needed:
            files[place_of(path, task.card_file).as_posix()] = path.read_bytes()
    if task.source is not None:
        for path in task.source.files:
            files[SOURCE + path.relative_to(task.source.file.parent).as_posix()] = path.read_bytes()
    size = sum(map(len, files.values()))
    if len(files) > MAX_FILES or size > MAX_BYTES:
        largest = max(files, key=lambda name: len(files[name]))
        raise AttachmentError(
            f"the files of robot and task are {len(files)} with {size:,} bytes, the largest '{largest}'; expected at "
            f"most {MAX_FILES} with {MAX_BYTES:,} bytes, as a bundle brings them: a model with simpler meshes"
        )
    try:
        require_names(files)
    except ValueError as error:
        raise AttachmentError(f"a file of robot or task can't travel in a bundle: {error}") from None
    return Attached(card, files)


def _to_be_seen(files: tuple[Path, ...]) -> frozenset[Path]:
    """Meshes that only pictures need; without them a robot is drawn by its simple shapes."""
    return frozenset[Path]().union(*(to_be_seen(path) for path in files if path.suffix == ".urdf"))
