"""Packages: what can be compiled here is compiled."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.build.c.generate import Options, Precision, generate
from robo_rl.deploy.build.c.host import STRICT, compile_host
from robo_rl.deploy.build.firmware.build import _lay_out, _link
from robo_rl.deploy.build.firmware.emulate import EXACT, _instructions, _numbers
from robo_rl.deploy.build.firmware.package import PackageError, package
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.robots import load_robot

CRAZYFLIE_STUBS = {
    "FreeRTOS.h": "#define portMAX_DELAY 0xffffffffUL\n",
    "task.h": "void vTaskDelay(unsigned long ticks);\n",
    "app.h": "void appMain(void);\n",
    "usec_time.h": "#include <stdint.h>\nuint64_t usecTimestamp(void);\n",
    "math3d.h": "static inline float radians(float degrees) { return 0.0174532925f * degrees; }\n",
    "stabilizer_types.h": (
        "#include <stdint.h>\n"
        "typedef struct { float x, y, z; } vector_t;\n"
        "typedef struct { float x, y, z, w; } quaternion_t;\n"
        "typedef enum { modeDisable, modeAbs, modeVelocity } stab_mode_t;\n"
        "typedef struct { struct { stab_mode_t x, y, z; } mode; vector_t position, velocity; } setpoint_t;\n"
        "typedef struct { vector_t gyro; } sensorData_t;\n"
        "typedef struct { vector_t position, velocity; quaternion_t attitudeQuaternion; } state_t;\n"
        "typedef enum { controlModeForce } control_mode_t;\n"
        "typedef struct { control_mode_t controlMode; float normalizedForces[4]; } control_t;\n"
        "typedef uint32_t stabilizerStep_t;\n"
    ),
    "platform_defaults.h": "#define THRUST_MAX 0.12f",
    "controller.h": (
        "#include <stdbool.h>\n#include \"stabilizer_types.h\"\n"
        "void controllerOutOfTreeInit(void);\nbool controllerOutOfTreeTest(void);\n"
        "void controllerOutOfTree(control_t *, const setpoint_t *, const sensorData_t *, const state_t *,"
        " const stabilizerStep_t);\n"
    ),
}  # fmt: skip

ZEPHYR_KERNEL = (
    "#include <stddef.h>\n#include <stdint.h>\n"
    "typedef struct { int64_t ticks; } k_timeout_t;\n"
    "struct k_timer { int started; };\n"
    "#define K_TIMER_DEFINE(name, expiry, stop) struct k_timer name\n"
    "#define K_USEC(t) ((k_timeout_t){(t)})\n"
    "void k_timer_start(struct k_timer *, k_timeout_t, k_timeout_t);\n"
    "uint32_t k_timer_status_sync(struct k_timer *);\n"
    "int64_t k_uptime_ticks(void);\n"
    "uint64_t k_ticks_to_us_floor64(uint64_t);\n"
)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def require(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found; apt-get install {' '.join(missing)}")


def test_cmake_builds_a_program_that_passes_its_self_test(bundle_file: Path, tmp_path: Path) -> None:
    require("cmake", "gcc", "make")
    package(Bundle.read(bundle_file), tmp_path / "policy", "cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nadd_subdirectory(policy)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user PRIVATE policy)\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "policy.h"\nint main(void) {\nstatic policy_state s;\nstatic policy_arena a;\n'
        "return !(policy_self_test(&s, &a) <= POLICY_TOLERANCE);\n}\n"
    )
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert run(str(tmp_path / "build" / "user"), cwd=tmp_path) == ""


@pytest.mark.parametrize("name", ["quadrotor-hover", "go2-flat", "arm-reach"])
def test_the_example_of_the_cmake_package_arms_steps_and_stops(name: str, tmp_path: Path) -> None:
    require("gcc")
    package(Bundle.read(f"zoo:{name}"), tmp_path, "cmake")
    flags = [*STRICT, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-Isrc"]
    sources = [str(path.relative_to(tmp_path)) for path in (tmp_path / "src").glob("*.c")]
    run("gcc", *flags, "examples/main.c", *sources, "-lm", "-o", "example", cwd=tmp_path)
    states = [int(line.split()[0]) for line in run("./example", cwd=tmp_path).splitlines()]
    assert [state for i, state in enumerate(states) if i == 0 or state != states[i - 1]] == [
        State.READY, State.ACTIVE, State.FAULT,
    ]  # fmt: skip


def test_packages_compile_for_a_microcontroller(tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    package(Bundle.read("zoo:quadrotor-hover"), tmp_path, "zephyr")
    sources = [path.name for path in (tmp_path / "src").glob("*.c")]
    processor = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-Wdouble-promotion"]
    run("arm-none-eabi-gcc", *STRICT, *processor, "-c", *sources, cwd=tmp_path / "src")


def test_arduino_example_compiles_as_cpp(bundle_file: Path, tmp_path: Path) -> None:
    require("g++")
    package(Bundle.read(bundle_file), tmp_path, "arduino")
    sketch = (tmp_path / "examples" / "Fly" / "Fly.ino").read_text()
    (tmp_path / "fly.cpp").write_text("unsigned long micros();\n" + sketch)
    run("g++", "-Wall", "-Wextra", "-Werror", "-Isrc", "-fsyntax-only", "fly.cpp", cwd=tmp_path)
    described = json.loads((tmp_path / "library.json").read_text())
    assert described["headers"] == "policy_onboard.h"
    assert "name=policy\n" in (tmp_path / "library.properties").read_text()


def test_crazyflie_app_compiles_against_the_firmware_types(bundle_file: Path, tmp_path: Path) -> None:
    require("gcc")
    made = package(Bundle.read(bundle_file), tmp_path, "crazyflie")
    for name, text in CRAZYFLIE_STUBS.items():
        guard = name.replace(".", "_").upper()
        (tmp_path / name).write_text(f"#ifndef {guard}\n#define {guard}\n{text}\n#endif\n")
    sources = sorted(made.folder.glob("*.c"))
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Wdouble-promotion", "-Werror", "-I.", "-c"]
    run("gcc", *flags, *map(str, sources), cwd=tmp_path)
    built = (tmp_path / "src" / "Kbuild").read_text()
    assert sorted(line[9:-2] for line in built.splitlines() if line.startswith("obj-y")) == [s.stem for s in sources]
    assert "OOT_CONFIG := $(PWD)/app-config" in (tmp_path / "Makefile").read_text()


THRUSTS = """
#include <stdio.h>
#include <stdlib.h>
#include "src/controller_policy.c"
int main(int count, char **words)
{
    control_t control;
    (void)count;
    for (int i = 0; i < 4; i++) {
        robot.commands.rotor_speed[i] = (float)atof(words[1]);
    }
    robot.enabled = words[2][0] == '1';
    send_commands(&control);
    printf("%.9g %.9g", (double)control.normalizedForces[0], (double)control.normalizedForces[3]);
    return 0;
}
void vTaskDelay(unsigned long ticks) { (void)ticks; }
uint64_t usecTimestamp(void) { return 0; }
"""


@pytest.mark.parametrize("full_scale", [0.1125, 0.12, 0.18])
def test_crazyflie_app_gives_the_thrust_that_the_policy_commands(tmp_path: Path, full_scale: float) -> None:
    """N a rotor at full scale: crazyflie-firmware, platform_defaults_cf2.h, by release and propellers."""
    require("gcc")
    card = load_robot("crazyflie")
    package(Bundle.read("zoo:quadrotor-hover"), tmp_path, "crazyflie")
    for name, text in CRAZYFLIE_STUBS.items():
        (tmp_path / name).write_text(f"#pragma once\n{text}\n")
    (tmp_path / "platform_defaults.h").write_text(f"#define THRUST_MAX {full_scale}f\n")
    (tmp_path / "main.c").write_text(THRUSTS)
    others = [str(path) for path in (tmp_path / "src").glob("*.c") if path.stem != "controller_policy"]
    run("gcc", "-std=gnu11", "-I.", "-Isrc", "main.c", *others, "-lm", "-o", "t", cwd=tmp_path)
    assert run("./t", "800", "0", cwd=tmp_path) == "0 0"  # not armed
    for speed in (0.0, 800.0, card.speed_for_thrust(0.25 * card.mass * 9.81), card.rotor_speed_max):
        thrust = card.thrust[0] + card.thrust[1] * speed + card.thrust[2] * speed**2
        for part in map(float, run("./t", repr(speed), "1", cwd=tmp_path).split()):
            assert part * full_scale == pytest.approx(min(thrust, full_scale), rel=1e-5, abs=1e-9)


def test_crazyflie_app_does_not_build_where_full_scale_is_unknown(tmp_path: Path) -> None:
    require("gcc")
    package(Bundle.read("zoo:quadrotor-hover"), tmp_path, "crazyflie")
    for name, text in CRAZYFLIE_STUBS.items():
        (tmp_path / name).write_text(f"#pragma once\n{text}\n")
    (tmp_path / "platform_defaults.h").write_text("#pragma once\n")
    command = ["gcc", "-std=gnu11", "-I.", "-c", "src/controller_policy.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "does not tell the thrust (N) at full scale" in done.stderr


def test_zephyr_module_names_the_sources_that_exist_and_its_sample_compiles(bundle_file: Path, tmp_path: Path) -> None:
    require("gcc")
    made = package(Bundle.read(bundle_file), tmp_path, "zephyr")
    listed = (tmp_path / "CMakeLists.txt").read_text()
    sources = [word.strip("()") for word in listed.split() if word.strip("()").endswith(".c")]
    named = sorted(Path(source.split("(")[-1]).name for source in sources)
    assert named == sorted(path.name for path in made.folder.glob("*.c"))
    assert "config POLICY\n" in (tmp_path / "Kconfig").read_text()
    (tmp_path / "zephyr" / "kernel.h").write_text(ZEPHYR_KERNEL)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Wdouble-promotion", "-Werror", "-I.", "-Isrc", "-fsyntax-only"]
    run("gcc", *flags, "samples/run/src/main.c", cwd=tmp_path)


@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_a_signal_that_is_not_finite_changes_neither_commands_nor_memory(precision: Precision, tmp_path: Path) -> None:
    """Every element of every signal: NaN or infinite for one step, which is refused; the next is unaffected."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    bundle = Bundle.read("zoo:quadrotor-hover")
    compiled = compile_host(generate(bundle, tmp_path, Options(precision=precision)), ["-O1"])
    signals = {name: value[:1] for name, value in bundle.golden.signals.items()}
    before = bundle.contract.initial_state[None]
    expected, _ = compiled.run(signals, before)
    for signal in bundle.contract.signals:
        for element, wrong in itertools.product(range(signal.size), (math.nan, math.inf, -math.inf)):
            values = signals[signal.name].copy()
            values[0, element] = wrong
            refused, after = compiled.run({**signals, signal.name: values}, before)
            assert all(np.isnan(value).all() for value in refused.values())
            np.testing.assert_array_equal(after, before)
            following, _ = compiled.run(signals, after)
            for name, value in expected.items():
                np.testing.assert_array_equal(following[name], value)


