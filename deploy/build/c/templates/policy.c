/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl from a bundle; do not edit. */
#include "${name}.h"

#include "convolve.h"
#include "linear.h"
#include "linear_int.h"
#include "outputs.h"
#include "rows.h"
#include "scalar.h"$learn_header

$constants

const ${name}_commands ${name}_lower = {
$lower
};

const ${name}_commands ${name}_upper = {
$upper
};

const ${name}_signals ${name}_signals_lower = {
$signals_lower
};

const ${name}_signals ${name}_signals_upper = {
$signals_upper
};

const char ${name}_contract_digest[65] = ${guard}_CONTRACT_DIGEST;

void ${name}_reset(${name}_state *state)
{
    static const ${name}_state initial = {
$initial
    };
    *state = initial;$learn_reset
}

${name}_status ${name}_safe_commands(const ${name}_signals *signals, ${name}_commands *commands)
{
$safe
}

${name}_status ${name}_step(const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands,
                            ${name}_arena *arena)
{
    ${name}_commands proposed;
$body
    return ${guard}_OK;
}
