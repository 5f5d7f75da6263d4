"""Start a policy on an arm that ros2_control drives: policy_node, and controllers_node, which switches its controllers.

ros2 launch robo_rl_bringup ros2_control.launch.py policy:=place.onnx following:='joint_position_target=forward_position_controller' holding:=joint_trajectory_controller

ros2_control itself runs already, with its forward_command_controllers loaded and inactive. Where controllers_node
ends, everything here ends.
"""  # noqa: E501

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction, Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node, SetRemap
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = {
    "policy": ("", "path of the bundle (*.onnx)"),
    "following": ("", "controllers by command, 'NAME=CONTROLLER, …': forward_command_controllers, in the card's order"),
    "holding": ("joint_trajectory_controller", "controllers, 'A, B', that hold when the policy is not in control"),
    "timeout": ("0.0", "s without a command until they do; 0.0: the contract's signal_timeout"),
    "settle": ("0.5", "s that the gate's own stop has before they do"),
    "controller_manager": ("controller_manager", "name of the controller manager"),
    "robot": ("", "robot that the bundle must be for; '': any"),
    "mode": ("dry_run", "where the ladder begins: dry_run, shadow, blend, live"),
    "record": ("", "folder in which every session writes one .mcap file; '': as in params_file"),
    "namespace": ("", "of topics and services"),
}
PASSED = ("policy", "robot", "mode", "record", "namespace")


def listed(text):
    """The entries of a list, which ROS gives no type where there are none."""
    return [entry.strip() for entry in text.split(",") if entry.strip()] or [""]


def start(context):
    """The policy with its commands on the controllers' topics, and who switches the controllers."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    following, holding = listed(given["following"]), listed(given["holding"])
    pairs = [entry.split("=", 1) for entry in following if "=" in entry]
    topics = [SetRemap(f"command/{name.strip()}", f"{controller.strip()}/commands") for name, controller in pairs]
    file = PathJoinSubstitution([FindPackageShare("robo_rl_bringup"), "launch", "policy.launch.py"])
    arguments = [("command_message", "Float64MultiArray"), *((name, given[name]) for name in PASSED)]
    policy = IncludeLaunchDescription(PythonLaunchDescriptionSource(file), launch_arguments=arguments)
    figures = {name: float(given[name]) for name in ("timeout", "settle")}
    switch = Node(
        package="robo_rl_ros",
        executable="controllers_node",
        namespace=given["namespace"],
        parameters=[
            {
                "following": following,
                "holding": holding,
                "controller_manager": given["controller_manager"],
                **figures,
            }
        ],
        output="screen",
        on_exit=Shutdown(reason="nobody watches the controllers any more"),
    )
    return [GroupAction([*topics, policy]), switch]


def generate_launch_description():
    """The description for ``ros2 launch``."""
    arguments = [DeclareLaunchArgument(n, default_value=v, description=t) for n, (v, t) in ARGUMENTS.items()]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])
