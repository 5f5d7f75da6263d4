/* SPDX-License-Identifier: Apache-2.0 */
/* What counts instructions: a Cortex-M's system timer, whose time the emulator makes proportional to them, or a RISC-V's
 * counter of retired instructions. For one file alone, since it has the timer's interrupt. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdint.h>

/* Since counter_start, or the last time that it was zeroed. */
static volatile uint32_t overflows;

#if defined(__riscv)

static inline void counter_start(void) {}

static inline uint64_t counter_ticks(void)
{
    uint32_t high, low, again;
    do {
        __asm__ volatile(".option push\n .option arch, +zicsr\n"
                         "csrr %0, minstreth\n csrr %1, minstret\n csrr %2, minstreth\n .option pop"
                         : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return ((uint64_t)high << 32) | low;
}

/* Two instructions per turn, and as many more whatever the number of turns */
static inline void counter_turn(uint32_t turns)
{
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(turns));
}

#define STACK_POINTER(here) __asm__ volatile("mv %0, sp" : "=r"(here))

#else

typedef struct {
    volatile uint32_t control;
    volatile uint32_t reload;
    volatile uint32_t value;
} system_timer;

#define TIMER ((system_timer *)0xE000E010u)
#define TIMER_RANGE 0x1000000u

void systick_handler(void);

void systick_handler(void)
{
    overflows++;
}

static inline void counter_start(void)
{
    TIMER->reload = TIMER_RANGE - 1u;
    TIMER->value = 0u;
    TIMER->control = 7u; /* on, with interrupts, at the processor's clock */
}

static inline uint64_t counter_ticks(void)
{
    uint32_t before;
    uint32_t value;
    do {
        before = overflows;
        value = TIMER->value;
    } while (before != overflows);
    return ((uint64_t)before * TIMER_RANGE) + (TIMER_RANGE - 1u - value);
}

/* Two instructions per turn, and one more whatever the number of turns */
static inline void counter_turn(uint32_t turns)
{
    __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(turns) : : "cc");
}

#define STACK_POINTER(here) __asm__ volatile("mov %0, sp" : "=r"(here))

#endif

#endif
