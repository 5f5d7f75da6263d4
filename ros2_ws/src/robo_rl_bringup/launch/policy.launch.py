"""Start policy_node, configure it, and, if wanted, arm it.

ros2 launch robo_rl_bringup policy.launch.py policy:=policy.onnx robot:=crazyflie [dry_run:=true] [namespace:=…]
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessStart
from launch.events import matches_action
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.substitutions import FindPackageShare
from lifecycle_msgs.msg import Transition

ARGUMENTS = {
    "policy": ("", "path of the bundle (*.onnx)"),
    "robot": ("", "robot that the bundle must be for; '': any"),
    "mode": ("", "where to begin on the ladder; '': as in params_file"),
    "dry_run": ("false", "compute, and send nothing; the same as mode:=dry_run"),
    "activate": ("false", "arm as soon as the node is configured"),
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
    node = LifecycleNode(
        package="robo_rl_ros",
        executable="policy_node",
        name="policy",
        namespace=given["namespace"],
        parameters=[LaunchConfiguration("params_file"), parameters],
        output="screen",
    )

    def ask(transition):
        return EmitEvent(event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=transition))

    configure = OnProcessStart(target_action=node, on_start=[ask(Transition.TRANSITION_CONFIGURE)])
    activate = OnStateTransition(
        target_lifecycle_node=node,
        start_state="configuring",
        goal_state="inactive",
        entities=[ask(Transition.TRANSITION_ACTIVATE)],
    )
    wanted = IfCondition(LaunchConfiguration("activate"))
    return [RegisterEventHandler(configure), RegisterEventHandler(activate, condition=wanted), node]


def generate_launch_description():
    """The description that ``ros2 launch`` asks for."""
    file = PathJoinSubstitution([FindPackageShare("robo_rl_bringup"), "config", "policy.yaml"])
    arguments = [DeclareLaunchArgument(n, default_value=v, description=t) for n, (v, t) in ARGUMENTS.items()]
    arguments.append(DeclareLaunchArgument("params_file", default_value=file, description="parameters of the node"))
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])
