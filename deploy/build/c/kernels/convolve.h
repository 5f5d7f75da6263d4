/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in one or two dimensions: a product with the same weights for every patch of the input.
 *
 * The floats of the input may lie in any regular order. A patch is copied row by row, column by column, channel by
 * channel, with zeros for what lies beyond the edges; weights are packed in that order, as for linear(). The outputs of a
 * place lie side by side, in blocks of four. */
#ifndef KERNELS_CONVOLVE_H
#define KERNELS_CONVOLVE_H

#include "linear.h"

typedef struct {
    uint32_t channels; /* of the input */
    uint32_t height;
    uint32_t width;
    uint32_t channel_step; /* floats from one channel to the next */
    uint32_t row_step;
    uint32_t column_step;
    uint32_t kernel_height;
    uint32_t kernel_width;
    uint32_t stride_y;
    uint32_t stride_x;
    uint32_t spread_y; /* between the places of a kernel */
    uint32_t spread_x;
    uint32_t above; /* rows of zeros */
    uint32_t left;
    uint32_t rows; /* of the output */
    uint32_t columns;
} convolution;

/* The patch whose first place is at a row and a column that are counted from the zeros on. */
static inline void copy_patch(const convolution *c, const float *x, uint32_t top, uint32_t left, float *patch)
{
    float *to = patch;
    for (uint32_t i = 0; i < c->kernel_height; i++) {
        const uint32_t row = (top + (i * c->spread_y)) - c->above; /* wraps above the first one */
        for (uint32_t j = 0; j < c->kernel_width; j++) {
            const uint32_t column = (left + (j * c->spread_x)) - c->left;
            if ((row < c->height) && (column < c->width)) {
                const float *from = &x[(row * c->row_step) + (column * c->column_step)];
                for (uint32_t k = 0; k < c->channels; k++) {
                    to[k] = *from;
                    from = &from[c->channel_step];
                }
            } else {
                for (uint32_t k = 0; k < c->channels; k++) {
                    to[k] = 0.0f;
                }
            }
            to = &to[c->channels];
        }
    }
}

/* outputs: a multiple of four */
static inline void convolve(const convolution *c, const float *weights, const float *bias, const float *x, float *patch,
                            float *y, uint32_t outputs)
{
    const uint32_t size = c->kernel_height * c->kernel_width * c->channels;
    float *to = y;
    for (uint32_t i = 0; i < c->rows; i++) {
        for (uint32_t j = 0; j < c->columns; j++) {
            copy_patch(c, x, i * c->stride_y, j * c->stride_x, patch);
            linear(weights, bias, patch, to, outputs, size);
            to = &to[outputs];
        }
    }
}

#endif
