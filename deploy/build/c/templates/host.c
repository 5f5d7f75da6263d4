/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl; do not edit. Many robots at once, for tests on a computer. */
#include <string.h>

#include "${name}.h"

void ${name}_step_many(uint32_t n, const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands);

void ${name}_step_many(uint32_t n, const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands)
{
    ${name}_arena arena;
    for (uint32_t i = 0; i < n; i++) {
        if (${name}_step(&signals[i], &state[i], &commands[i], &arena) != ${guard}_OK) {
            (void)memset(&commands[i], 0xff, sizeof commands[i]); /* NaN */
        }
    }
}
