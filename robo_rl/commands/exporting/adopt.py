"""robo-rl adopt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from robo_rl.commands.exporting import adopt_recording
from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word


def main(
    file: Annotated[Path, tyro.conf.Positional], config: tuple[Path, ...] = (),
    robot: str | None = None, rate: float | None = None, joints: tuple[str, ...] = (), out: Path | None = None,
    episodes: int = 16, json: bool = False,
) -> int:  # fmt: skip
    """Take over a policy of another trainer: write it as a bundle with contract, limits and recorded test vectors.

    FILE is an .onnx, a TorchScript or checkpoint .pt, a stable-baselines3 .zip, a .safetensors file or the .yaml of
    a LEAPP bundle. What it and the YAML beside it say is read; the rest is asked for in policy.toml, which is
    written with blanks and reasons. Fill them in and give the same command again. Then the bundle is compared with
    the trainer's own runtime, walks in simulation, and if it falls, the usual mistakes are searched.

    Or FILE is the folder of a LeRobotDataset of an arm. Likewise described, it becomes a task and demonstrations,
    on which 'robo-rl train' trains a policy.

    With --json: file, description, task, blanks, and after the bundle: difference, success, mistake.

    Args:
        file: The policy's file, or the folder of a recording.
        config: Files of its trainer that describe it (deploy.yaml, env.yaml, agent.yaml, rl_sar's and unitree_rl_gym's
            YAML); by default those that are beside it.
        robot: The robot, a name or the path of a card.
        rate: Hz, how often the policy acts.
        joints: The robot's joints in the policy's order.
        out: The folder to write; by default NAME-adopted for FILE NAME.onnx.
        episodes: To walk in simulation; 0 leaves that out.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.adapters.foreign import adopting, description

    folder = out or Path(f"{file.stem}-adopted")
    toml, task_file, bundle = folder / "policy.toml", folder / "policy_task.py", folder / "policy.onnx"
    said = {"robot": robot, "rate": rate, "joints": list(joints) or None}
    if file.is_dir():
        return adopt_recording.adopt(file, folder, said, _again(out), json)
    given: dict[str, Any] = description.parse(toml) if toml.is_file() else {}
    description.require_of(given, "network", file, toml)
    given |= {key: value for key, value in said.items() if value is not None}
    files = list(config) or adopting.near(file)
    data, reasons, trainer = adopting.draft(file, given, files, folder)
    folder.mkdir(parents=True, exist_ok=True)
    adopting.write_motion(file, data, folder)
    title = f"A policy of {trainer}, for 'robo-rl adopt {file.name}'. Values marked \"?\" are blanks."
    toml.write_text(description.write(data, reasons, title), encoding="utf-8")
    for read in files:
        say(f"read {read}", json)
    blank = description.blanks(data)
    facts: dict[str, Any] = {"description": str(toml), "task": f"{task_file}:Policy", "blanks": blank}
    if blank:
        say(f"{toml}: {len(blank)} of its fields {'is' if len(blank) == 1 else 'are'} blank:", json)
        for name in blank:
            say(f"  {name:<24}{reasons.get(name, 'a value')}", json)
        say(f'Fill in each "?" there, then again:  robo-rl adopt {shell_word(file)}{_again(out)}', json)
        give(facts, json)
        return 1
    if not task_file.is_file():
        task_file.write_text(adopting.task_source(file.name, data, trainer), encoding="utf-8")
    return _written(file, bundle, f"{task_file}:Policy", trainer, episodes, facts, json)


def _again(out: Path | None) -> str:
    return f" --out {shell_word(out)}" if out else ""


def _written(
    file: Path, bundle: Path, task: str, trainer: str, episodes: int, facts: dict[str, Any], json: bool
) -> int:
    from robo_rl.adapters.foreign import adopting, graph
    from robo_rl.sim.tasks.loading import load_task

    known = load_task(task)
    found = adopting.network_of(file, known.told)  # type: ignore[attr-defined]
    assert found.network is not None
    assert found.runtime is not None
    say("writing the bundle (torch takes some seconds to load its exporter)", json)
    made, agreement = graph.write(known, found.network, found.runtime, bundle, trainer)  # type: ignore[arg-type]
    say(f"{bundle}: {bundle.stat().st_size:,} bytes, digest {made.digest[:16]}…", json)
    say(
        f"  differs from the runtime of {trainer} by {agreement.network:.1g} over {graph.SAMPLES} random observations",
        json,
    )
    say(f"  and by {agreement.rollout:.1g} over an episode", json)
    facts |= {"file": str(bundle), "difference": max(agreement.network, agreement.rollout)}
    good = True
    if episodes:
        good = _proved(known, found.network, episodes, facts, json)
    word, words = shell_word(bundle), shell_word(task)
    if good:
        say_next([f"robo-rl verify {word} --foreign --task {words}", f"robo-rl inspect {word}"], json)
    give(facts, json)
    return 0 if good else 1


def _proved(task: Any, network: Any, episodes: int, facts: dict[str, Any], json: bool) -> bool:
    """Walk in simulation; where it falls, say under which change it walks."""
    from robo_rl.adapters.foreign import mistakes

    found = mistakes.tried(task, network, episodes)
    facts |= {"success": found.success, "velocity_error": found.error}
    say(f"  in simulation of {task.spec.robot.name} it {found}", json)
    if found.walks:
        return True
    say("Searching the usual mistakes (a minute or two):", json)
    better = mistakes.search(task, network)
    facts["mistake"] = None if better is None else better.change.name
    say(f"  {better}" if better else "  no single change makes it walk", json)
    return found.stands
