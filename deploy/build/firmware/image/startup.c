/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up for Cortex-M and RISC-V: vectors, memory, FPU, then main. The end, and faults that main does not handle itself, leave by
 * semihosting. */
#include <stdint.h>

#include "semihosting.h"

extern uint32_t image_data_load, image_data_start, image_data_end, image_bss_start, image_bss_end, image_stack_top;

int main(void);
void reset_handler(void);
void systick_handler(void);
void fault_handler(void);

#if defined(__riscv)
#define HANDLER __attribute__((weak, aligned(4)))
__attribute__((naked, section(".vectors"), used)) void start(void);
__attribute__((naked, section(".vectors"), used)) void start(void)
{
    __asm__ volatile(".option push\n .option arch, +zicsr\n"
                     "la sp, image_stack_top\n la t0, fault_handler\n csrw mtvec, t0\n j reset_handler\n .option pop");
}
#else
#define HANDLER __attribute__((weak))
#endif

#define CPACR (*(volatile uint32_t *)0xE000ED88u) /* access to coprocessors: the FPU is 10 and 11 */

void reset_handler(void)
{
#if defined(__ARM_FP)
    CPACR |= 0xFu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    const uint32_t *from = &image_data_load;
    for (uint32_t *to = &image_data_start; to < &image_data_end; to++) {
        *to = *from;
        from++;
    }
    for (uint32_t *to = &image_bss_start; to < &image_bss_end; to++) {
        *to = 0u;
    }
    semihosting_exit(main() == 0);
}

HANDLER void fault_handler(void)
{
    semihosting_write("fault 1\n");
    semihosting_exit(0);
}

HANDLER void systick_handler(void)
{
    fault_handler();
}

#if !defined(__riscv)
typedef void (*handler)(void);

/* The stack's top, the reset handler, 13 faults and reserved entries, and the system timer. */
__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    handler handlers[15];
} vectors = {
    &image_stack_top,
    {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     systick_handler},
};
#endif
