"""Files that a training is given: demonstrations, a robot's log, reset states, a base. Refused before there is a run.

Each function returns the bytes that the run keeps, None without a file, and writes their SHA-256 into ``chosen``, the
settings of the algorithm. ValueError says which file, or which option, and what was expected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robo_rl.console import say
from robo_rl.learn.config import CONFIGS

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def require_demonstrations(path: Path | None, algorithm: str, task: Task, chosen: dict[str, Any]) -> bytes | None:
    """The file of demonstrations, whose digest goes into ``chosen``; refused before there is a run."""
    from robo_rl.learn.experience.demonstrations import digest, read

    if chosen.get("demonstrations"):
        raise ValueError(f"--{algorithm}.demonstrations is a digest that is computed; expected --demonstrations FILE")
    if path is None:
        if algorithm == "bc":
            raise ValueError("bc learns from demonstrations alone; expected --demonstrations FILE")
        return None
    if algorithm not in ("bc", "sac"):
        raise ValueError(f"--demonstrations is {path}, but {algorithm} can't learn from any; expected sac or bc")
    read(path, task)
    chosen["demonstrations"] = digest(path)
    return path.read_bytes()


def require_robot_log(
    paths: Sequence[Path], algorithm: str, task: Task, chosen: dict[str, Any], as_json: bool
) -> bytes | None:
    """The file of what a robot did, whose digest goes into ``chosen``; refused before there is a run."""
    from robo_rl.adapters.datasets.recorded import from_lerobot
    from robo_rl.deploy.robot.logs.reader import read_log
    from robo_rl.learn.experience import robot_log
    from robo_rl.learn.experience.demonstrations import contract_of, tensors_of
    from robo_rl.learn.runs import checkpoint

    if chosen.get("robot_log"):
        raise ValueError(f"--{algorithm}.robot-log is a digest that is computed; expected --robot-log FILE")
    if not paths:
        if chosen.get("dynamics_ratio"):
            raise ValueError("--sac.dynamics-ratio compares the simulator with a robot; expected --robot-log FILE")
        return None
    if "robot_log" not in chosen:
        raise ValueError(f"--robot-log is {paths[0]}, but {algorithm} can't learn from any; expected sac")
    parts = []
    for path in paths:
        if path.is_dir():
            parts.append((path, from_lerobot(path, task)))
        elif path.suffix == ".safetensors":
            parts.append((path, tensors_of(path, task)))
        else:
            log = read_log(path)
            parts.append((path, robot_log.transitions_of(log, task)))
            say(f"{path}: {len(parts[-1][1]['reward'])} of {len(log.steps)} control steps can be learnt from", as_json)
    content = checkpoint.packed(
        robot_log.joined(parts, task), {"task": task.name, "contract": contract_of(task).to_json()}
    )
    chosen["robot_log"] = hashlib.sha256(content).hexdigest()
    CONFIGS[algorithm](**chosen)
    return content


def require_reset_states(path: Path | None, algorithm: str, task: Task, chosen: dict[str, Any]) -> bytes | None:
    """The file of reset states, whose digest goes into ``chosen``; refused before there is a run."""
    from robo_rl.learn.experience.reset_states import digest, read, weights_of

    if chosen.get("reset_states"):
        raise ValueError(f"--{algorithm}.reset-states is a digest that is computed; expected --reset-states FILE")
    if path is None:
        if chosen.get("reset_weights"):
            raise ValueError(
                f"--{algorithm}.reset-weights tells how often states are drawn; expected --reset-states FILE"
            )
        return None
    if "reset_states" not in chosen:
        raise ValueError(f"--reset-states is {path}, but {algorithm} can't begin from any; expected ppo or sac")
    read(path, task)
    weights_of(chosen["reset_weights"], task.families)
    chosen["reset_states"] = digest(path)
    CONFIGS[algorithm](**chosen)
    return path.read_bytes()


def require_base(
    base: str | None, algorithm: str, task: Task, chosen: dict[str, Any], begin_from: Path | None
) -> bytes | None:
    """The file of the base, whose digest, or "script", goes into ``chosen``; refused before there is a run."""
    from robo_rl.learn.residual import SCRIPT, file_of, require_script
    from robo_rl.policies.loading import graph

    if chosen.get("base"):
        raise ValueError(f"--{algorithm}.base is computed; expected --base RUN, BUNDLE or script")
    if base is None:
        return None
    if "base" not in chosen:
        raise ValueError(f"--base is {base}, but {algorithm} can't correct any; expected ppo or sac")
    if begin_from is not None:
        raise ValueError(f"--base is {base}, and --begin-from {begin_from}; expected one of them")
    content = None
    if base == SCRIPT:
        require_script(task)
        if chosen.get("demonstrations"):
            raise ValueError("--base is the script, whose demonstrations show no more; expected no --demonstrations")
        chosen["base"] = SCRIPT
    else:
        content = file_of(graph(base, task), task, base)
        chosen["base"] = hashlib.sha256(content).hexdigest()
    CONFIGS[algorithm](**chosen)
    return content
