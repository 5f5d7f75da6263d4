"""Arms whose joints are told where to go: a motion through the air, fitted by ``fit`` and judged by ``judge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robo_rl.identification.arm.motion import motion
from robo_rl.identification.arm.observer import ArmObserver
from robo_rl.identification.estimate import Unknown
from robo_rl.identification.findings import Findings, Progress
from robo_rl.identification.fit import identify
from robo_rl.identification.joint_findings import joint_findings
from robo_rl.identification.judge import faults
from robo_rl.identification.smooth_search import search
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import LONGEST_DELAY
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.tasks.arm.physical import hand_body

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.sim.tasks import Task

SLOWEST = 0.15
"""rad/s, root mean square over all joints. One at rest has 0.03, all noise; a set-point every 1.5 s gives 0.45."""
MOVE = (
    "record a minute of arm-reach with a new set-point every second or two, such as by 'robo-rl run --new-goal-every "
    "1.5 --record', with nothing in the way"
)
SHARPER = (
    "to know it better record longer, with set-points farther apart: acceleration tells a load from gains and rotors; "
    "and record a load that you weighed as well"
)


def unknowns(card: ArmCard, plant: MujocoPlant) -> tuple[Unknown, ...]:
    """What is looked for in an arm's motion; what it carries in relation to what its links and its hand weigh."""
    hand, whole = float(plant.nominal.mass[0, hand_body(card, plant)]), float(plant.nominal.mass.sum())
    friction = Unknown("joint_friction", "× nominal", 1.0, 0.02, 20.0, spread=1.0, step=0.2, bias=0.02, enough=0.15)
    return (
        *((friction,) if any(joint.friction for joint in card.joints) else ()),
        Unknown("armature", "× nominal", 1.0, 0.1, 10.0, spread=0.7, step=0.1, bias=0.02, enough=0.15),
        Unknown("stiffness", "× nominal", 1.0, 0.3, 3.0, spread=0.3, step=0.06, bias=0.01, enough=0.1),
        Unknown("damping", "× nominal", 1.0, 0.1, 10.0, spread=0.7, step=0.15, bias=0.01, enough=0.15),
        Unknown(
            "payload", "kg", 0.0, -0.5 * hand, 3.0 * whole, spread=0.5 * whole, step=0.05 * whole, bias=0.005 * whole,
            enough=0.05 * whole, factor=False,
        ),
        Unknown("command_delay", "s", 0.0, 0.0, LONGEST_DELAY, 0.03, 0.003, bias=0.0005, enough=0.005, factor=False),
        Unknown("strength", "× nominal", 1.0, 0.2, 2.0, spread=0.3, step=0.1, bias=0.03, enough=0.1),
    )  # fmt: skip


def find(logs: Sequence[Log], task: Task, iterations: int, progress: Progress) -> Findings:
    """ValueError unless it is one log of an arm whose joints take positions."""
    if len(logs) > 1:
        raise ValueError(f"{logs[1].path}: a motion is fitted from one log; expected {logs[0].path} alone")
    path, card = logs[0].path, task.spec.robot
    if not isinstance(card, ArmCard) or card.impedance is not None:
        raise ValueError(
            f"{path} is of '{task.spec.robot.name}', which takes poses of its tool: they don't tell its joints' "
            "friction and inertia; expected an arm whose card has no [impedance]"
        )
    if card.slides:
        raise ValueError(
            f"{path} is of '{card.name}', whose {[joint.name for joint in card.slides]} slide; expected an arm of "
            "hinges alone: gains and loads of slides are not fitted"
        )
    record = motion(logs[0], card)
    plant: Any = task.make_plant(1, "cpu")
    found = identify(
        card.mechanism, record, plant.physics, unknowns(card, plant), iterations, progress, ArmObserver.of(card), search
    )
    wrong = faults(record, found, SLOWEST, MOVE)
    return joint_findings(record, found, wrong, task.spec.ranges, card.joint_names, SHARPER)
