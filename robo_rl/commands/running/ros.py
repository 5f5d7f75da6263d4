"""robo-rl ros."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from robo_rl.console import require_port, say
from robo_rl.zoo import located

if TYPE_CHECKING:
    from robo_rl.deploy.robot.bundle import Bundle

What = Literal[
    "policy", "twin", "panel", "teleop", "controllers", "follow_path", "configure", "activate", "engage", "stop",
    "reset", "arm", "disarm", "deactivate", "cleanup", "promote", "demote", "select", "status", "fault", "permissions",
    "install", "layout", "messages", "native", "wires",
]  # fmt: skip
NODES = ("policy", "twin", "panel", "teleop", "controllers", "follow_path")
INSTALL = "robo-rl ros needs ROS 2's Python packages: pip install 'robo-rl[ros]', or source a ROS 2 distribution"


def main(
    what: Annotated[What, tyro.conf.Positional],
    file: Annotated[str, tyro.conf.Positional] = "",
    mode: Literal["dry_run", "shadow", "blend", "live"] = "live",
    record: Path | None = None,
    task: str = "",
    robot: str = "",
    other: tuple[str, ...] = (),
    namespace: str = "",
    use_sim_time: bool = False,
    real_time: bool = False,
    source: Literal["keyboard", "joy", "Twist", "TwistStamped"] = "keyboard",
    address: str = "127.0.0.1",
    port: int = 8080,
    parameter: tuple[str, ...] = (),
    remap: tuple[str, ...] = (),
    out: Path = Path("robo-rl-install"),
) -> int:
    """Run a policy or a simulated robot as a ROS 2 node, or operate a running node.

    'policy FILE', 'twin', 'panel', 'teleop', 'controllers' and 'follow_path' run until Ctrl-C. Everything else is a
    request to running nodes: configure, activate (arms), engage (the policy takes control), stop, reset, and so on;
    'select NAME' switches to another policy; 'fault "freeze odom"' injects a fault into the simulated robot, 'fault
    none' ends it, and 'fault list' lists them.
    'controllers' lets controllers of ros2_control follow the policy while it is in control, and others hold the robot
    otherwise. 'follow_path' serves Nav2's action FollowPath by a policy that follows paths, such as diff-follow's.
    'permissions FILE' prints who may do what in a secured network, for 'ros2 security create_permission'. 'install
    FILE' writes a systemd unit for 'policy FILE' with the same options, a udev rule for the driver's adapter, and
    limits, and prints how to put them in place. 'layout FILE' prints a layout for Foxglove: signals, commands, gate and
    diagnostics, of the running robot and of a recorded session. 'messages' builds the packages robo_rl_msgs and
    tf2_msgs where no ROS distribution has them. 'native FILE' compiles the node in C++ and the bundle, and runs it in
    place of 'policy FILE'; 'wires FILE' prints the parameters that this node needs: the topic of every signal and
    command.

    Args:
        what: The node to run, or the request to a running one.
        file: For policy, native, wires, permissions, install and layout, a bundle (*.onnx, or zoo:NAME); for twin, one
            whose task is simulated; for fault, the fault; for select, the policy's name.
        mode: Initial mode of the policy node.
        record: Folder in which the session is recorded.
        task: For twin: the task; by default that of the file, or quadrotor-hover. 'inside': a file's own source.
        robot: For twin: another card than the task's. For policy: refuse bundles for other robots.
        other: For policy: more policies for the same robot to switch to, each NAME=FILE (see 'select').
        namespace: Namespace of topics and services.
        use_sim_time: Use the time of /clock, which the twin publishes. For twin: be as fast as the policy answers.
        real_time: For twin: step by this computer's clock, and publish no /clock. Otherwise its time is simulated: a
            step waits for the policy's command, and is at most as fast as real time.
        source: For teleop: keys of this terminal, sensor_msgs/Joy on joy, or cmd_vel for a robot that takes positions.
        address: For panel: the address to serve at; on any but this computer's own a token is required and printed.
        port: For panel: the port; 0 for any free one.
        parameter: More parameters of the node, each name:=value.
        remap: Other names of topics and services, each from:=to.
        out: For install: the folder in which the files are written.
    """
    if what == "install":
        return _install(file, mode, record, robot, other, namespace, parameter, out)
    if what == "layout":
        return _layout(file, namespace)
    if what == "wires":
        return _wires(file, parameter)
    if importlib.util.find_spec("rclpy") is None:
        raise ValueError(INSTALL)
    if what == "messages":
        return _messages()
    if what == "native":
        return _native(file, mode, robot, namespace, use_sim_time, parameter, remap)
    if what == "permissions":
        return _permissions(file, namespace)
    if what not in NODES:
        return _operate(what, file, namespace)
    if what == "policy" and not file:
        raise ValueError("a policy node needs a bundle: robo-rl ros policy FILE (*.onnx, or zoo:NAME)")
    parameters = [f"use_sim_time:={str(use_sim_time).lower()}"]
    if what == "teleop":
        parameters.append(f"source:={source}")
    if what == "panel":
        require_port(port)
        parameters = [f"address:={address}", f"port:={port}"]
    if robot:
        parameters.append(f"robot:={robot}")
    if what == "policy":
        _require_files(file, *(text.partition("=")[2] for text in other))
        parameters += [f"bundle:={located(file).absolute()}", f"mode:={mode}"]
        parameters += [f"record:={record.absolute()}"] if record else []
        others = [f"{name}={located(path).absolute()}" for name, _, path in (text.partition("=") for text in other)]
        parameters += [f"others:={json.dumps(others)}"] if others else []
        from robo_rl.ros.policy_node import main as run
    elif what == "teleop":
        from robo_rl.ros.teleop_node import main as run
    elif what == "panel":
        from robo_rl.ros.panel_node import main as run
    elif what == "controllers":
        from robo_rl.ros.controllers_node import main as run
    elif what == "follow_path":
        from robo_rl.ros.follow_path_node import main as run
    else:
        parameters += [f"bundle:={located(file).absolute()}"] if file else []
        parameters += [f"task:={task}"] if task else []
        if use_sim_time and real_time:
            raise ValueError("--use-sim-time and --real-time are given; expected one of them")
        parameters += [f"lockstep:={str(not real_time).lower()}"]
        parameters += [] if use_sim_time or real_time else ["real_time_factor:=1.0"]
        from robo_rl.ros.twin_node import main as run
    with _started():
        run(_arguments([*parameters, *parameter], remap, namespace))
    return 0


def _require_files(*bundles: str) -> None:
    """Refuse a name that is mistyped before the node is up; what is in the files the node reads at configure."""
    for path in map(located, bundles):
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file; expected a bundle, as 'robo-rl export' writes it")


def _arguments(parameters: Sequence[str], remap: Sequence[str], namespace: str) -> list[str]:
    arguments = ["--ros-args"]
    for one in parameters:
        arguments += ["-p", one]
    for one in remap:
        if ":=" not in one:
            raise ValueError(f"--remap {one!r}; expected from:=to")
        arguments += ["-r", one]
    if namespace:
        arguments += ["-r", f"__ns:=/{namespace.strip('/')}"]
    return arguments


WIRING = ("wires", "command_message", "cmd_vel", "setpoints")
"""Parameters of the Python node that decide on the wires of the native one."""


def _wiring(bundle: Bundle, library: Path | str, parameter: Sequence[str]) -> tuple[str, list[str]]:
    """The native node's file of parameters, and those of ``parameter`` that are not in it."""
    import yaml

    from robo_rl.deploy.robot.named_values import texts_by_name
    from robo_rl.ros.native_node import parameter_file

    named = {name: yaml.safe_load(text) for name, _, text in (one.partition(":=") for one in parameter)}
    given = texts_by_name(named.get("wires") or (), "parameter 'wires'")
    constant = texts_by_name(named.get("setpoints") or (), "parameter 'setpoints'")
    kinds = (named.get("command_message") or "", named.get("cmd_vel") or "TwistStamped")
    file = parameter_file(bundle.contract, library, given, *kinds, tuple(constant))
    decided = tuple(f"{name}:=" for name in WIRING if name != "setpoints")
    return file, [one for one in parameter if not one.startswith(decided)]


