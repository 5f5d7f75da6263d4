"""Makers' models, MJCF and URDF, as robo-rl has them beside what their files say: equal, refused, or different.

    python benchmarks/makers_models.py FOLDER_OR_FILE… [--out FILE.json] [--table FILE.md]

A card is proposed for each model (``robo-rl new``), and what is assembled from both is held against MuJoCo's own
compile of the file, of a URDF without the shapes from which MuJoCo would make masses up: mass, inertia, order of
joints, stops, and the places of all bodies at random angles. None of the models is part of robo-rl.

"mended" are models that MuJoCo alone refuses; "absent" those whose folder lacks a mesh that MuJoCo reads, as copies of
repositories without their largest files do. ``--table`` writes what docs/makers-models.md has: a row for each robot.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from robo_rl.commands.project.from_model import write_card
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import label
from robo_rl.sim.robots.inertias import NOTHING, PLACEHOLDER

POSES = 3
SMALL = 1e-6
"""kg m², below which an inertia counts as this."""
SHAPES = ("visual", "collision")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    files = [file for path in given.models for file in (_models(path) if path.is_dir() else [path])]
    found = []
    for file in files:
        began = time.monotonic()
        outcome, told = judge(file)
        found.append(
            {"model": str(file), "outcome": outcome, "told": told, "seconds": round(time.monotonic() - began, 1)}
        )
        print(f"{outcome:<10} {file}: {told[:300]}", flush=True)
        if given.out:
            given.out.write_text(json.dumps(found, indent=1))
    counts = {name: sum(one["outcome"] == name for one in found) for name in sorted({one["outcome"] for one in found})}
    print(f"{len(found)} models: {counts}")
    if given.table:
        given.table.write_text(table(found))
    return int(bool(counts.get("different") or counts.get("error")))


def table(found: list[dict[str, Any]]) -> str:
    """A row for each model: its file, from the folder of its repository on, and how it fares, in markdown."""
    rows = ["| model | outcome | |", "| --- | --- | --- |"]
    for one in sorted(found, key=lambda one: one["model"].lower()):
        told = one["told"].split("; expected", 1)[0] if one["outcome"] == "refused" else one["told"]
        told = re.sub(r"^(\S*/)?\S+\.(urdf|xml): ", "", told).replace("|", "\\|")
        rows.append(f"| {one['model'].replace('+', '/', 1)} | {one['outcome']} | {told[:200]} |")
    return "\n".join(rows) + "\n"


def _models(folder: Path) -> list[Path]:
    """Files below a folder that are robots: URDFs, and MJCF with bodies of its own."""
    found = []
    for file in sorted([*folder.rglob("*.urdf"), *folder.rglob("*.xml")]):
        try:
            root = ElementTree.parse(file).getroot()
        except ElementTree.ParseError:
            continue
        if root.tag == "robot" or (root.tag == "mujoco" and any(True for _ in root.iter("joint"))):
            found.append(file)
    return found


def judge(file: Path) -> tuple[str, str]:
    """How a model fares: "equal", "mended", "refused", "different" or "error", and what there is to say."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _, files = write_card(Path(folder, "robot"), file)
            robot: Any = load_robot(Path(folder, "robot", "card.toml"))
            ours = assemble(robot.mechanism, Physics(contacts="model"))
        except ValueError as error:
            told = " ".join(str(error).replace(folder, "").split())
            missing = re.search(r"opening file '[^']*\.(stl|obj|msh)'", told, re.I)
            return ("absent" if missing else "refused"), told
        except Exception:
            return "error", traceback.format_exc()[-600:]
        del files
        try:
            theirs = own_compile(file, robot.model)
        except ValueError as error:
            return "mended", f"MuJoCo alone refuses it: {' '.join(str(error).split())}"
        wrong, notes = compare(ours, theirs, robot.mechanism)
    return ("different", "; ".join(wrong)) if wrong else ("equal", f"{robot.kind}; {'; '.join(notes)}")


def own_compile(file: Path, model: Path) -> mujoco.MjModel:
    """MuJoCo's, without robo-rl, of an MJCF where its maker has it, of a URDF from the copy."""
    root = ElementTree.parse(model).getroot()
    if root.tag != "robot":
        spec = mujoco.MjSpec.from_file(str(file))
        for texture in list(spec.textures):
            spec.delete(texture)
        for material in spec.materials:
            for role in range(len(material.textures)):
                material.textures[role] = ""
    else:
        for link in root.iter("link"):
            for kind in SHAPES:
                for shape in link.findall(kind):
                    link.remove(shape)
            for inertial in link.findall("inertial"):
                if _light(inertial):
                    link.remove(inertial)  # a placeholder
        extra = ElementTree.SubElement(root, "mujoco") if root.find("mujoco") is None else root.find("mujoco")
        assert extra is not None
        compiler = (
            ElementTree.SubElement(extra, "compiler") if extra.find("compiler") is None else extra.find("compiler")
        )
        assert compiler is not None
        compiler.set("balanceinertia", "true")
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, "unicode"))
    spec.compiler.fusestatic = False
    return spec.compile()


def _light(inertial: ElementTree.Element) -> bool:
    mass, inertia = (inertial.find(part) for part in ("mass", "inertia"))
    if mass is None or inertia is None:
        return True
    kilograms, most = float(mass.get("value", 0)), max(abs(float(value)) for value in inertia.attrib.values())
    return kilograms <= NOTHING or (kilograms <= PLACEHOLDER[0] and most >= kilograms * PLACEHOLDER[1] ** 2)


