"""A Go2 or a G1, its network and the keepers of its commands in one process and in virtual time."""

from __future__ import annotations

import json

from robo_rl.deploy.emulate.go2 import Go2
from robo_rl.deploy.emulate.go2.wire import Go2Wire
from robo_rl.deploy.emulate.virtual_time import VirtualTime
from robo_rl.deploy.robot.drivers.unitree.keeping import PERIOD, Keeper, Phase


class VirtualLink:
    """A program's link (``robo_rl.deploy.robot.drivers.unitree.link.Link``) to a keeper. Time goes on when the
    program waits."""

    def __init__(self, world: World, damp: bool) -> None:
        self.world, damps = world, damp
        for one in world.links:  # one that only damps hands the legs over
            if one.alive and one.keeper.lingers and not one.keeper.done(world.now()):
                one.alive, damps = False, damps or one.keeper.phase != Phase.QUIET
        why = "the keeper before this one ended" if damps else ""
        self.keeper: Keeper = Keeper(why, world.robot.motors, world.robot.family)
        self.messages: list[tuple[bytes, bytes]] = []
        self.open: bool = True
        self.alive: bool = True
        world.links.append(self)

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """See ``Link``."""
        if not self.alive:
            raise OSError("the keeper ended")
        now = self.world.now()
        if kind == b"E":
            self.keeper.enable(now, data)
        elif kind == b"C":
            self.keeper.command(now, data)
        elif kind == b"Q":
            self.keeper.quiet()
        elif kind == b"R":
            code, parameter = json.loads(data)
            self.messages.append((b"A", json.dumps([code, *self.world.robot.request(code, parameter)]).encode()))

    def receive(self, timeout: float = 0.0) -> list[tuple[bytes, bytes]]:
        """See ``Link``."""
        if not self.alive:
            raise OSError("the keeper ended")
        if timeout:
            self.world.sleep(timeout)
        found, self.messages = self.messages, []
        return found

    def close(self) -> None:
        """See ``Link``."""
        self.open = False
        self.keeper.program_ended(self.world.now())


class World(VirtualTime):
    """All that moves with the robot."""

    period = PERIOD

    def __init__(self, seed: int = 0, of: type[Go2Wire] = Go2Wire, robot: type[Go2] = Go2) -> None:
        super().__init__()
        self.links: list[VirtualLink] = []
        self.robot = robot(seed=seed)
        self.wire = of(self.robot, foreign=self.overhear)

    def overhear(self, data: bytes) -> None:
        """Somebody else's LowCmd_, on its way to the robot and to all keepers."""
        self.robot.receive(data)
        for link in self.links:
            link.keeper.other_command(self.now())

    def tick(self) -> None:
        """One period."""
        told = self.wire.advance(PERIOD)
        for link in self.links:
            if not link.alive or link.keeper.done(self.now()):
                continue
            for data in told:
                if link.keeper.state(self.now(), data):
                    link.messages.append((b"S", int(1e6 * self.now()).to_bytes(8, "little") + data))
            if (sent := link.keeper.publish(self.now())) is not None:
                self.wire.command(sent)
                for other in self.links:
                    if other is not link and other.alive:
                        other.keeper.other_command(self.now())
            link.messages = [m for m in link.messages if m[0] != b"K"] + [(b"K", link.keeper.status.encode())]
