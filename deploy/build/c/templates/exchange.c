/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <string.h>

static ${name}_arena arena;

size_t exchange_size(void) { return sizeof(device); }

bool exchange_enabled(const device *d) { return d->enabled; }

void exchange_start(device *d, int64_t now) {
    static bool tested = false;
    static bool passed = false;
    if (!tested) {
        ${name}_state state;
        passed = ${name}_self_test(&state, &arena) <= ${guard}_TOLERANCE;
        tested = true;
    }
    device_start(d, &arena, passed, now);
}

/* Move what the device says to the end of out. */
static size_t collect(device *d, uint8_t *out, size_t used, size_t room) {
    const size_t size = d->out_size < room - used ? d->out_size : room - used;
    (void)memcpy(out + used, d->out, size);
    d->out_size = 0;
    return used + size;
}

size_t exchange(device *d, const uint8_t *bytes, size_t count, int64_t now, uint8_t *out, size_t room, float *motors) {
    size_t used = collect(d, out, 0, room);
    for (size_t i = 0; i < count; i++) {
        device_take(d, bytes[i], now);
        used = collect(d, out, used, room);
    }
    device_wake(d, now);
    used = collect(d, out, used, room);
    (void)memcpy(motors, d->motors, sizeof d->command);
    return used;
}
