"""Every place that takes bytes of a peer is known here, with what bounds it: a flood or silence there delays no STOP.

A new one reads a part of bounded size and waits a bounded time in a control step, or is in a thread or process of its
own; then it is listed, and tried with a flood in tests/deploy/drivers/test_floods.py or beside its own tests.
"""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("robo_rl", "deploy/robot", "ros2_ws", "plugins")
TAKES = {"recv", "recvfrom", "recv_into", "recvmsg", "accept", "readline", "urlopen", "getresponse"}
PORTS = ("port", "socket", "line", "rfile", "stdin", "stdout", "requests", "source")
SERVERS = {"create_server", "ThreadingHTTPServer", "HTTPServer", "start_server", "serve_forever", "ViserServer"}

IN_A_STEP = """SerialPort.read:os.read TcpPort.read:self._socket.recv Tcp.read:self._socket.recv Port.read:os.read
Udp.read:self._socket.recvfrom drain:port.read HalfDuplexBus.ask:self.port.read Car._ask_all:self.port.read
Exchange.states:self.port.read Link._frames:self.port.read Link.receive:self.session.accept
KeeperProcess.receive:self._socket.recv DeadmanProcess.beat:self._socket.recv PlanSource.poll:os.read
ForLoop.read:self.source.read"""
"""So many bytes, packets or calls, and a time, in one step: test_floods.py, test_plans.py, test_link.py."""
BEFORE = """ServoArm.connect:self.bus.port.read Lidar._ask:self.port.read Exchange._ask:self.port.read
Car._asked:self.port.read DeadmanProcess.__init__:self._socket.recv
Recorder._await_start:self._process.stdout.readline"""
"""While the robot is found or enabled: until an answer comes or its time is over, in a thread that STOP does not wait
for."""
APART = """_orders:program.recv _received:place.recvfrom _heard:program.recv main:requests.readline received:link.recv
asked:requests.read main:source.read Recorder._watch:self._process.stdout.read Connection.recv:.recv _read:os.read
main:sys.stdin.buffer.read wait:sys.stdin.buffer.read Handler.do_POST:self.rfile.read axis_events:os.read
follow_gamepad:os.read Keyboard.pressed:os.read _confirm:sys.stdin.readline"""
"""In a process, thread or web page of its own, which a robot's loop does not wait for; or of this computer's user."""
NO_PEERS = """StepReader.new:file.readline _task_of_lines:lines.readline step:eager.recv"""
"""Files, and a simulator's environments."""
OPENED = """start:socket.create_server Viewer:ThreadingHTTPServer start:viser.ViserServer
_Timely.readinto:self._connection.recv_into"""
"""Servers: a bound of connections, a time for each request, and a place for STOP (tests/robo_rl/viewer)."""


def taken() -> dict[str, str]:
    """The file of each "CLASS.FUNCTION:CALL" that takes bytes of a peer, or listens for one."""
    done = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if line.endswith(".py"):
            found |= dict.fromkeys(places(ast.parse((ROOT / line).read_text())), line)
    return found


def places(tree: ast.AST) -> list[str]:
    """Where the calls of a module are."""
    found = []

    def walk(node: ast.AST, owner: str, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            outer = child.name if isinstance(child, ast.ClassDef) else owner
            if isinstance(child, ast.Call) and takes(child):
                found.append(f"{owner + '.' if owner else ''}{inner}:{shown(child)}")
            if isinstance(child, ast.ClassDef):
                bases = [ast.unparse(base).split(".")[-1] for base in child.bases]
                found.extend(f"{child.name}:{base}" for base in bases if base in SERVERS)
            walk(child, outer, inner)

    walk(tree, "", "module")
    return found


def takes(call: ast.Call) -> bool:
    *before, last = ast.unparse(call.func).split(".")
    if last in TAKES | SERVERS:
        return True
    return last == "read" and (before == ["os"] or any(part.strip("_").endswith(PORTS) for part in before))


def shown(call: ast.Call) -> str:
    """A call's name; without what is in brackets."""
    return ast.unparse(call.func).rpartition(")")[2]


def known() -> set[str]:
    return {name for words in (IN_A_STEP, BEFORE, APART, NO_PEERS, OPENED) for name in words.split()}


def test_every_place_that_takes_bytes_of_a_peer_is_known() -> None:
    new = {name: file for name, file in taken().items() if name not in known()}
    assert not new, f"{new}: bound what is taken in a step, try it with a flood, and say so here"


def test_what_is_known_is_there() -> None:
    assert known() <= taken().keys()
