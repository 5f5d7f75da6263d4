/* SPDX-License-Identifier: Apache-2.0 */
/* Text, files and exit through a debugger or emulator (Arm semihosting, also of RISC-V: SYS_OPEN, SYS_CLOSE, SYS_WRITE0,
 * SYS_WRITE, SYS_READ, SYS_EXIT). */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEMIHOSTING_READ 1u  /* fopen's "rb" */
#define SEMIHOSTING_WRITE 5u /* fopen's "wb" */

static inline uint32_t semihosting_call(uint32_t operation, uintptr_t argument)
{
#if defined(__riscv)
    register uintptr_t a0 __asm__("a0") = operation;
    register uintptr_t a1 __asm__("a1") = argument;
    /* three uncompressed instructions within a page */
    __asm__ volatile(".option push\n .option norvc\n .balign 16\n"
                     "slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return (uint32_t)a0;
#else
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#endif
}

static inline void semihosting_write(const char *text)
{
    (void)semihosting_call(0x04u, (uintptr_t)text);
}

/* A line: what it is, and the number. */
static inline void semihosting_report(const char *what, uint32_t number)
{
    char digits[12] = {0};
    uint32_t rest = number;
    uint32_t at = 10u;
    digits[10] = '\n';
    do {
        at--;
        digits[at] = (char)('0' + (char)(rest % 10u));
        rest /= 10u;
    } while (rest > 0u);
    semihosting_write(what);
    semihosting_write(" ");
    semihosting_write(&digits[at]);
}

/* A file's handle. */
static inline uint32_t semihosting_open(const char *name, uintptr_t mode)
{
    uintptr_t length = 0;
    while (name[length] != '\0') {
        length++;
    }
    const uintptr_t arguments[] = {(uintptr_t)name, mode, length};
    return semihosting_call(0x01u, (uintptr_t)arguments);
}

static inline void semihosting_close(uint32_t handle)
{
    const uintptr_t arguments[] = {handle};
    (void)semihosting_call(0x02u, (uintptr_t)arguments);
}

/* False when the file ends before all of it has come. */
static inline bool semihosting_read(uint32_t handle, void *bytes, size_t count)
{
    const uintptr_t arguments[] = {handle, (uintptr_t)bytes, count};
    return semihosting_call(0x06u, (uintptr_t)arguments) == 0u;
}

/* Waits until all of it has come, of a pipe, which gives what it has. */
static inline void semihosting_take(uint32_t handle, void *bytes, size_t count)
{
    size_t left = count;
    while (left > 0u) {
        const uintptr_t arguments[] = {handle, (uintptr_t)bytes + (count - left), left};
        left = semihosting_call(0x06u, (uintptr_t)arguments);
    }
}

static inline void semihosting_save(uint32_t handle, const void *bytes, size_t count)
{
    const uintptr_t arguments[] = {handle, (uintptr_t)bytes, count};
    (void)semihosting_call(0x05u, (uintptr_t)arguments);
}

static inline void semihosting_exit(int success)
{
    (void)semihosting_call(0x18u, success ? 0x20026u : 0x20023u);
    for (;;) {
    }
}

#endif
