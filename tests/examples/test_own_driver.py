"""The template of a driver takes the policies that fit it, and refuses others once, in a sentence."""

import io
import re
import shlex
from pathlib import Path

import pytest

from robo_rl import cli
from robo_rl.commands.running.driver import main
from robo_rl.deploy.robot.drivers.driver import DriverError

ROOT = Path(__file__).parents[2]
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


def test_the_pages_commands_have_all_that_the_policy_reads(capsys, monkeypatch):
    """``robo-rl run`` of docs/driver.md: every signal that the driver does not measure is a set-point there."""
    lines = re.findall(r"^\$ robo-rl (run .*)$", (ROOT / "docs" / "driver.md").read_text(), re.M)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(ROOT / "examples" / "own_driver")
    for line in lines:
        with pytest.raises(SystemExit):
            cli.main([*shlex.split(line), "--seconds", "0.1"])
        assert "my robot, joints 12" in capsys.readouterr().out
    assert len(lines) == 2
