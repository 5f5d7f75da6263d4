"""The ament_python package robo_rl_description: data alone."""

from glob import glob

from setuptools import setup

NAME = "robo_rl_description"

setup(
    name=NAME,
    version="0.2.0",
    packages=[],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/urdf", glob("urdf/*.urdf")),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="robo-rl contributors",
    maintainer_email="maintainers@robo-rl.invalid",
    description="URDF of the robots that come with robo-rl",
    license="Apache-2.0",
)
