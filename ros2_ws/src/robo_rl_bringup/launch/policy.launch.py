"""Start policy_node, configure it, and, if wanted, arm it as soon as the robot's signals are there.

ros2 launch robo_rl_bringup policy.launch.py policy:=policy.onnx robot:=crazyflie [mode:=live] [namespace:=…]

It sends no commands until it is told to: the mode is dry_run, unless the argument or the params_file has another.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessStart
from launch.events import matches_action
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.events.lifecycle import ChangeState
from launch_ros.substitutions import FindPackageShare
from lifecycle_msgs.msg import Transition

ARGUMENTS = {
    "policy": ("", "path of the bundle (*.onnx)"),
    "robot": ("", "robot that the bundle must be for; '': any"),
    "mode": ("", "initial mode: dry_run, shadow, blend or live; '': as in params_file, dry_run if it has none"),
    "dry_run": ("false", "compute, but send no commands; the same as mode:=dry_run"),
    "activate": ("", "true: arm as soon as the robot's signals are there; '': as in params_file"),
    "activate_timeout": ("", "s to wait for them; '': as in params_file"),
    "driver": (
        "",
        "driver, instead of topics: go2, so101, dynamixel, f1tenth, px4, franka, ur, crazyflie, or a file; '': as in "
        "params_file",
    ),
    "port": ("", "of the driver; '': its usual one"),
    "calibration": ("", "of the driver: the robot's calibration file"),
    "robot_file": ("", "of the driver: what differs between two robots of a type"),
    "command_message": ("", "message type of commands; '': as in params_file"),
    "namespace": ("", "of topics and services"),
    "use_sim_time": ("false", "time is that of /clock"),
    "record": ("", "folder in which every session writes one .mcap file; '': as in params_file"),
}


def start(context):
    """The node with its parameters, those of the file overruled by those of the command line."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    parameters = {
        "bundle": given["policy"],
        "robot": given["robot"],
        "use_sim_time": given["use_sim_time"].lower() == "true",
    }
    mode = "dry_run" if given["dry_run"].lower() == "true" else given["mode"]
    parameters |= {name: value for name, value in (("mode", mode), ("record", given["record"])) if value}
    texts = ("driver", "port", "calibration", "robot_file", "command_message")
    parameters |= {name: given[name] for name in texts if given[name]}
    if given["activate"]:
        parameters["activate"] = given["activate"].lower() == "true"
    if given["activate_timeout"]:
        parameters["activate_timeout"] = float(given["activate_timeout"])
    node = LifecycleNode(
        package="robo_rl_ros",
        executable="policy_node",
        name="policy",
        namespace=given["namespace"],
        parameters=[LaunchConfiguration("params_file"), parameters],
        output="screen",
    )
    configure = ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=Transition.TRANSITION_CONFIGURE)
    started = OnProcessStart(target_action=node, on_start=[EmitEvent(event=configure)])
    return [RegisterEventHandler(started), node]


def generate_launch_description():
    """The description for ``ros2 launch``."""
    file = PathJoinSubstitution([FindPackageShare("robo_rl_bringup"), "config", "policy.yaml"])
    arguments = [DeclareLaunchArgument(n, default_value=v, description=t) for n, (v, t) in ARGUMENTS.items()]
    arguments.append(DeclareLaunchArgument("params_file", default_value=file, description="parameters of the node"))
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])
