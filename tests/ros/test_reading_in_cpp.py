"""Nodes and controllers in C++ make the same of a message as the Python node: the same numbers, or both refuse it."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, LaserScan

from robo_rl.contract import Scan, Signal
from robo_rl.ros.frames import Frames
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.wiring import Wire

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ros2_ws/src/robo_rl_controller"
NAN, INF = math.nan, math.inf
SHARED = ["angle_min", "angle_max", "angle_increment", "range_min", "range_max"]
XYZ, QUATERNION = ("x", "y", "z"), ("x", "y", "z", "w")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See tests/ros/cpp/reading.cpp. Compiling it takes some seconds: it is the reader that runs on robots."""
    include = Path(sys.prefix) / "include"
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    made = tmp_path_factory.mktemp("reading") / "reading"
    node = [PACKAGE / f"node/{name}.cpp" for name in ("reading", "frames", "scans", "wire")]
    headers = [word for path in include.iterdir() if path.is_dir() for word in ("-isystem", path)]
    own = ["-I", PACKAGE / "node", "-I", ROOT / "deploy/build/c"]
    words = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-ffp-contract=off"]
    subprocess.run([*words, *own, *headers, *node, ROOT / "tests/ros/cpp/reading.cpp", "-o", made], check=True)
    return made


class Case(SimpleNamespace):
    """A message, and how it is read. ``line``: for the program."""

    kind: str
    wire: str
    frame: str
    elements: str
    world: str
    frame_id: str
    child: str
    numbers: Sequence[float]
    message: Any
    signal: Signal

    @property
    def line(self) -> str:
        texts = (self.kind, self.wire, self.frame, self.elements, self.world, self.frame_id, self.child)
        return " ".join([*((text or "-").replace(" ", ";") for text in texts), *map(repr, map(float, self.numbers))])

    def expected(self) -> np.ndarray | str:
        wire = Wire.parse("it", self.wire)
        try:
            view = wire.view(Frames(world=self.world))
            return read(wire.kind, wire.field, self.message, wire.measured(self.signal), view).ravel()
        except MessageError as error:
            return str(error)


def require_the_same(program: Path, cases: Sequence[Case], refused: range) -> None:
    """``refused``: of how many; so that both are tried."""
    text = "".join(case.line + "\n" for case in cases)
    answers = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    count = 0
    for case, answer in zip(cases, answers, strict=True):
        expected = case.expected()
        if isinstance(expected, str):
            assert answer.startswith("refused: "), f"{case.line}\nPython: {expected}\nC++: {answer}"
            assert answer.startswith("refused: 'it': ")
            count += 1
        else:
            assert not answer.startswith("refused"), f"{case.line}\nPython: {expected}\nC++: {answer}"
            found = [float.fromhex(word) for word in answer.split()]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=case.line)
    assert count in refused, count


def signal_of(frame: str, elements: Sequence[str]) -> Signal:
    kind = "quaternion" if len(elements) == 4 else "vector"
    return Signal("it", tuple(elements), "1", frame, (-9.0,) * len(elements), (9.0,) * len(elements), kind=kind)


# --- scans ----------------------------------------------------------------------------------------------------

FILLS = ("plain", "zeros", "negative", "nan", "-inf", "beyond", "millimetres", "near", "all zero", "all one number")


def scan_case(draw: np.random.Generator, fill: str) -> Case:
    count, beams = int(draw.integers(3, 60)), int(draw.integers(1, 30))
    turn = draw.choice([2 * np.pi, 4.7, 1.5])
    sense = draw.choice([1.0, 1.0, -1.0])
    step, first = sense * turn / count, float(draw.uniform(-4.0, 1.0))
    low, high = draw.choice([(0.1, 8.0), (0.1, 8.0), (0.0, 0.0), (0.0, 12.0), (100.0, 8000.0)])
    last = draw.choice([first + step * (count - 1), first + step * (count - 1), 0.0, NAN, first - step * count])
    ranges = draw.uniform(0.2, 7.0, count)
    some = draw.random(count) < draw.choice([0.1, 0.5, 0.9])
    worth = {"zeros": 0.0, "negative": -1.0, "nan": NAN, "-inf": -INF, "beyond": high + 1.0, "near": 0.15}
    ranges = np.where(some, worth.get(fill, ranges), ranges)
    ranges = np.where(some & (draw.random(count) < 0.5), 0.0, ranges) if fill == "near" else ranges
    ranges = ranges * (1000.0 if fill == "millimetres" else 0.0 if fill == "all zero" else 1.0)
    ranges = np.full(count, 65.0) if fill == "all one number" else ranges
    width = min(turn, 2.0) / beams
    layout = Scan(float(first + sense * 0.3 - (width * beams if sense < 0 else 0.0)), width, 0.12, 10.0)
    told = np.array([first, last, step, low, high], np.float32)
    message = LaserScan(**dict(zip(SHARED, map(float, told), strict=True)), ranges=ranges.astype(np.float32).tolist())
    message.header.frame_id = str(draw.choice(["laser", "", "base_scan", "camera_optical_frame", "map"]))
    nothing = draw.choice(["", " nothing=inf", " nothing=zero,nan", " nothing=max", " nothing=zero,nan,max"])
    wire = "scan sensor_msgs/msg/LaserScan ranges" + nothing + draw.choice(["", " yaw=0.4", " roll=3.141592654"])
    signal = Signal("it", (), "m", "body", 0.12, 10.0, shape=(beams,), layout=layout)
    ends = (layout.angle_min, layout.angle_increment, layout.range_min, layout.range_max)
    numbers = [*ends, *told, *ranges.astype(np.float32)]
    return Case(
        kind="LaserScan", wire=wire, frame="body", elements=str(beams), world="", frame_id=message.header.frame_id,
        child="", numbers=numbers, message=message, signal=signal,
    )  # fmt: skip


