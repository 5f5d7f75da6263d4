"""Start all of a robot that has a driver: the policy's node, which drives it, and its model for tf, RViz and Foxglove.

ros2 launch robo_rl_bringup robot.launch.py robot:=go2 port:=eth0 policy:=policy.onnx [record:=logs] [rviz:=true]
"""

from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import PackageNotFoundError, get_package_prefix, get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, LogInfo, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = {
    "robot": ("", "go2, so101, dynamixel, f1tenth, px4, franka, ur, crazyflie: its driver"),
    "model": (
        "",
        "its model's name in robo_rl_description, x500 for px4, panda for franka, ur5e for ur; '': as its driver",
    ),
    "port": ("", "device, address or network interface; '': the driver's usual one"),
    "calibration": ("", "of an arm: its calibration file"),
    "robot_file": ("", "what differs between two robots of a type"),
    "urdf": ("", "model of your own robot; '': that of robo_rl_description"),
    "policy": ("", "path of the bundle (*.onnx)"),
    "mode": ("dry_run", "where the ladder begins: dry_run, shadow, blend, live"),
    "record": ("", "folder in which every session writes one .mcap file; '': as in params_file"),
    "joystick": ("false", "true: set-points from sensor_msgs/Joy; the robot stops without its messages"),
    "rviz": ("false", "true: show it"),
    "namespace": ("", "of topics, services and frames, one for each of several robots"),
}
PASSED = ("port", "calibration", "robot_file", "policy", "mode", "record", "namespace")


def shown(context):
    """robot_state_publisher with the robot's model, and RViz; a sentence where the first is not installed."""
    driver, name, urdf, namespace = (
        LaunchConfiguration(n).perform(context) for n in ("robot", "model", "urdf", "namespace")
    )
    robot = name or driver
    path = Path(urdf or Path(get_package_share_directory("robo_rl_description"), "urdf", f"{robot}.urdf"))
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.urdf")))
        raise ValueError(f"model:='{robot}' urdf:='{urdf}': there is no file {path}; expected one of {known}")
    try:
        get_package_prefix("robot_state_publisher")
    except PackageNotFoundError:
        return [LogInfo(msg="robot_state_publisher is not installed: no model and no tf; the policy needs neither")]
    text, prefix = path.read_text(), f"{namespace.strip('/')}/".lstrip("/")
    state = Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        namespace=namespace,
        parameters=[{"robot_description": text, "frame_prefix": prefix}],
        output="screen",
    )
    layout = Path(get_package_share_directory("robo_rl_bringup"), "config", "robot.rviz")
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        namespace=namespace,
        arguments=["-d", str(layout), "-f", prefix + root(text, path)],
        condition=IfCondition(LaunchConfiguration("rviz")),
    )
    return [state, rviz]


def root(urdf, path):
    """The link that no joint moves."""
    robot = ElementTree.fromstring(urdf)
    children = {joint.find("child").get("link") for joint in robot.iter("joint") if joint.find("child") is not None}
    links = [link.get("name") for link in robot.findall("link") if link.get("name") not in children]
    if len(links) != 1:
        raise ValueError(f"{path}: its links {links} have no parent; expected one")
    return links[0]


def generate_launch_description():
    """The description for ``ros2 launch``."""
    given = {name: LaunchConfiguration(name) for name in ARGUMENTS}
    file = PathJoinSubstitution([FindPackageShare("robo_rl_bringup"), "launch", "policy.launch.py"])
    policy = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(file),
        launch_arguments=[
            ("driver", given["robot"]),
            ("robot", given["model"]),
            *((name, given[name]) for name in PASSED),
        ],
    )
    by_hand = GroupAction(
        [
            Node(package="joy", executable="joy_node", namespace=given["namespace"]),
            Node(
                package="robo_rl_ros",
                executable="teleop_node",
                namespace=given["namespace"],
                parameters=[{"source": "joy"}],
                output="screen",
            ),
        ],
        condition=IfCondition(given["joystick"]),
    )
    arguments = [DeclareLaunchArgument(n, default_value=v, description=t) for n, (v, t) in ARGUMENTS.items()]
    return LaunchDescription([*arguments, OpaqueFunction(function=shown), policy, by_hand])
