/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target for a generated policy: any floats as signals, NaN and infinity among them, for many steps.
 *
 * policy.h is that of any bundle (robo_rl.deploy.build.c.generate). Commands are within their limits whatever comes in, or the step is
 * refused and changes nothing; and no step is refused as long as every signal was valid. The memory stays finite.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "policy.h"

#define SIGNALS (sizeof(policy_signals) / sizeof(float))
#define COMMANDS (sizeof(policy_commands) / sizeof(float))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void *room(size_t size) {
    void *block = malloc(size); /* of that very size, for the address sanitizer */
    check(block != NULL);
    return block;
}

static bool valid(const float *signals) {
    const float *lower = (const float *)&policy_signals_lower;
    const float *upper = (const float *)&policy_signals_upper;
    bool all = true;
    for (size_t i = 0; i < SIGNALS; i++) {
        all = all && signals[i] >= lower[i] && signals[i] <= upper[i];
    }
    return all;
}

static void check_commands(const float *commands) {
    const float *lower = (const float *)&policy_lower;
    const float *upper = (const float *)&policy_upper;
    for (size_t i = 0; i < COMMANDS; i++) {
        check(commands[i] >= lower[i] && commands[i] <= upper[i]);
    }
}

/* The memory, which may hold nothing but a byte, as floats. */
static void check_memory(const policy_state *state) {
    const float *values = (const float *)(const void *)state;
    for (size_t i = 0; i < sizeof *state / sizeof(float); i++) {
        check(isfinite(values[i]));
    }
}

/* The next step: a choice, then some of the signals; the others stay. 0 bytes when the input has ended. */
static size_t change(float *signals, const uint8_t *data, size_t length) {
    if (length < 2 + sizeof(float)) {
        return 0;
    }
    size_t used = 2;
    size_t first = data[0] % SIGNALS;
    size_t count = 1 + data[1] % SIGNALS;
    for (size_t i = 0; i < count && length - used >= sizeof(float); i++) {
        memcpy(&signals[(first + i) % SIGNALS], data + used, sizeof(float));
        used += sizeof(float);
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    policy_state *state = room(sizeof *state);
    policy_arena *arena = room(sizeof *arena);
    policy_commands *commands = room(sizeof *commands);
    float *signals = room(sizeof(policy_signals));
    memcpy(signals, &policy_recorded_signals[0], sizeof(policy_signals));
    policy_reset(state);
    *commands = policy_lower;
    bool all_valid = true;
    size_t used = 0;
    do {
        const policy_state before = *state;
        const policy_commands last = *commands;
        all_valid = all_valid && valid(signals);
        if (policy_step((const policy_signals *)(const void *)signals, state, commands, arena) != POLICY_OK) {
            check(!all_valid);
            check(memcmp(&before, state, sizeof before) == 0 && memcmp(&last, commands, sizeof last) == 0);
        }
        check_commands((const float *)(const void *)commands);
        check_memory(state);
        data += used;
        length -= used;
        used = change(signals, data, length);
    } while (used > 0);
    free(signals);
    free(commands);
    free(arena);
    free(state);
    return 0;
}
