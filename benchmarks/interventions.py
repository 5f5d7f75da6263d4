"""Learning while a robot runs, from an operator who takes over when the policy strays: do interventions fade?

`robo-rl learn TASK` learns in a process of its own; the simulated robot runs its policies behind the gate in simulated
time, which counts control steps, no faster than PACE times real time. A script is the operator (``SCRIPT`` tells its
rule). At the end 1,000 held-out episodes of the policy alone. Takes a quarter of an hour on two idle cores.

    python benchmarks/interventions.py
    python benchmarks/interventions.py arm-insert 2 90        # another seed, minutes of robot time
    python benchmarks/interventions.py arm-insert 2 25 sac    # reinforcement learning in place of cloning
    python benchmarks/interventions.py plot                   # docs/images/interventions.png
    python benchmarks/interventions.py together bc 0          # 32 robots and the learner in one process, no gate
    python benchmarks/interventions.py together sac 2         # docs/images/interventions-sac.png
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from results import FOLDER, words, write

from robo_rl.commands.running.run import after_episode, nobody
from robo_rl.commands.training.learn import LITTLE_NOISE
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.driver import SimulatedRobot
from robo_rl.deploy.emulate.virtual_time import VirtualTime
from robo_rl.deploy.robot.actor import EXPLORATION, MOST_NOISE, Actor
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import FILE_NAME, Transitions, demonstrate, digest
from robo_rl.learn.experience.demonstrations import write as write_demonstrations
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.runs.folder import Run
from robo_rl.online.cloning import Cloning
from robo_rl.online.interventions import INTERVENTION, InterventionPolicy
from robo_rl.online.learner import average
from robo_rl.online.received import StepFolder
from robo_rl.online.sac import Reinforcement
from robo_rl.online.scripted_operator import GIVE, TAKE, WATCH, ScriptedOperator
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

DEMONSTRATIONS = {"arm-insert": 1, "arm-place-direct": 5}
"""Episodes to begin with: few, so that there is something to correct."""
FIXED = {"arm-insert": {"clearance": 0.003}, "arm-place-direct": {}}
LITTLE = BcConfig(updates=12)
"""600 mini-batches before there is a robot."""
SAC = dataclasses.replace(LITTLE_NOISE, hidden=(64, 64), critic_hidden=(64, 64), batch=128)
"""A mini-batch takes a third of the time."""
RATIO = {"bc": 4.0, "sac": 2.0}
"""Mini-batches per control step."""
PACE = 4.0
"""Robot time over real time, at most, so that the learner has time to learn."""
TOGETHER = 32
"""Robots of ``together``."""
EVERY = 4.0
"""s of real time between policies."""
FIRST, EPISODES = 100, 1000
"""Held-out episodes of the first policy and of the last."""
SCRIPT = (
    f"takes over where its action and the policy's differ by {TAKE} (root mean square, of ±1) over {WATCH} s; "
    f"gives back at {GIVE}"
)


class StepTime(VirtualTime):
    """Time that goes on when the loop waits."""

    period = 1e-3

    def tick(self) -> None:
        """Nothing else moves with it."""


class Attended(ForLoop):
    """A robot with a scripted operator beside it."""

    def __init__(self, robot: SimulatedRobot, policy: Policy, operator: ScriptedOperator) -> None:
        super().__init__(robot, policy.contract, nobody(policy.contract))
        self.operator, self.memory = operator, policy.contract.initial_state

    def read(self, now: int) -> Any:
        """As a driver's, with what the operator makes of it."""
        measured = super().read(now)
        values = {name: value for name, (value, _) in measured.items()}
        self.setpoints[INTERVENTION] = self.operator.signal(values, self.memory)
        return {**measured, INTERVENTION: (self.setpoints[INTERVENTION], now)}


