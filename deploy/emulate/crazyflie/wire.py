"""The radio between a computer and an emulated Crazyflie, and what goes wrong with either: faults, by name."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from robo_rl.deploy.emulate.crazyflie import TICK, Vehicle
from robo_rl.deploy.emulate.crazyflie.crtp import Firmware
from robo_rl.deploy.emulate.crazyflie.pid import Wanted
from robo_rl.deploy.emulate.crazyflie.supervisor import State
from robo_rl.deploy.emulate.damage import (
    Way,
    cut,
    damaged,
    doubled,
    dropped,
    late,
    nothing,
    require_fault,
    unplugged,
    whole,
)
from robo_rl.deploy.emulate.stranger import Stranger

LATE = 60
"""Packets by which late ones come late: 0.4 s or so."""
LATENCY = 0.004
"""s from a log packet's beginning to its arrival: a Crazyradio polls every 1 to 2 ms, packets queue behind others."""
OFTEN = 100.0  # Hz
CHANGE = (60.0, -90.0, 40.0)
"""deg/s that somebody else wants."""


@dataclass
class RadioWire:
    """See the module's text."""

    firmware: Firmware = field(default_factory=Firmware)
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    waiting: list[bytes] = field(default_factory=list)
    rate: float = OFTEN
    """Hz at which somebody else sends."""
    _air: deque[tuple[float, bytes]] = field(default_factory=deque)

    @property
    def vehicle(self) -> Vehicle:
        """Behind the radio."""
        return self.firmware.vehicle

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
        self.fault = fault
        self.stranger = Stranger(self.rate, self.random)
        FAULTS[fault].at_once(self.firmware)

    def send(self, data: bytes) -> list[bytes]:
        """What is answered at once. OSError where the link is gone."""
        fault = FAULTS[self.fault]
        told = [answer for one in fault.orders(self, data) for answer in self.firmware.receive(one)]
        return [came for one in told for came in fault.answers(self, one)]

    def advance(self) -> list[bytes]:
        """The vehicle moves on by a tick: log packets that arrive."""
        if self.fault == "another commander":
            for _ in range(self.stranger.due(TICK)):
                self.vehicle.take(Wanted(self.vehicle.wanted.thrust, CHANGE))
        now = self.vehicle.time
        self._air += [(now + LATENCY, one) for one in self.firmware.advance()]
        came = []
        while self._air and (self._air[0][0] <= now or self._air[0][0] > now + 1.0):
            came += FAULTS[self.fault].answers(self, self._air.popleft()[1])
        return came


def _noise(wire: RadioWire, data: bytes) -> list[bytes]:
    return [bytes([wire.random.choice((0x03, 0x33, 0x7C, 0xA1, 0xC2))]) + wire.random.randbytes(7), data]


def _foreign(wire: RadioWire, data: bytes) -> list[bytes]:
    """Log blocks that another program asked this vehicle for."""
    return [data[:1] + bytes([77]) + data[2:], data] if data[:1] == b"\x52" else [data]


def _broken(**values: object) -> Callable[[Firmware], None]:
    def at_once(firmware: Firmware) -> None:
        for name, value in values.items():
            setattr(firmware if hasattr(firmware, name) else firmware.vehicle.broken, name, value)

    return at_once


def _stopped(firmware: Firmware) -> None:
    firmware.vehicle.supervisor.stop = True


def _disarmed(firmware: Firmware) -> None:
    firmware.vehicle.supervisor.refuses = True
    firmware.vehicle.supervisor.arm(False)


def _locked(firmware: Firmware) -> None:
    firmware.vehicle.supervisor.state = State.LOCKED


def _turned_over(firmware: Firmware) -> None:
    state = firmware.vehicle.plant.current
    state.orientation[0] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    state.linear_velocity[:] = 0.0


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    text: str
    borne: bool = False
    """Whether the policy goes on: it happens on every link. Else the vehicle has to come down, motors off."""
    falls: bool = False
    """Whether its motors are off in the air: nothing helps."""
    orders: Way = whole
    answers: Way = whole
    at_once: Callable[[Firmware], None] = lambda firmware: None


FAULTS = {
    "": Fault("nothing", True),
    "some lost": Fault("10 % of the vehicle's packets don't arrive", True, answers=dropped(0.1)),
    "some damaged": Fault("3 % of the vehicle's packets have a wrong bit", True, answers=damaged(0.03)),
    "doubled": Fault("every packet comes twice", True, answers=doubled),
    "noise": Fault("packets that mean nothing come between the others", True, answers=_noise),
    "another program's logs": Fault("log blocks come that somebody else asked for", True, answers=_foreign),
    "some commands lost": Fault("10 % of what is sent does not arrive", True, orders=dropped(0.1)),
    "commands doubled": Fault("all that is sent arrives twice", True, orders=doubled),
    "nothing heard": Fault("no packet comes any more", answers=nothing),
    "silent vehicle": Fault("the vehicle sends and takes nothing any more", at_once=_broken(silent=True)),
    "all damaged": Fault("every packet has a wrong bit", answers=damaged(1.0)),
    "cut": Fault("half of every packet comes", answers=cut),
    "late": Fault(f"every packet comes {LATE} packets late", answers=late(LATE)),
    "commands lost": Fault("the vehicle is heard, but gets nothing", orders=nothing),
    "unplugged": Fault("the radio is pulled out", orders=unplugged, answers=nothing),
    "log stops": Fault("the log block of the state stops", at_once=_broken(mute=True)),
    "clock frozen": Fault("log packets come with the same time stamp again and again", at_once=_broken(clock=True)),
    "estimate frozen": Fault("the state repeats itself under new time stamps", at_once=_broken(estimate="frozen")),
    "estimate diverges": Fault("the estimator runs away", at_once=_broken(estimate="diverged")),
    "estimate unsure": Fault("the estimator has lost its deck", at_once=_broken(fused=False)),
    "estimate jumps": Fault("the estimator sets itself right by 3 m", at_once=_broken(estimate="jumped")),
    "battery empty": Fault("the battery has 3.0 V", at_once=_broken(voltage=3.0)),
    "another commander": Fault("somebody else sends set-points too"),
    "emergency stop": Fault("somebody sends an emergency stop", falls=True, at_once=_stopped),
    "disarmed": Fault("somebody disarms it", falls=True, at_once=_disarmed),
    "locked": Fault("its supervisor locks it", falls=True, at_once=_locked),
    "turned over": Fault("it is hit, and is upside down", falls=True, at_once=_turned_over),
    "restarted": Fault("its power fails for a moment", falls=True, at_once=Firmware.restart),
}
"""By name."""
