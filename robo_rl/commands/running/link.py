"""robo-rl link."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from robo_rl.commands.sources import derived
from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.deploy.robot.link.messages import Message
    from robo_rl.deploy.robot.link.port import Link


def main(
    what: Annotated[Literal["show", "pull-weights"], tyro.conf.Positional],
    port: Annotated[Path, tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    seconds: float = 10.0,
    baud: int = 115_200,
    out: Path | None = None,
    episodes: int = 1000,
    task: str | None = None,
    robot: str | None = None,
    json: bool = False,
) -> int:
    """Listen to a microcontroller that runs a policy's firmware, or fetch what it has learnt.

    'show' prints how its learning goes, faults, and counters of the link; it sends nothing but a hello, so nothing is
    armed. 'pull-weights' takes the learnt weights of a robot at rest over the link, and makes and verifies a policy
    file of them, like the command pull-weights. With --json: for 'show' port, device (control_period_us, signals,
    commands), progress (steps, learnt, spikes, returns, off, first, last; null without learning), statistics and
    faults; for 'pull-weights' as that command.

    Args:
        what: What to do.
        port: The serial port, such as /dev/ttyACM0.
        file: The bundle that the microcontroller was built from (*.onnx).
        seconds: How long to listen.
        baud: Bits per second of the serial port.
        out: Of pull-weights: the file to write; by default the bundle's name with _learnt.
        episodes: Of pull-weights: number of held-out episodes to verify it with.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        json: Print one JSON object on the last line of stdout.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError(f"--seconds is {seconds:g}; expected a positive number")
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; expected 1 or more")
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.link.port import Link
    from robo_rl.deploy.robot.link.pulling import pulled

    bundle = Bundle.read(file)
    link = Link.open(port, bundle.contract, baud=baud)
    if what == "show":
        give(show(link, seconds, json), json)
        return 0
    from robo_rl.commands.exporting.pull_weights import make

    return make(bundle, pulled(link), out or derived(file, "_learnt.onnx"), episodes, (robot, task), json)


def show(link: Link, seconds: float, json: bool) -> dict[str, Any]:
    """Print what a device says for some seconds; returns the newest of each kind."""
    from robo_rl.deploy.robot.link.messages import Fault, Hello, Progress, Statistics
    from robo_rl.deploy.robot.link.pulling import greet, heard

    hello, begun = greet(link), time.monotonic()
    device = {
        "control_period_us": hello.control_period,
        "signals": hello.signal_size,
        "commands": hello.command_size,
    }
    say(f"{link.port.name}: a device with a control period of {hello.control_period} µs", json)
    newest: dict[type, Message] = {}
    faults = 0
    for message in heard(link, seconds):
        if isinstance(message, Hello):
            say("  the device has restarted", json)
        elif isinstance(message, Fault):
            faults += 1
        if isinstance(message, Progress | Fault) and message_differs(newest.get(type(message)), message):
            say(f"  {time.monotonic() - begun:6.1f} s  {told(message)}", json)
        newest[type(message)] = message
    counts, learning = newest.get(Statistics), newest.get(Progress)
    if isinstance(counts, Statistics):
        missed = f"{counts.session.lost} frames lost, {counts.decoder.crc} damaged"
        say(f"  {counts.steps} steps, {counts.late_steps} late; {missed}", json)
    if learning is None:
        say("  nothing about learning; 'robo-rl firmware --learn' makes firmware that learns", json)
    return {
        "port": link.port.name,
        "device": device,
        "progress": None if learning is None else vars(learning),
        "statistics": {**vars(counts), "decoder": vars(counts.decoder), "session": vars(counts.session)}
        if isinstance(counts, Statistics)
        else None,
        "faults": faults,
    }


def message_differs(before: Message | None, now: Message) -> bool:
    """Whether a message tells something new besides the time."""
    if before is None:
        return True
    return {**vars(before), "time": 0} != {**vars(now), "time": 0}


def told(message: Message) -> str:
    """A message in words."""
    from robo_rl.controllers.gate.codes import MEANING, Reason
    from robo_rl.deploy.robot.link.messages import Fault, Progress

    if isinstance(message, Fault):
        known = message.reason in {int(reason) for reason in Reason}
        return f"fault: {MEANING[Reason(message.reason)] if known else f'reason {message.reason}'}"
    assert isinstance(message, Progress)
    state = "ended" if message.off else "learning"
    earned = f"earned per step {message.last:.3g}, with the exported weights {message.first:.3g}"
    return (
        f"{state}: {message.steps} steps, {message.learnt} learnt from, {message.spikes} spikes, "
        f"{message.returns} returns to the exported weights; {earned}"
    )
