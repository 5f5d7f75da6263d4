/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: an assertion that always is compiled, and numbers drawn from libFuzzer's bytes. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void check(bool fact) {
    if (!fact) {
        abort();
    }
}

/* The rest of the input; zeros when it has ended. */
typedef struct {
    const uint8_t *data;
    size_t left;
} source;

static inline void draw(source *from, void *to, size_t size) {
    size_t given = size < from->left ? size : from->left;
    memset(to, 0, size);
    if (given > 0) {
        memcpy(to, from->data, given);
    }
    from->data += given;
    from->left -= given;
}

#endif
