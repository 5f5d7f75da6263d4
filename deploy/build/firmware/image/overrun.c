/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose policy fails while it is active, and what its actuators get then, as lines "what number".
 *
 * The image is its own host: it says hello, arms and activates over the device's wire, with recorded signals. The linker
 * puts misbehave in the place of the policy. Time is the board's; with the emulator's instruction counter it is exact. */
#include <math.h>
#include <string.h>

#include "${name}.h"
#include "device.h"
#include "semihosting.h"
#include "timer.h"

#ifndef MISBEHAVIOUR
#define MISBEHAVIOUR HANG
#endif
#define HANG 1
#define CRASH 2
#define SLOW 3
#define NUMBERS 4

#define TIMER ((timer *)${timer})
#define TICKS_PER_US ${ticks_per_us}
#define BEGINS 8u  /* steps before it */
#define WATCHED 10 /* control periods after it */

typedef struct {
    volatile uint32_t control;
    volatile uint32_t reload;
    volatile uint32_t value;
} system_timer;

#define ALARM ((system_timer *)0xE000E010u) /* every millisecond */
#define ALARM_ON 7u

static device robot;
static ${name}_state state;
static ${name}_arena arena;
static timer_clock ours;
static uint16_t sequence;
static uint32_t flown;
static int64_t begun; /* when it misbehaved */
static int64_t stopped;

int main(void);
void systick_handler(void);
void fault_handler(void);
${name}_status __real_${name}_step(const ${name}_signals *signals, ${name}_state *memory, ${name}_commands *commands,
                                   ${name}_arena *scratch);
${name}_status __wrap_${name}_step(const ${name}_signals *signals, ${name}_state *memory, ${name}_commands *commands,
                                   ${name}_arena *scratch);

static int64_t now(void)
{
    return (int64_t)(timer_ticks(&ours) / TICKS_PER_US);
}

static void report(const char *what, int64_t number)
{
    char digits[24] = {0};
    uint64_t rest = (uint64_t)(number < 0 ? -number : number);
    uint32_t at = 22u;
    digits[22] = '\n';
    do {
        at--;
        digits[at] = (char)('0' + (char)(rest % 10u));
        rest /= 10u;
    } while (rest > 0u);
    if (number < 0) {
        at--;
        digits[at] = '-';
    }
    semihosting_write(what);
    semihosting_write(" ");
    semihosting_write(&digits[at]);
}

/* What the actuators get, whoever decided it. */
static void watch(void)
{
    const bool flying = robot.gate.state == (uint8_t)GATE_ACTIVE;
    if ((begun > 0) && !flying && (stopped == 0)) {
        stopped = now();
    }
    if ((begun > 0) && (now() > begun + WATCHED * GATE_CONFIG.period)) {
        report("after", stopped == 0 ? -1 : stopped - begun);
        report("state", robot.gate.state);
        report("reason", robot.gate.problem.reason);
        report("source", robot.gate.reaction);
        report("late_steps", robot.late_steps);
        for (size_t i = 0; i < GATE_COMMAND_SIZE; i++) {
            report("motor_in_1000", (int64_t)(1000.0f * robot.motors[i]));
        }
        semihosting_exit(1);
    }
    robot.out_size = 0u;
}

void systick_handler(void)
{
    device_tick(&robot, now());
    if (robot.interrupted) {
        watch();
    }
}

void fault_handler(void)
{
    for (;;) {
        systick_handler();
    }
}

static void misbehave(${name}_commands *commands)
{
    if (begun == 0) {
        begun = now();
    }
#if MISBEHAVIOUR == HANG
    (void)commands;
    for (;;) {
    }
#elif MISBEHAVIOUR == CRASH
    (void)commands;
    __asm__ volatile("udf #0");
#elif MISBEHAVIOUR == SLOW
    (void)commands;
    const int64_t start = now();
    while (now() < start + 3 * GATE_CONFIG.period) {
    }
#else
    float *values = (float *)commands;
    for (size_t i = 0; i < GATE_COMMAND_SIZE; i++) {
        values[i] = NAN;
    }
#endif
}

${name}_status __wrap_${name}_step(const ${name}_signals *signals, ${name}_state *memory, ${name}_commands *commands,
                                   ${name}_arena *scratch)
{
    const ${name}_status status = __real_${name}_step(signals, memory, commands, scratch);
    flown += robot.gate.state == (uint8_t)GATE_ACTIVE ? 1u : 0u;
    if (flown > BEGINS) {
        misbehave(commands);
    }
    return status;
}

static void hear(enum link_type type, const uint8_t *payload, size_t size)
{
    uint8_t wire[LINK_BUFFER_SIZE(DEVICE_LONGEST) + 1];
    const size_t count = link_encode((uint8_t)type, sequence, payload, size, wire, sizeof wire);
    sequence++;
    for (size_t i = 0; i < count; i++) {
        device_take(&robot, wire[i], now());
    }
}

static void hear_hello(void)
{
    uint8_t payload[DEVICE_HELLO_SIZE];
    link_hello hello = {.role = LINK_HOST, .answer = false, .time = now()};
    (void)memcpy(hello.digest, GATE_CONTRACT_DIGEST, LINK_DIGEST_SIZE);
    hear(LINK_HELLO, payload, link_pack_hello(&hello, payload));
}

static void hear_signals(uint32_t k)
{
    uint8_t payload[DEVICE_SIGNALS_SIZE];
    float values[GATE_SIGNAL_SIZE];
    uint32_t ages[GATE_SIGNAL_COUNT] = {0};
    const link_signals signals = {now(), 0, ages, values};
    (void)memcpy(values, &${name}_recorded_signals[k % ${guard}_GOLDEN_STEPS], sizeof values);
    hear(LINK_SIGNALS, payload, link_pack_signals(&robot.session, &signals, payload));
}

/* One control period later, the next signals. */
static void pass(uint32_t k)
{
    const uint8_t asked = robot.gate.state == (uint8_t)GATE_IDLE ? (uint8_t)GATE_REQUEST_ARM : (uint8_t)GATE_REQUEST_ACTIVATE;
    const int64_t due = now() + GATE_CONFIG.period;
    while (now() < due) {
        device_wake(&robot, now());
        watch();
    }
    if (robot.gate.state == (uint8_t)GATE_IDLE || robot.gate.state == (uint8_t)GATE_READY) {
        hear(LINK_REQUEST, &asked, 1u);
    }
    hear_signals(k);
    watch();
}

int main(void)
{
    timer_start(&ours, TIMER);
    ALARM->reload = 1000u * TICKS_PER_US - 1u;
    ALARM->value = 0u;
    ALARM->control = ALARM_ON;
    device_start(&robot, &arena, ${name}_self_test(&state, &arena) <= ${guard}_TOLERANCE, now());
    report("enabled_at_power_up", robot.enabled ? 1 : 0);
    hear_hello();
    for (uint32_t k = 0;; k++) {
        pass(k);
    }
}
