/* SPDX-License-Identifier: Apache-2.0 */
/* The last look at what leaves a policy. Bits are compared, so that no assumption of a compiler about floats
 * (-ffast-math) takes it away. */
#ifndef KERNELS_OUTPUTS_H
#define KERNELS_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Neither NaN nor infinite. */
static inline bool is_finite(float x)
{
    uint32_t bits;
    (void)memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7f800000u) != 0x7f800000u;
}

/* An exponent of ones, as NaN and infinities have it, and no other, carries into the highest bit when one is added. */
static inline bool all_finite(const float *x, uint32_t count)
{
    uint32_t carried = 0u;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        (void)memcpy(&bits, &x[i], sizeof bits);
        carried |= (bits & 0x7f800000u) + 0x00800000u;
    }
    return (carried & 0x80000000u) == 0u;
}

/* y = x, or the limit that it is beyond */
static inline void bounded(const float *x, const float *lower, const float *upper, float *y, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const float raised = (x[i] < lower[i]) ? lower[i] : x[i];
        y[i] = (raised > upper[i]) ? upper[i] : raised;
    }
}

#endif
