"""Cards of robots with two arms: one model, one base, and two chains of joints with a tool each.

Each arm is a card of the kind ``arm`` in whose model the other one stays at home; what they have in common (model,
base, motors, joints that nothing moves) is told once. In signals and commands the joints of the arm that the card names
first come first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from robo_rl.contract import ContractError, Robot
from robo_rl.contract.checks import require_identifier
from robo_rl.sim.robots.arm import FIELDS as OF_AN_ARM
from robo_rl.sim.robots.arm import ArmCard, read_arm
from robo_rl.sim.robots.figures import CardError, figure, model_beside, require
from robo_rl.sim.robots.gripper import read_gripper
from robo_rl.sim.robots.mechanism import ContactPoints, Frame, JointGroup, Mechanism
from robo_rl.sim.robots.motors import read_held, read_motors

KIND = "two_arms"
FIELDS = {"kind", "title", "model", "base", "weightless", "motors", "arms"}
OPTIONAL = {"held", "grasp"}
OF_EACH = {"tool", "joints", "home", "workspace"}
OF_EACH_OPTIONAL = {"gripper"}


@dataclass(frozen=True)
class TwoArmCard:
    """Figures of two arms of one robot in SI units."""

    kind: ClassVar[str] = KIND
    name: str
    title: str
    arms: dict[str, ArmCard]
    """Each by its name, such as "left" and "right": alone, with the other one at home."""
    held: tuple[tuple[str, float], ...]
    """Joints of the model that don't move, and where they stay (rad or m)."""
    sources: dict[str, str]

    @property
    def first(self) -> ArmCard:
        return next(iter(self.arms.values()))

    def facts(self) -> Robot:
        """What a contract tells about this robot: its actuators, and the chain of each arm's joints."""
        alone = {name: arm.facts() for name, arm in self.arms.items()}
        actuators = tuple(actuator for robot in alone.values() for actuator in robot.actuators)
        return Robot(self.name, KIND, actuators, {"arms": {name: robot.facts for name, robot in alone.items()}})

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance, and why the task of two arms can't use it, if so."""
        import mujoco

        from robo_rl.sim.plants.assembly import assemble
        from robo_rl.sim.plants.physics import Physics
        from robo_rl.sim.tasks.two_arms.apart import reason_against

        poses = {name: arm.chain.pose([float(angle) for angle in arm.home]) for name, arm in self.arms.items()}
        mass = float(mujoco.mj_getTotalmass(assemble(self.mechanism, Physics(contacts="model"))))
        joints = {f"{name}_joints": len(arm.joints) for name, arm in self.arms.items()}
        tools = {f"{n}_tool_at_home_m": [round(float(x), 4) for x in pose.position] for n, pose in poses.items()}
        return {"mass_kg": mass, **joints, **tools, "no_reach": reason_against(self)}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: the model, and what it names."""
        return self.first.files()

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where, known = str(path), FIELDS | OPTIONAL
        for key in card:
            require(key in known, where, key, "an unknown field", f"one of {sorted(known)}")
        tables = card.get("arms")
        named = isinstance(tables, dict) and len(tables) == 2
        require(named, where, "arms", sorted(tables) if isinstance(tables, dict) else tables, "two tables, [arms.NAME]")
        assert isinstance(tables, dict)
        for arm, table in tables.items():
            _require_fields(arm, table, where)
        driven = read_motors(card.get("motors"), where)
        moved = [joint for table in tables.values() for joint in table["joints"]]
        twice = sorted({joint for joint in moved if moved.count(joint) > 1})
        require(not twice, where, "arms", twice, "joints of one arm each; those that carry both are in [held]")
        given = f"those of both arms' joints, {sorted(moved)}"
        require(set(driven) == set(moved), where, "motors", sorted(driven), given)
        grasps = "grasp" not in card or any("gripper" in table for table in tables.values())
        require(grasps, where, "grasp", "there without a gripper", "[arms.NAME.gripper] of an arm, or no [grasp]")
        found = {arm: _read_one(card, arm, _other(tables, arm), name, path) for arm in tables}
        _require_alike(found, where)
        own = read_held(card.get("held", {}), where)
        told = ((f"{arm}.{key}", text) for arm, one in found.items() for key, text in one.sources.items())
        sources = {key: text for key, text in told if ".held." not in key}
        sources |= {f"held.{joint}": str(card["held"][joint]["source"]) for joint in card.get("held", {})}
        result = cls(name, card["title"], found, own, sources)
        try:
            result.facts()
        except ContractError as error:
            raise CardError(f"{where}: {error}") from None
        return result

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at home: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.drawing import at_rest

        return at_rest(self.mechanism)

    def urdf(self) -> str:
        """One link per body of the model file, and one more for each tool and pad."""
        from robo_rl.sim.plants.urdf import ros_urdf

        return ros_urdf(self.mechanism)

    @cached_property
    def mechanism(self) -> Mechanism:
        """Bodies and joints for the plants: those of both arms, each group of joints with the first arm's first."""
        alone = [arm.mechanism for arm in self.arms.values()]
        groups: dict[str, JointGroup] = {}
        for group in (group for one in alone for group in one.groups):
            known = groups.get(group.name)
            groups[group.name] = replace(known, joints=(*known.joints, *group.joints)) if known else group
        pads = tuple(pad for arm in self.arms.values() if arm.fingers for pad in arm.fingers.pads)
        frames = (Frame(f"{name}_tool", arm.tool, arm.base) for name, arm in self.arms.items())
        return replace(
            alone[0],
            groups=tuple(groups.values()),
            couplings=tuple(coupling for one in alone for coupling in one.couplings),
            contacts=(ContactPoints("pad", pads),) if pads else (),
            frames=tuple(frames),
            held=self.held,
        )


