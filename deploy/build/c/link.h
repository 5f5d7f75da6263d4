/* SPDX-License-Identifier: Apache-2.0 */
/* The link between a host and a microcontroller: frames, sessions, clocks and the dead-man's switch.
 *
 * The C twin of deploy/robot/link/__init__.py; docs/link.md has the layout of every byte. C99, no heap, no clock of its own:
 * times are microseconds that the caller gives.
 *
 *   static uint8_t buffer[LINK_BUFFER_SIZE(512)];
 *   link_decoder decoder;
 *   link_decoder_start(&decoder, buffer, sizeof buffer);
 *   if (link_decode(&decoder, byte, &frame) && link_accept(&session, &frame, now) == LINK_TAKEN) ...
 */
#ifndef ROBO_RL_LINK_H
#define ROBO_RL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LINK_VERSION 1
#define LINK_DIGEST_SIZE 32
#define LINK_OVERHEAD 10 /* six bytes before the payload, four after it */
#define LINK_MAX_PAYLOAD 65535
#define LINK_SAMPLE_HEAD 14 /* bytes of a sample before its floats */
#define LINK_PIECE 128      /* bytes of a slot of learnt weights in one frame */
#define LINK_NEVER ((int64_t)-1)

/* Bytes of an encoded frame without its delimiter: what a decoder must hold for payloads up to that size. */
#define LINK_BUFFER_SIZE(payload) ((payload) + LINK_OVERHEAD + ((payload) + LINK_OVERHEAD) / 254 + 1)

enum link_type {
    LINK_HELLO = 1,
    LINK_SIGNALS = 2,
    LINK_COMMANDS = 3,
    LINK_FAULT = 4,
    LINK_STATISTICS = 5,
    LINK_REQUEST = 6,
    LINK_REFUSAL = 7,
    LINK_SAMPLE = 8,
    LINK_PROGRESS = 9,
    LINK_PULL = 10,
    LINK_WEIGHTS = 11
};

enum link_state { LINK_CLOSED = 0, LINK_OPEN = 1, LINK_REFUSED = 2 };

/* What becomes of a frame. Only LINK_TAKEN and LINK_OPENED may be acted on. */
enum link_verdict {
    LINK_TAKEN = 0,     /* a message of the open session, in order */
    LINK_OPENED = 1,    /* a hello with the right digest */
    LINK_MISMATCH = 2,  /* a hello with another digest, or the peer's refusal: the session is refused */
    LINK_LATE = 3,      /* a frame that came twice, or after its successor */
    LINK_NOT_OPEN = 4,  /* a message before a hello */
    LINK_MALFORMED = 5  /* an unknown type, or the wrong length for the contract */
};

typedef struct {
    const uint8_t *payload; /* in the decoder's buffer; valid until the next byte */
    uint16_t length;
    uint16_t sequence;
    uint8_t type;
} link_frame;

/* What a decoder met. Counters wrap. */
typedef struct {
    uint32_t frames;   /* whole ones */
    uint32_t framing;  /* not decodable, too short, or of another length than they say */
    uint32_t crc;      /* wrong checksum */
    uint32_t version;  /* another version of this protocol */
    uint32_t oversize; /* longer than the buffer */
} link_decoder_counts;

typedef struct {
    uint8_t *buffer;
    size_t capacity;
    size_t used;
    bool skipping; /* until the next delimiter, after an oversize */
    link_decoder_counts counts;
} link_decoder;

/* What a session met. Counters wrap. */
typedef struct {
    uint32_t lost;    /* by gaps in the sequence */
    uint32_t late;    /* doubled or overtaken */
    uint32_t refused; /* mismatched, malformed or before the hello */
} link_session_counts;

/* One direction of a connection, as its receiver sees it. The contract gives digest and sizes. */
typedef struct {
    const uint8_t *digest; /* LINK_DIGEST_SIZE bytes */
    uint16_t signal_count;
    uint16_t signal_size;
    uint16_t command_size;
    const uint16_t *sample_sizes; /* floats of each signal that comes alone; 0: of one that does not */
    uint16_t sample_count;
    uint16_t expected; /* the next sequence number */
    uint8_t state;
    int64_t last; /* when the last frame was taken */
    link_session_counts counts;
} link_session;

/* The sender's clock in the receiver's time. */
typedef struct {
    int64_t offset;
    int64_t last;
} link_clock;

/* CRC-32 of IEEE 802.3: polynomial 0x04C11DB7 reflected, initial value and final inversion 0xFFFFFFFF. */
uint32_t link_crc32(const uint8_t *data, size_t length);

/* Write a frame with its delimiter; its bytes, or 0 if they don't fit. */
size_t link_encode(uint8_t type, uint16_t sequence, const uint8_t *payload, size_t length, uint8_t *out,
                   size_t capacity);

void link_decoder_start(link_decoder *decoder, uint8_t *buffer, size_t capacity);

/* Take one byte. True when it ends a whole frame. */
bool link_decode(link_decoder *decoder, uint8_t byte, link_frame *frame);

void link_session_start(link_session *session, const uint8_t *digest, uint16_t signal_count, uint16_t signal_size,
                        uint16_t command_size);

/* The contract has signals that come alone, when they were measured: how many floats each of its signals has then. */
void link_session_samples(link_session *session, const uint16_t *sizes, uint16_t count);

/* The length that a message of that type must have, or -1 for an unknown type, and for one whose length varies. */
int32_t link_length(const link_session *session, uint8_t type);

enum link_verdict link_accept(link_session *session, const link_frame *frame, int64_t now);

/* True if nothing was taken for more than timeout, or ever, or time ran backwards. */
bool link_expired(int64_t last, int64_t now, int64_t timeout);

void link_clock_start(link_clock *clock);

/* The moment of the sender's time in the receiver's clock: never later than received, and earlier by what the
 * frame took longer than the fastest before it. LINK_NEVER if sent is no time. */
int64_t link_clock_update(link_clock *clock, int64_t sent, int64_t received);

#ifdef __cplusplus
}
#endif

#endif
