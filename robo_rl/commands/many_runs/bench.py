"""robo-rl bench."""

from __future__ import annotations

from typing import Any

from robo_rl.console import give, say


def main(task: str = "quadrotor-hover", robot: str | None = None, device: str = "cpu", json: bool = False) -> int:
    """Measure simulation speed on this machine, and that of another simulator if one is installed.

    For multirotors that is l2f, rl_tools' simulator of the same vehicle: pip install 'robo-rl[bench]', which
    compiles for a quarter of an hour. With --json: plant_steps_per_second, environment_steps_per_second (with sensors,
    reward and resets), peer (null where none is known), peer_steps_per_second and plant_over_peer (null where it is not
    installed), machine.

    Tasks Ant-v5 and HalfCheetah-v5 are gymnasium's, for comparison with other engines: the peer is EnvPool, or without
    it gymnasium's own vector of processes, on as many threads (OMP_NUM_THREADS). With --json:
    environment_steps_per_second, peer, peer_steps_per_second, environment_over_peer, threads, machine.

    Args:
        task: The task; 'robo-rl tasks' lists them, and Ant-v5 and HalfCheetah-v5.
        robot: Robot to use instead of the task's default.
        device: cpu or cuda.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.evaluate.benchmark import env_stepper, machine, peer_of, plant_stepper, rates
    from robo_rl.evaluate.standard_envs import DEFINITIONS
    from robo_rl.sim.tasks.loading import load_task

    if task in DEFINITIONS:
        return standard(task, robot, device, json)
    loaded = load_task(task, robot)
    sides = {"plant": plant_stepper(loaded, device), "environment": env_stepper(loaded, device)}
    name, stepper = peer_of(loaded.spec.robot.kind) or ("", lambda: None)
    peer = stepper()
    if peer is not None:
        sides[name] = peer
    found = rates(sides)
    here = machine()
    say(f"{here['processor']}, {here['cores']} cores, torch {here['torch']}, {device}", json)
    say(f"  plant alone        {found['plant'] / 1e6:8.3f} million control steps/s", json)
    say(f"  whole environment  {found['environment'] / 1e6:8.3f} million control steps/s", json)
    if name and peer is None:
        say(f"  {name:<18} not installed (pip install 'robo-rl[bench]')", json)
    result: dict[str, Any] = {
        "task": task,
        "robot": loaded.spec.robot.name,
        "device": device,
        "plant_steps_per_second": found["plant"],
        "environment_steps_per_second": found["environment"],
        "peer": name or None,
        "peer_steps_per_second": found.get(name),
        "plant_over_peer": found["plant"] / found[name] if name in found else None,
        "machine": here,
    }
    if name in found:
        ratio = result["plant_over_peer"]
        say(f"  {name:<18} {found[name] / 1e6:8.1f} million control steps/s; ours over its: {ratio:.1f}", json)
    give(result, json)
    return 0


def standard(task: str, robot: str | None, device: str, as_json: bool) -> int:
    """gymnasium's task beside its peer, on equal threads."""
    import mujoco
    import torch

    from robo_rl.evaluate.benchmark import STANDARD, machine, rates, standard_sides

    if robot is not None or device != "cpu":
        raise ValueError(f"task '{task}' has its own robot and runs on the cpu; expected neither --robot nor --device")
    threads = torch.get_num_threads()
    sides, peer = standard_sides(task, threads)
    found = rates(sides)
    ours = found.pop("ours")
    theirs = max(found.values())
    here = {**machine(), "mujoco": mujoco.__version__}
    say(f"{here['processor']}, {threads} threads each, {STANDARD} environments", as_json)
    say(f"  robo-rl            {ours:12,.0f} environment steps/s (MuJoCo {here['mujoco']})", as_json)
    say(f"  {peer:<18} {theirs:12,.0f} environment steps/s; ours over its: {ours / theirs:.2f}", as_json)
    result = {
        "task": task,
        "environment_steps_per_second": ours,
        "peer": peer,
        "peer_steps_per_second": theirs,
        "environment_over_peer": ours / theirs,
        "threads": threads,
        "machine": here,
    }
    give(result, as_json)
    return 0
