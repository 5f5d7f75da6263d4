"""robo-rl doctor."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.commands.running.ros import INSTALL
from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.contract import Contract
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.doctor import Finding
    from robo_rl.deploy.robot.drivers.driver import Settings
    from robo_rl.ros.signal_check import SignalCheck


def main(
    file: Annotated[Path, tyro.conf.Positional],
    seconds: float = 3.0,
    motion: float = 0.0,
    wiggle: bool = False,
    command_message: str = "",
    wire: tuple[str, ...] = (),
    namespace: str = "",
    driver: str = "",
    port: str = "",
    calibration: str = "",
    robot_file: str = "",
    repair: bool = False,
    log: Path | None = None,
    computer: float = 0.0,
    cores: tuple[int, ...] = (),
    json: bool = False,
) -> int:
    """Check a robot's messages against a policy file, before the motors are enabled; exit with 1 if a check fails.

    The robot is at rest first. With --motion it is then turned and moved manually, about and along all axes: the
    command compares gyroscope, orientation, position and velocity, and finds wrong axes and signs. With --wiggle the
    motors are enabled: each joint moves by a few degrees, one after the other, and the command checks which joint
    reports the motion, its direction and its amplitude. Suspend the robot for that, in its start pose.
    With --computer it checks this computer instead, at the policy's rate: without a robot, without ROS.
    With --json: healthy, findings; of --computer also wake_ups and histogram.

    Args:
        file: A bundle (*.onnx).
        seconds: Duration (s) of the check at rest.
        motion: Duration (s) of the check while the robot is moved manually; 0 skips it. With --driver, of an arm of bus
            servos: its joints, one after the other, which finds servos that have each other's ID.
        wiggle: Move each joint a little; refused while another node publishes commands, or if another check fails.
        command_message: Message type of the commands, as of 'robo-rl ros policy'; by default chosen from the contract.
        wire: Other sources of signals, each 'signal=topic type field'.
        namespace: Namespace of the topics.
        driver: Check a robot through this driver, without ROS: rates, ages, clock, counters. Nothing is enabled.
        port: With --driver, the device, address or network interface.
        calibration: With --driver, the robot's calibration file.
        robot_file: With --driver, what differs between two robots of a type (*.toml).
        repair: With --driver, first set the parameters of the robot that the driver would refuse (px4: its failsafe).
        log: Check how fast the autopilot's rate loop follows, from the log of a flight (*.mcap), instead.
        computer: Duration (s) of the check of this computer, such as 60: its kernel, its permissions, and how late it
            wakes a process up that has a real-time priority, where that is granted.
        cores: With --computer, the cores to use, such as isolated ones; by default all.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.doctor import Finding, examine, healthy
    from robo_rl.deploy.robot.named_values import texts_by_name

    bundle = Bundle.read(file)
    contract = bundle.contract
    if cores and not computer:
        raise ValueError("cores are for --computer; give both")
    if not driver and (port or calibration or robot_file or repair):
        raise ValueError("--port, --calibration, --robot-file and --repair are for --driver; give its name")
    if log is not None:
        return _log(bundle, log, json)
    if driver:
        from robo_rl.deploy.robot.drivers.driver import Settings

        return _driver(contract, driver, Settings(port, robot_file, calibration), repair, seconds, motion, json)
    if computer:
        return _computer(contract, computer, cores, json)
    if importlib.util.find_spec("rclpy") is None:
        raise ValueError(INSTALL)
    from robo_rl.ros.joystick import resting
    from robo_rl.ros.signal_check import SignalCheck

    with SignalCheck(contract, texts_by_name(wire, "--wire"), namespace) as check:
        check.discover()
        say(f"recording for {seconds:g} s; keep the robot at rest and upright, and a joystick untouched", json)
        still = check.listen(seconds)
        sticks = [Finding(good, "joystick", sentence) for good, sentence in resting(check.joystick)]
        moved = None
        if motion > 0:
            say(f"now turn and move the robot manually for {motion:g} s, about and along all three axes", json)
            moved = check.listen(motion)
        findings = examine(contract, still, moved) + sticks
        if wiggle and healthy(findings):
            findings += _wiggle(check, command_message, json)
    for finding in findings:
        _tell(finding, "WRONG", json)
    well = healthy(findings)
    say("all checks passed" if well else "checks failed: do not arm this robot", json)
    give({"healthy": well, "findings": [dataclasses.asdict(finding) for finding in findings]}, json)
    return 0 if well else 1


