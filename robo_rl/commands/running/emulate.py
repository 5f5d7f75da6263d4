"""robo-rl emulate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from robo_rl.console import give, say

ROBOTS = Literal["so101", "dynamixel", "go2", "g1", "f1tenth", "px4", "franka", "ur", "crazyflie", "plan-server"]


def main(
    robot: Annotated[ROBOTS, tyro.conf.Positional],
    calibration: Path | None = None,
    robot_file: Path | None = None,
    interface: str = "lo",
    port: int | None = None,
    address: str = "127.0.0.1",
    firmware: str = "1.16",
    delivered: bool = False,
    latency: float = 0.3,
    spread: float = 0.2,
    fault: str = "",
    after: float = 5.0,
    realtime: bool = False,
    seconds: float = float("inf"),
    json: bool = False,
) -> int:
    """Emulate a robot that speaks its own protocol, the simulated robot behind it, or a policy server, until Ctrl-C.

    Prints the port to give to 'robo-rl run --port', or to any other program for this robot. With --json, at the end:
    robot, port, fault; of an arm calibration and, with Dynamixel servos, robot_file, of a Go2 or G1 refused (commands
    that it dropped), of a car robot_file, laps and touched (whether it met a wall), of a vehicle with PX4 or a
    Crazyflie position (m) and armed, of a Franka or a UR5e tool_position (m), of a policy
    server requests.

    Args:
        robot: so101, six Feetech servos on a pseudo-terminal; dynamixel, six XM430-W210 on one; go2, a Unitree Go2 on
            DDS; g1, a Unitree G1 on DDS, hung up; f1tenth, a RoboRacer car, its VESC on a pseudo-terminal and its
            lidar on TCP; px4, a multirotor with PX4, on UDP; franka, an FR3 with its hand, by franky-sim; ur, a UR5e,
            on TCP; crazyflie, a Crazyflie 2.1, on UDP; plan-server, a policy server whose plans are zoo:arm-place
            rolled out, for 'robo-rl run --plan'.
        calibration: Where to write LeRobot's calibration of an emulated arm; by default so101.json, dynamixel.json.
        robot_file: Where to write the robot file of an emulated car or of an arm of Dynamixel servos, for 'robo-rl run
            --robot-file'; by default f1tenth.toml, dynamixel.toml.
        interface: Network interface of a Go2 or G1; lo/NAME keeps several on one computer apart.
        port: Of this computer: to which an autopilot sends, by default 14540, or at which a Crazyflie listens, 19850,
            or a policy server, 8000 (0: a free one).
        address: Of this computer, at which a Franka or a UR5e is; 127.0.0.2 for another one.
        firmware: Version of PX4 whose behaviour an autopilot has, 1.12 to 1.17.
        delivered: An autopilot has PX4's own parameters, as it comes: 'robo-rl run' refuses its failsafe.
        latency: s from a request to a plan, in the middle.
        spread: s, by which that differs to either side.
        fault: What goes wrong on the wire: a name, or 'list' for all names.
        after: s from the beginning to the fault.
        realtime: Ask for a real-time priority and for memory that is not paged out.
        seconds: How long to run.
        json: Print one JSON object on the last line of stdout.
    """
    parts = {
        "so101": _arm, "dynamixel": _dynamixel, "go2": _go2, "g1": _g1, "f1tenth": _car,
        "px4": lambda: _px4(firmware, delivered), "crazyflie": _crazyflie,
        "franka": lambda: _franka(address), "ur": _ur, "plan-server": lambda: _plan_server(latency, spread),
    }  # fmt: skip
    faults, wire_of = parts[robot]()
    if fault == "list":
        for name, one in faults.items():
            if name:
                say(f"{name:<24} {one.text}; {'tolerated' if one.borne else 'the robot must be stopped'}", json)
        return 0
    if fault not in faults:
        raise ValueError(f"no fault is called {fault[:60]!r}; expected one of {', '.join(filter(None, faults))}")
    if realtime:
        from robo_rl.deploy.robot.realtime import keep_time

        for sentence in keep_time():
            say(sentence, json)
    wire, waiting = wire_of(), [fault] if fault else []

    def begin(since: float) -> None:
        if waiting and since > after:
            say(f"from now on: {faults[waiting[0]].text}", json)
            wire.begin(waiting.pop())

    robot_file = robot_file or Path(f"{robot}.toml")
    if robot in ("so101", "dynamixel"):
        files = calibration or Path(f"{robot}.json"), robot_file
        told = _serve_arm(wire, begin, robot, files, seconds, json)
    elif robot in ("go2", "g1"):
        told = _serve_unitree(wire, begin, interface, seconds, json)
    elif robot == "px4":
        told = _serve_px4(wire, begin, port or 14540, seconds, json)
    elif robot == "crazyflie":
        told = _serve_crazyflie(wire, begin, port or 19850, seconds, json)
    elif robot == "franka":
        told = _serve_franka(wire, begin, seconds, json)
    elif robot == "plan-server":
        told = _serve_plans(wire, begin, 8000 if port is None else port, seconds, json)
    elif robot == "ur":
        told = _serve_ur(wire, begin, address, seconds, json)
    else:
        told = _serve_car(wire, begin, robot_file, seconds, json)
    give({"robot": robot, **told, "fault": fault}, json)
    return 0


def _arm() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.servos.feetech_wire import FAULTS, Wire

    def wire() -> Any:
        from robo_rl.deploy.emulate.so101 import Arm

        arm = Arm()
        made: Any = Wire(arm.bus)
        made.arm = arm
        return made

    return FAULTS, wire


def _dynamixel() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.servos.dynamixel_wire import FAULTS, DynamixelWire

    def wire() -> Any:
        from robo_rl.deploy.emulate.dynamixel import Arm

        arm = Arm()
        made: Any = DynamixelWire(arm.bus)
        made.arm = arm
        return made

    return FAULTS, wire


def _go2() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.go2 import Go2
    from robo_rl.deploy.emulate.go2.wire import FAULTS, Go2Wire

    return FAULTS, lambda: Go2Wire(Go2())


def _g1() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.g1 import G1
    from robo_rl.deploy.emulate.g1.wire import FAULTS, G1Wire

    return FAULTS, lambda: G1Wire(G1())


def _car() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.f1tenth import Racer
    from robo_rl.deploy.emulate.f1tenth.wire import FAULTS, CarWire

    return FAULTS, lambda: CarWire(Racer())


def _px4(firmware: str, delivered: bool) -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.px4 import DEFAULTS, PARAMETERS, Vehicle
    from robo_rl.deploy.emulate.px4.wire import FAULTS, PilotWire

    if firmware not in (versions := [f"1.{minor}" for minor in range(12, 18)]):
        raise ValueError(f"--firmware is {firmware[:40]!r}; expected one of {', '.join(versions)}")

    def wire() -> PilotWire:
        vehicle = Vehicle(version=(1, int(firmware[2:])))
        vehicle.parameters = dict(DEFAULTS if delivered else PARAMETERS)
        return PilotWire(vehicle)

    return FAULTS, wire


def _franka(address: str) -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.franka import Station
    from robo_rl.deploy.emulate.franka.wire import FAULTS, FrankaWire

    return FAULTS, lambda: FrankaWire(Station(address))


def _ur() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.ur import Arm
    from robo_rl.deploy.emulate.ur.wire import FAULTS, UrWire

    return FAULTS, lambda: UrWire(Arm())


def _plan_server(latency: float, spread: float) -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.plans.serve import FAULTS, arm_server

    if not 0.0 <= spread <= latency <= 60.0:
        raise ValueError(f"--latency is {latency:g}, --spread is {spread:g}; expected 0 <= spread <= latency <= 60 s")
    return FAULTS, lambda: arm_server((latency - spread, latency + spread))


def _crazyflie() -> tuple[Any, Any]:
    from robo_rl.deploy.emulate.crazyflie.wire import FAULTS, RadioWire

    return FAULTS, RadioWire


def _serve_arm(
    wire: Any, begin: Any, robot: str, files: tuple[Path, Path], seconds: float, json: bool
) -> dict[str, Any]:
    from robo_rl.deploy.emulate.pty import serve
    from robo_rl.deploy.emulate.servos.arm import TICK
    from robo_rl.deploy.robot.drivers.bus_servos.calibration import write_calibration
    from robo_rl.deploy.robot.drivers.bus_servos.robot_file import write_robot_file

    calibration, robot_file = files
    written = {"calibration": str(calibration)}
    write_calibration(calibration, wire.arm.calibration)
    if robot == "dynamixel":
        write_robot_file(robot_file, wire.arm.file)
        written["robot_file"] = str(robot_file)
    and_file = f", its robot file in {robot_file}" if "robot_file" in written else ""
    what = {"so101": "an emulated SO-101", "dynamixel": "an emulated arm of Dynamixel servos"}[robot]
    begun = time.monotonic()
    ports: list[str] = []

    def exchange(data: bytes) -> bytes:
        begin(time.monotonic() - begun)
        answer: bytes = wire.exchange(data)
        return answer

    def announce(port: str) -> None:
        ports.append(port)
        say(f"{what} is at {port}, its calibration in {calibration}{and_file}", json)

    serve(announce, exchange, wire.arm.advance, TICK, seconds)
    return {"port": ports[0], **written}


def _serve_unitree(wire: Any, begin: Any, interface: str, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.go2.dds import serve

    how = f"lying, in its mode '{wire.robot.mode}'"
    if wire.robot.name == "g1":
        how = "hung up, in debug mode; it is let down when its legs have held their stance for a second"
    say(f"an emulated {wire.robot.name.title()} is on {interface}, {how}", json)
    return {"port": interface, "refused": serve(interface, wire, begin, seconds)}


def _serve_car(wire: Any, begin: Any, robot_file: Path, seconds: float, json: bool) -> dict[str, Any]:
    import dataclasses

    from robo_rl.deploy.emulate.f1tenth.serve import serve
    from robo_rl.deploy.robot.drivers.vesc.robot_file import write_robot_file

    ports: list[str] = []

    def announce(port: str, lidar: str) -> None:
        write_robot_file(robot_file, dataclasses.replace(wire.racer.file, lidar=lidar))
        ports.append(port)
        say(f"an emulated F1TENTH car is at {port}, its lidar at {lidar}, its robot file in {robot_file}", json)

    serve(wire, announce, begin, seconds)
    return {
        "port": ports[0], "robot_file": str(robot_file), "laps": wire.racer.laps, "touched": wire.racer.touches
    }  # fmt: skip


def _serve_px4(wire: Any, begin: Any, port: int, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.px4.serve import serve

    say(f"an emulated vehicle with PX4 is at udp:{port}, on the ground", json)
    serve(wire, port, begin, seconds)
    place = wire.vehicle.truth["position"].tolist()
    return {"port": f"udp:{port}", "position": place, "armed": wire.vehicle.armed}


def _serve_crazyflie(wire: Any, begin: Any, port: int, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.crazyflie.serve import serve

    uri = f"udp://127.0.0.1:{port}"
    serve(wire, port, begin, seconds, lambda: say(f"an emulated Crazyflie is at {uri}, on the ground", json))
    place = wire.vehicle.truth["position"].tolist()
    return {"port": uri, "position": place, "armed": wire.vehicle.supervisor.armed}


def _serve_franka(wire: Any, begin: Any, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.franka.serve import serve

    say(f"an emulated Franka (FR3) is at {wire.station.host}, its tool at {_place(wire)} m", json)
    serve(wire, begin, seconds)
    return {"port": wire.station.host, "tool_position": wire.station.tool.tolist()}


def _serve_ur(wire: Any, begin: Any, address: str, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.ur.serve import serve

    place = " ".join(f"{x:.2f}" for x in wire.arm.tool + 0.0)
    told = f"an emulated UR5e is at {address}, in remote control, its tool at {place} m"
    serve(wire, address, lambda: say(told, json), begin, seconds)
    return {"port": address, "tool_position": wire.arm.tool.tolist()}


def _serve_plans(wire: Any, begin: Any, port: int, seconds: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.emulate.plans.serve import serve

    ports: list[int] = []

    def announce(at: int) -> None:
        ports.append(at)
        say(f"a policy server is at ws://127.0.0.1:{at}, with plans of zoo:arm-place", json)

    serve(wire, port, announce, begin, seconds)
    return {"port": ports[0], "requests": wire.requests}


def _place(wire: Any) -> str:
    return " ".join(f"{x:.2f}" for x in wire.station.tool + 0.0)
