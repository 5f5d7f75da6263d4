"""Start the simulated robot, and a policy for it.

ros2 launch robo_rl_bringup twin.launch.py policy:=policy.onnx [task:=TASK] [use_sim_time:=false]
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = {
    "policy": ("", "path of the bundle (*.onnx)"),
    "task": ("", "task whose plant and signals are simulated; '': the policy's, else quadrotor-hover"),
    "robot": ("", "another robot card than the task's"),
    "mode": ("live", "initial mode: dry_run, shadow, blend or live"),
    "activate": ("false", "arm as soon as the robot's signals are there"),
    "namespace": ("", "of topics and services"),
    "use_sim_time": (
        "true",
        "simulated time, in step with the policy; false: real time",
    ),
}


def generate_launch_description():
    """The description for ``ros2 launch``."""
    simulated = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    twin = Node(
        package="robo_rl_ros",
        executable="twin_node",
        name="twin",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                "task": LaunchConfiguration("task"),
                "bundle": LaunchConfiguration("policy"),
                "robot": LaunchConfiguration("robot"),
                "lockstep": simulated,
                "real_time_factor": 1.0,
            }
        ],
        output="screen",
    )
    launch = PathJoinSubstitution([FindPackageShare("robo_rl_bringup"), "launch", "policy.launch.py"])
    passed = {name: LaunchConfiguration(name) for name in ("policy", "mode", "activate", "namespace", "use_sim_time")}
    policy = IncludeLaunchDescription(PythonLaunchDescriptionSource(launch), launch_arguments=passed.items())
    arguments = [DeclareLaunchArgument(n, default_value=v, description=t) for n, (v, t) in ARGUMENTS.items()]
    return LaunchDescription([*arguments, twin, policy])