def run_robot(task: str, folder: Path, seed: int, minutes: float) -> int:
    """So many minutes of robot time, episode after episode; the number of policies that were refused."""
    loaded = load_task(task)
    robot = SimulatedRobot(loaded, 100 + seed, FIXED[task])
    policy = Policy.load(folder / "policy-000001.onnx", 1 / loaded.spec.control_period)
    operator = ScriptedOperator(InterventionPolicy(PolicyGraph(loaded, (8,))))
    given, clock = Attended(robot, policy, operator), StepTime()
    begun, active = time.monotonic(), [0]

    def note(step: Step) -> None:
        actor.note(step.inputs, step.output, step.memory)
        given.setpoints.update(actor.exploration())
        ended = robot.ended is not None
        after_episode(robot, loop, actor, step)
        if step.output.state == State.IDLE:
            loop.request(Request.ARM)
        elif loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if step.output.state != State.ACTIVE or ended:
            operator.begin()
            ahead = active[0] * loaded.spec.control_period / PACE - (time.monotonic() - begun)
            time.sleep(max(0.0, ahead))
        active[0] += step.output.state == State.ACTIVE
        given.memory = loop.policy.state[0] if step.output.state == State.ACTIVE else policy.contract.initial_state
        if active[0] * loaded.spec.control_period >= 60.0 * minutes:
            loop.end()

    def heard(sentence: str) -> None:
        if "refused" in sentence:
            print(sentence, flush=True)

    loop = Loop(policy, given, note, clock=clock, patience=10.0, successor=lambda: actor.successor())
    actor = Actor(folder, policy, loop.reserve.config, heard, lambda why: loop.end(), seed=seed)
    actor.start()
    code = loop.run()
    actor.close()
    if code:
        sys.exit("the gate stopped the robot")
    return actor.successors.refused


