"""Nav2's FollowPath by a policy: paths that are refused, arrival, another goal, cancelling, faults.

The node is asked over DDS, by the action's own client. PyPI has no nav2_msgs: ``nav2_interface`` makes it with rosidl's
generators, from the definition that Nav2 documents.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from hypothesis import given
from hypothesis import strategies as st

from robo_rl.ros.path_following import Code, FollowedPath, Movement, PathError, Pose, Rules, check

AHEAD = np.array([0.2, 0.4, 0.8])
LINE = np.column_stack([np.linspace(0.0, 3.0, 61), np.zeros(61)])


def test_the_points_ahead_are_told_in_the_robots_frame_and_end_where_the_path_ends() -> None:
    path = FollowedPath(LINE, Pose(0.0, 0.1, 0.0), AHEAD, 1.0, Rules())
    seen = path.update(Pose(0.5, 0.1, math.pi / 2))
    np.testing.assert_allclose(seen.ahead, [(-0.1, -0.2), (-0.1, -0.4), (-0.1, -0.8)], atol=1e-6)
    assert seen.left == pytest.approx(2.5)
    for x in (1.0, 1.5, 2.0, 2.5, 2.7):
        seen = path.update(Pose(x, 0.0, 0.0))
        assert not seen.arrived
    np.testing.assert_allclose(seen.ahead[1:], [(0.3, 0.0)] * 2, atol=1e-6)
    assert path.update(Pose(2.8, 0.1, 0.0)).arrived


def test_a_path_that_passes_by_its_end_is_driven_to_its_end() -> None:
    """A loop of 8 m that ends where it begins."""
    turn = np.linspace(0.0, 2 * np.pi, 200)
    loop = 1.3 * np.column_stack([np.cos(turn) - 1.0, np.sin(turn)])
    path = FollowedPath(loop, Pose(0.0, 0.0, 0.0), AHEAD, 1.0, Rules())
    arrived = [path.update(Pose(*place, 0.0)).arrived for place in loop]
    assert not any(arrived[:190])
    assert arrived[-1]


@pytest.mark.parametrize("place", [(0.0, -0.05), (0.0, 0.0), (0.03, -0.1), (-0.1, -0.2)])
def test_a_loop_is_driven_though_the_robot_is_nearer_to_its_end(place: tuple[float, float]) -> None:
    turn = np.linspace(0.0, 2 * np.pi, 200)
    loop = 1.3 * np.column_stack([np.cos(turn) - 1.0, np.sin(turn)])
    seen = FollowedPath(loop, Pose(*place, 0.0), AHEAD, 1.0, Rules()).update(Pose(*place, 0.0))
    assert not seen.arrived
    assert seen.left == pytest.approx(2.6 * np.pi, abs=0.1)


def test_a_path_that_mows_begins_with_its_first_row_and_a_goal_that_comes_again_goes_on() -> None:
    rows = [np.column_stack([np.linspace(0.0, 4.0, 81)[:: 1 - 2 * (k % 2)], np.full(81, 0.3 * k)]) for k in range(6)]
    path = np.concatenate(rows)
    begun = FollowedPath(path, Pose(0.0, 0.16, 0.0), AHEAD, 1.0, Rules())
    assert begun.update(Pose(0.0, 0.16, 0.0)).left == pytest.approx(begun.length, abs=0.01)
    again = FollowedPath(path, Pose(2.0, 0.61, 0.0), AHEAD, 1.0, Rules())
    assert again.update(Pose(2.0, 0.61, 0.0)).left == pytest.approx(3.5 * 4.0 + 3 * 0.3, abs=0.01)


NAN = np.array([(0.0, 0.0), (np.nan, 0.0)])
JUMP = np.array([(0.0, 0.0), (2.5, 0.0)])


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (np.zeros((0, 2)), "has no points"),
        (NAN, "point 1 of the path"),
        (JUMP, "2.50 m apart"),
        (np.add(LINE, (0.0, 1.5)), "1.50 m away"),
        (np.zeros((20_001, 2)), "20001 points"),
    ],
)
def test_a_path_that_can_not_be_driven_is_refused(points: np.ndarray, said: str) -> None:
    with pytest.raises(PathError, match=said) as caught:
        FollowedPath(points, Pose(0.0, 0.0, 0.0), AHEAD, 1.0, Rules())
    assert caught.value.code is Code.INVALID_PATH


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=6))
def test_whatever_numbers_come_they_are_a_path_or_refused(numbers: list[tuple[float, float]]) -> None:
    points = np.array(numbers).reshape(-1, 2)
    try:
        check(points, Rules())
    except PathError:
        return
    assert len(points)
    assert np.isfinite(points).all()
    assert (np.hypot(*np.diff(points, axis=0).T) <= 2.0).all()


def test_who_stays_within_half_a_metre_for_ten_seconds_is_stuck() -> None:
    movement = Movement(Rules())
    assert not any(movement.stuck(Pose(0.06 * t, 0.0, 0.0), float(t)) for t in range(100))
    movement = Movement(Rules())
    times = [t for t in range(30) if movement.stuck(Pose(0.4 * math.sin(t), 0.0, 0.0), float(t))]
    assert times[0] == 11


def test_who_gets_on_along_a_path_that_goes_to_and_fro_is_not_stuck_and_who_drives_about_is() -> None:
    def first(left: Callable[[int], float], size: float) -> int | None:
        movement = Movement(Rules())
        return next((t for t in range(200) if movement.stuck(Pose(size * (t % 2), 0.0, 0.0), t, left(t))), None)

    assert first(lambda t: 20.0 - 0.1 * t, 0.2) is None
    assert first(lambda t: 20.0, 0.2) == 11
    assert first(lambda t: 20.0 - 0.1 * min(t, 30), 2.0) == 30 + 61
    movement = Movement(Rules())
    for t in range(11):  # plans of other lengths move no robot
        movement.replanned()
        assert not movement.stuck(Pose(0.0, 0.0, 0.0), t, 5.0 + 2.0 * (t % 2))
    assert movement.stuck(Pose(0.0, 0.0, 0.0), 11, 5.0)


def test_a_pose_goes_from_the_frame_of_the_odometry_to_that_of_the_map() -> None:
    """Against homogeneous matrices."""

    def matrix(pose: Pose) -> np.ndarray:
        c, s = math.cos(pose.heading), math.sin(pose.heading)
        return np.array([(c, -s, pose.x), (s, c, pose.y), (0.0, 0.0, 1.0)])

    frame, pose = Pose(1.0, -2.0, 0.7), Pose(0.3, 0.4, -1.1)
    np.testing.assert_allclose(matrix(pose.within(frame)), matrix(frame) @ matrix(pose), atol=1e-12)


# --- the node, over DDS ------------------------------------------------------------------------------------------

SEED, RATE = 3, 2.5 * 0.22  # m/s², that of the contract


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a process needs to know nav2_msgs; this one does."""
    if importlib.util.find_spec("nav2_msgs") is not None:
        yield {}
        return
    pytest.importorskip("rosidl_generator_py", reason="no nav2_msgs, and no generators to make it")
    if shutil.which("g++") is None:
        pytest.skip("no nav2_msgs, and no g++ to compile it")
    from nav2_interface import make

    folder = tmp_path_factory.mktemp("nav2")
    found = make(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield found
    for name in [name for name in sys.modules if name.split(".")[0] == "nav2_msgs"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def steering_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that steers by hand-set weights towards the fourth point ahead: no training."""
    import torch

    from robo_rl.contract import Provenance
    from robo_rl.deploy.build.export import export
    from robo_rl.policy import PolicyGraph
    from robo_rl.sim.tasks.mobile_base.clearance import COUNT
    from robo_rl.sim.tasks.mobile_base.follow import BEAMS, DiffFollow

    task = DiffFollow()
    task.spec = dataclasses.replace(task.spec, episode_length=10.0)  # of which the export runs a whole one
    policy = PolicyGraph(task, (3,), "elu")
    x = 2 * BEAMS + COUNT + 3 + 2 * 3  # of that point; its y is the next number
    with torch.no_grad():
        for weights in policy.network.parameters():
            weights.normal_(std=1e-6)
        first, _, last = policy.network
        first.weight[0, x + 1], first.weight[1, x + 1], first.weight[2, x] = 5.0, -5.0, -5.0
        last.weight[1, :3], last.weight[0, :3] = torch.tensor([2.0, -2.0, 1.0]), torch.tensor([-2.0, -2.0, -3.0])
        last.bias[:] = torch.tensor([0.5, 0.9])
    out = tmp_path_factory.mktemp("steering") / "steering.onnx"
    export(policy, Provenance("none", 0, 0, "0" * 64), out)
    return out


class Navigator:
    """A client of the action, as Nav2's behaviour tree has one."""

    def __init__(self, flight: Any) -> None:
        from nav2_msgs.action import FollowPath
        from nav_msgs.msg import Path as PathMessage
        from rclpy.action import ActionClient

        self.flight, self.kinds = flight, (FollowPath, PathMessage)
        self.client = ActionClient(flight.operator.node, FollowPath, "follow_path")
        self.feedback: list[Any] = []
        flight.until(self.client.server_is_ready, "the action's server")

    def send(self, points: np.ndarray, frame: str = "odom", controller: str = "") -> Any:
        """The handle of a goal that was accepted."""
        from geometry_msgs.msg import PoseStamped

        message = self.kinds[1]()
        message.header.frame_id = frame
        for x, y in points:
            pose = PoseStamped()
            pose.pose.position.x, pose.pose.position.y = float(x), float(y)
            message.poses.append(pose)
        asked = self.client.send_goal_async(
            self.kinds[0].Goal(path=message, controller_id=controller),
            lambda told: self.feedback.append(told.feedback),
        )
        self.flight.until(asked.done, "the answer to a goal")
        assert asked.result().accepted
        return asked.result()

    def result(self, handle: Any) -> tuple[int, int, str]:
        """Status, code and sentence of a goal, once it has ended."""
        future = handle.get_result_async()
        self.flight.until(future.done, "the result of a goal")
        return future.result().status, future.result().result.error_code, future.result().result.error_msg

    def ended(self, *given: Any, **named: Any) -> tuple[int, int, str]:
        return self.result(self.send(*given, **named))


@pytest.fixture(scope="module")
def navigator(
    interface: dict[str, str], steering_file: Path, tmp_path_factory: pytest.TempPathFactory, make_flight
) -> Iterator[Navigator]:
    """The simulated base and the policy's node in lockstep, and the action's server, which has to keep up with them."""
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        given = ("--parameter", "operator:=false", f"seed:={SEED}", "real_time_factor:=2.0")
        flight.start("twin", str(steering_file), "--use-sim-time", *given)
        flight.start("policy", str(steering_file), "--use-sim-time")
        path = {**interface, "PYTHONPATH": ":".join([str(flight.package), *sys.path])}
        given = ("--parameter", "timeout:=20.0", "patience:=60.0")
        flight.start("follow_path", "--use-sim-time", *given, env=path)
        flight.until(lambda: flight.truth, "the twin")
        flight.operator.do("configure")
        flight.until(lambda: flight.gates, "the gate")
        yield Navigator(flight)


@pytest.fixture(scope="module")
def plan() -> np.ndarray:
    """The first 1.5 m of the path that is planned in the twin's room."""
    from robo_rl.ros.twins import make_twin

    rooms = make_twin("diff-follow", seed=SEED).plant.rooms
    points = rooms.planned[0].numpy().astype(float)
    return points[np.cumsum(np.hypot(*np.diff(points, axis=0, prepend=points[:1]).T)) <= 1.5]


ABORTED, CANCELED, SUCCEEDED = 6, 5, 4  # action_msgs/msg/GoalStatus


@pytest.mark.slow
def test_what_the_server_uses_is_what_its_permissions_allow(navigator: Navigator, steering_file: Path) -> None:
    """An action's own topics and services are below its name; SROS 2 allows them by it."""
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.ros.permissions import permissions

    node, of = navigator.flight.operator.node, ("follow_path", "/")
    navigator.ended(np.zeros((0, 2)))
    root = ElementTree.fromstring(permissions(Bundle.read(steering_file).contract))
    (enclave,) = [one for one in root.iter("enclave") if one.attrib["path"] == "/follow_path"]
    rules = {(group.tag, *group.attrib): {one.text for one in group} for group in enclave.find("profiles/profile")}
    assert rules["actions", "execute"] == {"/follow_path"}
    for what, found in {
        ("topics", "publish"): node.get_publisher_names_and_types_by_node(*of),
        ("topics", "subscribe"): node.get_subscriber_names_and_types_by_node(*of),
        ("services", "request"): node.get_client_names_and_types_by_node(*of),
    }.items():
        names = {name for name, _ in found if not name.startswith("/follow_path/")}
        assert names <= rules[what], what
    assert {"/signal/path_points", "/signal/speed_limit"} <= rules["topics", "publish"]
    assert not any("command" in name or name == "/cmd_vel" for name in rules["topics", "publish"])


@pytest.mark.slow
def test_nav2_has_a_policy_follow_its_paths(navigator: Navigator, plan: np.ndarray) -> None:
    flight, aborted = navigator.flight, {}
    flight.until(lambda: navigator.ended(plan[:0])[1] != 102, "odometry at the server")
    for name, given_ in {
        "frame": (plan, "map"), "moving": (plan, "base_link"), "controller": (plan, "odom", "Other"),
        "empty": (plan[:0],), "far": (plan + 9.0,),
    }.items():  # fmt: skip
        status, code, _ = navigator.ended(*given_)
        assert status == ABORTED
        aborted[name] = code
    assert aborted == {"frame": 102, "moving": 103, "controller": 101, "empty": 103, "far": 103}
    assert not [command for _, command in flight.applied if (command != 0).any()]

    first = navigator.send(plan[:5])
    flight.until(lambda: any(told.speed > 0.05 for told in navigator.feedback), "a robot that drives")
    second = navigator.send(plan)
    assert navigator.result(first)[:2] == (ABORTED, 0)  # preempted
    speeds = len(navigator.feedback)
    assert navigator.result(second) == (SUCCEEDED, 0, "")
    assert min(told.speed for told in navigator.feedback[speeds:-60]) > 0.0  # it did not stop for the second
    left = [told.distance_to_goal for told in navigator.feedback[speeds:]]
    assert left[0] > 0.7
    assert left[-1] < 0.3
    place = flight.truth[-1][1][:2]
    assert np.hypot(*(place - plan[-1])) < 0.3
    assert flight.operator.lifecycle() == "inactive"  # cmd_vel is others'

    back = navigator.send(plan[::-1])
    flight.until(lambda: np.hypot(*(flight.truth[-1][1][:2] - place)) > 0.2, "a robot on its way back")
    flight.applied.clear()
    asked = back.cancel_goal_async()
    flight.until(asked.done, "the answer to a cancel")
    assert navigator.result(back)[:2] == (CANCELED, 0)
    speeds_ = np.array([command[0] for _, command in flight.applied])
    assert abs(speeds_[-1]) < 1e-6
    assert speeds_.max() > 0.05
    passed = np.diff([time for time, _ in flight.applied])  # s: a message of a sensor's quality may be lost
    assert (np.abs(np.diff(speeds_)) <= 1.02 * RATE * passed + 1e-6).all()

    last = navigator.send(plan[::-1])
    flight.until(lambda: flight.state == "ACTIVE", "the policy's turn")
    flight.operator.fault("drop scan")
    status, code, said = navigator.result(last)
    assert (status, code) == (ABORTED, 106)
    assert "scan" in said
    assert navigator.ended(plan)[:2] == (ABORTED, 106)  # what the gate has stopped is reset by people alone

    flight.operator.fault("")
    flight.operator.do("reset")

    def active() -> bool:
        """A goal is aborted where the server has not heard of the reset yet."""
        navigator.send(plan[::-1])
        return flight.operator.wait(lambda: flight.state == "ACTIVE", 5.0)

    flight.until(active, "the policy's turn")
    flight.processes["follow_path"].kill()
    flight.until(lambda: flight.state == "FAULT", "the gate's stop of a policy that nobody tells the path any more")
    assert flight.gates[-1]["reason"] == "SIGNAL_STALE"
    silent = ("path_points", "speed_limit")  # the two signals that the server sends: either may be too old first
    assert any(f"signal '{name}'" in flight.gates[-1]["sentence"] for name in silent)
