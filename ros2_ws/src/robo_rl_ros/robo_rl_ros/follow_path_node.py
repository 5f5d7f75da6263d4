"""follow_path: serves Nav2's FollowPath by a policy, in the place of Nav2's controller server.

A process of its own beside the policy's node, whose commands go to cmd_vel. A goal of ``nav2_msgs/action/FollowPath``
brings a path; the policy is told the points of it that come next, in the robot's frame, and how fast it may drive, with
every message of the odometry. It is activated and engaged for a goal, and deactivated after it: then nobody but others,
such as Nav2's behaviours, commands the robot. Goal and progress are checked as Nav2 does.

A goal ends with the robot at rest: the speed limit 0 brings it there at the commands' greatest rate of change. Where
this process dies, the policy's set-points grow old and its gate stops the robot.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from std_msgs.msg import String

from robo_rl.contract import Contract
from robo_rl.controllers.path import AHEAD, SIZE
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.ros import quality
from robo_rl.ros.frames import BODY, Frames, plain
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.operate import Operator, OperatorError
from robo_rl.ros.path_following import Code, FollowedPath, Movement, PathError, Pose, Progress, Rules
from robo_rl.ros.reading import NOT_UNIT
from robo_rl.ros.tf_topics import listen_to_transforms
from robo_rl.ros.writing import message_type

PERIOD = 0.02  # s between two looks
AGAIN = 0.1  # s between two attempts to engage the policy
STATUS = 2.0  # s that the gate's state may come after the answer to a request
REST = 0.02
"""m/s below which the robot is at rest."""
STOPPING = 3.0
"""s of ROS time until the policy is deactivated though the robot is not at rest."""
SLOW = 10.0
"""Simulated time may be so much slower than real time."""
LAST_WORDS = 0.2
"""s at the end in which the result of a goal leaves."""
MESSAGES = "no package nav2_msgs: apt install ros-jazzy-nav2-msgs, and source the distribution"
NEEDED = ("path_points", "speed_limit")


class Goal:
    """One goal: its handle, and the future by which its result is awaited."""

    def __init__(self, handle: Any, executor: Any) -> None:
        self.handle, self.future = handle, Future(executor=executor)
        self.frame: str = handle.request.path.header.frame_id

    async def result(self, handle: Any) -> Any:
        """Once there is one."""
        return await self.future


class PathFollower:
    """The action's server, and what it has the policy do."""

    def __init__(self, operator: Operator) -> None:
        """``operator`` is at work already; its node has the parameters. ValueError where they can't be right."""
        self.operator, node = operator, operator.node
        get = node.declare_parameter
        self.controllers: list[str] = [name for name in get("controllers", ["FollowPath"]).value if name]
        self.speed: float = get("speed", 0.0).value
        self.patience: float = get("patience", 5.0).value
        self.timeout: float = get("timeout", 0.5).value
        self.rules = Rules(
            tolerance=get("xy_goal_tolerance", Rules.tolerance).value,
            movement=get("required_movement_radius", Rules.movement).value,
            allowance=get("movement_time_allowance", Rules.allowance).value,
        )
        figures = (self.rules.tolerance, self.rules.movement, self.rules.allowance, self.patience, self.timeout)
        if not min(figures) > 0 or not self.speed >= 0:
            raise ValueError(
                "xy_goal_tolerance, required_movement_radius, movement_time_allowance, patience and timeout are "
                f"{figures}, speed is {self.speed}; expected positive numbers, and a speed that is not negative"
            )
        self.next: Goal | None = None
        """The newest goal, which nobody serves yet."""
        self._goal: Goal | None = None
        self._path: FollowedPath | None = None
        self._movement = Movement(self.rules)
        self._odometry: Odometry | None = None
        self._progress: Progress | None = None
        self._heard = self._commanded = -math.inf
        self._limit, self._contract = 0.0, ""
        node.create_subscription(String, f"{operator.policy}/contract", self._on_contract, quality.LATCHED)

    def connect(self) -> None:
        """Wait for the policy's contract; then serve. ValueError where that is not a policy that follows paths."""
        operator, node = self.operator, self.operator.node
        try:
            from nav2_msgs.action import FollowPath
        except ImportError:
            raise ValueError(MESSAGES) from None
        if not operator.wait(lambda: bool(self._contract), operator.patience):
            raise ValueError(f"'{operator.policy}' publishes no contract; is the node running, and configured?")
        contract = Contract.from_json(self._contract, f"{operator.policy}/contract")
        missing = [name for name in (*NEEDED, "position") if name not in {s.name for s in contract.signals}]
        if missing:
            raise ValueError(f"the policy of task '{contract.task}' has no signals {missing}: it follows no path")
        self._signals = {name: contract.signal(name) for name in NEEDED}
        self._scale = float(contract.robot.facts["radius"]) / SIZE
        self._top = float(contract.commands[0].upper[0])
        self._outlets: list[tuple[Any, Any]] = []
        for wire, channel in operator.wiring(contract):
            kind = message_type(wire.kind)
            if channel.name in NEEDED:
                self._outlets.append((wire, node.create_publisher(kind, wire.topic, quality.SENSOR)))
            elif channel.name == "position":
                if kind is not Odometry:
                    raise ValueError(f"'position' comes as {wire.kind}; expected nav_msgs/msg/Odometry")
                node.create_subscription(kind, wire.topic, self._on_odometry, quality.SENSOR)
            elif channel.name == contract.commands[0].name:
                node.create_subscription(kind, wire.topic, self._on_command, quality.SENSOR)
        self._frames = Frames()
        listen_to_transforms(node, self._frames, inform=node.get_logger().info)
        self._action = FollowPath
        self._server = ActionServer(
            node, FollowPath, "follow_path", Goal.result, goal_callback=lambda _: GoalResponse.ACCEPT,
            handle_accepted_callback=self._on_accepted, cancel_callback=lambda _: CancelResponse.ACCEPT,
        )  # fmt: skip

    # --- messages -------------------------------------------------------------------------------------------------

    def _on_contract(self, message: String) -> None:
        self._contract = message.data

    def _on_command(self, message: Any) -> None:
        self._commanded = time.monotonic()

    def _on_odometry(self, message: Odometry) -> None:
        """The policy's set-points, as long as there is a path."""
        self._odometry, self._heard = message, time.monotonic()
        if self._path is None or self._goal is None:
            return
        with contextlib.suppress(PathError):  # what is wrong with the pose, ``_look`` finds too
            self._progress = self._path.update(self._pose(self._goal.frame))
            limit = np.array([self._limit], np.float32)
            values = {"path_points": self._progress.ahead, "speed_limit": limit}
            ns = self.operator.node.get_clock().now().nanoseconds
            for wire, publisher in self._outlets:
                publisher.publish(compose([wire], self._signals, values, ns))

    def _on_accepted(self, handle: Any) -> None:
        if self.next is not None:
            self._end(self.next, self.next.handle.abort, Code.NONE, "another goal came")
        self.next = Goal(handle, self.operator.executor)
        handle.execute(self.next.result)

    # --- a goal, from its beginning to its end --------------------------------------------------------------------

    def serve(self, ended: threading.Event) -> None:
        """Serve the newest goal until it has ended, or another one comes, for which the robot does not stop.

        Where the process is to end, the robot is brought to rest.
        """
        goal, self.next = self.next, None
        assert goal is not None
        handle = goal.handle
        try:
            self._begin(goal)
            self._engage()
            while not self._look().arrived and not handle.is_cancel_requested:
                if ended.is_set():
                    raise PathError(Code.UNKNOWN, "the node 'follow_path' ends")
                self.operator.executor.spin_once(timeout_sec=PERIOD)
                if self.next is not None:
                    return self._end(goal, handle.abort, Code.NONE, "preempted by another goal")
            self._rest()
            if handle.is_cancel_requested:
                return self._end(goal, handle.canceled, Code.NONE, "canceled")
            self._end(goal, handle.succeed, Code.NONE, "")
        except PathError as error:
            self._rest()
            self._end(goal, handle.abort, error.code, str(error))
        return None

    def _begin(self, goal: Goal) -> None:
        """Check a goal, and tell the policy its path."""
        request = goal.handle.request
        if request.controller_id not in ("", *self.controllers):
            told = f"controller_id is '{request.controller_id}'; expected one of {self.controllers}"
            raise PathError(Code.INVALID_CONTROLLER, told)
        poses = request.path.poses
        frames = {pose.header.frame_id for pose in poses} - {"", goal.frame}
        if not goal.frame or frames:
            told = f"the path is in the frame '{goal.frame}', points of it in {sorted(frames)}; expected one frame"
            raise PathError(Code.INVALID_PATH, told)
        if plain(goal.frame) in (*BODY, self._child):
            told = f"the path is in the frame '{goal.frame}', which moves with the robot; expected map, odom or another"
            raise PathError(Code.INVALID_PATH, f"{told} that stands still")
        points = np.array([(p.pose.position.x, p.pose.position.y) for p in poses]).reshape(-1, 2)
        known = self._path is not None and self._goal is not None and goal.frame == self._goal.frame
        if known and np.array_equal(points, self._path.points):  # type: ignore[union-attr]
            self._goal = goal  # the same path again: progress is kept
            return
        path = FollowedPath(points, self._pose(goal.frame), self._scale * np.array(AHEAD), self._scale, self.rules)
        if self._limit == 0.0:
            self._movement = Movement(self.rules)
        self._movement.replanned()
        self._goal, self._path, self._progress = goal, path, None
        self._limit = min(self.speed or self._top, self._top)

    def _engage(self) -> None:
        """Let the policy drive."""
        begun, said = time.monotonic(), ""
        while (state := self.operator.gate.get("state", "")) != "ACTIVE":
            if state == "FAULT":
                raise PathError(Code.NO_VALID_CONTROL, f"the gate is FAULT: {self.operator.gate.get('sentence')}")
            if time.monotonic() - begun > self.patience:
                raise PathError(Code.PATIENCE_EXCEEDED, f"the policy was not engaged in {self.patience:g} s: {said}")
            try:
                if state != "READY":
                    self.operator.do("activate" if self.operator.lifecycle() == "inactive" else "arm")
                self.operator.do("engage")
            except OperatorError as error:
                said = str(error)
            self.operator.wait(lambda: self.operator.gate.get("state") == "ACTIVE", AGAIN)
        self._commanded = time.monotonic()

    def _look(self) -> Progress:
        """How far the robot is. PathError where it does not get on."""
        assert self._goal is not None
        gate, now = self.operator.gate, time.monotonic()
        if gate.get("state") != "ACTIVE":
            raise PathError(Code.NO_VALID_CONTROL, f"the gate is {gate.get('state')}: {gate.get('sentence')}")
        pose = self._pose(self._goal.frame)
        if now - self._commanded > self.timeout:
            told = f"the policy has sent no command for {now - self._commanded:.1f} s"
            raise PathError(Code.CONTROLLER_TIMED_OUT, told)
        left = math.inf if self._progress is None else self._progress.left
        if self._movement.stuck(pose, self._now(), left):
            told = f"less than {self.rules.movement} m in {self.rules.allowance} s, or not along the path"
            raise PathError(Code.FAILED_TO_MAKE_PROGRESS, told)
        if self._progress is None:
            return Progress(np.zeros((0, 2), np.float32), math.inf, arrived=False)
        feedback = self._action.Feedback(distance_to_goal=self._progress.left, speed=self._speed())
        self._goal.handle.publish_feedback(feedback)
        return self._progress

    def _rest(self) -> None:
        """Bring the robot to rest, and let go of it. What its gate has stopped stays so."""
        self._limit = 0.0
        if self.operator.gate.get("state") in ("ACTIVE", "READY"):
            begun = self._now()
            self.operator.wait(
                lambda: (
                    self._speed() < REST or self.operator.gate.get("state") == "FAULT" or self._now() - begun > STOPPING
                ),
                SLOW * STOPPING,
            )
            with contextlib.suppress(OperatorError):  # it has ended, or somebody was faster
                self.operator.do("deactivate")
                # the next goal must not take the state of before for its own: status may come after the answer
                self.operator.wait(lambda: self.operator.gate.get("state") not in ("ACTIVE", "READY"), STATUS)
        self._path = self._progress = None

    def _end(self, goal: Goal, how: Any, code: Code, sentence: str) -> None:
        how()
        goal.future.set_result(self._action.Result(error_code=int(code), error_msg=sentence))
        self.operator.node.get_logger().info(f"{how.__name__}, {code.name}: {sentence or 'arrived'}")

    # --- where the robot is, and when -----------------------------------------------------------------------------

    def _now(self) -> float:
        """s of ROS time, which may be simulated."""
        return 1e-9 * self.operator.node.get_clock().now().nanoseconds

    @property
    def _child(self) -> str:
        """The robot's own frame, as the odometry names it."""
        return "" if self._odometry is None else plain(self._odometry.child_frame_id)

    def _speed(self) -> float:
        """m/s."""
        if self._odometry is None:
            return 0.0
        twist = self._odometry.twist.twist
        return math.hypot(twist.linear.x, twist.linear.y)

    def _pose(self, frame: str) -> Pose:
        """By the newest odometry, in a frame."""
        silent = time.monotonic() - self._heard
        if self._odometry is None or silent > self.timeout:
            told = "no odometry" if self._odometry is None else f"no odometry for {silent:.1f} s"
            raise PathError(Code.TF_ERROR, told)
        place, turn = self._odometry.pose.pose.position, self._odometry.pose.pose.orientation
        pose, own = Pose(place.x, place.y, 2.0 * math.atan2(turn.z, turn.w)), self._odometry.header.frame_id
        if not all(map(math.isfinite, pose)):
            raise PathError(Code.TF_ERROR, f"the odometry's pose is {pose}; expected finite numbers")
        if abs(math.hypot(turn.x, turn.y, turn.z, turn.w) - 1.0) > NOT_UNIT:
            norm = math.hypot(turn.x, turn.y, turn.z, turn.w)
            raise PathError(Code.TF_ERROR, f"the odometry's orientation has the norm {norm:.3g}; expected 1")
        if frame == own:
            return pose
        found = self._frames.find([frame], own) if self._frames.find is not None else None
        if found is None:
            told = f"the path is in the frame '{frame}', the odometry in '{own}', and tf does not connect them"
            raise PathError(Code.TF_ERROR, told)
        (x, y, _), (_, _, z, w) = found
        return pose.within(Pose(x, y, 2.0 * math.atan2(z, w)))


def main(arguments: list[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; then the robot is brought to rest."""
    with contextlib.ExitStack() as stack:
        given = sys.argv if arguments is None else arguments
        operator = stack.enter_context(Operator(name="follow_path", arguments=given))
        operator.policy = operator.node.resolve_topic_name(operator.node.declare_parameter("policy", "policy").value)
        ended = SignalSafeEvent()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        try:
            follower = PathFollower(operator)
            follower.connect()
        except ValueError as error:
            operator.node.get_logger().error(str(error))
            raise SystemExit(1) from None
        operator.node.get_logger().info("follow_path is served")
        while not ended.is_set():
            operator.executor.spin_once(timeout_sec=PERIOD)
            if follower.next is not None:
                follower.serve(ended)
        operator.wait(lambda: False, LAST_WORDS)


if __name__ == "__main__":
    main()
