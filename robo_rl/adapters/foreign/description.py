"""What must be known of another trainer's policy to run it on a robot, as one TOML file.

    network = "policy.onnx"
    robot = "go2"
    rate = 50.0                                     # Hz
    joints = ["FL_hip_joint", ...]                  # the policy's order
    default = [0.1, ...]                            # rad, in that order
    action = { scale = 0.25, clip = [-100.0, 100.0] }
    gains = { stiffness = 25.0, damping = 0.5 }     # N m/rad, N m s/rad
    history = { by = "term", order = "oldest first", start = "first" }

    [[observations]]
    term = "base_ang_vel"
    scale = 0.25

What a trainer's file does not say is a blank, the text "?", with the reason in the comment behind it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from robo_rl.adapters.foreign.terms import SCANS, TERMS, UNSEEN, Term
from robo_rl.files import read_bytes
from robo_rl.files.text import fits, loads_toml

BLANK = "?"
MOST_BYTES = 1 << 20
MOST_MEMORY = 1 << 14
Numbers = float | tuple[float, ...]


class AdoptionError(ValueError):
    """A policy can't be taken over as it is described. The message names file, field, value and expectation."""


@dataclass(frozen=True)
class Action:
    """From the network's output a to joint targets: target = offset + scale · clip(a), within ``target_clip``.

    ``scale`` in rad, one or one per joint. ``offset``: "default" for the default pose, or rad per joint. ``clip``: of
    the output, before it is scaled and remembered; ``target_clip`` (rad): of the targets, pairs per joint.
    """

    scale: Numbers
    offset: str | tuple[float, ...] = "default"
    clip: tuple[float, float] | None = None
    target_clip: tuple[tuple[float, float], ...] | None = None
    remember: str = "clipped"
    """What the term last_action has: "clipped" or "raw" outputs."""


@dataclass(frozen=True)
class Gains:
    """Of the position control at the joints: N m/rad and N m s/rad, one or one per joint."""

    stiffness: Numbers
    damping: Numbers


@dataclass(frozen=True)
class History:
    """``by`` "term": each term's past stands together; "frame": whole observations of each step do.

    ``start``: what the past is at the first step, "first" for the first observation again, or "zeros".
    """

    by: str = "term"
    order: str = "oldest first"
    start: str = "first"


@dataclass(frozen=True)
class Description:
    """A policy of another trainer."""

    network: str
    robot: str
    rate: float
    joints: tuple[str, ...]
    default: tuple[float, ...]
    action: Action
    gains: Gains
    observations: tuple[Term, ...]
    history: History = field(default_factory=History)
    commands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranges of commanded velocities x, y (m/s) and yaw (rad/s) that it was trained with."""
    flipped: tuple[str, ...] = ()
    """Joints that count the other way round in the policy than on the robot; ``default`` is as the policy counts."""
    motion: str = ""
    """The file of the clip that it follows, beside the description."""
    memory: int = 0
    """Numbers that a recurrent network keeps from step to step; 0 of one without a memory."""
    layers: Mapping[str, Any] = field(default_factory=dict)
    """Of a file with parameters alone: see ``parameters.network``."""

    def per_joint(self, numbers: Numbers) -> tuple[float, ...]:
        """One number for each joint."""
        return numbers if isinstance(numbers, tuple) else (numbers,) * len(self.joints)


# --- reading --------------------------------------------------------------------------------------------------

KEYS = {f.name for f in fields(Description)}
MOST_SIZE = 1 << 16
"""Elements of a term."""
OWN = re.compile(r"own\.[a-z]\w{0,40}", re.ASCII)
"""A term that a method of the user's own task class gives."""
LAYERS = ("prefix", "activation", "normalizer", "output", "recurrence", "statistics")
CHOICES = {
    ("history", "by"): ("term", "frame"),
    ("history", "order"): ("oldest first", "newest first"),
    ("history", "start"): ("first", "zeros"),
    ("action", "remember"): ("clipped", "raw"),
}


def read(path: Path) -> Description:
    """The description in a TOML file; AdoptionError says what is missing, blank or wrong."""
    return understood(parse(path), str(path))


def parse(path: Path) -> dict[str, Any]:
    """The TOML as it stands."""
    try:
        return loads_toml(read_bytes(path, MOST_BYTES))
    except (OSError, ValueError) as error:
        raise AdoptionError(f"{path}: it can't be read ({error}); expected a description of a policy") from None


def require_of(told: Mapping[str, Any], field: str, file: Path, toml: Path) -> None:
    """Refuse what ``toml`` has ``told`` of another file than ``file``: that one has its own order of joints and scales.

    ``field``: the one that names the file, as seen from the folder of ``toml``.
    """
    named = told.get(field, BLANK)
    if isinstance(named, str) and named != BLANK and (toml.parent / named).resolve() != file.resolve():
        raise AdoptionError(
            f"{toml}: {field} is '{named}'; expected {os.path.relpath(file, toml.parent)}. It describes another file: "
            "give --out FOLDER for this one, or change that line where it is the same file in another place"
        )


