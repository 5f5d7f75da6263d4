"""robo-rl run."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.commands.running.steering import Steering
    from robo_rl.deploy.emulate.drawn_goals import DrawnGoals
    from robo_rl.deploy.robot.actor import Actor
    from robo_rl.deploy.robot.automatic import AutomaticStart
    from robo_rl.deploy.robot.loop import Loop, Step
    from robo_rl.deploy.robot.plans.source import PlanSource


REQUESTS = {"arm": "ARM", "go": "ACTIVATE", "stop": "STOP", "disarm": "DISARM", "reset": "RESET"}
"""Words of the operator, and requests of the gate."""
PATIENCE = 1.0
"""s of real time that a step of a simulated robot may take in place of a control period, before the policy hangs."""


def main(
    file: Annotated[Path, tyro.conf.Positional],
    driver: str,
    port: str = "",
    calibration: str = "",
    robot_file: str = "",
    setpoint: tuple[str, ...] = (),
    steer: str = "",
    speed: float = 0.5,
    turn: float = 1.0,
    new_goal_every: float | None = None,
    mode: Literal["dry_run", "shadow", "blend", "live"] = "live",
    blend_time: float = 5.0,
    arm: bool = False,
    seconds: float = float("inf"),
    record: Path | None = None,
    native: bool = False,
    realtime: bool = False,
    cores: tuple[int, ...] = (),
    release: bool = False,
    trusted_keys: Path | None = None,
    learn: Path | None = None,
    plan: str = "",
    plan_patience: float = 1.0,
    plan_authority: str = "",
    json: bool = False,
) -> int:
    """Run a policy on a robot, through the driver for its own protocol, behind the gate. No ROS needed.

    The robot is connected to and checked first; nothing moves until 'arm' and 'go' are typed (or --arm is given). Lines
    on standard input: arm; go (the policy takes over); stop; disarm; reset (after a fault); 'NAME 1.0 0.0 …' (a
    set-point); promote, demote (up or down the ladder to live); quit. With --learn also: 'lead 0.1 0 …' (the operator's
    action, −1 to 1 each, until the next such line); release (the policy goes on); succeeded, failed (the end of an
    episode). Ctrl-C stops the robot as its contract says, and ends. With --json: driver, robot, digest,
    runtime, steps, late (of them, by more than a tenth of a period), longest_interval_ms, computing_p50_ms, _p99_ms and
    _max_ms (from a step's beginning until its command is sent), memory_mb (greatest, resident), state, problems,
    figures.

    Args:
        file: A bundle (*.onnx, or zoo:NAME).
        driver: The robot's driver: so101, dynamixel, go2, g1, f1tenth, px4, franka, ur, crazyflie, simulated, or a
            file of yours (*.py) with make(contract, settings).
        port: Device, address or network interface; by default the driver's usual one (/dev/ttyACM0, eth0).
        calibration: The robot's calibration file.
        robot_file: What differs between two robots of a type (*.toml).
        setpoint: Operator's signals at the beginning, each 'NAME=1.0 0.0 …'.
        steer: Who gives the other set-points while it runs: 'keyboard', the keys of this terminal instead of lines, or
            a gamepad (Linux: /dev/input/js0), whose left shoulder is held. Half a second after the last key, and at
            once when the button or the gamepad is gone, velocities are zero and places stay.
        speed: With --steer, the greatest velocity, m/s; less where training met less.
        turn: With --steer, the greatest turn rate, rad/s.
        new_goal_every: Set-points as the task draws its goals, new ones so often (s), in place of --setpoint: to record
            a motion for 'robo-rl sysid'. The policy's task must be one of robo-rl.
        mode: Where to begin on the ladder: dry_run (nothing is enabled or sent), shadow (the same, beside the robot's
            controller), blend (from the controller to the policy), live.
        blend_time: In the mode blend, s from no authority of the policy to all.
        arm: Arm, once, as soon as all signals are there, however late; let the policy take over when the robot is in
            its start pose. A refusal is told, and not tried again: type arm. A simulated robot is armed again in each
            new episode.
        seconds: How long to run.
        record: Folder in which the session is recorded.
        native: Compile the policy for this computer.
        realtime: Ask for a real-time priority and for memory that is not paged out.
        cores: With --realtime, the cores to run on, such as isolated ones; by default all.
        release: At the end, make the actuators passive. An arm falls.
        trusted_keys: Run only what a key in this file of public keys signed.
        learn: The folder that 'robo-rl learn' shares: steps go there, and its newest policy goes on.
        plan: The server whose plans the policy follows: ws://127.0.0.1:PORT, or wss://HOST:PORT (docs/plans.md). With
            --json also: plans (how many came, were dropped, refused, lost).
        plan_patience: With --plan, s that a plan may take to come; then the robot holds.
        plan_authority: With --plan, a file of the certificates that sign the server's, in place of the system's.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.controllers.gate.codes import Event, State
    from robo_rl.deploy.robot.actor import Actor
    from robo_rl.deploy.robot.automatic import AutomaticStart
    from robo_rl.deploy.robot.drivers import make
    from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop, Settings
    from robo_rl.deploy.robot.loop import Loop
    from robo_rl.deploy.robot.named_values import numbers_by_name
    from robo_rl.deploy.robot.realtime import keep_time, require_period
    from robo_rl.deploy.robot.runtime import Policy
    from robo_rl.deploy.robot.timing import Timing

    if cores and not realtime:
        raise ValueError("cores are for --realtime; give both")
    for sentence in keep_time(cores) if realtime else []:
        say(sentence, json)
    policy = Policy.load(file, None, trusted_keys=trusted_keys, native=native)
    require_period(policy.contract.control_period)
    rate = 1 / policy.contract.control_period
    if policy.runtime_note:
        say(f"onnxruntime runs it: {policy.runtime_note}", json)
    settings = Settings(port, robot_file, calibration, learning=learn is not None)
    robot = make(driver, policy.contract, settings)
    source = _planned(policy.contract, plan, plan_patience, plan_authority, json) if plan else None
    recorder: Any = None
    actor: Actor | None = None
    last: list[Step] = []
    if setpoint and new_goal_every is not None:
        raise ValueError("--setpoint and --new-goal-every exclude each other; expected one of them")
    goals = None if new_goal_every is None else _goals(policy.contract, new_goal_every)
    first = numbers_by_name(setpoint, policy.contract, "--setpoint") if goals is None else goals.setpoints(0)
    steering = None
    if steer:
        steering = _steering(policy.contract, steer, first, speed, turn, lambda word: _request(loop, automatic, word))
        first = {**steering.setpoints({}), **first}
    timing = Timing(policy.contract.control_period)
    automatic = AutomaticStart() if arm else None
    episodes = learn is not None or hasattr(robot, "ended")
    try:
        if learn is not None:
            first = {**nobody(policy.contract), **first}
        given = ForLoop(robot, policy.contract, first, () if steering is None else steering.names, source)
        identity = robot.connect()
        if source is not None:
            source.connect()
            say(f"{plan} agrees with the policy; its plans are followed", json)
        details = ", ".join(f"{name} {value}" for name, value in identity.details.items())
        say(f"{driver}: {identity.robot}{', ' if details else ''}{details}; without commands it {_silent(robot)}", json)

        def note(step: Step) -> None:
            timing.note(step.began, step.took)
            last[:] = [step]
            if steering is not None:
                given.setpoints.update(steering.setpoints(loop.samples))
            if goals is not None:
                given.setpoints.update(goals.setpoints(goals.number(step.number / rate)))
            if recorder is not None:
                recorder.note(step.record())
            if actor is not None:
                actor.note(step.inputs, step.output, step.memory, step.mode == "live")
                given.setpoints.update(actor.exploration())
            after_episode(robot, loop, actor, step, json)
            if automatic is not None:
                loop.request(automatic.request(step, loop.reserve, anew=episodes))
            if step.output.events or step.refused or (automatic is not None and automatic.waiting):
                problems = "; ".join(filter(None, (step.sentence, *robot.health().problems)))
                waiting = automatic.waiting if automatic is not None else ""
                events = (
                    Event(step.output.events).name if step.output.events else "REFUSED" if step.refused else "WAITS"
                )
                say(" ".join(filter(None, (State(step.output.state).name, events, waiting or problems))), json)
            if step.output.events & Event.FAULTED and not loop.leaving:
                say("to go on: reset, arm, go", json)

        clock = getattr(robot, "clock", time)  # a simulated robot waits for a busy computer
        patience = None if clock is time else PATIENCE
        loop = Loop(
            policy, given, note, clock, patience, lambda: actor.successor() if actor is not None else None, mode,
            blend_time,
        )  # fmt: skip
        if learn is not None:
            told, failed = partial(say, as_json=json), partial(_failed, loop, json=json)
            actor = Actor(learn, policy, loop.reserve.config, told, failed, trusted_keys, native)
            actor.start()
        if record is not None:
            from robo_rl.deploy.robot.logs.record import Recorder

            record.mkdir(parents=True, exist_ok=True)
            name = f"{policy.contract.task}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.mcap"
            recorder = Recorder(record / name, policy.bundle, on_failure=lambda reason: _failed(loop, reason, json))
            say(f"recording to {recorder.path}", json)
        with contextlib.ExitStack() as stack:
            if steering is not None:
                stack.enter_context(steered(steer, steering, json))
            if steer != "keyboard":
                listener = (loop, given, policy.contract, actor, automatic, json)
                threading.Thread(target=_listen, args=listener, daemon=True).start()
            code = loop.run(seconds)
        if release:
            robot.disable()
        health = robot.health()
        for problem in health.problems:
            say(problem, json)
    except DriverError as error:
        raise ValueError(str(error)) from None
    finally:
        for at_work in (recorder, actor, source):
            if at_work is not None:
                at_work.close()
        robot.close()
    give(
        {
            "driver": driver, "robot": {"name": identity.robot, **identity.details},
            "digest": loop.policy.bundle.digest, "runtime": policy.runtime, **timing.figures(),
            "memory_mb": _greatest_memory(),
            "state": State(last[0].output.state).name if last else None, "problems": list(health.problems),
            "figures": dict(health.figures),
            **({"plans": dataclasses.asdict(source.counts)} if source is not None else {}),
        },
        json,
    )  # fmt: skip
    if loop.stuck:  # a process with a thread that hangs can't end in peace
        sys.stdout.flush()
        os._exit(code)
    return code


def _steering(
    contract: Any, steer: str, first: dict[str, Any], speed: float, turn: float, request: Callable[[str], None]
) -> Steering:
    from robo_rl.commands.running.steering import Steering

    if steer != "keyboard" and not Path(steer).exists():
        raise ValueError(f"--steer is '{steer}'; expected 'keyboard', or a joystick such as /dev/input/js0")
    if steer == "keyboard" and not sys.stdin.isatty():
        raise ValueError("--steer is 'keyboard', and standard input is no terminal; expected one")
    for name, value in (("--speed", speed), ("--turn", turn)):
        if not 0.0 < value < float("inf"):
            raise ValueError(f"{name} is {value:g}; expected more than 0")
    return Steering(contract, first, speed, turn, request)


@contextlib.contextmanager
def steered(steer: str, steering: Steering, json: bool) -> Iterator[None]:
    """A thread that reads keys or the gamepad until the end."""
    from robo_rl.commands.running.steering import HELP, follow_gamepad, follow_keys
    from robo_rl.ros.keyboard import Keyboard

    stop = threading.Event()
    with contextlib.ExitStack() as stack:
        if steer == "keyboard":
            keyboard = stack.enter_context(Keyboard())
            say(HELP, json)
            thread = threading.Thread(target=follow_keys, args=(keyboard, steering, stop), daemon=True)
        else:
            thread = threading.Thread(target=follow_gamepad, args=(Path(steer), steering, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(timeout=1.0)


def _planned(contract: Any, url: str, patience: float, authority: str, json: bool) -> PlanSource:
    try:
        from robo_rl.deploy.robot.plans.source import PlanSource

        return PlanSource(contract, url, partial(say, as_json=json), patience, authority)
    except ImportError as error:
        raise ValueError(f"--plan: {error}; expected pip install 'robo-rl[plans]'") from None


def _goals(contract: Any, seconds: float) -> DrawnGoals:
    from robo_rl.deploy.build.verify import named_task
    from robo_rl.deploy.emulate.drawn_goals import DrawnGoals

    return DrawnGoals(named_task(contract), seconds)


def _greatest_memory() -> float:
    """MB that this process has had resident."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def _silent(robot: Any) -> str:
    guard = getattr(robot, "guard", "")
    return f"{robot.silence.value}{f'; {guard}' if guard else ''}"


def nobody(contract: Any) -> dict[str, Any]:
    """The signals of learning, while the operator does nothing and nothing is explored."""
    import numpy as np

    from robo_rl.deploy.robot.actor import INTERVENTION, quiet

    silent = {s.name: np.zeros(s.size, np.float32) for s in contract.signals if s.name == INTERVENTION}
    return {**silent, **quiet(contract)}


def after_episode(robot: Any, loop: Loop, actor: Actor | None, step: Step, json: bool) -> None:
    """Where a simulated robot tells that its episode has ended, the policy's ends, too."""
    from robo_rl.controllers.gate.codes import Request, State
    from robo_rl.deploy.robot.logs.step_log import Flag

    ended, robot.ended = getattr(robot, "ended", None), None
    if ended is None:
        return
    if step.output.state in (State.READY, State.ACTIVE):
        how = {Flag.SUCCEEDED: "succeeded", Flag.FAILED: "failed"}.get(ended.flags, "is over")
        say(f"the episode {how}; the simulated robot begins another one", json)
    if actor is not None:
        samples = {**loop.samples, **ended.samples}
        values, _ = loop.reserve.flat_signals(samples, step.time)
        actor.end(step.time, values, loop.policy.state[0], ended.flags)
    loop.session.orientations.restart()
    loop.request(Request.DISARM)


def _failed(loop: Loop, reason: str, json: bool) -> None:
    from robo_rl.controllers.gate.codes import Request

    say(f"the robot is stopped, what it does can't be written: {reason}", json)
    loop.request(Request.HALT)


def _listen(
    loop: Loop, given: Any, contract: Any, actor: Actor | None, automatic: AutomaticStart | None, json: bool
) -> None:
    """What the operator types. The end of the input means nothing: it may be closed from the start."""
    from robo_rl.controllers.gate.codes import Request
    from robo_rl.deploy.robot.actor import INTERVENTION
    from robo_rl.deploy.robot.logs.step_log import Flag
    from robo_rl.deploy.robot.named_values import numbers_by_name

    told = [signal.name for signal in contract.signals if signal.source == "operator" or signal.name in given.setpoints]
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if actor is not None and word in ("lead", "release"):
            word, rest = INTERVENTION, f"1 {rest}" if word == "lead" else "0 " * given.setpoints[INTERVENTION].size
        if word in REQUESTS:
            _request(loop, automatic, word)
        elif word in ("promote", "demote"):
            _move(loop, word, json)
        elif word == "quit":
            loop.end()
        elif actor is not None and word in ("succeeded", "failed"):
            actor.outcome = {"succeeded": Flag.SUCCEEDED, "failed": Flag.FAILED}[word]
            loop.request(Request.DISARM)
        elif word in told:
            try:
                given.setpoints[word] = numbers_by_name([f"{word}={rest}"], contract, "the set-point")[word]
            except ValueError as error:
                say(str(error), json)
        elif word:
            known = [*REQUESTS, "promote", "demote", "quit", *told]
            say(f"{word[:40]!r} is not one of {', '.join(known)}", json)


def _request(loop: Loop, automatic: AutomaticStart | None, word: str) -> None:
    """One of ``REQUESTS``."""
    from robo_rl.controllers.gate.codes import Request

    if word in ("stop", "disarm") and automatic is not None:
        automatic.end()
    loop.request(Request[REQUESTS[word]])


def _move(loop: Loop, word: str, json: bool) -> None:
    try:
        say(loop.session.promote() if word == "promote" else loop.session.demote(), json)
    except ValueError as error:
        say(str(error), json)
