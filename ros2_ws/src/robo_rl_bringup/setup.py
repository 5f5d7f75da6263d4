"""The ament_python package robo_rl_bringup: data alone."""

from glob import glob

from setuptools import setup

NAME = "robo_rl_bringup"

setup(
    name=NAME,
    version="0.2.0",
    packages=[],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
        (f"share/{NAME}/config", glob("config/*.*")),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="robo-rl contributors",
    maintainer_email="maintainers@robo-rl.invalid",
    description="Launch files and parameters of robo-rl's nodes",
    license="Apache-2.0",
)
