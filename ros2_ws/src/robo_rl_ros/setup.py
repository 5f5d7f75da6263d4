"""The ament_python package robo_rl_ros."""

from setuptools import setup

NAME = "robo_rl_ros"

setup(
    name=NAME,
    version="0.2.0",
    packages=[NAME, f"{NAME}.twins"],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="robo-rl contributors",
    maintainer_email="maintainers@robo-rl.invalid",
    description="Runs a policy bundle on a robot, and a simulated robot",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "controllers_node = robo_rl.ros.controllers_node:main",
            "follow_path_node = robo_rl.ros.follow_path_node:main",
            "panel_node = robo_rl.ros.panel_node:main",
            "policy_node = robo_rl.ros.policy_node:main",
            "teleop_node = robo_rl.ros.teleop_node:main",
            "twin_node = robo_rl.ros.twin_node:main",
        ]
    },
)
