"""The emulated Crazyflie flies by cflib's own set-points: hover, position, height, velocity, take-off, go to, land."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cflib", reason="cflib is missing: pip install 'robo-rl[crazyflie]'")

from cflib.crazyflie.commander import Commander
from cflib.crazyflie.high_level_commander import HighLevelCommander

from robo_rl.deploy.emulate.crazyflie import TICK, Vehicle
from robo_rl.deploy.emulate.crazyflie.crtp import Firmware


class Client:
    """What cflib's commanders need of a connection, on an emulated firmware in virtual time."""

    def __init__(self) -> None:
        self.firmware = Firmware(Vehicle())
        self.vehicle = self.firmware.vehicle
        self.answers: list[bytes] = []
        self.platform = self
        self.low, self.high = Commander(self), HighLevelCommander(self)

    def get_protocol_version(self) -> int:
        return 12

    def send_packet(self, packet: Any) -> None:
        self.answers += self.firmware.receive(bytes([packet.header, *packet.data]))

    def fly(self, seconds: float, send: Callable[[], None] = lambda: None) -> np.ndarray:
        """With a packet every 20 ms; where it is then."""
        for i in range(round(seconds / TICK)):
            if i % 10 == 0:
                send()
            self.vehicle.advance()
        return self.vehicle.truth["position"]


def test_hover_position_height_and_velocity_come_to_where_they_should() -> None:
    client = Client()
    low = client.low
    place = client.fly(4.0, lambda: low.send_hover_setpoint(0.0, 0.0, 0.0, 0.5))
    np.testing.assert_allclose(place, [0.0, 0.0, 0.5], atol=0.08)
    place = client.fly(5.0, lambda: low.send_position_setpoint(0.6, -0.4, 0.8, 0.0))
    np.testing.assert_allclose(place, [0.6, -0.4, 0.8], atol=0.08)
    client.fly(2.0, lambda: low.send_hover_setpoint(0.0, 0.0, 45.0, 0.8))
    *_, z, w = client.vehicle.truth["orientation"]
    assert math.degrees(2 * math.atan2(z, w)) == pytest.approx(90.0, abs=12.0)
    before = client.fly(0.5, lambda: low.send_hover_setpoint(0.0, 0.0, 0.0, 0.8))
    moved = client.fly(2.0, lambda: low.send_hover_setpoint(0.3, 0.0, 0.0, 0.8)) - before
    assert moved[1] > 0.3, "ahead, where its nose points by now"
    assert abs(moved[0]) < 0.2
    before = client.fly(1.0, lambda: low.send_hover_setpoint(0.0, 0.0, 0.0, 0.8))
    moved = client.fly(2.0, lambda: low.send_velocity_world_setpoint(0.3, 0.0, 0.0, 0.0)) - before
    assert moved[0] > 0.3
    client.fly(1.0, lambda: low.send_hover_setpoint(0.0, 0.0, 0.0, 0.8))
    place = client.fly(2.0, lambda: low.send_zdistance_setpoint(0.0, 0.0, 0.0, 0.5))
    assert place[2] == pytest.approx(0.5, abs=0.08)


def test_the_high_level_commander_takes_off_goes_and_lands_and_a_set_point_ends_its_plan() -> None:
    client = Client()
    client.fly(1.5)  # it has to be ready
    client.high.takeoff(0.6, 2.0)
    assert client.answers == [bytes([0x80, 7, 0]) + client.answers[0][3:4] + b"\0"]
    np.testing.assert_allclose(client.fly(4.0), [0.0, 0.0, 0.6], atol=0.08)
    client.high.go_to(0.5, 0.2, 0.9, 0.0, 2.0)
    np.testing.assert_allclose(client.fly(4.0), [0.5, 0.2, 0.9], atol=0.08)
    client.high.go_to(-0.5, 0.0, 0.0, 0.0, 2.0, relative=True)
    np.testing.assert_allclose(client.fly(4.0), [0.0, 0.2, 0.9], atol=0.1)
    client.fly(1.0, lambda: client.low.send_hover_setpoint(0.0, 0.0, 0.0, 0.9))
    assert client.vehicle.plan is None
    client.high.land(0.0, 2.0)
    assert client.fly(4.0)[2] < 0.03
    assert client.vehicle.off
