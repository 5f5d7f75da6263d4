/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#define HEADER 6
#define TRAILER 4
#define LATEST INT64_C(2305843009213693952) /* 2^61: times beyond are no times, so that differences fit 64 bits */
#define DRIFT 2048 /* clocks may drift apart by 1 in so many */

/* --- frames ----------------------------------------------------------------------------------------------- */

static uint32_t crc_add(uint32_t crc, uint8_t byte) {
    /* the remainders of 0 to 15: half a byte at a time needs 64 bytes of table */
    static const uint32_t table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
                                       0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                       0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
    crc ^= byte;
    crc = (crc >> 4) ^ table[crc & 15u];
    return (crc >> 4) ^ table[crc & 15u];
}

uint32_t link_crc32(const uint8_t *data, size_t length) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc = crc_add(crc, data[i]);
    }
    return ~crc;
}

/* Consistent overhead byte stuffing, written byte by byte. */
typedef struct {
    uint8_t *out;
    size_t used;
    size_t code; /* where the length of the present block goes */
} stuffer;

static void close_block(stuffer *s) {
    s->out[s->code] = (uint8_t)(s->used - s->code);
    s->code = s->used;
    s->used++;
}

static void stuff(stuffer *s, uint8_t byte) {
    if (byte == 0) {
        close_block(s);
    } else {
        s->out[s->used] = byte;
        s->used++;
        if (s->used - s->code == 255) {
            close_block(s);
        }
    }
}

size_t link_encode(uint8_t type, uint16_t sequence, const uint8_t *payload, size_t length, uint8_t *out,
                   size_t capacity) {
    if (length > LINK_MAX_PAYLOAD || capacity < LINK_BUFFER_SIZE(length) + 1) {
        return 0;
    }
    const uint8_t header[HEADER] = {LINK_VERSION,
                                    type,
                                    (uint8_t)(sequence & 255u),
                                    (uint8_t)(sequence >> 8),
                                    (uint8_t)(length & 255u),
                                    (uint8_t)(length >> 8)};
    uint32_t crc = 0xffffffffu;
    stuffer s = {out, 1, 0};
    for (size_t i = 0; i < HEADER; i++) {
        crc = crc_add(crc, header[i]);
        stuff(&s, header[i]);
    }
    for (size_t i = 0; i < length; i++) {
        crc = crc_add(crc, payload[i]);
        stuff(&s, payload[i]);
    }
    crc = ~crc;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        stuff(&s, (uint8_t)((crc >> shift) & 255u));
    }
    s.out[s.code] = (uint8_t)(s.used - s.code);
    s.out[s.used] = 0;
    return s.used + 1;
}

/* Undo the stuffing in place; false if a block ends beyond the frame. */
static bool unstuff(uint8_t *bytes, size_t *length) {
    size_t from = 0;
    size_t to = 0;
    while (from < *length) {
        size_t block = bytes[from];
        if (from + block > *length) {
            return false;
        }
        for (size_t i = 1; i < block; i++) {
            bytes[to] = bytes[from + i];
            to++;
        }
        from += block;
        if (block < 255 && from < *length) {
            bytes[to] = 0;
            to++;
        }
    }
    *length = to;
    return true;
}

static bool finish(link_decoder *decoder, link_frame *frame) {
    uint8_t *bytes = decoder->buffer;
    size_t length = decoder->used;
    if (!unstuff(bytes, &length) || length < LINK_OVERHEAD) {
        decoder->counts.framing++;
        return false;
    }
    uint32_t crc = 0;
    for (unsigned i = 0; i < TRAILER; i++) {
        crc |= (uint32_t)bytes[length - TRAILER + i] << (8 * i);
    }
    if (crc != link_crc32(bytes, length - TRAILER)) {
        decoder->counts.crc++;
        return false;
    }
    if (bytes[0] != LINK_VERSION) {
        decoder->counts.version++;
        return false;
    }
    frame->type = bytes[1];
    frame->sequence = (uint16_t)(bytes[2] | (unsigned)bytes[3] << 8);
    frame->length = (uint16_t)(bytes[4] | (unsigned)bytes[5] << 8);
    frame->payload = bytes + HEADER;
    if (frame->length != length - LINK_OVERHEAD) {
        decoder->counts.framing++;
        return false;
    }
    decoder->counts.frames++;
    return true;
}

void link_decoder_start(link_decoder *decoder, uint8_t *buffer, size_t capacity) {
    decoder->buffer = buffer;
    decoder->capacity = capacity;
    decoder->used = 0;
    decoder->skipping = false;
    decoder->counts = (link_decoder_counts){0, 0, 0, 0, 0};
}

