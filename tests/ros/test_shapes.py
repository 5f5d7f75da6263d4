"""Scans, images and tables become signals with a shape, and the other way; slow ones are awaited when they are due."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import Image as ImageMessage
from sensor_msgs.msg import JointState, LaserScan
from std_msgs.msg import Float32MultiArray, Float64MultiArray, MultiArrayDimension

from robo_rl.deploy.robot.named_values import numbers_by_name
from robo_rl.deploy.robot.scans import ASTRAY
from robo_rl.ros.frames import View
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.teleoperation import Teleoperation, TeleoperationError
from robo_rl.ros.wiring import WiringError, signal_wires

sys.path.append(str(Path(__file__).parents[1] / "deploy"))
from graphs import MOTORS, make_contract, position, target

from robo_rl.contract import Contract, Image, Scan, Signal

LASER, IMAGE, ARRAY = "sensor_msgs/msg/LaserScan", "sensor_msgs/msg/Image", "std_msgs/msg/Float64MultiArray"
TURN = 2 * math.pi
BEAMS = 64
SCAN = Signal(
    "scan", (), "m", "lidar", 0.0, 8.0, shape=(BEAMS,), layout=Scan(-math.pi, TURN / BEAMS, 0.1, 8.0), period=0.1
)
FAN = Signal("scan", (), "m", "lidar", 0.0, 8.0, shape=(21,), layout=Scan(-1.0, 0.1, 0.1, 8.0))
DEPTH = Signal("depth", (), "m", "camera", 0.2, 5.0, shape=(4, 6), layout=Image("depth", 1.5), period=0.05)
GRAY = Signal("gray", (), "1", "camera", 0.0, 1.0, shape=(4, 6), layout=Image("gray", 1.5))
HOLED = Signal("depth", (), "m", "camera", 0.0, 5.0, shape=(4, 6), layout=Image("depth with holes", 1.5), period=0.05)
TABLE = Signal("neighbours", ("x", "y"), "m", "body", -5.0, 5.0, shape=(3, 2))


def walls(angle: np.ndarray) -> np.ndarray:
    """Distance from the origin to the walls of a room, 4 m to each side along x and 2.5 m along y."""
    with np.errstate(divide="ignore"):
        return np.minimum(4.0 / np.abs(np.cos(angle)), 2.5 / np.abs(np.sin(angle)))


def lidar(count: int, begin: float, step: float, **fields: Any) -> LaserScan:
    angles = begin + step * np.arange(count)
    message = LaserScan(
        angle_min=begin, angle_max=float(angles[-1]), angle_increment=step, range_min=0.05, range_max=12.0
    )
    message.ranges = fields.pop("ranges", walls(angles).tolist())
    for name, value in fields.items():
        setattr(message, name, value)
    return message


LIDARS = {
    "240 beams": (240, -math.pi, TURN / 240),
    "360 beams": (360, 0.0, TURN / 360),
    "1080 beams": (1080, -math.pi, TURN / 1080),
    "reversed": (360, math.pi, -TURN / 360),
    "a turn ahead": (360, TURN + 0.3, TURN / 360),
    "a turn behind, reversed": (500, -TURN - 1.0, -TURN / 500),
    "both ends": (361, -math.pi, TURN / 360),
    "as the contract": (BEAMS, -math.pi, TURN / BEAMS),
}


@pytest.mark.parametrize("name", LIDARS)
def test_one_policy_serves_lidars_of_any_resolution_direction_and_beginning(name: str) -> None:
    """Against the room, at the message's beam that is nearest by the angle between them."""
    count, begin, step = LIDARS[name]
    found = read(LASER, "ranges", lidar(count, begin, step), SCAN)
    assert found.shape == (BEAMS,)
    assert found.dtype == np.float32
    looks = -math.pi + TURN / BEAMS * np.arange(BEAMS)
    beams = np.float32(begin) + np.float32(step) * np.arange(count)
    apart = np.abs((looks[:, None] - beams[None] + math.pi) % TURN - math.pi)
    assert apart.min(1).max() <= abs(step) / 2 + 1e-4
    nearest = np.sort(apart, axis=1)[:, :2]
    clear = nearest[:, 1] - nearest[:, 0] > 1e-3 * abs(step)  # of two that are as near, either will do
    expected = walls(beams[apart.argmin(1)])
    np.testing.assert_allclose(found[clear], expected[clear], rtol=1e-5)
    assert clear.sum() >= BEAMS // 2