def _wires(file: str, parameter: Sequence[str]) -> int:
    from robo_rl.deploy.robot.bundle import Bundle

    if not file:
        raise ValueError("expected a bundle: robo-rl ros wires FILE")
    print(_wiring(Bundle.read(file), "", parameter)[0], end="")
    return 0


def _native(
    file: str, mode: str, robot: str, namespace: str, use_sim_time: bool, parameter: Sequence[str],
    remap: Sequence[str],
) -> int:  # fmt: skip
    """Build, and become the node."""
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.ros.native_node import build_node, compile_bundle

    if not file:
        raise ValueError("a policy node needs a bundle: robo-rl ros native FILE (*.onnx, or zoo:NAME)")
    bundle = Bundle.read(file)
    program, library = build_node(), compile_bundle(bundle)
    text, others = _wiring(bundle, library, parameter)
    wiring = library.parent / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
    wiring.write_text(text)
    say(f"{program} --ros-args --params-file {wiring}")
    own = [f"digest:={bundle.digest}", f"mode:={mode}", f"use_sim_time:={str(use_sim_time).lower()}"]
    own += [f"robot:={robot}"] if robot else []
    arguments = _arguments([*own, *others], remap, namespace)
    os.execv(program, [str(program), "--ros-args", "--params-file", str(wiring), *arguments])


