"""The topics of a Unitree robot by Cyclone DDS, with bytes of our own instead of Python's slow serialization.

A port is a network interface: "eth0", "lo"; "lo@1" in the DDS domain 1, where simulators are (unitree_mujoco); robots
are in 0. With a tag after a slash, "lo/second", only those with that tag find each other, so that several emulated
robots live on one computer. Real robots have none.

Bytes pass by two calls of cyclonedds that are not documented, and where a version has them no more, by its public ones:
those are slower, and the same bytes.
"""

from __future__ import annotations

import re
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.unitree.family import GO, Family
from robo_rl.deploy.robot.drivers.unitree.messages import HEADERS

COMMAND, STATE = "rt/lowcmd", "rt/lowstate"
REQUEST, RESPONSE = "rt/api/motion_switcher/request", "rt/api/motion_switcher/response"
DEPTH = 16
"""Samples that wait to be taken; older ones are dropped."""
HIGHEST_DOMAIN = 232
"""Whose ports are below 65536 (DDSI-RTPS, 9.6.1.1)."""
ANSWERS = 4
"""That are taken at once: Python takes 0.2 ms to read one."""


class Wire:
    """One participant. ``robot``: it writes what a robot writes, and reads what a robot reads."""

    def __init__(self, port: str, robot: bool = False, family: Family = GO) -> None:
        """DriverError where the library or the interface is missing."""
        try:
            from cyclonedds.core import DDSException
            from cyclonedds.domain import Domain, DomainParticipant
            from cyclonedds.pub import DataWriter, Publisher
            from cyclonedds.qos import Policy, Qos
            from cyclonedds.sub import DataReader, Subscriber
            from cyclonedds.topic import Topic

            from robo_rl.deploy.robot.drivers.unitree import types
        except ImportError:
            raise DriverError(
                "cyclonedds is not installed; pip install 'robo-rl[go2]' (x86-64; elsewhere build it from source)"
            ) from None
        others = Qos(Policy.IgnoreLocal.Participant)
        latest = Qos(Policy.History.KeepLast(DEPTH), base=others)
        reliable = Qos(Policy.Reliability.Reliable(100_000_000), Policy.History.KeepLast(DEPTH))
        try:
            self._domain = Domain(domain(port), config(port))
            participant = DomainParticipant(domain(port))
        except DDSException as error:
            raise DriverError(f"{port}: DDS can't use this interface ({error}); 'ip link' lists all") from None
        self.direct = direct_calls()
        """Whether bytes pass as they are."""
        self.types, publisher, subscriber = types, Publisher(participant), Subscriber(participant)

        def reader(name: str, of: Any, qos: Any) -> Any:
            return DataReader(subscriber, Topic(participant, name, of), qos=qos)

        def writer(name: str, of: Any, qos: Any) -> Any:
            return DataWriter(publisher, Topic(participant, name, of), qos=qos)

        command, state = types.LOW_LEVEL[family.name]
        self.commands, self.states = reader(COMMAND, command, latest), reader(STATE, state, latest)
        self._sent = state if robot else command
        self.to = writer(STATE if robot else COMMAND, self._sent, None)
        self.asks = (reader if robot else writer)(REQUEST, types.Request, reliable)
        self.answers = (writer if robot else reader)(RESPONSE, types.Response, reliable)

    def send(self, data: bytes) -> None:
        """A LowCmd_ (of a robot: a LowState_)."""
        if self.direct:
            from cyclonedds._clayer import ddspy_write

            ddspy_write(self.to._ref, HEADERS[0] + b"\0\0" + data)
        else:
            self.to.write(self._sent.deserialize(HEADERS[0] + b"\0\0" + data))

    def take(self, reader: Any) -> list[bytes]:
        """What has come, the oldest first."""
        if not self.direct:
            return [bytes(one.serialize()[4:]) for one in reader.take(DEPTH) if hasattr(one, "serialize")]
        from cyclonedds._clayer import ddspy_take
        from cyclonedds.core import InstanceState, SampleState, ViewState

        found = ddspy_take(reader._ref, SampleState.Any | ViewState.Any | InstanceState.Any, DEPTH)
        if isinstance(found, int):
            return []
        return [bytes(data[4:]) for data, info in found if info.valid_data and data[:2] in HEADERS]

    def ask(self, number: int, code: int, parameter: str) -> None:
        """A request to the motion switcher."""
        t = self.types
        identity, policy = t.RequestIdentity(id=number, api_id=code), t.RequestPolicy(priority=0, noreply=False)
        header = t.RequestHeader(identity=identity, lease=t.RequestLease(id=0), policy=policy)
        self.asks.write(t.Request(header=header, parameter=parameter, binary=[]))

    def heard(self) -> list[tuple[int, int, int, str]]:
        """Answers of the motion switcher to anybody: number and code of the request, status, data."""
        found = [one for one in self.answers.take(ANSWERS) if isinstance(one, self.types.Response)]
        return [(a.header.identity.id, a.header.identity.api_id, a.header.status.code, a.data) for a in found]

    def asked(self) -> list[tuple[int, int, str]]:
        """Of a robot: requests, number, code, parameter."""
        found = [one for one in self.asks.take(DEPTH) if isinstance(one, self.types.Request)]
        return [(r.header.identity.id, r.header.identity.api_id, r.parameter) for r in found]

    def answer(self, number: int, code: int, status: int, data: str) -> None:
        """A robot's answer."""
        t = self.types
        header = t.ResponseHeader(
            identity=t.RequestIdentity(id=number, api_id=code), status=t.ResponseStatus(code=status)
        )
        self.answers.write(t.Response(header=header, data=data, binary=[]))


def direct_calls() -> bool:
    """Whether this cyclonedds has the calls that take and give bytes."""
    try:
        from cyclonedds._clayer import ddspy_take, ddspy_write
    except ImportError:
        return False
    return bool(ddspy_take and ddspy_write)


def domain(port: str) -> int:
    """Of a port: 0, or the number after its interface. DriverError for what is none."""
    found = re.fullmatch(r"[\w.:-]{1,15}(?:@(\d{1,3}))?(?:/[\w-]{1,40})?", port)
    if not found or int(found[1] or 0) > HIGHEST_DOMAIN:
        raise DriverError(f"{port[:60]!r} is no network interface; expected eth0, eth0@DOMAIN (0 to 232), or lo/TAG")
    return int(found[1] or 0)


def config(port: str) -> str:
    """Cyclone's configuration for a port. DriverError for what is none."""
    domain(port)
    interface, _, tag = port.partition("/")
    interface, _, _ = interface.partition("@")
    local = interface == "lo"
    discovery = f"<Tag>{tag}</Tag>" if tag else ""
    if local:
        discovery += '<ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address="127.0.0.1"/></Peers>'
        discovery += "<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex>"
    return (
        "<CycloneDDS><Domain><General><Interfaces>"
        f'<NetworkInterface name="{interface}" multicast="{"false" if local else "default"}"/></Interfaces></General>'
        f"<Discovery>{discovery}</Discovery></Domain></CycloneDDS>"
    )
