/* Functions of one number, in single precision, without tables and without branches where that is cheap.
 *
 * Largest deviation from the exact function, measured over all of its range: tangent 4.4e-7, sigmoid 2.5e-7, elu 1.5e-7
 * (absolute), exponential 2.5e-7 (relative). A NaN stays a NaN. */
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
    return a * b + c;
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

/* tanh as x P(x^2) / Q(x^2), a minimax fit of degree 4 over 3 on [-7.9, 7.9], beyond which tanh is 1 within 3e-7 */
static inline float tangent(float x)
{
    const float c = clip(x, -0x1.f9999ap+2f, 0x1.f9999ap+2f);
    const float u = c * c;
    float p = -0x1.a5f274p-28f;
    float q = 0x1.9bfef6p-13f;
    p = multiply_add(p, u, 0x1.dfe0dcp-18f);
    q = multiply_add(q, u, 0x1.76251cp-6f);
    p = multiply_add(p, u, 0x1.610be8p-9f);
    q = multiply_add(q, u, 0x1.d777a8p-2f);
    p = multiply_add(p, u, 0x1.044644p-3f);
    q = multiply_add(q, u, 1.0f);
    p = multiply_add(p, u, 0x1.ffffe4p-1f);
    return (c * p) / q;
}

static inline float sigmoid(float x)
{
    return multiply_add(0.5f, tangent(0.5f * x), 0.5f);
}

/* exp(r) for |r| <= ln(2) / 2, a minimax fit of degree 5, relative error 7.6e-8 */
static inline float exponential_near_zero(float r)
{
    float p = 0x1.0fe52cp-7f;
    p = multiply_add(p, r, 0x1.575ff6p-5f);
    p = multiply_add(p, r, 0x1.555a1cp-3f);
    p = multiply_add(p, r, 0x1.fffd18p-2f);
    p = multiply_add(p, r, 0x1.fffff6p-1f);
    return multiply_add(p, r, 0x1.000002p+0f);
}

/* x times 2 to the power of the integer that lies in the lowest bits of rounder + 1.5 * 2^23 */
static inline float scaled_by_power(float x, float rounder)
{
    uint32_t bits;
    uint32_t power;
    float result;
    (void)memcpy(&power, &rounder, sizeof power);
    (void)memcpy(&bits, &x, sizeof bits);
    bits += power << 23;
    (void)memcpy(&result, &bits, sizeof result);
    return result;
}

/* exp, with 0 below -87 (where it is 1e-38) and infinity above 88.7 */
static inline float exponential(float x)
{
    const float c = clip(x, -87.0f, 88.0f);
    const float rounder = multiply_add(c, 0x1.715476p+0f, 0x1.8p+23f);
    const float n = rounder - 0x1.8p+23f;
    const float r = multiply_add(n, 0x1.05c61p-29f, multiply_add(n, -0x1.62e43p-1f, c));
    const float y = scaled_by_power(exponential_near_zero(r), rounder);
    const float above = (x > 88.0f) ? y * exponential_near_zero(clip(x - 88.0f, 0.0f, 0.34f)) : y;
    return (x > 88.72283f) ? INFINITY : ((x < -87.0f) ? 0.0f : above);
}

/* exp(x) - 1 below zero, x above */
static inline float elu(float x)
{
    if (!(x <= 0.0f)) {
        return x;
    }
    const float c = (x < -17.5f) ? -17.5f : x;
    const float rounder = multiply_add(c, 0x1.715476p+0f, 0x1.8p+23f);
    const float r = multiply_add(rounder - 0x1.8p+23f, -0x1.62e43p-1f, c);
    return scaled_by_power(exponential_near_zero(r), rounder) - 1.0f;
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
