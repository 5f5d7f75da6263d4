/* SPDX-License-Identifier: Apache-2.0 */
/* The linear kernel on integers: weights of 16 or 8 bits with one scale per row, inputs of 16 bits, sums of 32.
 *
 * Weights are packed: rows in fours, columns in fours within them; missing ones are zero. The generator chose the scales
 * such that no sum can overflow. Cortex-M with DSP instructions and portable C give identical bits. */
#ifndef KERNELS_LINEAR_INT_H
#define KERNELS_LINEAR_INT_H

#include "scalar.h"

#if defined(__GNUC__)
#define WORD_ALIGNED __attribute__((aligned(4)))
#else
#define WORD_ALIGNED
#endif

#define INT8_HEADROOM 8 /* sums with 8-bit weights times this are as large as those with 16-bit weights */
#define TABLE_BITS 25 /* of a position in a table: 9 for one of 512 segments, 16 within it */

#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && !defined(POLICY_PORTABLE)
#include "linear_dsp.h"
#else

typedef struct {
    int32_t row[4];
} four_sums;

static inline four_sums sums_int16(const int16_t *w, const int16_t *x, uint32_t quads)
{
    four_sums sums = {{0, 0, 0, 0}};
    for (uint32_t q = 0; q < quads; q++) {
        for (uint32_t row = 0; row < 4u; row++) {
            for (uint32_t i = 0; i < 4u; i++) {
                sums.row[row] += (int32_t)w[(4u * row) + i] * (int32_t)x[i];
            }
        }
        w += 16;
        x += 4;
    }
    return sums;
}

/* A row's four weights lie in the order 0, 2, 1, 3, which suits the DSP instructions. */
static inline four_sums sums_int8(const int8_t *w, const int16_t *x, uint32_t quads)
{
    four_sums sums = {{0, 0, 0, 0}};
    for (uint32_t q = 0; q < quads; q++) {
        for (uint32_t row = 0; row < 4u; row++) {
            const int8_t *const of = &w[4u * row];
            sums.row[row] += ((int32_t)of[0] * x[0]) + ((int32_t)of[2] * x[1]) + ((int32_t)of[1] * x[2]) +
                             ((int32_t)of[3] * x[3]);
        }
        w += 16;
        x += 4;
    }
    return sums;
}

/* The function of sum * multiplier / 2^32 + offset that the table holds: values below, increments above 16 bits */
static inline int16_t looked_up(int32_t sum, int32_t multiplier, int32_t offset, const uint32_t *table)
{
    const int32_t last = (int32_t)((1u << TABLE_BITS) - 1u);
    const int32_t place = (int32_t)(((int64_t)sum * multiplier) >> 32) + offset;
    const uint32_t p = (uint32_t)((place < 0) ? 0 : ((place > last) ? last : place));
    const uint32_t entry = table[p >> 16];
    const int32_t step = (int32_t)(((int64_t)(p & 0xFFFFu) * (int16_t)(uint16_t)(entry >> 16)) >> 16);
    return (int16_t)((int16_t)(uint16_t)(entry & 0xFFFFu) + step);
}

static inline int32_t nearest(float x, int32_t limit)
{
    const float bound = (float)limit;
    return (int32_t)rintf((x > bound) ? bound : ((x >= -bound) ? x : -bound));
}

#endif

/* Numbers as multiples of 1 / factor, at most limit of them. What is not a number becomes the lower limit. */
static inline void quantized(const float *x, int16_t *y, uint32_t count, float factor, int32_t limit)
{
    for (uint32_t i = 0; i < count; i++) {
        y[i] = (int16_t)nearest(x[i] * factor, limit);
    }
}

static inline void scaled_sums(four_sums sums, const float *scale, const float *bias, float *y)
{
    for (uint32_t i = 0; i < 4u; i++) {
        y[i] = multiply_add((float)sums.row[i], scale[i], bias[i]);
    }
}

static inline void looked_up_sums(four_sums sums, int32_t factor, const int32_t *places, const uint32_t *table,
                                  int16_t *y)
{
    y[0] = looked_up(sums.row[0] * factor, places[0], places[1], table);
    y[1] = looked_up(sums.row[1] * factor, places[2], places[3], table);
    y[2] = looked_up(sums.row[2] * factor, places[4], places[5], table);
    y[3] = looked_up(sums.row[3] * factor, places[6], places[7], table);
}

/* y = scale * (weights x) + bias, in floats */
static inline void linear_int16(const int16_t *w, const float *scale, const float *bias, const int16_t *x, float *y,
                                uint32_t rows, uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row += 4u) {
        scaled_sums(sums_int16(&w[row * columns], x, columns >> 2), &scale[row], &bias[row], &y[row]);
    }
}

static inline void linear_int8(const int8_t *w, const float *scale, const float *bias, const int16_t *x, float *y,
                               uint32_t rows, uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row += 4u) {
        scaled_sums(sums_int8(&w[row * columns], x, columns >> 2), &scale[row], &bias[row], &y[row]);
    }
}

/* y = table(weights x), in integers; places: multiplier and offset of every row */
static inline void linear_int16_table(const int16_t *w, const int32_t *places, const uint32_t *table, const int16_t *x,
                                      int16_t *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row += 4u) {
        looked_up_sums(sums_int16(&w[row * columns], x, columns >> 2), 1, &places[2u * row], table, &y[row]);
    }
}

static inline void linear_int8_table(const int8_t *w, const int32_t *places, const uint32_t *table, const int16_t *x,
                                     int16_t *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row += 4u) {
        looked_up_sums(sums_int8(&w[row * columns], x, columns >> 2), INT8_HEADROOM, &places[2u * row], table, &y[row]);
    }
}

#endif
