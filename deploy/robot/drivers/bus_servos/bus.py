"""The one who asks on a bus of servos: half duplex, one question at a time, answers matched by ID and size."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from robo_rl.deploy.robot.drivers.serial_port import Port, drain

ANSWER = 0.005
"""s to wait for more bytes: an answer of 42 bytes takes 0.42 ms at 1 Mbit/s, a USB adapter up to 2 ms."""
PATIENT = 0.05
"""s, where nothing moves yet: EEPROM is written in some ms."""
PACKET, FLOOD = 16, 8
"""Bytes of an answer beside its registers, and times the bytes of all answers after which what comes is a flood."""
TRIES = 3
"""Damaged packets are normal on such a bus."""


class Answer(NamedTuple):
    """What a servo says."""

    id: int
    code: int
    """Error bits."""
    parameters: bytes


class Answers(Protocol):
    """Answers out of a stream of bytes."""

    damaged: int
    """Packets whose checksum was wrong."""

    def answers(self, data: bytes) -> list[Answer]:
        """Those that are complete now."""

    def clear(self) -> None:
        """Forget what is not complete."""


class HalfDuplexBus(ABC):
    """Servos behind a port."""

    def __init__(self, port: Port, parser: Answers, now: Callable[[], float] = time.monotonic) -> None:
        self.port, self.now = port, now
        self._parser = parser
        self.when: dict[int, float] = {}
        """s, when the last question was asked that a servo answered."""
        self.asked = self.unanswered = self.foreign = 0
        """Questions, those without their answer, and packets that were answers to no question."""

    @property
    def damaged(self) -> int:
        """Packets with a wrong checksum."""
        return self._parser.damaged

    @abstractmethod
    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Answer]:
        """Registers of several servos, by ID; who has not answered within ``ANSWER`` is left out."""

    def patiently(self, question: bytes, ids: Sequence[int], size: int) -> dict[int, Answer]:
        """The answers, where nothing moves yet; {} if there are none in several tries."""
        for _ in range(TRIES):
            found = self.ask(question, ids, size, PATIENT)
            if found:
                return found
        return {}

    def ask(self, question: bytes, ids: Sequence[int], size: int, patience: float) -> dict[int, Answer]:
        """The answers with parameters of this size, by ID; ``patience`` s for the next bytes."""
        self._parser.clear()
        for _ in drain(self.port):  # what came late, for another question
            pass
        when = self.now()
        self.port.write(question)
        self.asked += len(ids)
        found: dict[int, Answer] = {}
        twice: set[int] = set()
        until = self.now() + patience * (1 + 0.2 * len(ids))
        room = FLOOD * len(ids) * (size + PACKET)
        while len(found) < len(ids) and room > 0 and (left := until - self.now()) > 0:
            data = self.port.read(min(left, patience))
            if not data:
                break
            room -= len(data)
            for answer in self._parser.answers(data):
                if answer.id not in ids or len(answer.parameters) != size:
                    self.foreign += 1
                elif answer.id not in found:
                    found[answer.id] = answer
                else:  # one of them may be another servo's
                    self.foreign += 1
                    twice |= {answer.id} if answer != found[answer.id] else set()
        found = {id: answer for id, answer in found.items() if id not in twice}
        self.when |= dict.fromkeys(found, when)
        self.unanswered += len(ids) - len(found)
        return found
