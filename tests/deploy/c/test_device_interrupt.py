"""A device's interrupt may come at any moment: no frame is lost, doubled or damaged, whatever the compiler."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from string import Template

import pytest

from robo_rl.deploy.build.c.device import write_device
from robo_rl.deploy.build.c.generate import Generated, generate
from robo_rl.deploy.build.c.host import STRICT, host_flags
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import Decoder

MAIN = Template(r"""
/* The main loop of docs/firmware.md; the interrupt is a timer's, every 50 us, and time runs 100 times as fast. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "device.h"

static device robot;
static policy_state state;
static policy_arena arena;
static volatile unsigned long ticks;

static int64_t now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec) / 10;
}

static void interrupt(int number) {
    (void)number;
    if (robot.out_size == 0u) { /* else a frame may find no room, and is a lost one */
        ticks++;
        device_tick(&robot, now());
    }
}

int main(void) {
    static uint8_t out[DEVICE_OUT_SIZE], hello[DEVICE_FRAME(DEVICE_HELLO_SIZE) + 1];
    uint8_t payload[DEVICE_HELLO_SIZE];
    link_hello greeting = {.role = LINK_HOST, .answer = true, .signal_size = LINK_TOGETHER_SIZE,
                           .command_size = GATE_COMMAND_SIZE, .control_period = (uint32_t)GATE_CONFIG.period};
    (void)memcpy(greeting.digest, GATE_CONTRACT_DIGEST, LINK_DIGEST_SIZE);
    const int64_t begun = now();
    device_start(&robot, &arena, policy_self_test(&state, &arena) <= POLICY_TOLERANCE, begun);
    robot.enabled = true; /* so that the interrupt acts */
    const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    (void)sigaction(SIGALRM, &action, NULL);
    const struct itimerval every = {{0, 50}, {0, 50}};
    (void)setitimer(ITIMER_REAL, &every, NULL);
    for (uint16_t k = 0; now() - begun < 150000000; k++) {
        greeting.time = now();
        size_t size = link_pack_hello(&greeting, payload);
        size = link_encode((uint8_t)LINK_HELLO, k, payload, size, hello, sizeof hello);
        for (size_t i = 0; i < size; i++) {
            device_take(&robot, hello[i], now());
        }
        robot.enabled = true;
        (void)fwrite(out, 1, device_output(&robot, out), stdout);
        device_wake(&robot, now());
        (void)fwrite(out, 1, device_output(&robot, out), stdout);
    }
    const struct itimerval never = {{0, 0}, {0, 0}};
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)fwrite(out, 1, device_output(&robot, out), stdout);
    fprintf(stderr, "%lu %u\n", ticks, (unsigned)robot.late_steps);
    return 0;
}
""")


@pytest.fixture(scope="module")
def made(bundle_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(Bundle.read(bundle_file), tmp_path_factory.mktemp("interrupt"))


@pytest.mark.parametrize(
    ("extensions", "optimised"),
    [
        pytest.param("defined(__GNUC__)", "-O3", id="gnu"),
        pytest.param("0", "-O3", id="another compiler"),
        pytest.param("defined(__GNUC__)", "-O0", id="gnu-O0", marks=pytest.mark.release),
        pytest.param("0", "-O0", id="another compiler-O0", marks=pytest.mark.release),
    ],
)
def test_no_frame_is_lost_where_the_interrupt_comes_at_any_moment(
    made: Generated, tmp_path: Path, optimised: str, extensions: str
) -> None:
    sources = [*made.sources, *write_device(made)]
    program, main = tmp_path / "run", tmp_path / "main.c"
    main.write_text(MAIN.substitute())
    objects = []
    for source in map(Path, sources):
        objects.append(tmp_path / f"{source.stem}.o")
        text = tmp_path / source.name
        text.write_text(source.read_text().replace("#if defined(__GNUC__)", f"#if {extensions}"))
        command = ["cc", *STRICT, optimised, *host_flags(), f"-I{made.folder}", "-c", str(text), "-o"]
        subprocess.run([*command, str(objects[-1])], check=True, timeout=120)
    subprocess.run(
        ["cc", "-std=gnu99", optimised, f"-I{made.folder}", str(main), *map(str, objects), "-lm", "-o", str(program)],
        check=True, timeout=120,
    )  # fmt: skip
    done = subprocess.run([str(program)], capture_output=True, check=True, timeout=120)
    decoder = Decoder()
    numbers = [frame.sequence for frame in decoder.feed(done.stdout)]
    assert len(numbers) > 1000
    assert int(done.stderr.split()[0]) > 100, "the interrupt came"
    assert (decoder.counts.crc, decoder.counts.framing) == (0, 0)
    assert {(after - before) % 65536 for before, after in itertools.pairwise(numbers)} == {1}
