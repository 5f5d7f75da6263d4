"""What colcon, pluginlib and ros2_control read of robo_rl_controller fits together. No ROS is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.named_values import texts_by_name
from robo_rl.ros.wiring import Wire

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ros2_ws/src/robo_rl_controller"
WITHOUT_PACKAGE = {"robo_rl_controller", "Threads"}


def text(name: str) -> str:
    return (PACKAGE / name).read_text()


def test_what_is_included_and_found_is_a_dependency_in_the_manifest():
    manifest = ET.parse(PACKAGE / "package.xml").getroot()
    declared = {one.text for kind in ("depend", "buildtool_depend") for one in manifest.findall(kind)}
    sources = [file.read_text() for file in PACKAGE.rglob("*.[ch]pp")]
    included = {found for source in sources for found in re.findall(r"#include [<\"](\w+)/", source)}
    generators = {"rosidl_runtime_c", "rosidl_typesupport_cpp"}  # come with every package of messages
    assert included - {"sys"} - generators - WITHOUT_PACKAGE <= declared
    makefile = text("CMakeLists.txt")
    (messages,) = re.findall(r"set\(MESSAGES ([^)]*)\)", makefile)
    found = set(re.findall(r"find_package\((\w+)", makefile)) | set(messages.split())
    assert found - WITHOUT_PACKAGE <= declared
    assert declared <= found


def test_every_source_is_compiled():
    named = set(re.findall(r"[\w/]+\.cpp", text("CMakeLists.txt")))
    assert named == {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.cpp")}


def test_the_plugins_description_names_the_class_and_its_library():
    library = ET.fromstring(text("robo_rl_controller_plugins.xml"))
    (plugin,) = library.findall("class")
    exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
    assert exported in text("plugin/policy_controller.cpp")
    assert f"add_library({library.get('path')} SHARED plugin/policy_controller.cpp" in text("CMakeLists.txt")
    assert plugin.get("name") in text("example/go2_controllers.yaml")


def test_the_example_has_every_interface_that_the_contract_needs():
    contract = Bundle.read("zoo:go2-flat").contract
    given = yaml.safe_load(text("example/go2_controllers.yaml"))
    parameters = given["policy"]["ros__parameters"]
    assert parameters["update_rate"] == 1 / contract.control_period
    assert given["controller_manager"]["ros__parameters"]["update_rate"] % parameters["update_rate"] == 0
    wires = {name: Wire.parse(name, wire) for name, wire in texts_by_name(parameters["wires"], "wires").items()}
    assert set(wires) == {signal.name for signal in contract.signals}
    hardware = ET.fromstring(text("example/go2.ros2_control.xml"))
    has: dict[str, set[str]] = {"state_interface": set(), "command_interface": set()}
    for part in hardware.findall("joint") + hardware.findall("sensor"):
        for kind, names in has.items():
            names.update(f"{part.get('name')}/{one.get('name')}" for one in part.findall(kind))
    for wire in wires.values():
        elements = contract.signal(wire.name).elements
        if wire.kind.endswith("JointState"):
            assert {f"{element}/{wire.field}" for element in elements} <= has["state_interface"]
        elif wire.kind.endswith("Imu"):
            assert {f"{wire.topic}/{wire.field}.{element}" for element in elements} <= has["state_interface"]
    (command,) = contract.commands
    for interface in ("position", "stiffness", "damping"):
        assert {f"{joint}/{interface}" for joint in command.elements} <= has["command_interface"]
    (gains,) = texts_by_name(parameters["gains"], "gains").values()
    stiffness, damping, _ = map(float, gains.split())
    assert command.law is not None
    assert set(command.law.stiffness) == {stiffness}
    assert set(command.law.damping) == {damping}


@pytest.fixture(scope="module")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the interfaces of an arm with the commands tool (x, y, z) and gripper (jaw)."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    program = tmp_path_factory.mktemp("interfaces") / "interfaces"
    sources = [PACKAGE / "plugin/interfaces.cpp", PACKAGE / "node/wire.cpp", ROOT / "tests/ros/cpp/interfaces.cpp"]
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    subprocess.run(["g++", *strict, "-I", ROOT / "deploy/build/c", *sources, "-o", program], check=True)
    return program


TOOL, GRIPPER = "tool=hand command_interfaces position", "gripper=any sensor_msgs/msg/JointState position"
MEASURED = "hand state_interfaces position"


@pytest.mark.parametrize(
    ("state", "commands", "gains", "said"),
    [
        (
            MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 0.5 3",
            "hand/position.x hand/position.y hand/position.z | hand/position.x hand/position.y hand/position.z "
            "jaw/position jaw/stiffness jaw/damping | 3 40 0.5 3",
        ),
        ("imu sensor_msgs/msg/Imu angular_velocity", f"{TOOL};{GRIPPER}", "", "imu/angular_velocity.z | hand/pos"),
        ("joint_states sensor_msgs/msg/JointState effort", f"{TOOL};{GRIPPER}", "", "x/effort y/effort z/effort |"),
        ("hand/pose geometry_msgs/msg/PoseStamped position", f"{TOOL};{GRIPPER}", "", "| hand/position.x"),  # a topic
        (MEASURED, TOOL, "", "parameter 'command_wires' has no entry for the command 'gripper'"),
        (MEASURED, "tool=hand geometry_msgs/msg/PoseStamped position", "", "the type geometry_msgs/msg/PoseStamped"),
        (MEASURED, f"{TOOL};{GRIPPER};claw=x y z", "", "an entry for 'claw'; the contract has tool, gripper"),
        (MEASURED, f"{TOOL};{GRIPPER}", "griper=40 0.5 3", "an entry for 'griper'; the contract has tool, gripper"),
        (MEASURED, f"{TOOL};{GRIPPER}", "tool=40 0.5 3", "'tool', whose elements are not joints"),
        (MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 0.5", "'gripper' is '40 0.5'; expected its stiffness"),
        (MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 0.5 3 1", "expected its stiffness"),
        (MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 0.5 -3", "none of them negative"),
        (MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 nan 3", "expected its stiffness"),
        (MEASURED, f"{TOOL};{GRIPPER}", "gripper=40 0.5 3kg", "expected its stiffness"),
    ],
)  # fmt: skip
def test_interfaces_follow_from_wires_and_gains_or_a_sentence_tells_what_is_wrong(
    interfaces: Path, state: str, commands: str, gains: str, said: str
) -> None:
    done = subprocess.run([interfaces, state, commands, gains], capture_output=True, text=True, check=True)
    assert said in done.stdout
