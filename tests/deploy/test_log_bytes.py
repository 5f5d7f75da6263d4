"""What a log's decoder reads quickly is what the general decoder of ``mcap_ros2`` reads of the same bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.records import Schema
from mcap_ros2.decoder import DecoderFactory

from robo_rl.deploy.robot.logs.cdr import (
    ARRAY,
    DEFINITIONS,
    JOINT_STATE,
    Decoder,
    NamedNumbers,
    array_bytes,
    array_values,
)

NAMES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9), max_size=7)
NUMBERS = st.floats(width=64)


def general(kind: str, data: bytes) -> object:
    decode = DecoderFactory().decoder_for(
        "cdr", Schema(id=1, name=kind, encoding="ros2msg", data=DEFINITIONS[kind].encode())
    )
    assert decode is not None
    return decode(data)


def bits(values: object) -> bytes:
    return np.array(values, float).tobytes()


@given(st.data())
def test_numbers_with_names_come_back_to_the_bit_the_quick_way_and_the_general_one(draw: st.DataObject) -> None:
    names = draw.draw(NAMES)
    numbers, decoder = NamedNumbers(names), Decoder()
    for _ in range(3):
        values = draw.draw(st.lists(NUMBERS, min_size=len(names), max_size=len(names)))
        data = numbers.encode(draw.draw(st.integers(0, 2**60)), np.array(values, float))
        assert numbers.decode(data) is not None
        found, same = decoder.decode(1, JOINT_STATE, data), general(JOINT_STATE, data)
        assert list(found.name) == list(same.name) == names  # type: ignore[attr-defined]
        assert bits(found.position) == bits(same.position) == bits(values)  # type: ignore[attr-defined]


@given(st.lists(NUMBERS, max_size=20))
def test_an_array_comes_back_to_the_bit_both_ways(values: list[float]) -> None:
    data = array_bytes(np.array(values, float))
    assert (array_values(data) is not None) == bool(values)  # an empty one is left to the general decoder
    found, same = Decoder().decode(1, ARRAY, data), general(ARRAY, data)
    assert bits(found.data) == bits(same.data) == bits(values)  # type: ignore[attr-defined]


def test_other_messages_of_a_channel_are_read_as_they_are() -> None:
    decoder, plain = Decoder(), NamedNumbers(["a", "b"]).encode(1, np.array([1.0, 2.0]))
    decoder.decode(1, JOINT_STATE, plain)
    speeds = plain[:-8] + struct.pack("<I4x2d", 2, 5.0, 6.0) + bytes(4)
    for data in (
        speeds,
        NamedNumbers(["a", "c"]).encode(1, np.array([3.0, 4.0])),
        NamedNumbers([]).encode(1, np.zeros(0)),
    ):
        found, same = decoder.decode(1, JOINT_STATE, data), general(JOINT_STATE, data)
        assert (list(found.name), list(found.position)) == (list(same.name), list(same.position))  # type: ignore[attr-defined]
    for cut in range(len(plain)):
        with pytest.raises((ValueError, struct.error, EOFError)):
            decoder.decode(1, JOINT_STATE, plain[:cut])
