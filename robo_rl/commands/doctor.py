"""robo-rl doctor."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.commands.ros import INSTALL
from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl_ros.signal_check import SignalCheck

    from deploy.doctor import Finding


def main(
    file: Annotated[Path, tyro.conf.Positional],
    seconds: float = 3.0,
    motion: float = 0.0,
    wiggle: bool = False,
    command_message: str = "",
    wire: tuple[str, ...] = (),
    namespace: str = "",
    json: bool = False,
) -> int:
    """Check a robot's messages against a policy file, before the motors are enabled; exit with 1 if a check fails.

    The robot is at rest first. With --motion it is then turned and moved manually, about and along all axes: the
    command compares gyroscope, orientation, position and velocity, and finds wrong axes and signs. With --wiggle the
    motors are enabled: each joint moves by a few degrees, one after the other, and the command checks which joint
    reports the motion, its direction and its amplitude. Suspend the robot for that, in its start pose.
    With --json: healthy, findings.

    Args:
        file: A bundle (*.onnx).
        seconds: Duration (s) of the check at rest.
        motion: Duration (s) of the check while the robot is moved manually; 0 skips it.
        wiggle: Move each joint a little; refused while another node publishes commands, or if another check fails.
        command_message: Message type of the commands, as in policy_node; by default chosen from the contract.
        wire: Other sources of signals, each 'signal=topic type field'.
        namespace: Namespace of the topics.
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.bundle import Bundle
    from deploy.doctor import examine, healthy
    from deploy.named_values import texts_by_name

    contract = Bundle.read(file).contract
    if importlib.util.find_spec("rclpy") is None:
        raise ValueError(INSTALL)
    from robo_rl_ros.signal_check import SignalCheck

    with SignalCheck(contract, texts_by_name(wire, "--wire"), namespace) as check:
        check.discover()
        say(f"recording for {seconds:g} s; keep the robot at rest and upright", json)
        still = check.listen(seconds)
        moved = None
        if motion > 0:
            say(f"now turn and move the robot manually for {motion:g} s, about and along all three axes", json)
            moved = check.listen(motion)
        findings = examine(contract, still, moved)
        if wiggle and healthy(findings):
            findings += _wiggle(check, command_message, json)
    for finding in findings:
        say(f"  {'ok   ' if finding.good else 'WRONG'}  {finding.subject:<22} {finding.sentence}", json)
    well = healthy(findings)
    say("all checks passed" if well else "checks failed: do not arm this robot", json)
    give({"healthy": well, "findings": [dataclasses.asdict(finding) for finding in findings]}, json)
    return 0 if well else 1


def _wiggle(check: SignalCheck, message: str, json: bool) -> list[Finding]:
    from robo_rl_ros.joint_test import wiggle

    from deploy.doctor import Finding
    from deploy.joints import JointTestError, examine_joints, find_joints

    try:
        command, _ = find_joints(check.contract)
        say("now the joints move, by a few degrees each", json)
        motion = wiggle(check, message, lambda name: say(f"  {name}", json))
    except JointTestError as error:
        return [Finding(False, "joints", str(error))]
    return examine_joints(command, motion)