def blanks(data: Mapping[str, Any]) -> list[str]:
    """The fields that are still to be filled in."""
    found = []
    for key, value in data.items():
        if value == BLANK or (isinstance(value, list) and BLANK in value):
            found.append(key)
        elif isinstance(value, Mapping):
            found += [f"{key}.{name}" for name in blanks(value)]
        elif isinstance(value, list):
            found += [f"{key}[{i}].{name}" for i, item in enumerate(value) if isinstance(item, Mapping)
                      for name in blanks(item)]  # fmt: skip
    return found


def understood(data: dict[str, Any], where: str) -> Description:
    """The description that parsed TOML is."""
    with fits(where, "the form of a description", AdoptionError):
        return _understood(data, where)


def _understood(data: dict[str, Any], where: str) -> Description:
    if left := blanks(data):
        raise AdoptionError(f"{where}: {', '.join(left)} {'is' if len(left) == 1 else 'are'} blank; expected a value "
                            "in place of each \"?\" (the comments say which)")  # fmt: skip
    for key in data:
        _require(key in KEYS, where, key, data[key], f"one of the fields {sorted(KEYS)}")
    for key in ("network", "robot", "rate", "joints", "default", "action", "gains", "observations"):
        _require(key in data, where, key, None, "a value; the field is missing")
    _require(_is_number(data["rate"]) and 1 <= data["rate"] <= 10_000, where, "rate", data["rate"], "1 to 10000 Hz")
    for key in ("network", "robot"):
        _require(isinstance(data[key], str) and data[key] != "", where, key, data[key], "a text")
    joints = data["joints"]
    good = isinstance(joints, list) and 0 < len(joints) == len(set(map(str, joints)))
    _require(good and all(isinstance(x, str) for x in joints), where, "joints", joints, "a list of different names")
    n = len(joints)
    action, gains, history = (_table(data.get(key, {}), key, where) for key in ("action", "gains", "history"))
    return Description(
        network=data["network"],
        robot=data["robot"],
        rate=float(data["rate"]),
        joints=tuple(joints),
        default=_list(data["default"], n, "default", where),
        action=_action(action, n, where),
        gains=Gains(*(_numbers(gains.get(key), n, f"gains.{key}", where, 0.0) for key in ("stiffness", "damping"))),
        observations=tuple(_term(item, i, where) for i, item in enumerate(_items(data["observations"], where))),
        history=History(**_chosen("history", history, where)),
        commands={key: _pair(value, f"commands.{key}", where) for key, value in
                  _table(data.get("commands", {}), "commands", where, ("x", "y", "yaw")).items()},
        flipped=tuple(_known(data.get("flipped", []), joints, where)),
        motion=_text(data.get("motion", ""), "motion", where),
        memory=_width(data.get("memory", 0), where),
        layers=_table(data.get("layers", {}), "layers", where, LAYERS),
    )  # fmt: skip


def _require(good: bool, where: str, key: str, value: Any, expected: str) -> None:
    if not good:
        raise AdoptionError(f"{where}: {key} is {str(value)[:200]}; expected {expected}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_TABLES = {
    "action": ("scale", "offset", "clip", "target_clip", "remember"),
    "gains": ("stiffness", "damping"),
    "history": ("by", "order", "start"),
}


def _table(value: Any, key: str, where: str, known: Sequence[str] = ()) -> dict[str, Any]:
    _require(isinstance(value, dict), where, key, value, "a table")
    known = known or _TABLES[key]
    for name in value:
        _require(name in known, where, f"{key}.{name}", value[name], f"one of the fields {list(known)}")
    return value


def _items(value: Any, where: str) -> list[Any]:
    _require(isinstance(value, list) and len(value) > 0, where, "observations", value, "at least one [[observations]]")
    return value


def _text(value: Any, key: str, where: str) -> str:
    _require(isinstance(value, str) and "/" not in value, where, key, value, "the name of a file beside this one")
    return value


def _width(value: Any, where: str) -> int:
    good = type(value) is int and 0 <= value <= MOST_MEMORY
    _require(good, where, "memory", value, f"0 to {MOST_MEMORY}, the numbers that the network keeps")
    return value


def _known(value: Any, joints: list[str], where: str) -> list[str]:
    _require(isinstance(value, list) and set(value) <= set(joints), where, "flipped", value, "names out of 'joints'")
    return value


