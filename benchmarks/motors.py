"""Motors: the simulator's speed beside gym-electric-motor's, and current control beside PI and deadbeat.

    python benchmarks/motors.py speed                    # needs nothing
    python benchmarks/motors.py peer --python VENV/bin/python    # a venv with gym-electric-motor
    python benchmarks/motors.py control RUN_OR_BUNDLE [MORE …] [--task pmsm-speed]    # one for each seed
    python benchmarks/motors.py guard RUN_OR_BUNDLE --steps 10000000
    python benchmarks/motors.py stop                     # needs nothing: the windings shorted while the machine turns
    python benchmarks/motors.py points                   # needs nothing: torque by speed, with the field weakened

Each prints JSON; ``--out FILE`` adds it to a file by the name of the measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from robo_rl.controllers.motor.current import Deadbeat
from robo_rl.controllers.motor.operating_points import OperatingPoints
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, GraphPolicy, rollout
from robo_rl.policies.loading import graph, load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.motor.pmsm import PmsmOnBench, begin, machine_of, torque
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import PmsmCard
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.motor.current import PERIOD

TASK = "pmsm-current"
IDEAL = {"dead_time": 0.0, "saturation": 0.0}
PEER = """
import json, time, warnings; warnings.filterwarnings("ignore")
import numpy as np, gym_electric_motor as gem
env = gem.make("Cont-CC-PMSM-v0")
env.reset(seed=0)
steps, begun = 0, time.perf_counter()
while time.perf_counter() - begun < 10.0:
    _, _, done, cut, _ = env.step(np.array([0.1, -0.1, 0.0]))
    steps += 1
    if done or cut:
        env.reset()
print(json.dumps({"steps_per_s": steps / (time.perf_counter() - begun), "version": gem.__version__
                  if hasattr(gem, "__version__") else "3.0.3"}))
