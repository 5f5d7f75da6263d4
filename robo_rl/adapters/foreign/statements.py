"""What trainers' own files say of a policy, as the fields of a description.

Each function gives the fields that a file has, in the order of the policy's joints. What a trainer leaves to its code,
and is the same in all its releases, is filled in with a comment that says so; all else stays blank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robo_rl.adapters.foreign.description import BLANK, AdoptionError
from robo_rl.adapters.foreign.terms import ALIASES, SCANS, TERMS, UNSEEN

FAR = 1e29
"""Clips beyond it are none."""


@dataclass
class Statement:
    """Fields of a description that a file tells, and comments on some of them."""

    trainer: str
    data: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def empty(network: str) -> Statement:
    """Every field blank."""
    data = {
        "network": network, "robot": BLANK, "rate": BLANK, "joints": BLANK, "default": BLANK,
        "action": {"scale": BLANK}, "gains": {"stiffness": BLANK, "damping": BLANK},
        "observations": [{"term": BLANK, "scale": BLANK}],
    }  # fmt: skip
    reasons = {
        "robot": "a robot of robo-rl ('robo-rl robots' lists them), or PATH/TO/card.toml",
        "rate": "Hz, how often the policy acts: 1 / (physics step × decimation) of its training",
        "joints": "names of the robot's joints in the order of the policy's actions; a wrong order makes it fall",
        "default": "rad, the pose at which actions are zero, in the order of 'joints'",
        "action.scale": "rad per unit of the network's output, one number or one per joint",
        "gains.stiffness": "N m/rad of the position control in training, one number or one per joint",
        "gains.damping": "N m s/rad, likewise",
        "observations[0].term": f"one [[observations]] per term, in the network's order: {', '.join(sorted(TERMS))}",
        "observations[0].scale": "what the value is multiplied by before the network sees it",
    }
    return Statement("unknown", data, reasons)


def term_of(name: str, scale: Any = 1.0, clip: Any = None, history: int = 1, **settings: Any) -> dict[str, Any]:
    """A term of an observation as in the TOML; an unknown name stays blank."""
    known = ALIASES.get(name, name)
    found: dict[str, Any] = {"term": known if known in TERMS else BLANK}
    if isinstance(scale, list | tuple) and len(set(scale)) == 1:
        scale = scale[0]
    if scale not in (1.0, None):
        found["scale"] = list(scale) if isinstance(scale, tuple) else scale
    if clip is not None and max(map(abs, clip)) < FAR:
        found["clip"] = [float(x) for x in clip]
    if history > 1:
        found["history"] = int(history)
    return found | settings


WHY = {
    "period": "s, of one turn of the phase",
    "order": 'of the quaternion\'s numbers: "wxyz" or "xyzw"',
    "value": "the numbers",
}
"""Of settings without which a term has no meaning."""


def complete(data: dict[str, Any], reasons: dict[str, str]) -> None:
    """Blanks for the settings that terms need and nobody said."""
    for i, term in enumerate(data["observations"]):
        for key in TERMS[term["term"]].required if term.get("term") in TERMS else ():
            if key not in term or term[key] == BLANK:
                term[key] = BLANK
                reasons[f"observations[{i}].{key}"] = WHY[key]


def unknown_terms(statement: Statement, names: Sequence[str]) -> None:
    """Say which terms of the file the vocabulary doesn't have."""
    for i, name in enumerate(names):
        if statement.data["observations"][i]["term"] == BLANK:
            statement.reasons[f"observations[{i}].term"] = (
                f"the file calls it '{name}': {UNSEEN}"
                if name in SCANS
                else f"the file calls it '{name}', which is not in the vocabulary: {', '.join(sorted(TERMS))}; or "
                "own.NAME, a method of your own in the task file (docs/bring-your-policy.md)"
            )


# --- ONNX metadata: mjlab, holosoma, whole_body_tracking ---------------------------------------------------------