def _list(value: Any, n: int, key: str, where: str) -> tuple[float, ...]:
    good = isinstance(value, list) and len(value) == n and all(map(_is_number, value))
    _require(good, where, key, value, f"{n} numbers, one per joint")
    return tuple(float(x) for x in value)


def _numbers(value: Any, n: int, key: str, where: str, least: float = -math.inf) -> Numbers:
    if _is_number(value):
        _require(value >= least, where, key, value, f"a number of {least:g} or more")
        return float(value)
    found = _list(value, n, key, where)
    _require(min(found) >= least, where, key, value, f"numbers of {least:g} or more")
    return found


def _pair(value: Any, key: str, where: str) -> tuple[float, float]:
    good = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]
    _require(good, where, key, value, "two numbers, the lower first")
    return float(value[0]), float(value[1])


def _chosen(table: str, value: dict[str, Any], where: str) -> dict[str, Any]:
    for (owner, key), choices in CHOICES.items():
        if owner == table and key in value:
            _require(value[key] in choices, where, f"{table}.{key}", value[key], f"one of {list(choices)}")
    return value


def _action(table: dict[str, Any], n: int, where: str) -> Action:
    offset, clip, target = table.get("offset", "default"), table.get("clip"), table.get("target_clip")
    return Action(
        scale=_numbers(table.get("scale"), n, "action.scale", where),
        offset=offset if offset == "default" else _list(offset, n, "action.offset", where),
        clip=None if clip is None else _pair(clip, "action.clip", where),
        target_clip=None
        if target is None
        else tuple(_pair(pair, f"action.target_clip[{i}]", where) for i, pair in enumerate(target)),
        remember=_chosen("action", table, where).get("remember", "clipped"),
    )


def _term(item: Any, i: int, where: str) -> Term:
    label = f"observations[{i}]"
    _require(isinstance(item, dict), where, label, item, "a table with the field 'term'")
    name = item.get("term")
    if name in SCANS:
        raise AdoptionError(f"{where}: {label}.term is '{name}', {UNSEEN}")
    own = isinstance(name, str) and OWN.fullmatch(name) is not None
    _require(own or name in TERMS, where, f"{label}.term", name, f"one of {sorted(TERMS)}, or own.NAME")
    settings = (
        {"size": (lambda x: type(x) is int and 0 < x <= MOST_SIZE, f"a whole number, 1 to {MOST_SIZE}")}
        if own
        else TERMS[name].settings
    )
    known = ("term", "scale", "clip", "history", "clip_first", *settings)
    for key in item:
        _require(key in known, where, f"{label}.{key}", item[key], f"one of the fields {list(known)}")
    scale = item.get("scale", 1.0)
    if isinstance(scale, list):
        _require(all(map(_is_number, scale)) and scale != [], where, f"{label}.scale", scale, "numbers")
        scale = tuple(float(x) for x in scale)
    else:
        _require(_is_number(scale), where, f"{label}.scale", scale, "a number, or one per element")
        scale = float(scale)
    history = item.get("history", 1)
    _require(
        type(history) is int and 1 <= history <= 1000, where, f"{label}.history", history, "a whole number, 1 to 1000"
    )
    first = item.get("clip_first", True)
    _require(isinstance(first, bool), where, f"{label}.clip_first", first, "true (clip, then scale) or false")
    clip = item.get("clip")
    given = {}
    for key, (check, expected) in settings.items():
        if key in item:
            _require(check(item[key]), where, f"{label}.{key}", item[key], expected)
            given[key] = tuple(item[key]) if isinstance(item[key], list) else item[key]
    lacking = [key for key in (("size",) if own else TERMS[name].required) if key not in given]
    _require(not lacking, where, f"{label}.{', '.join(lacking)}", None, f"a value: the term '{name}' needs it")
    clipped = None if clip is None else _pair(clip, f"{label}.clip", where)
    return Term(name, scale, clipped, first, history, given)


# --- writing --------------------------------------------------------------------------------------------------


def write(data: Mapping[str, Any], reasons: Mapping[str, str], title: str) -> str:
    """The TOML of a parsed description, with a comment for every field that ``reasons`` has."""
    lines = [f"# {line}" for line in title.splitlines()] + [""]
    tables = []
    for key, value in data.items():
        if key == "observations":
            continue
        if isinstance(value, Mapping):
            if value:
                tables += ["", f"[{key}]"]
                tables += [_line(name, item, reasons.get(f"{key}.{name}")) for name, item in value.items()]
        else:
            lines.append(_line(key, value, reasons.get(key)))
    lines += tables
    for i, item in enumerate(data.get("observations", [])):
        lines += ["", "[[observations]]"]
        for name, value in item.items():
            lines.append(_line(name, value, reasons.get(f"observations[{i}].{name}")))
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any, reason: str | None) -> str:
    return f"{key} = {_value(value)}" + (f"  # {reason}" if reason else "")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