bool link_decode(link_decoder *decoder, uint8_t byte, link_frame *frame) {
    if (byte == 0) {
        bool whole = !decoder->skipping && decoder->used > 0 && finish(decoder, frame);
        decoder->used = 0;
        decoder->skipping = false;
        return whole;
    }
    if (decoder->skipping) {
        return false;
    }
    if (decoder->used == decoder->capacity) {
        decoder->skipping = true;
        decoder->counts.oversize++;
        return false;
    }
    decoder->buffer[decoder->used] = byte;
    decoder->used++;
    return false;
}

/* --- sessions --------------------------------------------------------------------------------------------- */

void link_session_start(link_session *session, const uint8_t *digest, uint16_t signal_count, uint16_t signal_size,
                        uint16_t command_size) {
    session->digest = digest;
    session->signal_count = signal_count;
    session->signal_size = signal_size;
    session->command_size = command_size;
    session->sample_sizes = NULL;
    session->sample_count = 0;
    session->expected = 0;
    session->state = LINK_CLOSED;
    session->last = LINK_NEVER;
    session->counts = (link_session_counts){0, 0, 0};
}

void link_session_samples(link_session *session, const uint16_t *sizes, uint16_t count) {
    session->sample_sizes = sizes;
    session->sample_count = count;
}

int32_t link_length(const link_session *session, uint8_t type) {
    switch (type) {
    case LINK_HELLO:
        return 18 + LINK_DIGEST_SIZE;
    case LINK_SIGNALS:
        return 12 + 4 * ((int32_t)session->signal_count + session->signal_size);
    case LINK_COMMANDS:
        return 12 + 4 * (int32_t)session->command_size;
    case LINK_FAULT:
        return 16;
    case LINK_STATISTICS:
        return 52;
    case LINK_REQUEST:
        return 1;
    case LINK_REFUSAL:
        return 1 + LINK_DIGEST_SIZE;
    case LINK_PROGRESS:
        return 36;
    case LINK_PULL:
        return 4;
    case LINK_WEIGHTS:
        return 8 + LINK_PIECE;
    default:
        return -1;
    }
}

/* Whether a payload has the length that its type, or its sample's signal, must have. */
static bool fits(const link_session *session, const link_frame *frame) {
    if (frame->type != LINK_SAMPLE) {
        return link_length(session, frame->type) == (int32_t)frame->length;
    }
    if (frame->length < LINK_SAMPLE_HEAD) {
        return false;
    }
    const uint16_t index = (uint16_t)(frame->payload[12] | (unsigned)frame->payload[13] << 8);
    const uint32_t size = index < session->sample_count ? session->sample_sizes[index] : 0u;
    return size > 0u && frame->length == LINK_SAMPLE_HEAD + (4u * size);
}

static bool same_digest(const uint8_t *a, const uint8_t *b) {
    uint8_t different = 0;
    for (size_t i = 0; i < LINK_DIGEST_SIZE; i++) {
        different = (uint8_t)(different | (a[i] ^ b[i]));
    }
    return different == 0;
}

enum link_verdict link_accept(link_session *session, const link_frame *frame, int64_t now) {
    if (!fits(session, frame)) {
        session->counts.refused++;
        return LINK_MALFORMED;
    }
    bool hello = frame->type == LINK_HELLO;
    bool welcome = hello && same_digest(frame->payload + 18, session->digest);
    if (frame->type == LINK_REFUSAL || (hello && !welcome)) {
        session->state = LINK_REFUSED;
        session->counts.refused++;
        return LINK_MISMATCH;
    }
    if (!hello && session->state != LINK_OPEN) {
        session->counts.refused++;
        return LINK_NOT_OPEN;
    }
    uint16_t gap = (uint16_t)(frame->sequence - session->expected);
    if (!hello && gap >= 0x8000u) {
        session->counts.late++;
        return LINK_LATE;
    }
    if (!hello) {
        session->counts.lost += gap;
    }
    session->expected = (uint16_t)(frame->sequence + 1u);
    session->state = LINK_OPEN;
    session->last = now;
    return hello ? LINK_OPENED : LINK_TAKEN;
}

bool link_expired(int64_t last, int64_t now, int64_t timeout) {
    return last < 0 || now < last || now - last > timeout;
}

/* --- clocks ----------------------------------------------------------------------------------------------- */

void link_clock_start(link_clock *clock) {
    clock->offset = 0;
    clock->last = LINK_NEVER;
}

int64_t link_clock_update(link_clock *clock, int64_t sent, int64_t received) {
    if (sent < 0 || sent > LATEST || received < 0 || received > LATEST) {
        return LINK_NEVER;
    }
    int64_t offset = received - sent;
    if (clock->last >= 0 && offset > clock->offset) {
        int64_t passed = received > clock->last ? received - clock->last : 0;
        int64_t most = clock->offset + passed / DRIFT;
        if (offset > most) {
            offset = most;
        }
    }
    clock->offset = offset;
    clock->last = received;
    return sent + offset;
}
