/* SPDX-License-Identifier: Apache-2.0 */
/* Many bytes at once: what a test bench, or a test on a computer, does with a device. Made by robo-rl; do not edit. */
#ifndef ROBO_RL_EXCHANGE_H
#define ROBO_RL_EXCHANGE_H

#include "device.h"

/* Bytes of a device. */
size_t exchange_size(void);

/* The self-test, and power-up. All devices share one arena. */
void exchange_start(device *d, int64_t now);

/* Give a device the bytes that arrive now, then wake it. Writes what it says to out, as far as it fits, and what its
 * actuators get from then on to motors (GATE_COMMAND_SIZE values); returns the number of bytes in out. */
size_t exchange(device *d, const uint8_t *bytes, size_t count, int64_t now, uint8_t *out, size_t room, float *motors);

/* Whether the actuators are enabled. */
bool exchange_enabled(const device *d);

#endif
