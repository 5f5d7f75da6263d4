/* SPDX-License-Identifier: Apache-2.0 */
/* The serial port of Arm's reference boards (CMSDK APB UART, Arm DDI 0479D, 4.3), polled. */
#ifndef UART_H
#define UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    volatile uint32_t data;
    volatile uint32_t state;
    volatile uint32_t control;
    volatile uint32_t interrupt;
    volatile uint32_t divider;
} uart;

#define UART_SENDING 1u  /* the state: no room for a byte to send */
#define UART_RECEIVED 2u /* the state: a byte has come */
#define UART_ON 3u       /* the control: send, receive */
#define UART_CALLS 8u    /* the control: an interrupt when a byte comes */
#define UART_INTERRUPT 2u /* the interrupt: a byte has come; cleared by writing it */
#define UART_FASTEST 16u /* the smallest divider of the processor's clock */

#define NVIC_ENABLE ((volatile uint32_t *)0xE000E100u)
#define NVIC_DISABLE ((volatile uint32_t *)0xE000E180u)
#define NVIC_CLEAR ((volatile uint32_t *)0xE000E280u)
#define NVIC_WORDS 3u

/* Eight bits, no parity, one stop bit, at the highest rate. */
static inline void uart_start(uart *port)
{
    port->divider = UART_FASTEST;
    port->control = UART_ON;
}

static inline bool uart_has_byte(const uart *port)
{
    return (port->state & UART_RECEIVED) != 0u;
}

static inline void uart_set_all(volatile uint32_t *words)
{
    for (size_t i = 0; i < NVIC_WORDS; i++) {
        words[i] = 0xffffffffu;
    }
}

/* Sleeps until a byte comes, or another interrupt that is on. The port's own only ends the sleep: it is masked then, and
 * off at all other times. */
static inline void uart_sleep(uart *port)
{
    __asm__ volatile("cpsid i" ::: "memory");
    uart_set_all(NVIC_ENABLE);
    port->control = UART_ON | UART_CALLS;
    if (!uart_has_byte(port)) {
        __asm__ volatile("wfi" ::: "memory");
    }
    port->control = UART_ON;
    port->interrupt = UART_INTERRUPT;
    uart_set_all(NVIC_DISABLE);
    uart_set_all(NVIC_CLEAR);
    __asm__ volatile("cpsie i" ::: "memory");
}

/* Waits for a byte. */
static inline uint8_t uart_read(uart *port)
{
    while (!uart_has_byte(port)) {
        uart_sleep(port);
    }
    return (uint8_t)port->data;
}

static inline void uart_write(uart *port, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while ((port->state & UART_SENDING) != 0u) {
        }
        port->data = bytes[i];
    }
}

#endif
