"""robo-rl firmware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from robo_rl.commands.sources import derived
from robo_rl.console import give, say
from robo_rl.files.escaping import shell_word

LOST_SUCCESS = 0.01
"""Of the success rate, against pure simulation."""
TargetName = Literal[
    "host", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "riscv32",
    "stm32f4", "stm32g4", "stm32l4", "stm32f7", "stm32h7", "stm32u5", "stm32h5", "teensy4", "nano33ble", "rp2350",
    "crazyflie", "esp32c3",
]  # fmt: skip
"""Processors, and microcontrollers and boards by the names that ``targets.BOARDS`` has."""


def main(
    file: Annotated[Path, tyro.conf.Positional],
    target: TargetName = "cortex-m4",
    run: bool = False,
    fly: int = 0,
    faults: bool = False,
    out: Path | None = None,
    clock_mhz: float = 168.0,
    portable: bool = False,
    small: bool = False,
    package: Literal["none", "cmake", "arduino", "zephyr", "crazyflie", "simplefoc"] = "none",
    prefix: str = "policy",
    precision: Literal["float32", "int16", "int8"] = "float32",
    budget: float = 0.01,
    episodes: int = 500,
    learn: bool = False,
    task: str | None = None,
    robot: str | None = None,
    trusted_keys: Path | None = None,
    json: bool = False,
) -> int:
    """Compile a policy file to C99 for a microcontroller, and test it on an emulated one.

    Writes a folder of C: the whole policy from signals to commands, without heap, with a self-test. With --run it is
    compiled for the target and runs on an emulated board (or on this computer, for the target host): self-test, memory
    and instruction count. With --fly the emulated board runs the simulated task through the link, behind the
    safety gate.
    With --json: file, signer, target, precision, folder, flash_bytes, ram_bytes (stack included), stack_bytes,
    constant_bytes, state_bytes, arena_bytes, instructions_max and instructions_min (of one step),
    gate_instructions_max (of the safety gate at one step), rate_hz_max (at the given clock, if every instruction took
    one cycle), self_test_error, passed; without --run only what is known then.
    With integers also rms_error and max_error (of the commands' range, by command and element), and flights and
    float32_flights, which are what 'evaluate' gives. With --fly also loop, with --faults also wire_faults.

    Args:
        file: A bundle (*.onnx).
        target: The processor, or a microcontroller or board: its processor is emulated, nothing else of it.
        run: Compile, run the self-test, count instructions.
        fly: Number of held-out episodes with the processor in the loop.
        faults: Inject faults into the serial link: each must be tolerated, or lead to the safe command in time.
        out: The folder to write; by default the file's name with _firmware, beside it.
        clock_mhz: The processor's clock, for the rate.
        portable: Use no assembly.
        small: Optimise for size (-Os) instead of speed (-O3).
        package: Lay the sources out for a build system; arduino is for PlatformIO as well.
        prefix: What the names of files, functions and types begin with, so that several policies can be linked.
        precision: Precision of the weights. Integer scales are calibrated on recorded episodes.
        budget: With integers: the greatest root mean square error of a command, in units of its range.
        episodes: With integers: number of episodes to compare with float32; 0 for none.
        learn: Go on learning on the microcontroller, from the reward that the task measures (float32; a critic learns
            in simulation first). 'robo-rl pull-weights' makes a policy file of what was learnt.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        trusted_keys: Refuse a file that no key in this file of public keys signed.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.build.firmware.targets import BOARDS

    asked, target = target, BOARDS.get(target, target)  # type: ignore[assignment]
    for name, value, least in (("fly", fly, 0), ("episodes", episodes, 0)):
        if value < least:
            raise ValueError(f"--{name} is {value}; expected {least} or more")
    for name, number in (("clock-mhz", clock_mhz), ("budget", budget)):
        if not 0 < number < float("inf"):
            raise ValueError(f"--{name} is {number:g}; expected a positive number")
    if target == "riscv32" and (fly or faults):
        raise ValueError(f"--target is {asked}; expected a Cortex-M with --fly and --faults, or --run alone")
    if learn and (fly or faults):
        raise ValueError(
            "--learn excludes --fly and --faults, which run several robots: a learner belongs to one; --run and "
            "--package work with it"
        )
    from robo_rl.deploy.build.c.generate import Options, generate
    from robo_rl.deploy.build.firmware.package import package as lay_out
    from robo_rl.deploy.robot.bundle.signing import read_signed
    from robo_rl.files import room_for

    (bundle, signer), options = read_signed(file, trusted_keys), Options(prefix, precision=precision)
    if signer:
        say(f"{file}: signed by {signer}", json)
    known = _task(bundle, task, robot) if task or robot or fly or learn or precision != "float32" else None
    extra: dict[str, Any] = {}
    if precision != "float32":
        options, extra = _integers(bundle, known, options, budget, episodes, json)
    if learn:
        options = _learning(bundle, known, options)
    folder = out or derived(file, "_firmware")
    with room_for(folder, "the files that are there are not whole"):
        made = generate(bundle, folder, options) if package == "none" else lay_out(bundle, folder, package, options)
    shown = folder if package == "none" else folder / "src"
    say(
        f"{shown}: {', '.join(path.name for path in made.sources)}, {made.constant_bytes:,} bytes of constants",
        json,
    )
    result: dict[str, Any] = {
        "file": str(file),
        "signer": signer,
        "target": target,
        "precision": precision,
        "folder": str(shown),
        "constant_bytes": made.constant_bytes,
        "state_bytes": made.state_bytes,
        "arena_bytes": made.arena_bytes,
        **extra,
    }
    again = _again(
        file,
        {
            "--target": asked, "--package": package, "--prefix": prefix, "--precision": precision, "--out": out,
            "--task": task, "--robot": robot,
        },
    ) + ["--learn"] * learn  # fmt: skip
    if not (run or fly or faults):
        say(
            f"Next:  robo-rl firmware {' '.join(again)} --run",
            json,
        )
        give(result, json)
        return 0
    flags = [flag for flag, wanted in (("-DPOLICY_PORTABLE", portable), ("-Os", small)) if wanted]
    passed = True
    if run:
        result |= _run_here(made, flags) if target == "host" else _run_emulated(made, target, flags, clock_mhz, json)
        passed = result["passed"]
        error = f"off by {result['self_test_error']:.2g} of the commands' range, at most {made.tolerance:g}"
        say(f"  self-test     {'passed' if passed else 'FAILED'}: {error}", json)
    if fly or faults:
        tried = _in_the_loop(bundle, known, made, target, flags, fly, faults, json)
        result |= tried
        passed = passed and all(part["passed"] for part in tried.values())
    give({**result, "passed": passed}, json)
    return 0 if passed else 1


USUAL = {"--package": "none", "--prefix": "policy", "--precision": "float32"}


def _again(file: Path, options: dict[str, Any]) -> list[str]:
    """The words of this command, to be pasted."""
    given = {name: value for name, value in options.items() if value not in (None, USUAL.get(name))}
    return [shell_word(file), *(word for name, value in given.items() for word in (name, shell_word(str(value))))]


def _task(bundle: Any, task: str | None, robot: str | None) -> Any:
    from robo_rl.deploy.build.verify import task_of

    return task_of(bundle, robot, task)


def _learning(bundle: Any, task: Any, options: Any) -> Any:
    from robo_rl.deploy.build.learning import learning_of
    from robo_rl.learn.stream import StreamConfig

    config = StreamConfig(**task.settings.get("stream", {}))
    return replace(options, learning=learning_of(bundle, task, config))


def _in_the_loop(
    bundle: Any, task: Any, made: Any, target: str, flags: list[str], fly: int, faults: bool, json: bool
) -> dict[str, Any]:
    from contextlib import nullcontext

    from robo_rl.deploy.build.c.device import HostDevice
    from robo_rl.deploy.build.firmware.build import build_device
    from robo_rl.deploy.build.firmware.faults import FAULTS
    from robo_rl.deploy.build.firmware.rig import Board, Boards
    from robo_rl.deploy.build.firmware.targets import TARGETS
    from robo_rl.files import cores

    devices = max(fly, len(FAULTS) if faults else 0)
    opened: Any
    if target == "host":
        opened = nullcontext(HostDevice(made, devices))
    else:
        each = -(-devices // min(cores.available(), devices))
        image = build_device(made, TARGETS[target], "rig", each, flags)
        size = sum(command.size for command in made.contract.commands)
        opened = Boards([lambda: Board(image, TARGETS[target], size)] * -(-devices // each), each)
    found: dict[str, Any] = {}
    with opened as device:
        if faults:
            found["wire_faults"] = _try_faults(bundle, device, json)
        if fly:
            device.restart()
            found["loop"] = _fly(bundle, task, made, device, target, fly, json)
    return found


def _fly(bundle: Any, task: Any, made: Any, device: Any, target: str, count: int, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.build.c.device import HostDevice
    from robo_rl.deploy.build.firmware.loop import fly_devices
    from robo_rl.deploy.build.verify import BundlePolicy
    from robo_rl.evaluate.evaluation import Conditions, outcome, rollout

    conditions = Conditions(episodes=count)
    flown = fly_devices(bundle, device, HostDevice(made, count), conditions, f"evaluating on {target}", task)
    simulated = rollout(task, BundlePolicy(bundle), conditions, "evaluating by onnxruntime").summary()
    passed = not flown.different and flown.flights["success"] >= simulated["success"] - LOST_SUCCESS
    for what, flights in (("in the loop", flown.flights), ("simulated", simulated)):
        say(f"  {what:<14}{outcome(task, flights, conditions.seed)}", json)
    same = "all" if not flown.different else f"all but {flown.different:,}"
    say(f"  commands      {same} of {flown.steps:,} steps bit for bit those of the same C here", json)
    say(f"                onnxruntime's within {flown.worst:.2g} of their range", json)
    return {
        "passed": passed,
        "steps": flown.steps,
        "different": flown.different,
        "max_abs_error": flown.worst,
        "faults": len(flown.faults),
        "flights": flown.flights,
        "simulated_flights": simulated,
    }


def _try_faults(bundle: Any, device: Any, json: bool) -> dict[str, Any]:
    from robo_rl.controllers.gate.config import GateConfig
    from robo_rl.deploy.build.firmware.faults import FAULTS, table, try_faults

    timeout = GateConfig.from_contract(bundle.contract).timeout
    outcomes = try_faults(bundle, device)
    failed = [outcome.fault.name for outcome in outcomes if not outcome.passed(timeout)]
    say(table(outcomes), json)
    say(f"  wire faults   {len(FAULTS) - len(failed)} of {len(FAULTS)} handled as specified {failed or ''}", json)
    return {
        "passed": not failed,
        "failed": failed,
        "outcomes": [
            {
                "fault": outcome.fault.name,
                "borne": outcome.stopped_after is None,
                "stopped_after_ms": None if outcome.stopped_after is None else outcome.stopped_after / 1000,
                "gate": outcome.gate,
            }
            for outcome in outcomes
        ],
    }


def _integers(
    bundle: Any, task: Any, options: Any, budget: float, episodes: int, json: bool
) -> tuple[Any, dict[str, Any]]:
    from robo_rl.deploy.build.c.budget import budgeted
    from robo_rl.evaluate.evaluation import outcome

    options, cost = budgeted(bundle, task, options, budget, episodes)
    for name, errors in cost.rms.items():
        most = max(cost.greatest[name])
        say(f"  {name}: off by {max(errors):.2g} of its range (root mean square), by {most:.2g} at most", json)
    for what, flights in ((options.precision, cost.flights), ("float32", cost.exact_flights)):
        if flights is not None:
            say(f"  {what:<8}{outcome(task, flights)}", json)
    return options, {
        "rms_error": cost.rms,
        "max_error": cost.greatest,
        "flights": cost.flights,
        "float32_flights": cost.exact_flights,
    }


def _run_here(made: Any, flags: list[str]) -> dict[str, Any]:
    from robo_rl.deploy.build.c.host import compile_host

    error = compile_host(made, flags).self_test()
    return {"self_test_error": error, "passed": error <= made.tolerance}


def _run_emulated(made: Any, target: str, flags: list[str], clock_mhz: float, json: bool) -> dict[str, Any]:
    from robo_rl.deploy.build.firmware.build import build
    from robo_rl.deploy.build.firmware.emulate import measure
    from robo_rl.deploy.build.firmware.targets import TARGETS

    processor = TARGETS[target]
    images = build(made, processor, flags)
    measured = measure(images.measure, processor)
    most, least = max(measured.instructions), min(measured.instructions)
    gate = max(measured.gate_instructions)
    ram, rate = images.policy.ram + measured.stack_bytes, clock_mhz * 1e6 / most
    say(
        f"{processor.title}, emulated ({processor.machine})\n"
        f"  flash         {images.policy.flash:,} bytes\n"
        f"  RAM           {ram:,} bytes: {images.policy.ram:,} static, {measured.stack_bytes:,} of stack\n"
        f"  instructions  {least:,} to {most:,} per step; the gate takes up to {gate:,} more\n"
        f"  rate          below {rate:,.0f} Hz at {clock_mhz:g} MHz (one cycle per instruction; real ones take more)",
        json,
    )
    return {
        "flash_bytes": images.policy.flash,
        "ram_bytes": ram,
        "stack_bytes": measured.stack_bytes,
        "instructions_max": most,
        "instructions_min": least,
        "gate_instructions_max": gate,
        "rate_hz_max": rate,
        "self_test_error": measured.self_test_error,
        "passed": measured.passed,
    }
