/* SPDX-License-Identifier: Apache-2.0 */
/* The image with a policy and nothing else: what it takes. */
#include "${name}.h"

static ${name}_signals signals;
static ${name}_state state;
static ${name}_commands commands;
static ${name}_arena arena;
static volatile float output;

int main(void);

int main(void)
{
    ${name}_reset(&state);
    (void)${name}_step(&signals, &state, &commands, &arena);
    output = *(const float *)&commands;
    return 0;
}
