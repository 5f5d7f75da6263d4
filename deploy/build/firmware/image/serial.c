/* SPDX-License-Identifier: Apache-2.0 */
/* A device as it would be on a robot: the wire is a serial port, the time is the board's own. */
#include <string.h>

#include "${name}.h"
#include "device.h"
#include "timer.h"
#include "uart.h"

#define WIRE ((uart *)${wire})
#define TIMER ((timer *)${timer})
#define TICKS_PER_US ${ticks_per_us}

typedef struct {
    volatile uint32_t control;
    volatile uint32_t reload;
    volatile uint32_t value;
} system_timer;

#define ALARM ((system_timer *)0xE000E010u) /* interrupts whatever goes on, every millisecond */
#define ALARM_PERIOD (1000u * TICKS_PER_US)
#define ALARM_ON 7u

static device robot;
static ${name}_state state;
static ${name}_arena arena;
static timer_clock ours;
static volatile bool sending;

int main(void);
void systick_handler(void);
void fault_handler(void);

static int64_t now(void)
{
    return (int64_t)(timer_ticks(&ours) / TICKS_PER_US);
}

/* Here the actuators would get robot.motors, or be disabled while robot.enabled is false. */
static void send(void)
{
    static uint8_t out[DEVICE_OUT_SIZE];
    sending = true;
    uart_write(WIRE, out, device_output(&robot, out));
    sending = false;
}

/* The last word, if the main loop does not come to its own. */
void systick_handler(void)
{
    device_tick(&robot, now());
    if (robot.interrupted && !sending) {
        send();
    }
}

/* A processor that has failed can still stop the robot. */
void fault_handler(void)
{
    for (;;) {
        systick_handler();
    }
}

static void take(uint8_t byte)
{
    const uint32_t steps = robot.steps;
    const int64_t start = now();
    device_take(&robot, byte, start);
    const uint32_t took = (uint32_t)(now() - start);
    if (robot.steps != steps && took > robot.step_time) {
        robot.step_time = took;
    }
}

int main(void)
{
    uart_start(WIRE);
    timer_start(&ours, TIMER);
    ALARM->reload = ALARM_PERIOD - 1u;
    ALARM->value = 0u;
    ALARM->control = ALARM_ON;
    device_start(&robot, &arena, ${name}_self_test(&state, &arena) <= ${guard}_TOLERANCE, now());
    for (;;) {
        send();
        uart_sleep(WIRE);
        if (uart_has_byte(WIRE)) {
            take(uart_read(WIRE));
        }
        device_wake(&robot, now());
    }
}