@contextlib.contextmanager
def _started() -> Iterator[None]:
    """ROS's own errors as sentences: security that is asked for and not to be had is the usual one."""
    from rclpy._rclpy_pybind11 import RCLError

    try:
        yield
    except RCLError as error:
        secured = os.environ.get("ROS_SECURITY_ENABLE") == "true"
        hint = (
            "; ROS_SECURITY_ENABLE is true: expected ROS_SECURITY_KEYSTORE with this enclave, and a DDS with security"
        )
        raise ValueError(f"ROS 2 does not start: {str(error).strip()}{hint if secured else ''}") from None


def _install(
    file: str, mode: str, record: Path | None, robot: str, other: tuple[str, ...], namespace: str,
    parameter: tuple[str, ...], out: Path,
) -> int:  # fmt: skip
    from robo_rl.deploy.robot.bundle.signing import read_signed
    from robo_rl.deploy.robot.service import install

    if not file:
        raise ValueError("expected a bundle: robo-rl ros install FILE")
    given = [one.partition(":=") for one in parameter]
    named = {name: value for name, mark, value in given if mark}
    if len(named) < len(given):
        raise ValueError(f"parameters are {list(parameter)}; expected each as name:=value")
    for name in ("calibration", "robot_file", "trusted_keys"):
        if named.get(name):
            named[name] = str(Path(named[name]).expanduser().absolute())
            if not Path(named[name]).is_file():
                raise ValueError(f"parameter {name}: there is no file {named[name]}")
    task = read_signed(file, named.get("trusted_keys"))[0].contract.task
    arguments = ["ros", "policy", str(located(file).absolute()), "--mode", mode]
    arguments += ["--record", str(record.absolute())] if record else []
    arguments += ["--robot", robot] if robot else []
    arguments += ["--namespace", namespace] if namespace else []
    paths = [f"{name}={located(path).absolute()}" for name, _, path in (text.partition("=") for text in other)]
    arguments += ["--other", *paths] if paths else []
    arguments += ["--parameter", *(f"{name}:={value}" for name, value in named.items())] if named else []
    name = "-".join(filter(None, ("robo-rl", namespace.strip("/").lower(), task.lower())))
    written = [str(Path(place).expanduser().absolute()) for place in (record, named.get("learn")) if place]
    for line in install(out, name, named.get("driver", ""), arguments, written):
        say(line)
    return 0


def _layout(file: str, namespace: str) -> int:
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.ros.foxglove import layout

    if not file:
        raise ValueError("expected a bundle: robo-rl ros layout FILE")
    print(json.dumps(layout(Bundle.read(file).contract, namespace), indent=2))
    return 0


def _messages() -> int:
    from robo_rl.ros.interfaces import PACKAGES, build_all

    built = dict(build_all())
    for package in PACKAGES:
        say(f"{package}: built in {built[package]}" if package in built else f"{package}: there already")
    return 0


def _permissions(file: str, namespace: str) -> int:
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.ros.permissions import permissions

    if not file:
        raise ValueError("expected a bundle: robo-rl ros permissions FILE")
    print(permissions(Bundle.read(file).contract, namespace), end="")
    return 0


def _operate(action: str, text: str, namespace: str) -> int:
    from robo_rl.ros.faults import KINDS, NONE
    from robo_rl.ros.operate import Operator

    prefix = f"/{namespace.strip('/')}/" if namespace else "/"
    if action == "fault" and text == "list":
        for kind, meaning in {**KINDS, NONE: "ends the fault; the gate stays in FAULT until its reset"}.items():
            say(f"{kind:<11} {meaning}")
        return 0
    with _started(), Operator(f"{prefix}policy", f"{prefix}twin") as operator:
        if action == "fault":
            operator.fault(text)
            told = f"the twin's fault is now '{text}'; 'robo-rl ros fault none' ends it"
            say("the twin's fault is removed" if text in ("", NONE) else told)
        elif action == "select":
            say(operator.select(text))
        else:
            say(operator.do(action))
    return 0