@pytest.mark.parametrize("fill", FILLS)
def test_a_scan_is_read_as_by_the_python_node(program: Path, fill: str) -> None:
    draw = np.random.default_rng(FILLS.index(fill))
    require_the_same(program, [scan_case(draw, fill) for _ in range(150)], range(1, 151))


# --- poses, velocities, rates ------------------------------------------------------------------------------------

FRAME_IDS = (
    "", "odom", "map", "/map", "base_link", "tb3/base_link", "imu_link", "camera_optical_frame", "base_link_frd",
    "imu_ned", "panda_link0", "teleop_twist_joy", "x" * 300,
)  # fmt: skip
CHILDREN = ("base_link", "base_footprint", "", "odom", "camera_link")
WORLD, BODY, TURNED = "world", "body", "body to world"


def quaternion(draw: np.random.Generator) -> np.ndarray:
    q = draw.normal(size=4)
    q /= np.linalg.norm(q)
    return q * draw.choice([1.0, 1.0, 1.0, 0.0, 0.5])


def variances(draw: np.random.Generator, count: int) -> list[float]:
    return (
        draw.choice([0.0, 0.1], count).tolist()
        if draw.random() < 0.6
        else draw.choice([0.1, -1.0, NAN, INF], count).tolist()
    )


def put(vector: Any, values: Sequence[float], names: Sequence[str] = XYZ) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(vector, name, float(value))


def odometry(draw: np.random.Generator) -> tuple[Any, list[float]]:
    m, p, q, v, w = Odometry(), draw.normal(size=3), quaternion(draw), draw.normal(size=3), draw.normal(size=3)
    m.child_frame_id = str(draw.choice(CHILDREN))
    pose, twist = variances(draw, 6), variances(draw, 6)
    put(m.pose.pose.position, p)
    put(m.pose.pose.orientation, q, QUATERNION)
    put(m.twist.twist.linear, v)
    put(m.twist.twist.angular, w)
    for i in range(6):
        m.pose.covariance[7 * i], m.twist.covariance[7 * i] = pose[i], twist[i]
    return m, [*p, *q, *v, *w, *pose, *twist]


def imu(draw: np.random.Generator) -> tuple[Any, list[float]]:
    m, q, w, a = Imu(), quaternion(draw), draw.normal(size=3), draw.normal(size=3)
    put(m.orientation, q, QUATERNION)
    put(m.angular_velocity, w)
    put(m.linear_acceleration, a)
    told = [variances(draw, 3) for _ in range(3)]
    names = ("orientation_covariance", "angular_velocity_covariance", "linear_acceleration_covariance")
    for name, values in zip(names, told, strict=True):
        for i in range(3):
            getattr(m, name)[4 * i] = values[i]
    return m, [*q, *w, *a, *told[0], *told[1], *told[2]]


def pose(draw: np.random.Generator) -> tuple[Any, list[float]]:
    m, p, q = PoseStamped(), draw.normal(size=3), quaternion(draw)
    put(m.pose.position, p)
    put(m.pose.orientation, q, QUATERNION)
    return m, [*p, *q]


def twist(draw: np.random.Generator) -> tuple[Any, list[float]]:
    m, v, w = TwistStamped(), draw.normal(size=3), draw.normal(size=3)
    put(m.twist.linear, v)
    put(m.twist.angular, w)
    return m, [*v, *w]


FIELDS = {
    "Odometry": (odometry, "nav_msgs/msg/Odometry", {
        "position": [(WORLD, XYZ), (WORLD, ("x", "y"))], "orientation": [(TURNED, QUATERNION)],
        "linear_velocity": [(WORLD, XYZ), (BODY, XYZ), ("base", ("y", "x"))],
        "angular_velocity": [(BODY, XYZ), (BODY, ("z",)), (WORLD, XYZ)]}),
    "Imu": (imu, "sensor_msgs/msg/Imu", {
        "orientation": [(TURNED, QUATERNION)], "angular_velocity": [(BODY, XYZ), ("base", ("z",))],
        "linear_acceleration": [(BODY, XYZ)]}),
    "PoseStamped": (pose, "geometry_msgs/msg/PoseStamped", {
        "position": [(WORLD, XYZ), ("base", XYZ), ("heading", ("x", "y"))], "orientation": [(TURNED, QUATERNION)]}),
    "TwistStamped": (twist, "geometry_msgs/msg/TwistStamped", {
        "linear": [(BODY, XYZ), ("heading", ("x", "y"))], "angular": [(BODY, ("z",))],
        "by_name": [(BODY, ("vx", "wz")), ("heading", ("vx", "vy", "wz"))]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", FIELDS)
def test_poses_velocities_and_rates_are_read_as_by_the_python_node(program: Path, kind: str) -> None:
    draw, (make, full, fields) = np.random.default_rng(len(kind)), FIELDS[kind]
    cases = []
    for field, channels in fields.items():
        for frame, elements in channels:
            for frame_id in FRAME_IDS:
                for world in ("", "odom"):
                    message, numbers = make(draw)
                    message.header.frame_id = frame_id
                    wire = f"topic {full} {field}" + (" frame=camera_optical_frame" if draw.random() < 0.1 else "")
                    cases.append(Case(
                        kind=kind, wire=wire, frame=frame, elements=",".join(elements), world=world, frame_id=frame_id,
                        child=getattr(message, "child_frame_id", ""), numbers=numbers, message=message,
                        signal=signal_of(frame, elements)))  # fmt: skip
    require_the_same(program, cases, range(len(cases) // 4, len(cases)))