"""


def speed() -> dict[str, Any]:
    """Steps per second of the plant alone, with dead time and saturation, the best of 20 runs of a second's part."""
    card, found = load_robot("traction_pmsm", PmsmCard), {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        best = 0.0
        for n in (4096, 8192, 16384):
            plant = PmsmOnBench(card, n, 1e-4)
            plant.param("dead_time")[:] = card.dead_time
            plant.param("saturation")[:] = 0.3
            plant.current.rotor_speed[:] = 150.0
            voltage = {"voltage": torch.tensor([[10.0, 60.0]]).expand(n, 2).contiguous()}
            plant.step(voltage)
            for _ in range(20):
                begun = time.perf_counter()
                for _ in range(100):
                    plant.step(voltage)
                best = max(best, 100 * n / (time.perf_counter() - begun))
        found[f"{threads}_threads"] = best
    return found


def peer(python: str) -> dict[str, Any]:
    """gym-electric-motor's steps per second, ours beside it."""
    done = subprocess.run([python, "-c", PEER], capture_output=True, text=True, check=True)
    return {"gym_electric_motor": json.loads(done.stdout.splitlines()[-1]), "robo_rl": speed()}


def control(targets: list[str], name: str, episodes: int) -> dict[str, Any]:
    """Mean absolute errors in the same held-out episodes; of currents with and without dead time and saturation."""
    task, found = load_task(name), {}
    policies = {task.controller().name: ControllerPolicy(task)}
    policies |= {other.name: ControllerPolicy(task, other) for other in task.controllers()}
    policies |= {target: load(target).policy for target in targets}
    cases = {"drawn": IDEAL, "drawn, dead time, saturation": {}} if name == TASK else {"drawn": {}}
    for label, fixed in cases.items():
        conditions = Conditions(episodes=episodes, seed=21, fixed=fixed)
        found[label] = {who: rollout(task, policy, conditions, None).summary() for who, policy in policies.items()}
    return found


def guard(target: str, steps: int) -> dict[str, Any]:
    """How often the current passes its limit, and in how many steps the guard changes the voltage."""
    task: Any = load_task(TASK)
    trained, n = graph(target, task), 2048
    touched = torch.zeros((), dtype=torch.long)
    inner = trained.task.guarded  # type: ignore[attr-defined]

    def counted(voltage: Any, *rest: Any) -> Any:
        after = inner(voltage, *rest)
        moved = sum((a - b).abs() for a, b in zip(after, voltage, strict=True))
        touched.add_((moved > 0.1).sum())
        return after

    trained.task.guarded = counted  # type: ignore[attr-defined]
    policy = GraphPolicy(trained)
    env = VecEnv(task, n, seed=77, evaluation=True)
    state, signals, over, done, most = policy.initial_state(n), env.reset(), 0, 0, 0.0
    while done < steps:
        commands, state = policy(signals, state)
        step = env.step(commands)
        signals, done, over = step.signals, done + n, over + int(step.failed.sum())
        most = max(most, float(env.plant.current.stator_current.norm(dim=-1).max()))
        state[step.ids] = policy.initial_state(len(step.ids))
    return {"steps": done, "over_the_limit": over, "guard_share": int(touched) / done, "largest_current_a": most}


def stop(robot: str, episodes: int = 8192, running: int = 140, shorted: int = 400) -> dict[str, Any]:
    """The greatest current, A, where 0 V follow deadbeat control, in machines that can be drawn; periods in between."""
    task, card = load_task(TASK, robot), load_robot(robot, PmsmCard)
    env, control = VecEnv(task, episodes, seed=1, evaluation=True), task.controller()
    state, signals = torch.from_numpy(control.first_state(episodes)), env.signals()
    for _ in range(running):
        commands, state = control(signals, state)
        signals = env.step(commands).signals
    plant, nothing = env.plant, {"voltage": torch.zeros(episodes, 2)}
    now = plant.truth()["stator_current"].norm(dim=1)
    back = card.pole_pairs * plant.truth()["rotor_speed"][:, 0].abs() * plant.param("flux")
    greatest = now
    for _ in range(shorted):
        plant.step(nothing)
        greatest = torch.maximum(greatest, plant.truth()["stator_current"].norm(dim=1))
    return {
        "limit_A": card.current_limit,
        "before_A": round(float(now.max()), 1),
        "p50_A": round(float(greatest.median()), 1),
        "p95_A": round(float(greatest.quantile(0.95)), 1),
        "max_A": round(float(greatest.max()), 1),
        "beyond_limit": round(float((greatest > card.current_limit).float().mean()), 4),
        "emf_above_supply": float((3**0.5 * back > plant.param("supply_voltage")).float().mean()),
    }


def points(robot: str, share: float = 0.92, steps: int = 600) -> dict[str, Any]:
    """N·m of a machine with its file's figures by speed (rad/s of the shaft), at 90 % of the current's limit: with no
    current in d, and by the table of operating points. Deadbeat control follows; ``share`` of the voltage for both."""
    card = load_robot(robot, PmsmCard)
    limit, speeds = 0.9 * card.current_limit, torch.linspace(0.1, 1.5, 15) * card.speed_max
    n, table = len(speeds), OperatingPoints.of(card.facts(), limit)
    omega = (card.pole_pairs * speeds).double()
    voltage = torch.full((n,), share * card.voltage_max, dtype=torch.float64)
    held = (voltage - card.resistance * limit) / omega
    straight = torch.sqrt(torch.clamp(held**2 - card.flux**2, min=0.0)) / card.inductance_q
    chosen = {
        "no current in d": (torch.zeros(n), torch.clamp(straight, max=limit)),
        "operating points": table.current(torch.full((n,), table.most, dtype=torch.float64), omega, voltage),
    }
    found: dict[str, Any] = {"speed_rad_per_s": [round(float(x), 1) for x in speeds], "current_limit_A": limit}
    for name, pair in chosen.items():
        plant, control = PmsmOnBench(card, n, PERIOD), Deadbeat(card.facts(), PERIOD)
        begin(plant.current, torch.arange(n), speeds, torch.zeros(n), torch.full((n,), card.supply_voltage))
        state, target = torch.from_numpy(control.first_state(n)), torch.stack(pair, -1).float()
        torques, lengths = [], []
        for step in range(steps):
            seen = {k: plant.truth()[k] for k in ("current", "rotor_speed", "bus_voltage")}
            commands, state = control({**seen, "current_setpoint": min(1.0, step / 200) * target}, state)
            plant.step(commands)
            torques.append(torque(plant.current, plant.parameters, machine_of(card, PERIOD)))
            lengths.append(plant.truth()["stator_current"].norm(dim=1))
        found[name] = {
            "torque_Nm": [round(float(x), 2) for x in torch.stack(torques[-200:]).mean(0)],
            "current_A": [round(float(x), 1) for x in torch.stack(lengths[-200:]).mean(0)],
        }
    return found


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "peer", "control", "guard", "stop", "points"))
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--task", default=TASK)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        found = {
            "speed": speed,
            "peer": lambda: peer(given.python),
            "control": lambda: control(given.targets, given.task, given.episodes),
            "guard": lambda: guard(given.targets[0], given.steps),
            "points": lambda: {name: points(name) for name in ("traction_pmsm", "cheetah_bldc")},
            "stop": lambda: {name: stop(name) for name in ("traction_pmsm", "cheetah_bldc")},
        }[given.what]()
    print(json.dumps(found, indent=1))
    if given.out:
        before = json.loads(given.out.read_text()) if given.out.is_file() else {}
        label = given.what if given.task == TASK else f"{given.what} {given.task}"
        given.out.write_text(json.dumps({**before, label: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
