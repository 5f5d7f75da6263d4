/* SPDX-License-Identifier: Apache-2.0 */
/* The image with a policy and nothing else: what it takes. */
#include "policy.h"

static policy_signals signals;
static policy_state state;
static policy_commands commands;
static policy_arena arena;
static volatile float output;

int main(void);

int main(void)
{
    policy_reset(&state);
    (void)policy_step(&signals, &state, &commands, &arena);
    output = *(const float *)&commands;
    return 0;
}
