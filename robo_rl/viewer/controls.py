"""Buttons and sliders of the live page. They come from the task's ranges, signals and markers, and the policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robo_rl.sim.drawing import GOALS, Line
from robo_rl.viewer.driving import KEYS, NEUTRAL, Driver, explained
from robo_rl.viewer.knobs import BEGINNING, Knob
from robo_rl.viewer.live import GREATEST_PUSH, SPEEDS, Frame

if TYPE_CHECKING:
    from robo_rl.viewer.page import Page

FREE = "stands still"
PUSHES = {"+x": (1, 0, 0), "−x": (-1, 0, 0), "+y": (0, 1, 0), "−y": (0, -1, 0), "up": (0, 0, 1)}
NOTHING = "does nothing"
CLICKS = {"goal": "sets the goal", "obstacle": "drops an obstacle"}
"""What a task's clicks are called."""
OPEN = 8
"""Sliders in a folder that is open at first, at most."""
SET = "● "
"""Before the name of what is set on the page."""


class Controls:
    """Controls of a page."""

    def __init__(self, page: Page) -> None:
        self.page, self.gui, self.live = page, page.server.gui, page.live
        self.sliders: dict[str, Any] = {}
        """By name of a range, or of what the operator commands."""
        self._add_run()

    def _on(self, handle: Any, do: Callable[[Any], None]) -> None:
        """Call a function with the value when a browser changes it. (viser also reports changes made from here.)"""

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                do(event.target.value)

    def _add_run(self) -> None:
        gui, act = self.gui, self.page.act
        self.run = gui.add_button_group("simulation", ("run", "pause", "step", "reset"))

        @self.run.on_click
        def _(event: Any) -> None:
            asked = {"run": {"pause": False}, "pause": {"pause": True}}
            asked |= {name: {name: True} for name in ("step", "reset")}
            if event.target.value in asked:
                act(asked[event.target.value])

        self.speed = gui.add_slider("speed, ×", *SPEEDS, 0.05, 1.0, marks=((1.0, "1"),))
        self._on(self.speed, lambda value: act({"speed": value}))
        self.policy = gui.add_dropdown("policy", tuple(self.live.policies), initial_value=self.live.policy)
        self._on(self.policy, lambda value: act({"policy": value}))
        if hasattr(self.live.env.plant, "push"):
            self._add_push()
        self._add_choices()
        if self.live.task.clicks:
            self._add_clicks()

    def _add_clicks(self) -> None:
        """What a click on the ground does, in the world of the robot that tables are of."""
        gui, clicks = self.gui, self.live.task.clicks
        known = {CLICKS[what]: what for what in clicks}
        hint = "of the robot that tables are of"
        self.clicks = gui.add_dropdown("a click on the floor", (NOTHING, *known), initial_value=NOTHING, hint=hint)
        self._on(self.clicks, lambda value: self.page.take_clicks(known.get(value)))
        if "obstacle" in clicks:
            clear = gui.add_button("remove obstacles", hint="those that were dropped by a click")
            clear.on_click(lambda event: self.page.act({"clear": True}))

    def _add_push(self) -> None:
        gui = self.gui
        self.push = gui.add_slider("push, m/s", 0.0, GREATEST_PUSH, 0.1, 0.5)
        self.way = gui.add_button_group("push along", tuple(PUSHES))

        @self.way.on_click
        def _(event: Any) -> None:
            if event.target.value in PUSHES:
                strength = self.push.value if math.isfinite(self.push.value) else 0.0
                self.page.act({"push": [strength * part for part in PUSHES[event.target.value]]})

    def _add_choices(self) -> None:
        """Of robots: which one tables and plots are of, and which one the camera follows."""
        gui = self.gui
        robots = tuple(f"robot {i + 1}" for i in range(self.live.n))
        if len(robots) > 1:
            self.robot = gui.add_dropdown("robot", robots, hint="of which tables and plots are")
            self._on(self.robot, self._choose_robot)
        followed, following = self.page.scene.followed, tuple(f"follows {robot}" for robot in robots)
        self.camera = gui.add_dropdown(
            "camera", (FREE, *following), initial_value=FREE if followed is None else following[followed]
        )
        self._on(self.camera, self._choose_camera)

    def _choose_robot(self, value: str) -> None:
        self.page.robot = self._number(value, self.page.robot)
        if self.page.scene.joints is not None:
            self.page.scene.joints = self.page.robot

    def _choose_camera(self, value: str) -> None:
        self.page.scene.followed = None if value == FREE else self._number(value, 0)

    def _number(self, value: str, otherwise: int) -> int:
        """Of "robot 3" and "follows robot 3": 2."""
        names, name = [f"robot {i + 1}" for i in range(self.live.n)], value.removeprefix("follows ")
        return names.index(name) if name in names else otherwise

    def add_ranges(self) -> None:
        """A slider for every range, in folders by the first part of their names."""
        gui, act = self.gui, self.page.act
        gui.add_markdown("Sampled each episode unless set here (●). Marks: training range.")
        again = gui.add_button("draw all again", hint="every range is drawn again when an episode begins")
        again.on_click(lambda event: self._release_all())
        length = self.live.task.spec.episode_length
        ends = gui.add_checkbox(f"episodes end after {length:g} s", initial_value=self.live.seconds is not None)
        self._on(ends, lambda value: act({"again": length if value else None}))
        folders: dict[str, list[Knob]] = {}
        for knob in self.live.ranges.values():
            folders.setdefault(knob.name.rpartition("/")[0], []).append(knob)
        for folder, knobs in sorted(folders.items()):
            title = "beginning of episodes" if folder == BEGINNING.rstrip("/") else folder or "robot and surroundings"
            with gui.add_folder(title, expand_by_default=not folder and len(knobs) <= 2 * OPEN):
                for knob in knobs:
                    self._add_slider(knob, "range")

    def _release_all(self) -> None:
        self.page.act({"release": None})
        for name in self.live.ranges:
            self._mark(name, False)

    def add_commands(self) -> None:
        """A slider for every number that the operator sends."""
        if not self.live.commands:
            self.gui.add_markdown(self._told())
            return
        self.gui.add_markdown("The operator's signals. From the task, until set here (●). Marks: training range.")
        self.gui.add_markdown(explained(self.live.commands))
        for key in (key for pair in KEYS[: len(self.live.commands)] for key in pair):
            self._add_key(key)
        self._add_key(NEUTRAL)
        back = self.gui.add_button("back to the task's values")
        back.on_click(lambda event: self._release_commands())
        for knob in self.live.commands.values():
            self._add_slider(knob, "command")

    def _told(self) -> str:
        """What a task is about whose operator sends nothing: the markers of goals and surroundings in the scene."""
        shown = [m.name for m in self.live.frame.markers if m.name in GOALS or isinstance(m, Line)]
        names = dict.fromkeys(name.rstrip(" 0123456789") for name in shown)
        scene = f" The scene shows: {', '.join(names)}." if names else ""
        return f"The operator sends nothing in this task.{scene}"

    def _add_key(self, key: str) -> None:
        command = self.gui.add_command(f"drive: {key}", hotkey=key)  # type: ignore[arg-type]
        command.on_trigger(lambda event: self.driver.press(key))

    @property
    def driver(self) -> Driver:
        """Changes what the operator commands, and shows it."""
        return Driver(self.live.commands, self._command)

    def _command(self, name: str, value: float) -> None:
        self.page.act({"command": {"name": name, "value": value}})
        self.sliders[name].value = value
        self._mark(name, True)

    def _release_commands(self) -> None:
        for name in self.live.commands:
            self.page.act({"command": {"name": name, "value": None}})
            self._mark(name, False)

    def _add_slider(self, knob: Knob, what: str) -> None:
        low, high = knob.trained
        step = 10.0 ** math.floor(math.log10((knob.high - knob.low) / 100))
        middle = knob.value if knob.value is not None else min(max(0.5 * (low + high), knob.low), knob.high)
        name = knob.label if what == "range" else f"{knob.name.replace('_', ' ')}, {knob.unit}"
        marks = tuple(dict.fromkeys((_rounded(low, step), _rounded(high, step))))
        slider: Any = self.gui.add_slider(
            (SET if knob.value is not None else "") + name,
            _rounded(knob.low, step),
            _rounded(knob.high, step),
            step,
            _rounded(middle, step),
            marks=tuple(mark for mark in marks if knob.low <= mark <= knob.high),
            hint=f"{knob.name}: training had {low:.4g} to {high:.4g} {knob.unit}",
        )
        self.sliders[knob.name] = slider

        def turn(value: Any) -> None:
            try:
                at = knob.accepted(value)
            except ValueError:
                at = middle
            if at != value:
                slider.value = at
            self.page.act({what: {"name": knob.name, "value": at}})
            self._mark(knob.name, True)

        self._on(slider, turn)

    def _mark(self, name: str, by_hand: bool) -> None:
        """Show whether something is set on the page."""
        slider = self.sliders[name]
        label = slider.label.removeprefix(SET)
        wanted = SET + label if by_hand else label
        if slider.label != wanted:
            slider.label = wanted

    def add_views(self, frame: Frame) -> None:
        """What the scene shows."""
        for name in dict.fromkeys(marker.name for marker in frame.markers):
            box = self.gui.add_checkbox(name, initial_value=True)
            self._on(box, lambda value, name=name: self._show(name, bool(value)))  # type: ignore[misc]
        if self.live.model is not None and self.live.model.njnt:
            axes = self.gui.add_checkbox("joint axes", initial_value=False, hint="of the robot that tables are of")
            self._on(axes, lambda value: self._show_joints(bool(value)))

    def _show(self, name: str, shown: bool) -> None:
        (self.page.scene.hidden.discard if shown else self.page.scene.hidden.add)(name)

    def _show_joints(self, shown: bool) -> None:
        self.page.scene.joints = self.page.robot if shown else None


def _rounded(value: float, step: float) -> float:
    return float(f"{round(value / step) * step:.12g}")
