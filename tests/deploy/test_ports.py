"""A port that another program has: the sentence names it and says how to take another one, and nothing is announced."""

from __future__ import annotations

import socket

import pytest

from robo_rl.commands.running.emulate import main
from robo_rl.deploy.emulate.ur.serve import serve
from robo_rl.deploy.robot.drivers.rtde import messages
from robo_rl.files.ports import opening


def test_a_second_emulated_robot_on_a_port_is_told_how_to_have_another(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first:
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} is taken by another program.*another one by --port"):
            main("crazyflie", port=port, seconds=0.1)
    assert capsys.readouterr().out == ""


def test_a_second_emulated_arm_is_told_to_take_another_address() -> None:
    refused = pytest.raises(ValueError, match=f"port {messages.PORT} is taken.*--address")
    with socket.create_server(("127.0.0.5", messages.PORT)), refused:
        serve(None, "127.0.0.5", lambda: None, lambda since: None, 0.1)  # type: ignore[arg-type]


def test_a_second_franka_is_told_to_take_another_address() -> None:
    refused = pytest.raises(ValueError, match=r"port 1337 is taken.*--address")
    with socket.create_server(("127.0.0.6", 1337)), refused:
        main("franka", address="127.0.0.6", seconds=0.1)


def test_other_errors_of_the_system_stay_what_they_are() -> None:
    with pytest.raises(PermissionError), opening(80, "none"):
        raise PermissionError(13, "Permission denied")