def test_a_policy_that_does_not_fit_the_crazyflie_is_refused(tmp_path: Path) -> None:
    import sys

    sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
    from firmware_networks import write_network

    bundle = write_network("A", tmp_path / "network.onnx")
    with pytest.raises(PackageError, match=r"its signals are \['signal'\] .* takes four rotor speeds"):
        package(bundle, tmp_path / "app", "crazyflie")


def test_two_policies_with_prefixes_are_linked_into_one_program(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    files, calls = [], []
    for name in ("left", "right"):
        made = generate(Bundle.read("zoo:quadrotor-hover"), tmp_path / name, Options(name))
        files += [f"-I{made.folder}", *map(str, made.sources)]
        calls.append(f"static {name}_state {name}; static {name}_arena {name}_room;")
    main = tmp_path / "main.c"
    main.write_text(
        '#include "left.h"\n#include "right.h"\n' + "\n".join(calls) + "\nint main(void) {\n"
        "    return left_self_test(&left, &left_room) <= LEFT_TOLERANCE\n"
        "        && right_self_test(&right, &right_room) <= RIGHT_TOLERANCE ? 0 : 1;\n}\n"
    )
    program = tmp_path / "both"
    subprocess.run(["cc", *STRICT, "-O1", *files, str(main), "-lm", "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_every_file_of_c_names_its_licence_and_limits_are_told_in_decimals(tmp_path: Path) -> None:
    made = generate(Bundle.read("zoo:quadrotor-hover"), tmp_path)
    for path in [*tmp_path.glob("*.c"), *tmp_path.glob("*.h")]:
        assert path.read_text().startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"), path.name
    upper = made.contract.commands[0].upper[0]
    text = made.sources[0].read_text()
    assert f"/* {upper:.6g}, {upper:.6g}, {upper:.6g}, {upper:.6g} */" in text


CLOCK, RATE = 168e6, 500
"""Hz: of the STM32F405, and steps a second that the bar is for."""
FIRMWARE = """
#include "policy.h"
#include "controller_policy.c"
static uint64_t microseconds;
uint64_t usecTimestamp(void) { return microseconds; }
void vTaskDelay(unsigned long ticks) { (void)ticks; }
static setpoint_t setpoint;
static sensorData_t sensors;
static state_t estimate;
static control_t control;
static vector_t vector(const float *v) { const vector_t made = {v[0], v[1], v[2]}; return made; }
static void measured(const policy_signals *s)
{
    const float degrees = 57.29578f;
    const quaternion_t q = {s->orientation[0], s->orientation[1], s->orientation[2], s->orientation[3]};
    estimate.position = vector(s->position);
    estimate.velocity = vector(s->linear_velocity);
    estimate.attitudeQuaternion = q;
    sensors.gyro = vector(s->angular_velocity);
    sensors.gyro.x *= degrees;
    sensors.gyro.y *= degrees;
    sensors.gyro.z *= degrees;
    setpoint.position = vector(s->position_setpoint);
    setpoint.velocity = vector(s->linear_velocity_setpoint);
    setpoint.mode.z = modeAbs;
    microseconds += 1000u * STEPS_PER_PERIOD;
}
"""


@pytest.mark.firmware
def test_crazyflie_controller_and_gate_take_less_than_a_fifth_of_the_processor(tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    made, target = package(Bundle.read("zoo:quadrotor-hover"), tmp_path, "crazyflie"), TARGETS["cortex-m4"]
    for name, text in CRAZYFLIE_STUBS.items():
        (made.folder / name).write_text(f"#pragma once\n{text}\n")
    folder = _lay_out(made, target, {"devices": "1"})
    counting = (folder / "measure.c").read_text()
    for old, new in (
        ('#include "policy.h"', FIRMWARE),
        ("static policy_arena arena;\n", ""),
        (
            "k++) {\n        overflows = 0u;\n",
            "k++) {\n        measured(&policy_recorded_signals[k]);\n        overflows = 0u;\n",
        ),
        (
            "(void)policy_step(&policy_recorded_signals[k], &state, &commands, &arena);\n        report",
            "controllerOutOfTree(&control, &setpoint, &sensors, &estimate, (k + 1u) * STEPS_PER_PERIOD);\n"
            "        report",
        ),
        (
            'semihosting_report("done", 1u);',
            'semihosting_report("state", robot.gate.state);\n    semihosting_report("done", 1u);',
        ),
        ("    policy_reset(&state);\n    uint32_t", "    controllerOutOfTreeInit();\n    uint32_t"),
        ("    measure_gate();\n", "    (void)measure_gate;\n"),  # it is a part of every step
    ):
        assert counting.count(old) == 1, old
        counting = counting.replace(old, new)
    (folder / "controller.c").write_text(counting)
    sources = [path for path in made.folder.glob("*.c") if path.stem != "controller_policy"]
    image = _link(made, target, folder / "controller.c", sources, ["-Wno-conversion", "-Wno-missing-prototypes"])
    found, _ = _numbers(image, target, EXACT, last="done")
    instructions = _instructions(found)[0][3:]  # it is armed and activated first
    part = max(instructions) * RATE / CLOCK
    print(f"{max(instructions)} instructions, {part:.1%} of the processor at {RATE} Hz")
    assert found["state"] == [State.ACTIVE]
    assert len(instructions) > 10
    assert 0.02 < part <= 0.20
