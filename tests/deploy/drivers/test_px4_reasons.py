"""Why PX4 refuses: texts for ground stations, events for everybody."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")
from pymavlink.generator import mavparse

from robo_rl.deploy.emulate.px4 import WHOLE, Vehicle
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.mavlink.events import NAMES, REASONS, Event, Reasons, number
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink

sys.path.append(str(Path(__file__).parent))
from emulated_px4 import Session

ALL = b"\xff" * 4 + b"\0" * 36
EVENT_XML = """<?xml version="1.0"?><mavlink><messages><message id="410" name="EVENT"><description/>
<field type="uint8_t" name="destination_component"/><field type="uint8_t" name="destination_system"/>
<field type="uint32_t" name="id"/><field type="uint32_t" name="event_time_boot_ms"/>
<field type="uint16_t" name="sequence"/><field type="uint8_t" name="log_levels"/>
<field type="uint8_t[40]" name="arguments"/></message></messages></mavlink>"""
"""As mavlink/message_definitions/v1.0/common.xml defines it."""


def event(name: str, level: int = 3, modes: bytes = ALL, own: int | None = None) -> Event:
    return Event(0, 0, number(name) if own is None else own, 1000, 7, level, modes)


def test_the_message_is_that_of_mavlink_s_definition(tmp_path: Path) -> None:
    file = tmp_path / "event.xml"
    file.write_text(EVENT_XML)
    (theirs,) = mavparse.MAVXML(str(file), "2.0").message
    assert theirs.crc_extra == Event.crc_extra
    assert tuple(field.name for field in theirs.ordered_fields) == Event.ordered_fieldnames
    assert tuple(max(1, field.array_length) for field in theirs.ordered_fields) == Event.lengths
    sender, receiver = mavlink.MAVLink(None, 1, 1), mavlink.MAVLink(None)
    data = bytes(event("check_modes_local_pos").pack(sender))
    (came,) = receiver.parse_buffer(data)
    assert (came.get_type(), came.get_srcSystem(), came.id) == ("EVENT", 1, number("check_modes_local_pos"))
    assert bytes(came.arguments) == ALL
    receiver.robust_parsing = True
    (damaged,) = receiver.parse_buffer(data[:14] + bytes([data[14] ^ 1]) + data[15:])
    assert damaged.get_type() == "BAD_DATA"


def test_the_number_of_an_event_is_the_fnv_1a_hash_of_its_name() -> None:
    """Vectors of the hash: draft-eastlake-fnv, "" 811c9dc5, "a" e40c292c, "foobar" bf9cf968."""
    for text, hashed in (("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)):
        assert number(text) == hashed & 0xFFFFFF | 1 << 24
    assert len(NAMES) == len(REASONS)


def test_events_of_other_modes_and_of_no_weight_are_not_told() -> None:
    heard = Reasons()
    heard.hear(event("check_modes_local_pos", 3, (1 << 2).to_bytes(4, "little").ljust(40, b"\0")))
    heard.hear(event("", 6, own=17))
    heard.hear(SimpleNamespace(get_type=lambda: "HEARTBEAT"))
    assert not str(heard)
    heard.hear(event("check_rc_dl_no_dllink", 6))
    heard.hear(event("check_modes_local_pos", 3))
    heard.hear(event("", 2, own=99))
    told = "PX4's event 99; there is no valid position; there is no ground station"
    assert str(heard) == told, "the gravest first"
    heard.hear(event("check_modes_local_pos", 3))
    assert str(heard) == told
    heard.forget()
    assert not str(heard)


def test_texts_of_several_messages_are_one() -> None:
    heard = Reasons()
    for text, count, part, severity in ((b"of no weight", 3, 0, 6), (b"x", 3, 1, 6), (b"A" * 50, 4, 0, 2),
                                        (b"end\t", 4, 1, 2), (b"other\x1b[2J", 5, 0, 4),
                                        (b"lost", 6, 1, 2)):  # fmt: skip
        heard.hear(mavlink.MAVLink_statustext_message(severity, text, count, part))
    assert str(heard) == "A" * 50 + "end; other\\x1b[2J; lost"  # nothing that a terminal obeys


@pytest.mark.parametrize(("version", "ground", "battery", "told"), [
    ((1, 16), 0, 87, "Arming denied: Resolve system health failures first; checks before arming fail; no set-points"),
    ((1, 16), 2, 87, "checks before arming fail; no set-points for OFFBOARD come"),
    ((1, 14), 2, 9, "checks before arming fail; the battery is low"),
    ((1, 12), 0, 9, "Arming denied: Low battery"),
    ((1, 12), 2, 9, "PX4 tells ground stations alone why"),
])  # fmt: skip
def test_a_refused_arming_shows_px4_s_reason(version: tuple[int, int], ground: int, battery: int, told: str) -> None:
    """From 1.14 on the text says no more than that checks fail; with NAV_DLL_ACT set there is no text at all."""
    session = Session(vehicle=Vehicle(version=version))
    vehicle = session.vehicle
    vehicle.parameters["NAV_DLL_ACT"] = (ground, WHOLE)
    session.driver.file = type(session.driver.file)(hover_thrust=0.6, battery_min=0.0)
    session.driver.connect()
    vehicle.broken.battery = battery
    if battery > 15:
        vehicle.take = lambda rates, thrust: None  # set-points don't reach it  # type: ignore[method-assign]
    with pytest.raises(DriverError) as refused:
        session.driver.enable()
    assert "PX4 refuses to be armed" in str(refused.value) or "fly by set-points" in str(refused.value)
    assert told in str(refused.value)
    assert not vehicle.armed
