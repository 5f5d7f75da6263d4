/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on every row of a matrix (rows, columns). */
#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include "scalar.h"

static inline void row_sums(const float *x, float *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++) {
        float sum = 0.0f;
        for (uint32_t j = 0; j < columns; j++) {
            sum += x[(i * columns) + j];
        }
        y[i] = sum;
    }
}

static inline void row_products(const float *x, float *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++) {
        float product = 1.0f;
        for (uint32_t j = 0; j < columns; j++) {
            product *= x[(i * columns) + j];
        }
        y[i] = product;
    }
}

static inline void row_maxima(const float *x, float *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++) {
        float best = x[i * columns];
        for (uint32_t j = 1; j < columns; j++) {
            best = maximum(best, x[(i * columns) + j]);
        }
        y[i] = best;
    }
}

static inline void row_minima(const float *x, float *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++) {
        float best = x[i * columns];
        for (uint32_t j = 1; j < columns; j++) {
            best = minimum(best, x[(i * columns) + j]);
        }
        y[i] = best;
    }
}

static inline void row_softmax(const float *x, float *y, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++) {
        const float *const from = &x[i * columns];
        float *const to = &y[i * columns];
        float best = from[0];
        float sum = 0.0f;
        for (uint32_t j = 1; j < columns; j++) {
            best = maximum(best, from[j]);
        }
        for (uint32_t j = 0; j < columns; j++) {
            to[j] = exponential(from[j] - best);
            sum += to[j];
        }
        for (uint32_t j = 0; j < columns; j++) {
            to[j] /= sum;
        }
    }
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias */
static inline void row_normalized(const float *x, const float *scale, const float *bias, float epsilon, float *y,
                                  uint32_t rows, uint32_t columns)
{
    const float share = 1.0f / (float)columns;
    for (uint32_t i = 0; i < rows; i++) {
        const float *const from = &x[i * columns];
        float *const to = &y[i * columns];
        float sum = 0.0f;
        float squares = 0.0f;
        for (uint32_t j = 0; j < columns; j++) {
            sum += from[j];
        }
        const float mean = sum * share;
        for (uint32_t j = 0; j < columns; j++) {
            const float off = from[j] - mean;
            squares = multiply_add(off, off, squares);
        }
        const float factor = 1.0f / sqrtf(multiply_add(squares, share, epsilon));
        for (uint32_t j = 0; j < columns; j++) {
            to[j] = multiply_add((from[j] - mean) * factor, scale[j], bias[j]);
        }
    }
}

/* y (m, n): rows of a (m, k) times columns of b (k, n) */
static inline void row_mixtures(const float *a, const float *b, float *y, uint32_t m, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (uint32_t c = 0; c < k; c++) {
                sum = multiply_add(a[(i * k) + c], b[(c * n) + j], sum);
            }
            y[(i * n) + j] = sum;
        }
    }
}

/* y (m, n): rows of a (m, k) times rows of b (n, k) */
static inline void row_dots(const float *a, const float *b, float *y, uint32_t m, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (uint32_t c = 0; c < k; c++) {
                sum = multiply_add(a[(i * k) + c], b[(j * k) + c], sum);
            }
            y[(i * n) + j] = sum;
        }
    }
}

#endif
