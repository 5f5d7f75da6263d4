"""The link over a serial port, a socket or any file descriptor.

    link = Link.open("/dev/ttyACM0", contract, role=Role.HOST)
    link.hello(now)
    for frame, message in link.receive(now): …
    link.send(Signals(…))

The ports are non-blocking: ``receive`` takes what has arrived, ``send`` fails when the other side has stopped
reading. Hellos are answered, mismatched ones with a refusal.
"""

from __future__ import annotations

import os
import select
import socket
import termios
import time
import tty
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from robo_rl.contract import Contract
from robo_rl.deploy.robot.link import Decoder, Frame, Layout, LinkError, Session, Type, Verdict, encode
from robo_rl.deploy.robot.link.messages import Hello, Message, Refusal, Role, frame_of, parse

READ_BYTES = 4096
READS, LONGEST = 64, 0.004
"""Of one ``receive``, and s after which it begins none: a peer that floods the port does not hold it up."""
DIGESTS_DIFFER = 1


class Stream(Protocol):
    """Where bytes come from and go to."""

    name: str

    def read(self) -> bytes:
        """What has arrived, perhaps nothing."""

    def write(self, data: bytes) -> None:
        """Send all of it."""


@dataclass
class Mailbox:
    """A stream without a device: what is written stays in ``outgoing``, what is read is in ``incoming``."""

    name: str = "mailbox"
    incoming: bytes = b""
    outgoing: bytes = b""

    def read(self) -> bytes:
        data, self.incoming = self.incoming, b""
        return data

    def write(self, data: bytes) -> None:
        self.outgoing += data

    def collect(self) -> bytes:
        """What was written since the last time."""
        data, self.outgoing = self.outgoing, b""
        return data


@dataclass
class Port:
    """A file descriptor that bytes come from and go to."""

    name: str
    descriptor: int
    keep: object = None
    """What owns the descriptor, so that it lives as long."""

    def __post_init__(self) -> None:
        os.set_blocking(self.descriptor, False)

    @staticmethod
    def of_socket(connection: socket.socket) -> Port:
        """The port of a connected socket."""
        return Port("socket", connection.fileno(), connection)

    @staticmethod
    def of_serial(path: str | Path, baud: int = 115_200) -> Port:
        """A serial device in raw mode: eight bits, no parity, no flow control."""
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            known = sorted(int(n[1:]) for n in vars(termios) if n[0] == "B" and n[1:].isdigit() and n != "B0")
            raise LinkError(f"{path}: baud is {baud}; expected one of {known}")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            tty.setraw(descriptor)
            settings = termios.tcgetattr(descriptor)
            settings[2] |= termios.CLOCAL | termios.CREAD
            settings[4] = settings[5] = speed
            termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        except (OSError, termios.error) as error:
            raise LinkError(f"{path}: {error.args[-1]}; expected a serial port that this user may open") from None
        return Port(str(path), descriptor)

    def read(self) -> bytes:
        """What has arrived, perhaps nothing."""
        try:
            data = os.read(self.descriptor, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise LinkError(f"{self.name}: {error.strerror}; the connection is lost") from None
        if not data:
            raise LinkError(f"{self.name}: closed by the other side")
        return data

    def write(self, data: bytes, timeout: float = 0.1) -> None:
        """Send all of it, within ``timeout`` s."""
        while data:
            if not select.select([], [self.descriptor], [], timeout)[1]:
                raise LinkError(f"{self.name}: the other side has not read for {timeout} s")
            try:
                data = data[os.write(self.descriptor, data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise LinkError(f"{self.name}: {error.strerror}; the connection is lost") from None

    def close(self) -> None:
        """Let go of the port."""
        if isinstance(self.keep, socket.socket):
            self.keep.close()
        else:
            os.close(self.descriptor)


@dataclass
class Link:
    """A port with its decoder and session. Times in µs."""

    port: Stream
    contract: Contract
    role: Role
    sequence: int = 0
    decoder: Decoder = field(default_factory=Decoder)

    def __post_init__(self) -> None:
        self.layout = Layout.of(self.contract)
        self.session = Session(self.layout)

    @staticmethod
    def open(path: str | Path, contract: Contract, role: Role = Role.HOST, baud: int = 115_200) -> Link:
        """The link over a serial device."""
        return Link(Port.of_serial(path, baud), contract, role)

    def send(self, message: Message) -> int:
        """Send a message; its sequence number."""
        sequence = self.sequence
        self.port.write(encode(frame_of(message, sequence)))
        self.sequence = (sequence + 1) & 0xFFFF
        return sequence

    def hello(self, now: int, answer: bool = True) -> None:
        """Say hello, after a delimiter that ends whatever noise came before."""
        layout, period = self.layout, round(self.contract.control_period * 1e6)
        self.port.write(b"\0")
        self.send(Hello(self.role, answer, layout.signal_size, layout.command_size, period, now, layout.digest))

    def receive(self, now: int) -> list[tuple[Frame, Message]]:
        """The messages that have arrived and may be acted on. LinkError if the peer has another contract."""
        messages = []
        for frame in self._frames():
            verdict = self.session.accept(frame, now)
            if verdict == Verdict.MISMATCH:
                self._refuse(frame)
            if verdict not in (Verdict.TAKEN, Verdict.OPENED):
                continue
            message = parse(frame, self.layout)
            if isinstance(message, Hello) and message.answer:
                self.hello(now, answer=False)
            messages.append((frame, message))
        return messages

    def _frames(self) -> Iterator[Frame]:
        end = time.monotonic() + LONGEST
        for _ in range(READS):
            if not (data := self.port.read()):
                return
            yield from self.decoder.feed(data)
            if time.monotonic() > end:
                return

    def _refuse(self, frame: Frame) -> None:
        """Tell the peer, unless it is the one that refuses, and the caller."""
        message = parse(frame, self.layout)
        if frame.type == Type.HELLO:
            self.send(Refusal(DIGESTS_DIFFER, self.layout.digest))
        digest = message.digest.hex() if isinstance(message, Hello | Refusal) else ""
        raise LinkError(
            f"{self.port.name}: the other side has the contract {digest[:16]}…; expected "
            f"{self.contract.digest[:16]}…. Put the same bundle on both"
        )
