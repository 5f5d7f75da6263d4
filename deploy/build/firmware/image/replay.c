/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded signals in, commands out, through files of the computer that emulates: as many steps as there are.
 *
 * "signals" holds the number of steps of a flight (32 bits), then the signals of one step after another. Every flight
 * begins with a fresh memory. "commands" gets the commands. */
#include <string.h>

#include "${name}.h"
#include "semihosting.h"

static ${name}_signals signals;
static ${name}_state state;
static ${name}_commands commands;
static ${name}_arena arena;

int main(void);

int main(void)
{
    const uint32_t from = semihosting_open("signals", SEMIHOSTING_READ);
    const uint32_t to = semihosting_open("commands", SEMIHOSTING_WRITE);
    uint32_t flight = 0u;
    if (!semihosting_read(from, &flight, sizeof flight) || flight == 0u) {
        return 1;
    }
    for (uint32_t k = 0; semihosting_read(from, &signals, sizeof signals); k++) {
        if (k % flight == 0u) {
            ${name}_reset(&state);
        }
        if (${name}_step(&signals, &state, &commands, &arena) != ${guard}_OK) {
            (void)memset(&commands, 0xff, sizeof commands); /* NaN */
        }
        semihosting_save(to, &commands, sizeof commands);
    }
    semihosting_close(to);
    return 0;
}