@settings(deadline=None, max_examples=200)
@given(
    count=st.integers(2, 400), begin=st.floats(-20, 20), step=st.floats(0.005, 0.2), back=st.booleans(),
)  # fmt: skip
def test_any_fan_that_covers_the_contract_s_is_read_and_any_other_refused(
    count: int, begin: float, step: float, back: bool
) -> None:
    step = float(np.float32(-step if back else step))
    begin = float(np.float32(begin))
    angles = begin + step * np.arange(count)
    looks = -1.0 + 0.1 * np.arange(21)
    apart = np.abs((looks[:, None] - angles[None] + math.pi) % TURN - math.pi).min(1).max()
    reach = abs(step) * (count - 1)
    if abs(apart / abs(step) - 0.5) < 0.01 or abs(reach - TURN - ASTRAY) < 1e-3:
        return  # at the very edge
    message = lidar(count, begin, step)
    if reach > TURN + ASTRAY:
        with pytest.raises(
            MessageError, match=r"'scan': \d+ ranges from angle_min .* expected the same, within a full turn"
        ):
            read(LASER, "ranges", message, FAN)
    elif apart > abs(step) / 2:
        with pytest.raises(MessageError, match=r"'scan': no beam at -?\d+\.\d degrees: the scan is from"):
            read(LASER, "ranges", message, FAN)
    else:
        found = read(LASER, "ranges", message, FAN)
        bound = np.abs(walls(looks + abs(step) / 2) - walls(looks - abs(step) / 2)) + 0.5
        assert (np.abs(found - walls(looks)) <= bound).all()


