"""The template of a driver takes the policies that fit it, and refuses others once, in a sentence."""

import pytest

from robo_rl.commands.running.driver import main
from robo_rl.deploy.robot.drivers.driver import DriverError

TEMPLATE = "examples/own_driver/my_driver.py:Driver"


def test_a_policy_of_another_robot_is_refused_once(capsys):
    with pytest.raises(
        DriverError, match=r"crazyflie is not for its joints; it lacks \['linear_velocity', 'position'\]"
    ):
        main("check", TEMPLATE, policy="zoo:quadrotor-hover")
    assert capsys.readouterr().out == ""
    name = "close twice, and before connect"
    assert main("check", TEMPLATE, only=(name,)) == 0
    assert name in capsys.readouterr().out
