"""The controller with a Go2 of mock_components: it loads, and arms. Mock sensors never change, so its fallback follows.

ros2 launch robo_rl_controller go2_mock.launch.py bundle:=$PWD/go2-flat.x86_64.so
"""

import tempfile
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

HERE = Path(__file__).parent


def start(context):
    """The description with its hardware, the controller manager, and the controller."""
    urdf = Path(get_package_share_directory("robo_rl_description")) / "urdf" / "go2.urdf"
    hardware = (HERE / "go2.ros2_control.xml").read_text()
    description = {"robot_description": urdf.read_text().replace("</robot>", f"{hardware}</robot>")}
    bundle = LaunchConfiguration("bundle").perform(context)
    controllers = Path(tempfile.mkdtemp()) / "controllers.yaml"
    controllers.write_text((HERE / "go2_controllers.yaml").read_text().replace("BUNDLE", bundle))
    manager = {"package": "controller_manager", "output": "screen"}
    loaded = ["--param-file", str(controllers)]
    fallback = Node(executable="spawner", arguments=["damped", "--inactive", *loaded], **manager)
    policy = Node(executable="spawner", arguments=["policy", *loaded], **manager)
    return [
        Node(package="robot_state_publisher", executable="robot_state_publisher", parameters=[description]),
        Node(executable="ros2_control_node", parameters=[description, str(controllers)], **manager),
        fallback,
        # a controller is only activated when its fallback controllers are loaded
        RegisterEventHandler(OnProcessExit(target_action=fallback, on_exit=[policy])),
    ]


def generate_launch_description():
    """Everything that runs."""
    bundle = DeclareLaunchArgument("bundle", description="path of the compiled bundle")
    return LaunchDescription([bundle, OpaqueFunction(function=start)])
