/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test, then the ticks of every recorded step and the stack that it takes, as lines "what number".
 *
 * The emulator makes time proportional to executed instructions. How many ticks one takes is found with a loop of
 * known length; so is what an overflow of the timer adds. */
#include <string.h>

#include "${name}.h"
#include "counter.h"
#include "gate.h"
#include "gate_config.h"
#include "semihosting.h"

#define STACK_PAINT 0xA5A5A5A5u
#define STACK_WORDS 4096u

extern uint32_t image_stack_top;

static ${name}_state state;
static ${name}_commands commands;
static ${name}_arena arena;

static float gate_sent[GATE_COMMAND_SIZE];
static float gate_reference[GATE_COMMAND_SIZE];
static float gate_values[GATE_SIGNAL_SIZE];
static int64_t gate_stamps[GATE_SIGNAL_COUNT];
static int64_t gate_changed[GATE_SIGNAL_COUNT];
static float given_signals[GATE_SIGNAL_SIZE];
static float given_command[GATE_COMMAND_SIZE];
static int64_t given_stamps[GATE_SIGNAL_COUNT];

int main(void);
static void report_ticks(const char *what, uint64_t start, uint64_t end)
{
    semihosting_report(what, (uint32_t)(end - start));
}

/* Not in line: the counts begin and end around the same code for any number of turns. */
__attribute__((noinline)) static void turn(uint32_t turns)
{
    counter_turn(turns);
}

static void calibrate(uint32_t turns, const char *what)
{
    const uint64_t start = counter_ticks();
    turn(turns);
    report_ticks(what, start, counter_ticks());
}

__attribute__((noinline)) static uint32_t stack_of_step(const ${name}_signals *signals)
{
    uint32_t *here;
    STACK_POINTER(here);
    uint32_t *const deepest = here - STACK_WORDS;
    for (uint32_t *word = deepest; word < here; word++) {
        *(volatile uint32_t *)word = STACK_PAINT;
    }
    (void)${name}_step(signals, &state, &commands, &arena);
    uint32_t unused = 0u;
    while ((unused < STACK_WORDS) && (((volatile uint32_t *)deepest)[unused] == STACK_PAINT)) {
        unused++;
    }
    return 4u * (STACK_WORDS - unused);
}

/* FNV-1a */
static uint32_t digest_of(uint32_t digest, const uint8_t *bytes, uint32_t count)
{
    uint32_t result = digest;
    for (uint32_t i = 0; i < count; i++) {
        result = (result ^ bytes[i]) * 0x01000193u;
    }
    return result;
}

/* The recorded steps through the gate, armed and active where the recorded signals let it be. */
static void measure_gate(void)
{
    const gate_arrays arrays = {gate_sent, gate_reference, gate_values, gate_stamps, gate_changed};
    gate_memory memory;
    gate_start(&GATE_CONFIG, &memory, &arrays);
    ${name}_reset(&state);
    for (uint32_t k = 0; k < ${guard}_GOLDEN_STEPS; k++) {
        const int64_t now = ((int64_t)k + 1) * GATE_CONFIG.period;
        for (uint32_t i = 0; i < (uint32_t)GATE_SIGNAL_COUNT; i++) {
            given_stamps[i] = now;
        }
        (void)${name}_step(&${name}_recorded_signals[k], &state, &commands, &arena);
        (void)memcpy(given_signals, &${name}_recorded_signals[k], sizeof given_signals);
        (void)memcpy(given_command, &commands, sizeof given_command);
        const gate_input given = {.time = now,
                                  .signals = given_signals,
                                  .stamps = given_stamps,
                                  .command = given_command,
                                  .command_stamp = now,
                                  .operator_stamp = now,
                                  .bundle_intact = true,
                                  .requests = (uint8_t)((k == 0u) ? GATE_REQUEST_ARM : ((k == 1u) ? GATE_REQUEST_ACTIVATE : 0))};
        overflows = 0u;
        const uint64_t start = counter_ticks();
        (void)gate_step(&GATE_CONFIG, &memory, &given);
        report_ticks("gate", start, counter_ticks());
        semihosting_report("overflows", overflows);
    }
    semihosting_report("gate_state", memory.state);
}

int main(void)
{
    const float error = ${name}_self_test(&state, &arena);
    uint32_t bits;
    uint32_t stack = 0u;
    (void)memcpy(&bits, &error, sizeof bits);
    semihosting_report("self_test_bits", bits);
    for (uint32_t k = 0; k < ${guard}_GOLDEN_STEPS; k++) {
        const uint32_t used = stack_of_step(&${name}_recorded_signals[k]);
        stack = (used > stack) ? used : stack;
    }
    semihosting_report("stack_bytes", stack);
    counter_start();
    turn(1000u);
    calibrate(1000u, "turns_1000");
    calibrate(101000u, "turns_101000");
    overflows = 0u;
    calibrate(2001000u, "turns_2001000");
    semihosting_report("overflows", overflows);
    ${name}_reset(&state);
    uint32_t digest = 0x811C9DC5u;
    for (uint32_t k = 0; k < ${guard}_GOLDEN_STEPS; k++) {
        overflows = 0u;
        const uint64_t start = counter_ticks();
        (void)${name}_step(&${name}_recorded_signals[k], &state, &commands, &arena);
        report_ticks("step", start, counter_ticks());
        semihosting_report("overflows", overflows);
        digest = digest_of(digest, (const uint8_t *)&commands, sizeof commands);
    }
    semihosting_report("digest", digest);
    measure_gate();
    const uint64_t start = counter_ticks();
    report_ticks("nothing", start, counter_ticks());
    semihosting_report("done", 1u);
    return !(error <= ${guard}_TOLERANCE);
}
