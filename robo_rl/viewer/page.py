"""The live page: robots in a browser, with controls, by viser. Independent of the kind of robot.

viser's client comes with its package, so nothing is fetched. ``Page`` moves what a browser asks to ``Live`` and what
happens there to the browsers; ``Scene`` has the robots, ``controls`` what can be set, ``plots`` the past.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import viser

from robo_rl.learn.runs.folder import Run
from robo_rl.sim.drawing import has_ground
from robo_rl.viewer import guard, tables
from robo_rl.viewer.access import Access
from robo_rl.viewer.controls import Controls
from robo_rl.viewer.live import Frame, Live
from robo_rl.viewer.plots import Plots
from robo_rl.viewer.scene import Scene
from robo_rl.viewer.training import Newest, Trainings

WATCHED = 3.0  # s, of where robots go that have no ground, so that they are shown apart
SLOWLY = 0.2  # s between changes of tables and plots
PROOF = (48, 64)  # pixels, height and width, of a picture by which a browser shows that it has drawn the scene
PATIENCE = 300.0  # s, for it: without a graphics card the first picture takes long
PANEL, WIDE_PANEL = 400, 560  # pixels
READ = 2.0  # s between readings of a run's folder


class Page:
    """Serves ``live`` until it is closed.

    with Page(live) as page:
        page.run(stop)  # in one thread, and live.run(stop) in another
    """

    def __init__(
        self, live: Live, port: int = 0, access: Access | None = None, runs: Sequence[Run] = (),
        newest: Newest | None = None,
    ) -> None:  # fmt: skip
        """OSError if the port is taken; 0 takes any free one.

        ``runs``: trainings whose curves are shown. ``newest``: the one whose newest policy the robots follow; while
        nobody looks, they stand still.
        """
        self.live, self.access, self.runs, self.newest = live, access or Access(), runs, newest
        self.server = guard.start(self.access, port, "robo-rl")
        self.drawn: set[int] = set()
        """Numbers of the browsers that have drawn the scene."""
        self.frames = 0
        """Frames sent so far."""
        self._seen = threading.Condition()
        self._read = 0.0
        self.robot = 0
        """The one that plots and tables are of."""
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(0, 114, 178))
        self.server.gui.main_panel.dock_right()
        self.server.gui.main_panel.set_width(WIDE_PANEL if runs else PANEL)
        flies = live.model is not None and not has_ground(live.model)
        ways = live.ways(WATCHED) if flies else None
        self.scene = Scene(self.server, live.model, live.frame, ways, live.task.spec.team)
        self._add_panel(live.frame)
        self.server.on_client_connect(self._prove)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.stop()

    @property
    def port(self) -> int:
        return self.server.get_port()

    @property
    def url(self) -> str:
        """Where the page is, token included."""
        return self.access.url(self.port)

    def _add_panel(self, frame: Frame) -> None:
        gui, task = self.server.gui, self.live.task
        gui.add_html(tables.heading(self.live.title, task, self.live.model is not None))
        self._status = gui.add_html(tables.status(frame, task, 0))
        self.controls = Controls(self)
        tabs = gui.add_tab_group()
        self.trainings = Trainings(gui, tabs.add_tab("training"), self.runs) if self.runs else None
        with tabs.add_tab("drive"):
            self.controls.add_commands()
        with tabs.add_tab("ranges"):
            self.controls.add_ranges()
        self.plots = Plots(gui, tabs.add_tab("plots"), self.live)
        with tabs.add_tab("signals"):
            self._measured = gui.add_html(tables.measured(frame, task, self.robot))
        with tabs.add_tab("view"):
            self.controls.add_views(frame)
        with tabs.add_tab("contract"):
            gui.add_markdown(tables.facts(task))

    def _prove(self, client: viser.ClientHandle) -> None:
        """Learn that a browser has drawn the scene: it sends a small picture of it."""
        try:
            client.get_render(*PROOF, timeout=PATIENCE)
        except (TimeoutError, RuntimeError):  # it went away
            return
        with self._seen:
            self.drawn.add(client.client_id)
            self._seen.notify_all()

    def wait_drawn(self, timeout: float = PATIENCE) -> viser.ClientHandle:
        """The first browser that is here and has drawn the scene, waiting for it at most ``timeout`` s."""
        with self._seen:
            if not self._seen.wait_for(lambda: self.drawn & set(self.server.get_clients()), timeout):
                raise TimeoutError(f"no browser has drawn the scene of {self.url} in {timeout:g} s")
        clients = self.server.get_clients()
        return clients[min(self.drawn & set(clients))]

    def run(self, stop: threading.Event) -> None:
        """Send frames to browsers until ``stop`` is set."""
        number, slow = 0, -SLOWLY
        while not stop.is_set():
            frame = self.live.next_frame(number, timeout=0.5)
            if frame is None:
                continue
            number = frame.number
            self._follow_training()
            if not self.server.get_clients():
                continue
            self.scene.update(frame)
            self.frames += 1
            now = frame.moment.time
            if frame.paused or abs(now - slow) >= SLOWLY * max(self.live.clock.speed, 0.05):
                slow = now
                self._update_slowly(frame)

    def _follow_training(self) -> None:
        """Every few seconds: curves of what has been written, and the newest policy."""
        if self.newest is not None:
            self.live.idle = not self.server.get_clients()
        if self.trainings is None or time.monotonic() < self._read + READ:
            return
        self._read = time.monotonic()
        self.trainings.update()
        weights = self.newest.changed() if self.newest else None
        if weights is not None:
            self.live.renew(self.newest.graph, weights)  # type: ignore[union-attr]

    def _update_slowly(self, frame: Frame) -> None:
        self._status.content = tables.status(frame, self.live.task, len(self.drawn))
        self._measured.content = tables.measured(frame, self.live.task, self.robot)
        self.plots.update(self.robot)

    def act(self, request: Any) -> None:
        """Execute the request of a browser; errors are shown to all."""
        try:
            self.live.act(request)
        except ValueError as error:
            self._refuse(str(error))

    def _refuse(self, sentence: str) -> None:
        for client in self.server.get_clients().values():
            client.add_notification("refused", sentence, color="red", auto_close_seconds=6.0)

    def take_clicks(self, what: str | None) -> None:
        """From now on a click on the floor does ``what``, one of the task's clicks; None: nothing."""
        scene = self.server.scene
        scene.remove_click_callback()
        if what is None:
            return

        @scene.on_click()
        def _(event: viser.SceneClickEvent) -> None:
            place = self.scene.floor_point(event.ray_origin, event.ray_direction, self.robot)
            if place is None:
                self._refuse("a click is on no floor; expected one below the horizon")
            else:
                self.act({"click": {"what": what, "robot": self.robot, "place": place}})