CARD = TwoArmCard


def _require_fields(arm: str, table: Any, where: str) -> None:
    try:
        require_identifier(arm, f"arms.{arm}")
    except ContractError as error:
        raise CardError(f"{where}: {error}") from None
    require(isinstance(table, dict), where, f"arms.{arm}", table, f"a table with {sorted(OF_EACH)}")
    for key in table:
        known = OF_EACH | OF_EACH_OPTIONAL
        require(key in known, where, f"arms.{arm}.{key}", "an unknown field", f"one of {sorted(known)}")
    for key in sorted(OF_EACH):
        require(key in table, where, f"arms.{arm}.{key}", None, "what an arm's card has (docs/own-robot.md)")
    joints = table["joints"]
    texts = isinstance(joints, list) and all(isinstance(joint, str) for joint in joints)
    require(texts, where, f"arms.{arm}.joints", joints, "names of joints, from base to tool")


def _other(tables: dict[str, Any], arm: str) -> str:
    (found,) = (name for name in tables if name != arm)
    return found


def _read_one(card: dict[str, Any], arm: str, other: str, name: str, path: Path) -> ArmCard:
    """One arm as if it were alone, the joints of the other one where they are at home."""
    table = card["arms"][arm]
    motors = [{**motor, "joints": own} for motor in card["motors"]
              if (own := [joint for joint in motor["joints"] if joint in table["joints"]])]  # fmt: skip
    shared = {key: card[key] for key in OF_AN_ARM & set(card)}
    grasp = {"grasp": card["grasp"]} if "grasp" in card and "gripper" in table else {}
    try:
        held = {**card.get("held", {}), **_still(card, other, path)}
        return read_arm({**shared, **table, **grasp, "kind": "arm", "motors": motors, "held": held}, name, path)
    except CardError as error:
        raise CardError(f"{error} (of the arm '{arm}')") from None


def _still(card: dict[str, Any], arm: str, path: Path) -> dict[str, Any]:
    """A table [held] of an arm's joints at home, its gripper open."""
    table, where = card["arms"][arm], str(path)
    slides = {joint: motor.slides for joint, motor in read_motors(card["motors"], where).items()}
    units = ["m" if slides[joint] else "rad" for joint in table["joints"]]
    home = figure(table["home"], f"arms.{arm}.home", units if "m" in units else "rad", len(units), where)
    places = list(zip(table["joints"], home, units, strict=True))
    if "gripper" in table:
        hand = read_gripper(table["gripper"], where)
        followers = hand.coupling(model_beside(card, path)).followers if hand.followers else ()
        for joint, ratio in ((hand.joint.name, 1.0), *followers):
            places.append((joint, ratio * hand.joint.home, hand.unit))
    return {joint: {"value": value, "unit": unit, "source": f"home of '{arm}'"} for joint, value, unit in places}


def _require_alike(arms: dict[str, ArmCard], where: str) -> None:
    """CardError where what both have would be of two units in one signal, or where their boxes meet."""
    hands = [arm.fingers.slides for arm in arms.values() if arm.fingers]
    require(len(set(hands)) < 2, where, "arms: gripper.slides", hands, "the same of both arms")
    (first, one), (second, other) = arms.items()
    (low, high), (low_other, high_other) = one.workspace, other.workspace
    apart = any(a > d or c > b for a, b, c, d in zip(low, high, low_other, high_other, strict=True))
    require(apart, where, "workspace", [one.workspace, other.workspace], f"boxes of '{first}' and '{second}' apart")
