/* SPDX-License-Identifier: Apache-2.0 */
/* A learner whose processor is reset at any instruction, and whose flash is damaged, as lines "what number".
 *
 * The image learns, and writes what it has learnt into two slots by turns, byte by byte. A timer resets the processor
 * at a drawn moment, in the middle of learning, of erasing or of writing; in some trials bits of one slot or of both
 * are then turned over. After each reset the weights must be those of the newest whole slot, or the exported ones.
 *
 * Slots and journal lie behind the image, in memory that a reset leaves as it is. */
#include <string.h>

#include "${name}.h"
#include "${name}_learn.h"
#include "semihosting.h"

#ifndef TRIALS
#define TRIALS 300u
#endif
#define FLASH_END (${flash_origin}u + ${flash_size}u)
#define SLOTS ((uint8_t (*)[${guard}_LEARN_SLOT])(uintptr_t)(FLASH_END - 0x40000u))
#define JOURNAL ((journal *)(uintptr_t)(FLASH_END - 0x1000u))
#define BEGUN 0x504F5745u
#define KEPT 64u /* digests of what was saved, by sequence */
#define BETWEEN 3u /* steps of learning from one save to the next */
#define HEAD 84u
#define ERASED 0xFFu

#define RESET (*(volatile uint32_t *)0xE000ED0Cu) /* AIRCR */
#define RESET_NOW 0x05FA0004u

typedef struct {
    volatile uint32_t control;
    volatile uint32_t reload;
    volatile uint32_t value;
} system_timer;

#define ALARM ((system_timer *)0xE000E010u)
#define ALARM_ON 7u

enum damage { NONE, ONE_SLOT, OTHER_SLOT, BOTH_SLOTS, DAMAGES };

typedef struct {
    uint32_t begun;
    uint32_t trial;
    uint32_t golden;        /* digest of the exported weights */
    uint32_t saved;         /* the newest sequence that was wholly written */
    uint32_t writing;       /* the one that is being written; 0: none */
    uint32_t digests[KEPT]; /* of the weights of a sequence, modulo KEPT */
    uint32_t damaged;       /* one of enum damage */
    uint32_t newest, older, exported, wrong; /* what came back */
    uint32_t writes_cut;
} journal;

static ${name}_signals signals;
static ${name}_state state;
static ${name}_commands commands;
static ${name}_arena arena;

int main(void);
void systick_handler(void);

/* The power fails. */
void systick_handler(void)
{
    RESET = RESET_NOW;
    for (;;) {
    }
}

static uint32_t drawn(uint32_t counter)
{
    uint32_t x = counter * 0x9E3779B9u + 0x7F4A7C15u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

/* FNV-1a of the weights that the policy has now. */
static uint32_t digest_of_weights(void)
{
    static uint8_t slot[${guard}_LEARN_SLOT];
    uint32_t digest = 0x811C9DC5u;
    ${name}_learn_save(1u, slot);
    for (uint32_t i = HEAD; i < ${guard}_LEARN_SLOT - 4u; i++) {
        digest = (digest ^ slot[i]) * 0x01000193u;
    }
    return digest;
}

static uint32_t sequence_in(uint32_t slot)
{
    uint32_t sequence;
    (void)memcpy(&sequence, &SLOTS[slot][4], sizeof sequence);
    return sequence;
}

/* What came back after a reset, and whether that is right. */
static void judge(journal *j)
{
    const uint32_t restored = ${name}_learn_restore(SLOTS[0], SLOTS[1]);
    const uint32_t found = digest_of_weights();
    const uint32_t expected = (restored == 0u) ? j->golden : j->digests[restored % KEPT];
    const uint32_t low = (j->saved > 0u) ? (j->saved - 1u) : 0u;
    bool right = found == expected;
    if (j->damaged == (uint32_t)NONE) { /* then no more than what was being written is lost */
        right = right && ((restored == j->saved) || ((j->writing != 0u) && (restored == j->writing)));
    } else {
        right = right && ((restored == 0u) || (restored >= low));
    }
    if (!right) {
        j->wrong++;
    } else if (restored == 0u) {
        j->exported++;
    } else if (restored >= j->saved) {
        j->newest++;
    } else {
        j->older++;
    }
    j->writes_cut += (j->writing != 0u) ? 1u : 0u;
    if (restored == 0u) { /* begin again */
        (void)memset(SLOTS, (int)ERASED, sizeof SLOTS[0] * 2u);
    }
    j->saved = restored;
    j->writing = 0u;
}

static void turn_bits(uint32_t slot, uint32_t seed)
{
    const uint32_t count = 1u + (drawn(seed) % 16u);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t where = drawn(seed + 17u + i);
        SLOTS[slot][where % ${guard}_LEARN_SLOT] ^= (uint8_t)(1u << ((where >> 16) % 8u));
    }
}