def onnx_metadata(metadata: Mapping[str, str], inputs: Sequence[str]) -> Statement | None:
    """What mjlab, holosoma and whole_body_tracking (BeyondMimic) write into an ONNX file; None where nothing is."""
    if not {"joint_names", "default_joint_pos"} <= set(metadata):
        return None
    tracked = "time_step" in inputs
    found = Statement("BeyondMimic" if tracked else "mjlab")
    data, reasons = found.data, found.reasons
    data["joints"] = _texts(metadata["joint_names"])
    data["default"] = _numbers(metadata["default_joint_pos"], "default_joint_pos")
    reasons["default"] = "the file has three decimals"
    if "action_scale" in metadata:
        data["action"] = {"scale": _one_or_many(_numbers(metadata["action_scale"], "action_scale"))}
    data["gains"] = {}
    for ours, theirs in (("stiffness", "joint_stiffness"), ("damping", "joint_damping")):
        data["gains"][ours] = _one_or_many(_numbers(metadata[theirs], theirs)) if theirs in metadata else BLANK
    if "observation_names" in metadata:
        names = _texts(metadata["observation_names"])
        scales = _entries(metadata.get("observation_terms_scale"), len(names), [1.0])
        clips = _entries(metadata.get("observation_terms_clip"), len(names), None)
        lengths = metadata.get("observation_terms_history_length", metadata.get("observation_history_lengths"))
        histories = _entries(lengths, len(names), [1.0])
        data["observations"] = []
        for name, scale, clip, history in zip(names, scales, clips, histories, strict=True):
            known = {"joint_pos": "joint_pos_rel", "command": "motion_command" if tracked else "velocity_commands"}
            factor = scale[0] if len(scale) == 1 else scale
            data["observations"].append(term_of(known.get(name, name), factor, clip, int(history[0])))
        if "observation_terms_scale" not in metadata:
            reasons["observations[0].term"] = "the file has no scales; the trainer's own tasks have 1.0 for all terms"
        unknown_terms(found, names)
    reasons["rate"] = "Hz; not in the file: 1 / (sim.dt × decimation), 50 in the trainer's own tasks"
    data["action"] = {**data.get("action", {"scale": BLANK}), "remember": "raw"}
    return found


def _texts(text: str) -> list[str]:
    return [part.strip().strip("'\"") for part in text.strip().strip("[]").split(",") if part.strip()]


def _numbers(text: str, name: str) -> list[float]:
    try:
        return [float(part) for part in _texts(text)]
    except ValueError:
        raise AdoptionError(f"metadata '{name}' is {text[:100]!r}; expected numbers with commas between them") from None


def _entries(text: str | None, n: int, otherwise: Any) -> list[Any]:
    """n entries, each of numbers with semicolons between them."""
    if text is None:
        return [otherwise] * n
    found = [[float(part) for part in entry.split(";")] for entry in _texts(text)]
    if len(found) != n:
        raise AdoptionError(f"metadata has {len(found)} entries for {n} observations: {text[:100]!r}")
    return [entry if entry != [0.0] or otherwise is None else [1.0] for entry in found] if otherwise == [1.0] else found


def _one_or_many(numbers: list[float]) -> Any:
    return numbers[0] if len(set(numbers)) == 1 else numbers


# --- unitree_rl_lab: deploy.yaml -----------------------------------------------------------------------------------


def deploy_yaml(table: Mapping[str, Any], robot_joints: Sequence[str] | None) -> Statement | None:
    """unitree_rl_lab's deploy.yaml. ``robot_joints``: the robot's, in the order of its motors, if it is known."""
    if not {"joint_ids_map", "step_dt", "default_joint_pos", "observations", "actions"} <= set(table):
        return None
    found = Statement("unitree_rl_lab")
    data, reasons, motors = found.data, found.reasons, [int(i) for i in table["joint_ids_map"]]
    data["rate"] = round(1.0 / table["step_dt"], 6)
    if robot_joints is None:
        reasons["joints"] = f"joint i of the policy is motor joint_ids_map[i] of the robot: {motors}"
    elif max(motors) >= len(robot_joints):
        raise AdoptionError(f"joint_ids_map has {max(motors)}; the robot's motors are 0 to {len(robot_joints) - 1}")
    else:
        data["joints"] = [robot_joints[i] for i in motors]
        reasons["joints"] = "by joint_ids_map, from the order of the robot's motors"
    data["default"] = list(table["default_joint_pos"])
    data["gains"] = {name: _one_or_many([table[name][i] for i in motors]) for name in ("stiffness", "damping")}
    kinds = list(table["actions"])
    if kinds != ["JointPositionAction"]:
        raise AdoptionError(f"actions has {kinds}; expected JointPositionAction alone")
    action = table["actions"]["JointPositionAction"]
    data["action"] = {"scale": _one_or_many(list(action["scale"])), "remember": "raw"}
    if list(action["offset"]) != data["default"]:
        data["action"]["offset"] = list(action["offset"])
    if action.get("clip") is not None:
        data["action"]["target_clip"] = action["clip"]
    names, groups = list(table["observations"]), table["observations"]
    data["observations"] = []
    for name in names:
        term = groups[name]
        settings = {"period": term["params"]["period"]} if "period" in (term.get("params") or {}) else {}
        scale, clip, history = term.get("scale") or 1.0, term.get("clip"), term.get("history_length") or 1
        data["observations"].append(term_of(name, scale, clip, history, **settings))
    unknown_terms(found, names)
    data["history"] = {"by": "term", "order": "oldest first", "start": "first"}
    ranges = ((table.get("commands") or {}).get("base_velocity") or {}).get("ranges") or {}
    for axis, theirs in (("x", "lin_vel_x"), ("y", "lin_vel_y"), ("yaw", "ang_vel_z")):
        if ranges.get(theirs):
            data.setdefault("commands", {})[axis] = [float(end) for end in ranges[theirs]]
    return found


