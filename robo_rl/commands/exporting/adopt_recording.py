"""robo-rl adopt of a LeRobotDataset: what it has becomes demonstrations, which a policy is trained on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word

SOURCE = '''"""The task of what {name} shows, as policy.toml describes it."""

from robo_rl.adapters.datasets.arm_task import RecordedArm


class Policy(RecordedArm):
    """Move as recorded."""

    description = "policy.toml"
    files = ("policy.toml",)
'''


def adopt(path: Path, folder: Path, said: dict[str, Any], again: str, json: bool) -> int:
    """Write description, task and demonstrations into ``folder``; the exit code. ``said``: of the command line."""
    from robo_rl.adapters.datasets import arm_recording, lerobot
    from robo_rl.adapters.datasets.arm_task import RecordedArm
    from robo_rl.adapters.foreign import description
    from robo_rl.learn.experience import demonstrations

    toml, task_file, out = folder / arm_recording.TOML, folder / "policy_task.py", folder / "demonstrations.safetensors"
    given: dict[str, Any] = description.parse(toml) if toml.is_file() else {}
    description.require_of(given, "recording", path, toml)
    given |= {key: value for key, value in said.items() if value is not None}
    data = lerobot.read(path)
    told, reasons = arm_recording.draft(data, given, os.path.relpath(path, folder))
    folder.mkdir(parents=True, exist_ok=True)
    title = f"A recording, for 'robo-rl adopt {path.name}'. Values marked \"?\" are blanks."
    toml.write_text(description.write(told, reasons, title), encoding="utf-8")
    blank = description.blanks(told)
    facts: dict[str, Any] = {"description": str(toml), "task": f"{task_file}:Policy", "blanks": blank}
    if blank:
        say(f"{toml}: {len(blank)} of its fields {'is' if len(blank) == 1 else 'are'} blank:", json)
        for name in blank:
            say(f"  {name:<24}{reasons.get(name, 'a value')}", json)
        say(f'Fill in each "?" there, then again:  robo-rl adopt {shell_word(path)}{again}', json)
        give(facts, json)
        return 1
    measured, commanded = arm_recording.angles(data, arm_recording.parse(told, str(toml)), folder)
    ends = np.cumsum(data.lengths)
    told["episodes"] = {
        "seconds": round(float(data.lengths.max()) / data.fps, 3),
        "starts": arm_recording.poses(measured[ends - data.lengths]),
        "ends": arm_recording.poses(measured[ends - 1]),
    }
    reasons |= {"episodes.starts": "rad, joints and gripper; in simulation episodes begin there"}
    toml.write_text(description.write(told, reasons, title), encoding="utf-8")
    task = RecordedArm(told=arm_recording.parse(told, str(toml)))
    tensors = task.demonstrations(data, measured, commanded)
    demonstrations.check(tensors, path, task)
    demonstrations.write(out, task, tensors)
    if not task_file.is_file():
        task_file.write_text(SOURCE.format(name=path.name.replace("\\", "").replace('"', "")), encoding="utf-8")
    cut = _cut(task, commanded)
    facts |= {"file": str(out), "episodes": len(data.lengths), "control_steps": len(data.episode), "cut": cut}
    say(f"{out}: {facts['episodes']} episodes, {facts['control_steps']:,} control steps at {data.fps:g} Hz", json)
    if cut:
        say(f"  {100 * cut:.1f} % of the targets are beyond the robot's limits, and end there", json)
    words = f"{shell_word(f'{task_file}:Policy')} --demonstrations {shell_word(out)}"
    say_next([f"robo-rl train {words}"], json)
    give(facts, json)
    return 0


def _cut(task: Any, commanded: np.ndarray) -> float:
    """The part of the targets that a joint can't be told, by more than 0.01 rad."""
    beyond = (commanded < task.lower.numpy() - 0.01) | (commanded > task.upper.numpy() + 0.01)
    return float(beyond.mean())
