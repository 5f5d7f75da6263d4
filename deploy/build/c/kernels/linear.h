/* SPDX-License-Identifier: Apache-2.0 */
/* y = weights x + bias, eight outputs at a time.
 *
 * Weights are packed: rows in blocks of eight, one last block of four if that is enough, missing rows zero; within a
 * block column by column. Every row sums its columns in order, with one rounding per step, so that the portable
 * kernel and the one for the Arm FPU give identical bits. y has room for whole blocks. */
#ifndef KERNELS_LINEAR_H
#define KERNELS_LINEAR_H

#include "scalar.h"

#if defined(__GNUC__) && defined(__ARM_FEATURE_FMA) && defined(__thumb2__) && !defined(POLICY_PORTABLE)
#include "linear_fpu.h"
#else

/* sums y0 to y7 += eight weights times c */
#define COLUMN_OF_EIGHT(w, c)                                                                                          \
    y0 = multiply_add((w)[0], (c), y0);                                                                                \
    y1 = multiply_add((w)[1], (c), y1);                                                                                \
    y2 = multiply_add((w)[2], (c), y2);                                                                                \
    y3 = multiply_add((w)[3], (c), y3);                                                                                \
    y4 = multiply_add((w)[4], (c), y4);                                                                                \
    y5 = multiply_add((w)[5], (c), y5);                                                                                \
    y6 = multiply_add((w)[6], (c), y6);                                                                                \
    y7 = multiply_add((w)[7], (c), y7)

#define COLUMN_OF_FOUR(w, c)                                                                                           \
    y0 = multiply_add((w)[0], (c), y0);                                                                                \
    y1 = multiply_add((w)[1], (c), y1);                                                                                \
    y2 = multiply_add((w)[2], (c), y2);                                                                                \
    y3 = multiply_add((w)[3], (c), y3)

static inline void linear_block8(const float *restrict w, const float *restrict bias, const float *restrict x,
                                 float *restrict y, uint32_t columns)
{
    float y0 = bias[0], y1 = bias[1], y2 = bias[2], y3 = bias[3];
    float y4 = bias[4], y5 = bias[5], y6 = bias[6], y7 = bias[7];
    const float *const end = &x[columns];
    for (const float *const last = &x[columns & ~7u]; x != last; x += 8) {
        COLUMN_OF_EIGHT(&w[0], x[0]);
        COLUMN_OF_EIGHT(&w[8], x[1]);
        COLUMN_OF_EIGHT(&w[16], x[2]);
        COLUMN_OF_EIGHT(&w[24], x[3]);
        COLUMN_OF_EIGHT(&w[32], x[4]);
        COLUMN_OF_EIGHT(&w[40], x[5]);
        COLUMN_OF_EIGHT(&w[48], x[6]);
        COLUMN_OF_EIGHT(&w[56], x[7]);
        w += 64;
    }
    for (; x != end; x++) {
        COLUMN_OF_EIGHT(w, *x);
        w += 8;
    }
    y[0] = y0;
    y[1] = y1;
    y[2] = y2;
    y[3] = y3;
    y[4] = y4;
    y[5] = y5;
    y[6] = y6;
    y[7] = y7;
}

static inline void linear_block4(const float *restrict w, const float *restrict bias, const float *restrict x,
                                 float *restrict y, uint32_t columns)
{
    float y0 = bias[0], y1 = bias[1], y2 = bias[2], y3 = bias[3];
    const float *const end = &x[columns];
    for (const float *const last = &x[columns & ~3u]; x != last; x += 4) {
        COLUMN_OF_FOUR(&w[0], x[0]);
        COLUMN_OF_FOUR(&w[4], x[1]);
        COLUMN_OF_FOUR(&w[8], x[2]);
        COLUMN_OF_FOUR(&w[12], x[3]);
        w += 16;
    }
    for (; x != end; x++) {
        COLUMN_OF_FOUR(w, *x);
        w += 4;
    }
    y[0] = y0;
    y[1] = y1;
    y[2] = y2;
    y[3] = y3;
}

/* rows: a multiple of four */
static inline void linear(const float *weights, const float *bias, const float *x, float *y, uint32_t rows,
                          uint32_t columns)
{
    uint32_t row = 0;
    for (; (row + 8u) <= rows; row += 8u) {
        linear_block8(&weights[row * columns], &bias[row], x, &y[row], columns);
    }
    if (row < rows) {
        linear_block4(&weights[row * columns], &bias[row], x, &y[row], columns);
    }
}

#endif
#endif
