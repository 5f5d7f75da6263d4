/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one number, in single precision, without tables and without branches where that is cheap.
 *
 * Largest deviation from the exact function, measured over all of its range: tangent 4.1e-7, sigmoid 2.5e-7, elu 2e-7
 * (absolute), exponential 3e-7 (relative). A NaN stays a NaN. */
#ifndef KERNELS_SCALAR_H
#define KERNELS_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* a * b + c, rounded once where the processor has an instruction for it. Targets with one give identical bits. */
static inline float multiply_add(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fmaf(a, b, c);
#else
    return (a * b) + c;
#endif
}

static inline float minimum(float a, float b)
{
    return ((a < b) || (a != a)) ? a : b;
}

static inline float maximum(float a, float b)
{
    return ((a > b) || (a != a)) ? a : b;
}

static inline float clip(float x, float low, float high)
{
    const float raised = (x < low) ? low : x;
    return (raised > high) ? high : raised;
}

/* tanh as x P(x^2) / Q(x^2), a minimax fit of degree 4 over 3 for |x| < 7.9, beyond which tanh is 1 within 3e-7 */
static inline float tangent(float x)
{
    const float u = x * x;
    if (u > 0x1.f347aep+5f) {
        return (x > 0.0f) ? 1.0f : -1.0f;
    }
    const float v = u * u;
    const float p01 = multiply_add(0x1.437378p+9f, u, 0x1.3e2386p+12f);
    const float p23 = multiply_add(0x1.2a2e06p-5f, u, 0x1.b6bde2p+3f);
    const float p24 = multiply_add(-0x1.062eecp-15f, v, p23);
    const float q01 = multiply_add(0x1.24f418p+11f, u, 0x1.3e2398p+12f);
    return (x * multiply_add(p24, v, p01)) / multiply_add(u + 0x1.d0f61ep+6f, v, q01);
}

static inline float sigmoid(float x)
{
    return multiply_add(0.5f, tangent(0.5f * x), 0.5f);
}

#define LOG2_E 0x1.715476p+0f
#define ROUNDER 0x1.8p+23f           /* a float plus this has its nearest integer in the lowest bits */
#define POWER_FACTOR 0x3AAE0410u     /* the bits of 0x1.5c082p-10 */

/* 2^f / 0x1.5c082p-10 for |f| <= 1/2: a minimax fit of degree 5 with a relative error of 7.6e-8 */
static inline float scaled_power(float f)
{
    const float g = f * f;
    const float p01 = multiply_add(0x1.050baep+9f, f, 0x1.789bfep+9f);
    const float p23 = multiply_add(0x1.4e78dep+5f, f, 0x1.69e0cep+7f);
    return multiply_add(multiply_add(f + 0x1.d26cb2p+2f, g, p23), g, p01);
}

/* 0x1.5c082p-10 times two to the power of the integer in the lowest bits of rounded */
static inline float power_scale(float rounded)
{
    uint32_t bits;
    float scale;
    (void)memcpy(&bits, &rounded, sizeof bits);
    bits = POWER_FACTOR + (bits << 23);
    (void)memcpy(&scale, &bits, sizeof scale);
    return scale;
}

/* exp; 0 below -80, where it is 2e-35, and infinity above 88.7 */
static inline float exponential(float x)
{
    const float c = clip(x, -80.0f, 89.0f);
    const float rounded = (c * LOG2_E) + ROUNDER;
    const float f = multiply_add(c, LOG2_E, ROUNDER - rounded);
    const float y = scaled_power(multiply_add(c, 0x1.4ae0cp-26f, f)) * power_scale(rounded);
    return (x < -80.0f) ? 0.0f : y;
}

/* exp(x) - 1 below zero, x above */
static inline float elu(float x)
{
    if (x > 0.0f) {
        return x;
    }
    if (x < -17.5f) {
        return -1.0f;
    }
    const float t = x * LOG2_E;
    const float rounded = t + ROUNDER;
    return multiply_add(scaled_power(t - (rounded - ROUNDER)), power_scale(rounded), -1.0f);
}

static inline float elu_alpha(float x, float alpha)
{
    return (x <= 0.0f) ? alpha * elu(x) : x;
}

static inline float softplus(float x)
{
    return maximum(x, 0.0f) + log1pf(exponential(-fabsf(x)));
}

#endif