def compare(ours: mujoco.MjModel, theirs: mujoco.MjModel, mechanism: Any) -> tuple[list[str], list[str]]:
    """What is different, and what is worth a note."""
    wrong, notes = [], []
    names = {label(theirs.body(k).name): k for k in range(1, theirs.nbody)}
    trimmed = placeholders = 0
    for body in range(1, ours.nbody):
        name = ours.body(body).name
        if name not in names:
            wrong.append(f"body '{name}' is not MuJoCo's")
            continue
        other = names[name]
        if not ours.body_mass[body] and theirs.body_mass[other] <= PLACEHOLDER[0]:
            placeholders += bool(theirs.body_mass[other])
            continue
        if abs(ours.body_mass[body] - theirs.body_mass[other]) > max(1e-9, 1e-9 * theirs.body_mass[other]):
            wrong.append(f"mass of '{name}': {ours.body_mass[body]:.6g} for {theirs.body_mass[other]:.6g} kg")
        mine, its = _tensor(ours, body), _tensor(theirs, other)
        off = float(np.abs(mine - its).max() / max(np.abs(its).max(), SMALL))
        violates = 2 * ours.body_inertia[body].max() >= (1 - 1e-5) * ours.body_inertia[body].sum()
        if off > 1e-6 and not (violates):
            wrong.append(f"inertia of '{name}' by {off:.2g}")
        trimmed += off > 1e-6
    lost = sorted(set(names) - {ours.body(k).name for k in range(1, ours.nbody)})
    empty = [name for name in lost if not theirs.body_mass[names[name]]]
    wrong += [f"bodies {sorted(set(lost) - set(empty))} are lost"] if set(lost) - set(empty) else []
    notes += [f"{trimmed} inertias trimmed"] if trimmed else []
    notes += [f"{placeholders} placeholders left out"] if placeholders else []
    order = [label(theirs.joint(k).name) for k in range(theirs.njnt)]
    driven = [joint.name for joint in mechanism.driven]
    for group in mechanism.groups:  # hinges and slides are commanded apart
        if list(group.names) != [name for name in order if name in group.names]:
            wrong.append(f"the order of the joints of '{group.name}'")
    for joint in mechanism.driven:
        other = theirs.joint(order.index(joint.name)).id
        told = theirs.jnt_range[other] if theirs.jnt_limited[other] else None
        if told is not None and np.ptp(told) > 0 and np.abs(ours.joint(joint.name).range - told).max() > 1e-9:
            wrong.append(f"stops of '{joint.name}': {ours.joint(joint.name).range} for {told}")
        drive = ours.actuator(joint.name).id
        dof = ours.jnt_dofadr[ours.joint(joint.name).id]
        number = ours.joint(joint.name).id
        passive = ours.dof_damping[dof], ours.jnt_stiffness[number], ours.jnt_actfrclimited[number]
        if (
            any(np.any(x) for x in passive)
            or abs(ours.dof_armature[dof] + ours.actuator_armature[drive] - joint.armature) > 1e-9
        ):
            wrong.append(f"'{joint.name}' has more than the card's motor: {passive}")
    far = _frames(ours, theirs, mechanism, names, order)
    wrong += [f"places of bodies by {far:.2g} m"] if far > 1e-6 else []
    return wrong[:6], [f"{ours.body_mass.sum():.3f} kg", f"{len(driven)} driven", *notes]


def _frames(ours: Any, theirs: Any, mechanism: Any, names: dict[str, int], order: list[str]) -> float:
    """m, by which places of bodies in the base's frame differ at random angles, where the card says all joints."""
    random, worst = np.random.default_rng(0), 0.0
    held = dict(mechanism.held)
    known = {joint.name for joint in mechanism.joints} | set(held)
    for _ in range(POSES):
        a, b = mujoco.MjData(ours), mujoco.MjData(theirs)
        a.qpos[:], b.qpos[:] = ours.qpos0, theirs.qpos0
        for joint in mechanism.joints:
            angle = random.uniform(max(joint.lower, -3.0), min(joint.upper, 3.0))
            a.qpos[ours.jnt_qposadr[ours.joint(joint.name).id]] = angle
            b.qpos[theirs.jnt_qposadr[order.index(joint.name)]] = angle
        for name, value in held.items():
            b.qpos[theirs.jnt_qposadr[order.index(name)]] = value
        mujoco.mj_kinematics(ours, a)
        mujoco.mj_kinematics(theirs, b)
        base = ours.body(mechanism.base).id, names[mechanism.base]
        for body in range(1, ours.nbody):
            name = ours.body(body).name
            if name in names and _said(theirs, names[name], base[1], known):
                mine = a.xmat[base[0]].reshape(3, 3).T @ (a.xpos[body] - a.xpos[base[0]])
                its = b.xmat[base[1]].reshape(3, 3).T @ (b.xpos[names[name]] - b.xpos[base[1]])
                worst = max(worst, float(np.abs(mine - its).max()))
    return worst


def _said(model: mujoco.MjModel, body: int, base: int, known: set[str]) -> bool:
    """Whether all joints between a body and the base have angles of the card."""
    while body not in (0, base):
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        if any(label(model.joint(k).name) not in known for k in range(first, first + count)):
            return False
        body = int(model.body_parentid[body])
    return True


def _tensor(model: mujoco.MjModel, body: int) -> np.ndarray:
    """(3, 3) kg m² about the body's own centre of mass, in its frame; with the centre's place, times its mass."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[body])
    axes = turn.reshape(3, 3)
    return (axes * model.body_inertia[body]) @ axes.T


if __name__ == "__main__":
    sys.exit(main())