# --- Isaac Lab: env.yaml and agent.yaml ----------------------------------------------------------------------------


def env_yaml(table: Mapping[str, Any], joints: Sequence[str] | None) -> Statement | None:
    """Isaac Lab's params/env.yaml. ``joints``: the policy's, if they are known, for what is told by patterns."""
    if not {"decimation", "sim", "observations", "actions", "scene"} <= set(table):
        return None
    found = Statement("Isaac Lab")
    data, reasons = found.data, found.reasons
    data["rate"] = round(1.0 / (table["sim"]["dt"] * table["decimation"]), 6)
    reasons["joints"] = (
        "names in the order of the policy's actions; not in env.yaml: Isaac Lab's own order goes level by level "
        "through the robot's tree (all hips, then all thighs, then all calves, left before right as in its USD)"
    )
    robot = table["scene"]["robot"]
    poses = robot["init_state"]["joint_pos"]
    groups = [group for group in (robot.get("actuators") or {}).values() if group]
    if joints is None:
        reasons["default"] = f"is filled in once 'joints' is, from {poses}"
        reasons["gains.stiffness"] = reasons["gains.damping"] = "is filled in once 'joints' is"
    else:
        data["default"] = [_matched(poses, joint, 0.0) for joint in joints]
        data["gains"] = {name: _one_or_many([_gain(groups, joint, name) for joint in joints])
                         for name in ("stiffness", "damping")}  # fmt: skip
    kinds = {name: action for name, action in table["actions"].items() if isinstance(action, Mapping)}
    if len(kinds) != 1:
        raise AdoptionError(f"actions has {list(kinds)}; expected one action of joint positions")
    (action,) = kinds.values()
    scale = action.get("scale", 1.0)
    if isinstance(scale, Mapping):
        scale = BLANK if joints is None else _one_or_many([_matched(scale, joint, 1.0) for joint in joints])
    data["action"] = {"scale": scale, "remember": "raw"}
    if not action.get("use_default_offset", True) and joints is not None:
        data["action"]["offset"] = [0.0] * len(joints)
    group = table["observations"].get("policy") or table["observations"].get("actor") or {}
    terms = {name: term for name, term in group.items() if isinstance(term, Mapping) and "func" in term}
    data["observations"], names = [], []
    for name, term in terms.items():
        function = str(term["func"]).rsplit(":", 1)[-1].rsplit(".", 1)[-1]
        history = group.get("history_length") or term.get("history_length") or 1
        scale = 1.0 if term.get("scale") is None else term["scale"]
        known = "velocity_commands" if function == "generated_commands" else function
        data["observations"].append(term_of(known, scale, term.get("clip"), history))
        names.append(f"{name} ({function})")
    unknown_terms(found, names)
    data["history"] = {"by": "term", "order": "oldest first", "start": "first"}
    for command in (table.get("commands") or {}).values():
        ranges = (command or {}).get("ranges") or {}
        for axis, theirs in (("x", "lin_vel_x"), ("y", "lin_vel_y"), ("yaw", "ang_vel_z")):
            if ranges.get(theirs):
                data.setdefault("commands", {})[axis] = [float(end) for end in ranges[theirs]]
    return found


def _matched(patterns: Mapping[str, Any], joint: str, otherwise: float) -> float:
    for pattern, value in patterns.items():
        if _simple(pattern) and re.fullmatch(pattern, joint):
            return float(value)
    return otherwise


def _simple(pattern: str) -> bool:
    """Whether a stranger's regular expression is one that takes no time: no repeats of groups."""
    return len(pattern) <= 200 and not re.search(r"\)[*+{]", pattern)


def _gain(groups: Sequence[Mapping[str, Any]], joint: str, name: str) -> Any:
    for group in groups:
        if any(_simple(p) and re.fullmatch(p, joint) for p in group.get("joint_names_expr") or []):
            value = group.get(name)
            if isinstance(value, Mapping):
                return _matched(value, joint, 0.0)
            return BLANK if value is None else float(value)
    return BLANK


def agent_yaml(table: Mapping[str, Any]) -> Statement | None:
    """Isaac Lab's params/agent.yaml, of rsl_rl: the network's activation and the clip of actions."""
    network = table.get("policy") or table.get("actor")
    if not isinstance(network, Mapping) or "activation" not in network:
        return None
    found = Statement("Isaac Lab", {"layers": {"activation": network["activation"]}})
    if table.get("clip_actions"):
        clip = float(table["clip_actions"])
        found.data["action"] = {"clip": [-clip, clip], "remember": "clipped"}
    return found


# --- unitree_rl_gym and rl_sar ---------------------------------------------------------------------------------------

