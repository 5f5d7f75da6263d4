/* SPDX-License-Identifier: Apache-2.0 */
/* The policy at its rate, behind the gate: checks signals, arms, steps and stops.
 * Fill in read_signals, operator_request and send_commands for your robot. */
#include <zephyr/kernel.h>

#include "${name}_onboard.h"

K_TIMER_DEFINE(period_timer, NULL, NULL);

static ${name}_onboard robot;
static ${name}_arena arena;

/* For every signal that was measured: robot.signals.… and robot.stamps.… = now, in SI units and in the order that
 * ${name}.h tells. A signal without a new measurement keeps its stamp, and is refused when it is too old. */
static void read_signals(int64_t now)
{
    (void)now;
}

/* GATE_REQUEST_ARM, _ACTIVATE, _DISARM, _STOP, _RESET, as the operator asks. */
static uint8_t operator_request(int64_t now)
{
    robot.operator_stamp = now; /* whenever the operator was heard */
    return GATE_REQUEST_NONE;
}

/* robot.commands, if robot.enabled; else the actuators are disabled. */
static void send_commands(void)
{
}

int main(void)
{
    const k_timeout_t period = K_USEC((int64_t)(1e6f * ${guard}_PERIOD_S + 0.5f));
    ${name}_onboard_start(&robot, &arena); /* robot.intact is false if the self-test fails: then it never arms */
    k_timer_start(&period_timer, period, period);
    for (;;) {
        (void)k_timer_status_sync(&period_timer);
        const int64_t now = (int64_t)k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
        read_signals(now);
        ${name}_onboard_step(&robot, now, operator_request(now));
        send_commands();
    }
}
