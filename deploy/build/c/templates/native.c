/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl; do not edit. What robo_rl.deploy.build.native calls of a policy compiled for a robot's computer. */
#include "${name}.h"

typedef struct {
    uint32_t interface, signal_bytes, state_bytes, command_bytes, arena_bytes;
} native_sizes;

extern const native_sizes robo_rl_native_sizes;
extern const char robo_rl_native_bundle[65];
extern const char robo_rl_native_needs[];
uint32_t robo_rl_native_step(const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands,
                             ${name}_arena *arena);

const native_sizes robo_rl_native_sizes = {
    .interface = 1u,
    .signal_bytes = sizeof(${name}_signals),
    .state_bytes = sizeof(${name}_state),
    .command_bytes = sizeof(${name}_commands),
    .arena_bytes = sizeof(${name}_arena),
};

/* The SHA-256 of the bundle that this was made from, in hexadecimal */
const char robo_rl_native_bundle[65] = ${guard}_BUNDLE_DIGEST;

/* Instructions that the compiler was allowed to use, as /proc/cpuinfo calls them */
const char robo_rl_native_needs[] = "$needs";

uint32_t robo_rl_native_step(const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands,
                             ${name}_arena *arena)
{
    return (uint32_t)${name}_step(signals, state, commands, arena);
}