def test_scans_follow_rep_117_and_the_contract_s_range() -> None:
    ranges = np.full(BEAMS, 3.0)
    ranges[:6] = [np.inf, -np.inf, 11.0, 0.07, 12.5, 8.0]
    found = read(LASER, "ranges", lidar(BEAMS, -math.pi, TURN / BEAMS, ranges=ranges.tolist()), SCAN)
    np.testing.assert_allclose(found[:7], [8.0, 0.1, 8.0, 0.1, 8.0, 8.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize("nothing", [math.nan, 0.0])
def test_a_beam_that_is_not_known_is_that_beside_it_within_half_a_beam_of_the_contract(nothing: float) -> None:
    message = lidar(1080, -math.pi, TURN / 1080)
    message.ranges = [nothing if 536 <= i <= 544 else 3.0 for i in range(1080)]  # about straight ahead
    message.ranges[545] = 2.0
    found = read(LASER, "ranges", message, SCAN)  # a beam of the contract is 17 of the message
    assert found[BEAMS // 2] == 2.0 or found[BEAMS // 2] == 3.0
    message.ranges = [nothing if 525 <= i <= 555 else 3.0 for i in range(1080)]
    with pytest.raises(MessageError, match="'scan': beam 32 is not a number, nor is one beside it"):
        read(LASER, "ranges", message, SCAN, View(nothing=()))  # tests/ros/test_frames.py has other settings
    message.ranges = [nothing] * 1080
    with pytest.raises(MessageError, match="is not a number"):
        read(LASER, "ranges", message, SCAN)


@pytest.mark.parametrize(
    "message",
    [
        LaserScan(),
        lidar(10, 0.0, 0.1, angle_increment=0.0),
        lidar(10, 0.0, 0.1, angle_increment=math.nan),
        lidar(10, 0.0, 0.1, angle_min=math.inf),
        lidar(20_000, -math.pi, TURN / 20_000),
    ],
)
def test_what_is_no_scan_is_refused(message: LaserScan) -> None:
    with pytest.raises(MessageError, match="'scan': "):
        read(LASER, "ranges", message, SCAN)


def test_a_scan_without_angles_is_taken_beam_by_beam() -> None:
    plain = Signal("scan", (), "m", "lidar", 0.5, 8.0, shape=(3,))
    message = LaserScan(ranges=[math.inf, -math.inf, math.nan])
    found = read(LASER, "ranges", message, plain)
    assert found[:2].tolist() == [8.0, 0.5]
    assert np.isnan(found[2])
    with pytest.raises(MessageError, match="4 numbers in 'ranges'; expected 3"):
        read(LASER, "ranges", LaserScan(ranges=[1.0] * 4), plain)


# --- images -------------------------------------------------------------------------------------------------------


def picture(values: np.ndarray, encoding: str, big: bool = False, room: int = 0) -> ImageMessage:
    """A message with ``room`` bytes of rubbish after every row."""
    kind = {"32FC1": "f4", "16UC1": "u2", "mono8": "u1"}[encoding]
    rows = np.asarray(values).astype((">" if big else "<") + kind)
    data = b"".join(row.tobytes() + b"\xa5" * room for row in rows)
    height, width = rows.shape
    return ImageMessage(
        height=height, width=width, encoding=encoding, is_bigendian=int(big), data=data,
        step=width * rows.itemsize + room,
    )  # fmt: skip


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("room", [0, 3])
def test_depth_is_read_in_metres_and_in_millimetres_row_by_row(big: bool, room: int) -> None:
    metres = np.linspace(0.5, 4.5, 24).reshape(4, 6)
    found = read(IMAGE, "data", picture(metres, "32FC1", big, room), DEPTH)
    np.testing.assert_allclose(found, metres, rtol=1e-6)
    found = read(IMAGE, "data", picture(np.rint(1000 * metres), "16UC1", big, room), DEPTH)
    np.testing.assert_allclose(found, np.rint(1000 * metres) / 1000, rtol=1e-6)
    found = read(IMAGE, "data", picture(np.arange(24).reshape(4, 6) * 11, "mono8", big, room), GRAY)
    np.testing.assert_allclose(found, np.arange(24).reshape(4, 6) * 11 / 255, rtol=1e-6)


def test_depth_beyond_what_can_be_measured_follows_rep_118() -> None:
    metres = np.full((4, 6), 2.0)
    metres[0, :4] = [np.inf, -np.inf, 9.0, 0.1]
    found = read(IMAGE, "data", picture(metres, "32FC1"), DEPTH)
    np.testing.assert_allclose(found[0], [5.0, 0.2, 5.0, 0.2, 2.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize(("encoding", "hole"), [("32FC1", np.nan), ("16UC1", 0)])
def test_an_image_with_holes_is_refused(encoding: str, hole: float) -> None:
    values = np.full((4, 6), 2000.0)
    values[2, 3] = hole
    with pytest.raises(MessageError, match="'depth': 1 of 24 pixels are invalid; expected a depth for each"):
        read(IMAGE, "data", picture(values, encoding), DEPTH)


@pytest.mark.parametrize(("encoding", "unit"), [("32FC1", 1.0), ("16UC1", 1000.0)])
def test_a_contract_that_allows_holes_gets_0_for_what_is_not_known_or_too_close(encoding: str, unit: float) -> None:
    """REP 118: NaN, or 0 mm, is not known; plus infinity is too far, minus infinity too close."""
    values, expected = np.full((4, 6), 2.0 * unit), np.full((4, 6), 2.0)
    values[2, 3], expected[2, 3] = (np.nan if unit == 1.0 else 0.0), 0.0
    values[1, 1], expected[1, 1] = 9.0 * unit, 5.0
    if unit == 1.0:
        values[0, :2], expected[0, :2] = [np.inf, -np.inf], [5.0, 0.0]
    np.testing.assert_allclose(read(IMAGE, "data", picture(values, encoding), HOLED), expected, rtol=1e-6)
    larger = np.kron(values, np.ones((3, 3)))
    larger[7, 10] = 3.0 * unit  # the middle of what was the hole
    expected[2, 3] = 3.0
    np.testing.assert_allclose(read(IMAGE, "data", picture(larger, encoding), HOLED), expected, rtol=1e-6)


def test_an_image_with_holes_goes_there_and_back_to_the_bit_and_as_nan_on_the_way() -> None:
    value = np.random.default_rng(2).uniform(0.07, 0.5, (4, 6)).astype(np.float32)
    value[1, 2] = value[3] = 0.0
    (wire,) = signal_wires([HOLED])
    message = compose([wire], {"depth": HOLED}, {"depth": value}, 5)
    assert message.encoding == "32FC1"
    sent = np.frombuffer(bytes(message.data), "<f4").reshape(4, 6)
    np.testing.assert_array_equal(np.isnan(sent), value == 0.0)
    np.testing.assert_array_equal(read(wire.kind, wire.field, message, HOLED), value)


def test_a_student_s_commands_are_the_same_by_messages_and_in_the_plain_loop() -> None:
    """Bit by bit: what the simulated robot measured, and the same through an Image in 32FC1 and back."""
    import torch

    from robo_rl.policy import PolicyGraph
    from robo_rl.ros.twins import make_twin

    twin = make_twin("arm-place-depth", seed=3)
    torch.manual_seed(0)
    policy = PolicyGraph(twin.task, (16,), "elu").requires_grad_(False).eval()
    signals = {s.name: s for s in twin.spec.signals}
    wires = {wire.name: wire for wire in signal_wires(twin.spec.signals)}
    wire, state, holes = wires["wrist_depth"], policy.initial_state(1), 0
    assert str(wire) == f"wrist_depth {IMAGE} data"
    for _ in range(5):
        plain = twin.measure()
        message = compose([wire], signals, plain, 10**9)
        arrived = {**plain, wire.name: read(wire.kind, wire.field, message, signals[wire.name])}
        holes += int((plain["wrist_depth"] == 0.0).sum())
        for name, value in plain.items():
            np.testing.assert_array_equal(arrived[name], value)
        batches = ({name: torch.from_numpy(v)[None] for name, v in given.items()} for given in (plain, arrived))
        (first, state), (second, _) = (policy(batch, state) for batch in batches)
        assert all(torch.equal(first[name], second[name]) for name in first)
        twin.step({name: value[0].numpy() for name, value in first.items()})
    assert holes > 0


def test_a_larger_image_is_made_smaller_by_whole_blocks() -> None:
    """Depth by the known pixel nearest to the middle of each block, gray by the mean."""
    values = np.arange(12 * 18, dtype=float).reshape(12, 18) / 100 + 1
    found = read(IMAGE, "data", picture(values, "32FC1"), DEPTH)
    np.testing.assert_allclose(found, values[1::3, 1::3], rtol=1e-6)
    values[1, 1] = np.nan
    found = read(IMAGE, "data", picture(values, "32FC1"), DEPTH)
    assert found[0, 0] in np.float32([values[0, 1], values[1, 0], values[1, 2], values[2, 1]])
    values[:3, :3] = np.nan
    with pytest.raises(MessageError, match="1 of 24 pixels are invalid"):
        read(IMAGE, "data", picture(values, "32FC1"), DEPTH)
    gray = np.random.default_rng(0).integers(0, 256, (8, 12))
    found = read(IMAGE, "data", picture(gray, "mono8"), GRAY)
    np.testing.assert_allclose(found, gray.reshape(4, 2, 6, 2).mean((1, 3)) / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoding": "rgb8"}, r"its encoding is 'rgb8'; expected one of \['16UC1', '32FC1'\]"),
        ({"height": 6, "width": 4}, "it has 6 x 4 pixels; expected 4 x 6, or a whole number of times as many"),
        ({"height": 8}, "it has 8 x 6 pixels"),
        ({"height": 0, "width": 0}, "it has 0 x 0 pixels"),
        ({"height": 4_000_000, "width": 6_000_000}, "it has 4000000 x 6000000 pixels"),
        ({"step": 20}, "it has 96 bytes in steps of 20; expected 4 rows of at least 24"),
        ({"data": b"\0" * 95}, "it has 95 bytes in steps of 24"),
    ],
)
def test_what_is_no_image_of_the_contract_is_refused(change: dict, message: str) -> None:
    good = picture(np.full((4, 6), 2.0), "32FC1")
    for name, value in change.items():
        setattr(good, name, value)
    with pytest.raises(MessageError, match=f"'depth': {message}"):
        read(IMAGE, "data", good, DEPTH)


def test_an_image_is_no_vector() -> None:
    with pytest.raises(MessageError, match="'neighbours': it is not an image in the contract"):
        read(IMAGE, "data", picture(np.full((4, 6), 2.0), "32FC1"), TABLE)


# --- tables -------------------------------------------------------------------------------------------------------


def layout(message: Any, sizes: list[int], strides: list[int], offset: int = 0) -> Any:
    message.layout.dim = [MultiArrayDimension(size=a, stride=b) for a, b in zip(sizes, strides, strict=True)]
    message.layout.data_offset = offset
    return message


def test_a_table_is_read_by_its_layout() -> None:
    numbers = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    expected = np.array(numbers, np.float32).reshape(3, 2)
    found = read(ARRAY, "data", layout(Float64MultiArray(data=numbers), [3, 2], [6, 2]), TABLE)
    np.testing.assert_array_equal(found, expected)
    moved = layout(Float32MultiArray(data=[9.0, *numbers]), [3, 2], [6, 2], offset=1)
    np.testing.assert_array_equal(read("std_msgs/msg/Float32MultiArray", "data", moved, TABLE), expected)


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "count"),
    [([], [], 0, 6), ([2, 3], [6, 3], 0, 6), ([3, 2], [6, 3], 0, 6), ([3, 2], [6, 2], 1, 6), ([3, 2], [6, 2], 0, 5)],
)
def test_a_table_of_another_layout_is_refused(sizes: list[int], strides: list[int], offset: int, count: int) -> None:
    message = layout(Float64MultiArray(data=[1.0] * count), sizes, strides, offset)
    with pytest.raises(
        MessageError, match=r"'neighbours': its layout has .* expected \(3, 2\) and \[6, 2\], row by row"
    ):
        read(ARRAY, "data", message, TABLE)


# --- there and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "signal", [SCAN, FAN, DEPTH, HOLED, GRAY, TABLE], ids=lambda signal: f"{signal.name}-{signal.size}"
)
def test_what_the_stand_in_sends_is_what_the_policy_reads(signal: Signal) -> None:
    lower, upper = (limits.reshape(signal.dimensions) for limits in signal.bounds)
    value = np.random.default_rng(1).uniform(np.maximum(lower, 0.2), upper, signal.dimensions).astype(np.float32)
    if signal is GRAY:
        value = np.rint(255 * value) / np.float32(255)
    (wire,) = signal_wires([signal])
    message = compose([wire], {signal.name: signal}, {signal.name: value}, 5_000_000_007)
    if hasattr(message, "header"):
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (5, 7)
    np.testing.assert_allclose(read(wire.kind, wire.field, message, signal), value, rtol=1e-6)


def test_wires_of_signals_with_a_shape() -> None:
    age = Signal("neighbours_age", ("age",), "s", "none", (0.0,), (1.0,), source="runtime", age_of="neighbours")
    wires = signal_wires([SCAN, DEPTH, GRAY, TABLE, age])
    assert [str(wire) for wire in wires] == [
        f"scan {LASER} ranges", f"depth {IMAGE} data", f"gray {IMAGE} data", f"signal/neighbours {ARRAY} data",
    ]  # fmt: skip
    with pytest.raises(WiringError, match=r"there are wires for signals .*neighbours_age"):
        signal_wires([TABLE, age], {"neighbours_age": f"age {ARRAY} data"})


# --- slow signals in the buffer -----------------------------------------------------------------------------------


def slow_contract() -> Contract:
    age = Signal("neighbours_age", ("age",), "s", "none", (0.0,), (1.0,), source="runtime", age_of="neighbours")
    return make_contract([position(), DEPTH, TABLE, age], [target()])  # depth every fifth step


class Bench:
    """A signal buffer on a clock in our hands."""

    def __init__(self) -> None:
        contract = slow_contract()
        wires = signal_wires(contract.signals, {"joint_position": "joint_states sensor_msgs/msg/JointState position"})
        self.buffer = SignalBuffer(contract, wires)

    def joints(self, time: int) -> bool:
        """Joints arrive at ``time`` (ms); whether all is there now."""
        message = JointState(name=list(MOTORS), position=[0.0] * 3)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(1_000_000 * time, 1_000_000_000)
        self.buffer.put(("joint_states", "sensor_msgs/msg/JointState"), message, 1000 * time, 1_000_000 * time)
        return self.buffer.fresh

    def depth(self, time: int) -> bool:
        message = picture(np.full((4, 6), 2.0), "32FC1")
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(1_000_000 * time, 1_000_000_000)
        self.buffer.put(("depth", IMAGE), message, 1000 * time, 1_000_000 * time)
        return self.buffer.fresh


def test_a_slow_signal_is_awaited_only_when_its_period_is_up() -> None:
    bench = Bench()
    assert not bench.joints(1000)  # the image has never come
    assert bench.depth(1001)
    for time in (1010, 1020, 1030, 1040):
        bench.buffer.take()
        assert not bench.buffer.fresh
        assert bench.joints(time)
    bench.buffer.take()
    assert not bench.joints(1050)
    assert bench.depth(1052)
    bench.buffer.take()
    assert bench.joints(1060)


def test_the_buffer_holds_the_newest_sample_with_its_stamp() -> None:
    bench = Bench()
    bench.depth(1000)
    for time in (1000, 1010, 1020):
        bench.joints(time)
        samples, _ = bench.buffer.take()
        stamps = {name: stamp for name, (_, stamp) in samples.items()}
        assert stamps == {"depth": 1_000_000, "joint_position": 1000 * time}
    assert samples["depth"][0].shape == (4, 6)


# --- people -------------------------------------------------------------------------------------------------------


def test_a_page_shows_the_least_mean_and_greatest_of_an_array() -> None:
    from robo_rl.ros.panel_node import SUMMARY, summary

    assert SUMMARY == ("least", "mean", "greatest")
    assert summary(np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)) == [1.0, 3.0, 6.0]


def test_steering_refuses_set_points_with_a_shape_in_words() -> None:
    path = Signal("path", ("x", "y"), "m", "world", -5.0, 5.0, shape=(10, 2), source="operator")
    contract = make_contract([position(), path], [target()])
    with pytest.raises(TeleoperationError, match=r"'path' \(10 x 2 numbers\) is neither a velocity nor a position"):
        Teleoperation(contract, ("path",), 1.0, 1.0)


def test_constant_set_points_have_the_contract_s_shape() -> None:
    path = Signal("path", ("x", "y"), "m", "world", -5.0, 5.0, shape=(2, 2), source="operator")
    contract = make_contract([position(), path], [target()])
    found = numbers_by_name(["path=1 2 3 4"], contract, "--setpoint")["path"]
    np.testing.assert_array_equal(found, np.array([[1, 2], [3, 4]], np.float32))