PERIOD = 0.8
"""s, of the phase: unitree_rl_gym, deploy/deploy_mujoco/deploy_mujoco.py and deploy_real.py."""


def unitree_gym_yaml(table: Mapping[str, Any]) -> Statement | None:
    """unitree_rl_gym's deploy configs, simulated or real."""
    if not {"kps", "kds", "default_angles", "action_scale", "num_obs", "num_actions"} <= set(table):
        return None
    found = Statement("unitree_rl_gym")
    data, n = found.data, int(table["num_actions"])
    period = table["control_dt"] if "control_dt" in table else table["simulation_dt"] * table["control_decimation"]
    data["rate"] = round(1.0 / period, 6)
    data["default"] = list(table["default_angles"])[:n]
    data["gains"] = {"stiffness": _one_or_many(list(table["kps"])[:n]), "damping": _one_or_many(list(table["kds"])[:n])}
    data["action"] = {"scale": table["action_scale"]}
    found.reasons["joints"] = (
        "names in the order of the policy's actions; not in the file: the order of the robot's model in training, "
        "which for Unitree's URDFs is that of default_angles in legged_gym (FL, FR, RL, RR; hip, thigh, calf)"
    )
    data["observations"] = [
        term_of("base_ang_vel", table["ang_vel_scale"]),
        term_of("projected_gravity"),
        term_of("velocity_commands", list(table["cmd_scale"])),
        term_of("joint_pos_rel", table["dof_pos_scale"]),
        term_of("joint_vel_rel", table["dof_vel_scale"]),
        term_of("last_action"),
    ]
    size = 9 + 3 * n
    if table["num_obs"] == size + 2:
        first = round(period / PERIOD, 9)
        data["observations"].append({"term": "gait_phase", "period": PERIOD, "order": "sin cos", "first": first})
    elif table["num_obs"] != size:
        found.reasons["observations[0].term"] = (
            f"num_obs is {table['num_obs']}; the usual terms are {size}, or {size + 2} with a phase: add what lacks"
        )
    if "max_cmd" in table:
        data["commands"] = {
            axis: [-float(x), float(x)] for axis, x in zip(("x", "y", "yaw"), table["max_cmd"], strict=True)
        }
    return found


def rl_sar_yaml(tables: Sequence[Mapping[str, Any]]) -> Statement | None:
    """rl_sar's base.yaml and config.yaml, in this order: each one table below the robot's or policy's name."""
    merged: dict[str, Any] = {}
    for table in tables:
        if len(table) == 1 and isinstance(inner := next(iter(table.values())), Mapping):
            merged |= inner
    if not {"observations", "rl_kp", "default_dof_pos", "action_scale", "num_of_dofs"} <= set(merged):
        return None
    found = Statement("rl_sar")
    data = found.data
    if {"dt", "decimation"} <= set(merged):
        data["rate"] = round(1.0 / (merged["dt"] * merged["decimation"]), 6)
    if {"joint_names", "joint_mapping"} <= set(merged):
        data["joints"] = [merged["joint_names"][i] for i in merged["joint_mapping"]]
    else:
        found.reasons["joints"] = "is in the robot's base.yaml (joint_names, joint_mapping): give that file, too"
    data["default"] = list(merged["default_dof_pos"])
    data["gains"] = {"stiffness": _one_or_many(list(merged["rl_kp"])), "damping": _one_or_many(list(merged["rl_kd"]))}
    scale = merged["action_scale"]
    data["action"] = {"scale": _one_or_many(list(scale)) if isinstance(scale, list) else scale}
    lower, upper = merged.get("clip_actions_lower"), merged.get("clip_actions_upper")
    if lower and upper:
        data["action"]["clip"] = [float(max(lower)), float(min(upper))]
    scales = {"lin_vel": "lin_vel_scale", "ang_vel": "ang_vel_scale", "dof_pos": "dof_pos_scale",
              "dof_vel": "dof_vel_scale", "commands": "commands_scale"}  # fmt: skip
    history, most = list(merged.get("observations_history") or [0]), merged.get("clip_obs")
    newest_first = history == list(range(len(history)))
    if not newest_first and history[::-1] != list(range(len(history))):
        raise AdoptionError(f"observations_history is {history}; expected 0 to n − 1, or the reverse")
    names = list(merged["observations"])
    data["observations"] = []
    for name in names:
        term = term_of(name.rsplit("/", 1)[-1], merged.get(scales.get(name, ""), 1.0), history=len(history))
        if most is not None:
            term |= {"clip": [-float(most), float(most)], "clip_first": False}
        data["observations"].append(term)
    unknown_terms(found, names)
    data["history"] = {
        "by": "frame" if merged.get("observations_history_priority", "time") == "time" else "term",
        "order": "newest first" if newest_first else "oldest first", "start": "zeros",
    }  # fmt: skip
    return found