static void learn(uint32_t seed)
{
    for (uint32_t i = 0; i < BETWEEN; i++) {
        signals = ${name}_recorded_signals[drawn(seed + i) % ${guard}_GOLDEN_STEPS];
        (void)${name}_step(&signals, &state, &commands, &arena);
    }
}

/* Into the slot that does not hold the newest weights: erased, then written. */
static void save(journal *j)
{
    static uint8_t bytes[${guard}_LEARN_SLOT];
    const uint32_t sequence = j->saved + 1u;
    const uint32_t slot = (sequence_in(0u) == j->saved) ? 1u : 0u;
    ${name}_learn_save(sequence, bytes);
    j->digests[sequence % KEPT] = digest_of_weights();
    j->writing = sequence;
    for (uint32_t i = 0; i < ${guard}_LEARN_SLOT; i++) {
        *(volatile uint8_t *)&SLOTS[slot][i] = ERASED;
    }
    for (uint32_t i = 0; i < ${guard}_LEARN_SLOT; i++) {
        *(volatile uint8_t *)&SLOTS[slot][i] = bytes[i];
    }
    j->saved = sequence;
    j->writing = 0u;
}

int main(void)
{
    journal *const j = JOURNAL;
    if (j->begun != BEGUN) {
        (void)memset(j, 0, sizeof *j);
        (void)memset(SLOTS, (int)ERASED, sizeof SLOTS[0] * 2u);
        j->golden = digest_of_weights();
        j->begun = BEGUN;
    } else {
        const uint32_t kind = drawn(j->trial + 5000u) % 6u;
        j->damaged = (kind < (uint32_t)DAMAGES) ? kind : (uint32_t)NONE;
        const uint32_t newer = (sequence_in(0u) == j->saved) ? 0u : 1u;
        if ((j->damaged == (uint32_t)ONE_SLOT) || (j->damaged == (uint32_t)BOTH_SLOTS)) {
            turn_bits(newer, j->trial * 64u);
        }
        if ((j->damaged == (uint32_t)OTHER_SLOT) || (j->damaged == (uint32_t)BOTH_SLOTS)) {
            turn_bits(1u - newer, j->trial * 64u + 32u);
        }
        judge(j);
        j->trial++;
    }
    if (j->trial == TRIALS) {
        semihosting_report("trials", j->trial);
        semihosting_report("newest", j->newest);
        semihosting_report("older", j->older);
        semihosting_report("exported", j->exported);
        semihosting_report("writes_cut", j->writes_cut);
        semihosting_report("wrong", j->wrong);
        semihosting_report("done", 1u);
        return 0;
    }
    ALARM->reload = 2000u + (drawn(j->trial) % 100000u);
    ALARM->value = 0u;
    ALARM->control = ALARM_ON;
    ${name}_reset(&state);
    ${name}_learn_allow(1u);
    for (uint32_t k = 0;; k++) {
        learn((j->trial * 1000u) + k);
        save(j);
    }
}
