"""robo-rl pull-weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.commands.sources import derived
from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.deploy.robot.bundle import Bundle


def main(
    file: Annotated[Path, tyro.conf.Positional],
    slots: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path | None = None,
    episodes: int = 1000,
    task: str | None = None,
    robot: str | None = None,
    json: bool = False,
) -> int:
    """Make a policy file of what a microcontroller has learnt ('robo-rl firmware --learn').

    Reads the slots of flash that the firmware has written, as a debugger dumps them, and takes the newest whole one.
    The new file is exported and verified like any other. With --json: file, sequence, moved (the greatest change of a
    weight), and what 'evaluate' gives, in the simulator of the training.

    Args:
        file: The bundle that the microcontroller was built from (*.onnx).
        slots: One or two files with the bytes of a slot each.
        out: The file to write; by default the bundle's name with _learnt.
        episodes: Number of held-out episodes to verify it with.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        json: Print one JSON object on the last line of stdout.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; expected 1 or more")
    from robo_rl.deploy.build.learning import LearningError, weights_of
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.files import read_bytes

    bundle = Bundle.read(file)
    found, complaints = [], []
    for path in slots:
        if not path.exists():
            raise LearningError(f"{path}: there is no such file; expected a slot's bytes, as a debugger dumps them")
        content = read_bytes(path, MOST_BYTES)
        try:
            found.append((weights_of(content, bundle, str(path))[0], content))
        except LearningError as error:
            complaints.append(str(error))
    if not found:
        raise LearningError("; ".join(complaints))
    for complaint in complaints:
        say(f"left out: {complaint}", json)
    return make(bundle, max(found)[1], out or derived(file, "_learnt.onnx"), episodes, (robot, task), json)


def make(
    bundle: Bundle, slot: bytes, out: Path, episodes: int, inside: tuple[str | None, str | None], json: bool
) -> int:
    """Write and verify the policy of what a slot holds; ``inside``: robot and task, if they are not the bundle's."""
    import numpy as np

    from robo_rl.deploy.build.export import export
    from robo_rl.deploy.build.learning import learned_policy, weights_of
    from robo_rl.deploy.build.verify import task_of, torch_policy, verify
    from robo_rl.evaluate.evaluation import outcome

    known = task_of(bundle, *inside)
    sequence, _ = weights_of(slot, bundle)
    policy, before = learned_policy(bundle, known, slot), torch_policy(bundle, known)
    pairs = zip(policy.network.parameters(), before.network.parameters(), strict=True)
    moved = max(float(np.abs((a - b).detach().numpy()).max()) for a, b in pairs)
    made = bundle.contract.provenance
    if not made.algorithm.endswith(LEARNT):
        made = dataclasses.replace(made, algorithm=f"{made.algorithm}{LEARNT}")
    written = export(policy, made, out)
    checked = verify(written.path, episodes, robot=inside[0], task=inside[1], min_success=0.0)
    say(f"{written.path}: weights of slot {sequence}, moved by {moved:.3g} at most", json)
    say(f"  {outcome(checked.task, checked.flights, 1)}", json)
    for failure in checked.failures:
        say(f"  FAILED: {failure}", json)
    told = {"file": str(written.path), "sequence": sequence, "moved": moved}
    give({**told, **checked.flights}, json)
    return 0 if checked.passed else 1


MOST_BYTES = 1 << 24
LEARNT = "-stream"
"""What the algorithm of a policy is called in addition, that has gone on learning."""