def _driver(
    contract: Contract, name: str, settings: Settings, repair: bool, seconds: float, motion: float, json: bool
) -> int:
    from robo_rl.deploy.robot.doctor import Finding, healthy
    from robo_rl.deploy.robot.driver_doctor import examine_driver
    from robo_rl.deploy.robot.drivers import make
    from robo_rl.deploy.robot.drivers.driver import DriverError

    findings: list[Finding] = []
    driver = make(name, contract, settings)
    try:
        if repair:
            if not hasattr(driver, "repair"):
                raise ValueError(f"--repair: the driver {name} sets no parameters of its robot")
            try:
                findings += [Finding(True, "repaired", sentence) for sentence in driver.repair()]
            except DriverError as error:
                findings.append(Finding(False, "repair", str(error)))
        findings += examine_driver(driver, contract, seconds, say=lambda text: say(text, json), motion=motion)
    finally:
        driver.close()
    for finding in findings:
        _tell(finding, "WRONG", json)
    well = healthy(findings)
    say("all checks passed" if well else "checks failed: do not arm this robot", json)
    give({"healthy": well, "findings": [dataclasses.asdict(finding) for finding in findings]}, json)
    return 0 if well else 1


def _log(bundle: Bundle, path: Path, json: bool) -> int:
    from robo_rl.deploy.robot.doctor import healthy
    from robo_rl.deploy.robot.logs.rate_loop import examine_rate_loop
    from robo_rl.deploy.robot.logs.reader import read_log
    from robo_rl.deploy.robot.logs.replay import require_same_interface

    log = read_log(path)
    require_same_interface(log, bundle)
    if not (steps := [step for step in log.steps if step.commanded]):
        raise ValueError(f"{path}: no step in it whose command was sent; expected a session in mode 'blend' or 'live'")
    if log.damage:
        say(f"{path}: {len(log.damage)} parts can't be read; the rest is used", json)
    findings = examine_rate_loop(bundle.contract, steps)
    for finding in findings:
        _tell(finding, "WRONG", json)
    well = healthy(findings)
    give({"healthy": well, "findings": [dataclasses.asdict(finding) for finding in findings]}, json)
    return 0 if well else 1


def _tell(finding: Finding, bad: str, json: bool) -> None:
    say(f"  {'ok' if finding.good else bad:<5}  {finding.subject:<22} {finding.sentence}", json)


def _computer(contract: Contract, seconds: float, cores: tuple[int, ...], json: bool) -> int:
    """What the system tells is a note; what was measured decides."""
    from robo_rl.deploy.robot.computer import EDGES, facts, figures, granted, histogram, usable, verdict, wake_ups
    from robo_rl.deploy.robot.realtime import keep_time

    if not (math.isfinite(seconds) and seconds >= contract.control_period):
        raise ValueError(f"--computer is {seconds:g} s; expected at least a period, {contract.control_period:g} s")
    refused = keep_time(cores)
    noted = facts(usable()) + granted(refused)
    for finding in noted:
        _tell(finding, "note", json)
    say(f"a wake-up every {1e3 * contract.control_period:g} ms for {seconds:g} s", json)
    timing = wake_ups(contract.control_period, seconds)
    found, bins = figures(timing), histogram(timing)
    for edge, count in zip([*(f"to {edge}" for edge in EDGES), f"over {EDGES[-1]}"], bins, strict=True):
        if count:
            bar = "#" * math.ceil(30 * count / max(bins))
            say(f"  {edge + ' us':>14}  {count:>8}  {bar}", json)
    say(
        f"  late by {found['p50_us']} us (median), {found['p99_us']} us (99 %), {found['p99.9_us']} us (99.9 %), "
        f"{found['max_us']} us (most)", json,
    )  # fmt: skip
    decided = verdict(timing, contract)
    _tell(decided, "WRONG", json)
    how = "" if refused else " with robo-rl run --realtime"
    sentence = (
        f"this computer keeps {decided.subject}{how}" if decided.good else f"this computer can't keep {decided.subject}"
    )
    say(sentence, json)
    told = [dataclasses.asdict(finding) for finding in (*noted, decided)]
    counts = [{"to_us": edge, "count": count} for edge, count in zip((*EDGES, None), bins, strict=True)]
    give({"healthy": decided.good, "findings": told, "wake_ups": found, "histogram": counts}, json)
    return 0 if decided.good else 1


def _wiggle(check: SignalCheck, message: str, json: bool) -> list[Finding]:
    from robo_rl.deploy.robot.doctor import Finding
    from robo_rl.deploy.robot.joints import JointTestError, examine_joints, find_joints
    from robo_rl.ros.joint_test import wiggle

    try:
        command, _ = find_joints(check.contract)
        say("now the joints move, by a few degrees each", json)
        motion = wiggle(check, message, lambda name: say(f"  {name}", json))
    except JointTestError as error:
        return [Finding(False, "joints", str(error))]
    return examine_joints(command, motion)