def by_minute(run: Run, folder: Path) -> dict[str, Any]:
    """What the robot did, out of its own files: per minute, and over the last ten."""
    graph = InterventionPolicy(run.new_policy())
    contract = Policy.load(folder / "policy-000001.onnx", 1 / graph.task.spec.control_period).contract
    steps = StepFolder(folder, graph, contract, print).new()
    per = round(60.0 / graph.task.spec.control_period)
    led = steps.led.numpy()
    takeovers = np.flatnonzero(np.diff(led.astype(int), prepend=0) == 1)
    count = len(led) // per
    rows = []
    for k in range(count):
        won = [won for last, won in steps.outcomes if last // per == k]
        told = {"minute": k + 1, "intervention_rate": float(led[k * per : (k + 1) * per].mean())}
        begun = int(((takeovers >= k * per) & (takeovers < (k + 1) * per)).sum())
        rows.append({**told, "takeovers": begun, "episodes": len(won), "succeeded": sum(won)})
    last = led[-10 * per :]
    return {"control_steps": len(led), "intervention_rate_last_10_minutes": float(last.mean()), "minutes": rows}


def measured(task: str, seed: int, minutes: float, algorithm: str, keep: Path) -> dict[str, Any]:
    """One training, and the policy that came of it."""
    shown, name = keep / "demonstrations.safetensors", f"live-{seed}"
    robo = [sys.executable, "-m", "robo_rl"]
    count = ["--episodes", str(DEMONSTRATIONS[task]), "--seed", str(seed), "--out", str(shown)]
    subprocess.run([*robo, "demonstrate", task, *count], check=True)
    words_of = ["--demonstrations", str(shown), "--seed", str(seed), "--runs", str(keep), "--name", name]
    rest = ["--algorithm", algorithm, "--ratio", str(RATIO[algorithm]), "--every", str(EVERY), *options(algorithm)]
    learner = subprocess.Popen([*robo, "learn", task, *words_of, *rest], stdout=subprocess.DEVNULL)
    folder = keep / name / "robot"
    try:
        while not (keep / name / "checkpoint.safetensors").exists():  # written after the first bundle
            if learner.poll() is not None:
                sys.exit("the learner ended at once")
            time.sleep(0.5)
        first = success(task, keep / name, FIRST)
        refused = run_robot(task, folder, seed, minutes)
    finally:
        learner.terminate()
        learner.wait()
    run = Run.open(keep / name)
    done = {"minibatches": run.metrics()[-1]["update"], "refused": refused, **by_minute(run, folder)}
    print(json.dumps(done), flush=True)
    return {"seed": seed, "first": first, "last": success(task, keep / name, EPISODES), **done}


def options(algorithm: str) -> list[str]:
    """What is not as by default, for the command line."""
    chosen, default = (LITTLE, BcConfig()) if algorithm == "bc" else (SAC, LITTLE_NOISE)
    found: list[str] = []
    for name, value in dataclasses.asdict(chosen).items():
        if value != getattr(default, name):
            values = value if isinstance(value, tuple) else (value,)
            found += [f"--{algorithm}.{name.replace('_', '-')}", *map(str, values)]
    return found


def success(task: str, folder: Path, episodes: int) -> dict[str, float]:
    """Of held-out episodes of the policy alone."""
    policy, _ = Run.open(folder).policy()
    summary = rollout(load_task(task), GraphPolicy(policy), Conditions(episodes=episodes, fixed=FIXED[task])).summary()
    found = {name: float(summary[name]) for name in ("success", "success_low", "success_high")}
    print(f"{found['success']:.1%} ({found['success_low']:.1%} to {found['success_high']:.1%})", flush=True)
    return found


def together(algorithm: str, seed: int) -> dict[str, Any]:
    """The same operator with TOGETHER robots and the learner in one process, without gate and files: 24 minutes of
    robot time in all; cloning has 12 mini-batches for each step of all robots. The success in the rows is with the
    operator's help, and with the noise of sac.
    """
    torch.manual_seed(seed)
    task = load_task("arm-insert")
    config: Any = LITTLE if algorithm == "bc" else SAC
    kind: Any = Cloning if algorithm == "bc" else Reinforcement
    with tempfile.TemporaryDirectory() as keep:
        shown = Path(keep) / FILE_NAME
        write_demonstrations(shown, task, demonstrate(task, DEMONSTRATIONS["arm-insert"], seed)[0])
        policy = PolicyGraph(task, config.hidden, config.activation)
        chosen = dataclasses.replace(config, demonstrations=digest(shown))
        learner = kind(task, policy, chosen, seed, Path(keep))
        learner.pretrain()
    mean = PolicyGraph(task, config.hidden, config.activation)
    mean.load_state_dict(policy.state_dict())
    graph, ratio = learner.graph(mean), 12 / TOGETHER if algorithm == "bc" else RATIO["sac"]
    first = alone(mean, FIRST)
    print(first, flush=True)
    env = LearningEnv(VecEnv(task, TOGETHER, 100 + seed, fixed=FIXED["arm-insert"], evaluation=True))
    leads, watched = torch.zeros(TOGETHER) > 0.0, torch.zeros(TOGETHER)
    apart = torch.zeros(TOGETHER, round(WATCH / task.spec.control_period))
    per = round(60.0 / task.spec.control_period / TOGETHER)
    rows: list[dict[str, float]] = []
    rates: list[float] = []
    learnt = 0
    for k in range(900):
        if k % per == 0:
            print(rows[-1:], flush=True)
            rows.append({"minute": len(rows) + 1, "intervention_rate": 0.0, "episodes": 0, "succeeded": 0})
        rates.append(float(leads.float().mean()))
        rows[-1]["intervention_rate"] = float(np.mean(rates[k - k % per :]))
        seen = env.observation().clone()
        with torch.no_grad():
            own = mean.network(mean.features(seen))
            noise = torch.randn_like(own).clamp(-MOST_NOISE, MOST_NOISE)
            tried = graph.acted(own, seen, {EXPLORATION: noise})
        wanted = task.script(env.signals, env.memory).clamp(-1.0, 1.0)
        action = torch.where(leads[:, None], wanted, tried)
        step = env.step(action)
        later = step.observation.clone()
        later[step.ids] = step.final_observation
        won, ended = step.succeeded.float(), (step.succeeded | step.failed).float()
        learner.add(Transitions(seen, action, won, ended, later), leads.clone())
        apart = torch.cat([apart[:, 1:], (own.clamp(-1, 1) - wanted).square().mean(1).sqrt()[:, None]], 1)
        watched += 1
        far = apart.mean(1) > torch.where(leads, GIVE, TAKE)
        leads = torch.where(watched >= apart.shape[1], far, leads)
        leads[step.ids], watched[step.ids] = False, 0
        rows[-1]["episodes"] += len(step.ids)
        rows[-1]["succeeded"] += int(step.succeeded.sum())
        while learnt < ratio * (TOGETHER * (k + 1) - learner.first):
            learner.learn()
            average(mean, policy)
            learnt += 1
    rate = float(np.mean(rates[-round(600.0 / task.spec.control_period / TOGETHER) :]))
    told = {"algorithm": algorithm, "seed": seed, "robots": TOGETHER, "first": first, "last": alone(mean, 400)}
    return {**told, "minibatches": learnt, "intervention_rate_last_10_minutes": rate, "minutes": rows}


def alone(policy: PolicyGraph, episodes: int) -> dict[str, float]:
    """Success of held-out episodes of arm-insert, and how long they take."""
    conditions = Conditions(episodes=episodes, fixed=FIXED["arm-insert"])
    summary = rollout(policy.task, GraphPolicy(policy), conditions).summary()
    names = ("episodes", "success", "success_low", "success_high", "duration_mean_s")
    return {name: float(summary[name]) for name in names}


def plot(found: dict[str, Any], name: str) -> None:
    """An image of the docs: per minute of robot time, who had the robot, and how many episodes succeeded."""
    from matplotlib.figure import Figure

    from robo_rl.report.plots import COLOURS

    rows = found["minutes"]
    figure = Figure(figsize=(6.0, 3.4), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    at = [row["minute"] for row in rows]
    above.bar(at, [100 * row["intervention_rate"] for row in rows], color=COLOURS[1])
    above.set_ylabel("operator (%)")
    done = [100 * row["succeeded"] / max(1, row["episodes"]) for row in rows]
    below.plot(at, done, "o-", color=COLOURS[0], ms=3, linewidth=1)
    below.set_ylabel("success (%)")
    below.set_ylim(0, 103)
    below.set_xlabel("minutes of robot time")
    figure.savefig(FOLDER.parents[1] / "docs" / "images" / name, dpi=100)


def main() -> None:
    given = words(__doc__, 4)
    if given == ["plot"]:
        plot(json.loads((FOLDER / "interventions_arm-insert_0.json").read_text()), "interventions.png")
        return
    if given[:1] == ["together"]:
        algorithm, seed = (*given[1:], *("bc", "0")[len(given) - 1 :])
        found = together(algorithm, int(seed))
        write(f"interventions_together_{algorithm}_{seed}", {"task": "arm-insert", "operator": SCRIPT, **found})
        if algorithm == "sac":
            plot(found, "interventions-sac.png")
        return
    task, seed, minutes, algorithm = (*given, *("arm-insert", "0", "25", "bc")[len(given) :])
    with tempfile.TemporaryDirectory() as keep:
        found = measured(task, int(seed), float(minutes), algorithm, Path(keep))
    print(json.dumps({k: v for k, v in found.items() if k != "minutes"}))
    name = f"interventions_{task}_{seed}{'' if algorithm == 'bc' else '_sac'}"
    write(name, {"task": task, "operator": SCRIPT, "pace": PACE, **found})


if __name__ == "__main__":
    main()
