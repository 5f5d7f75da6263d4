/* SPDX-License-Identifier: Apache-2.0 */
/* Devices on a test rig, which has their time and both ends of their wires, in two named pipes.
 *
 * The rig says what time it is, and for which device which bytes have arrived on the wire by then. The image lets the
 * device act, and tells the rig what it sends over the wire and what the actuators get. No time passes that the rig does
 * not tell, so it may take as long as it likes. The emulator opens the pipes, and moves all bytes of a message at once:
 * over an emulated serial port each one takes as long as half a step of a policy. */
#include <string.h>

#include "exchange.h"
#include "semihosting.h"

#define DEVICES ${devices}u
#define RESTART 0xffffu /* in place of a device's index: the processor restarts */
#define LARGEST (4096u + 5u * GATE_SIGNAL_SIZE + 64u * GATE_SIGNAL_COUNT) /* bytes on the wire at once: any samples */
#define MOST_SAID 4096u

#define RESET_REGISTER (*(volatile uint32_t *)0xE000ED0Cu) /* AIRCR */
#define RESET_REQUEST 0x05FA0004u

typedef struct {
    int64_t time; /* microseconds */
    uint16_t index;
    uint16_t unused;
    uint32_t count; /* bytes on the wire, which follow */
} rig_request;

typedef struct {
    uint32_t count; /* bytes on the wire, which follow */
    uint32_t enabled;
    float motors[GATE_COMMAND_SIZE];
} rig_answer;

static device devices[DEVICES];
static uint8_t bytes[LARGEST];
static struct {
    rig_answer head;
    uint8_t said[MOST_SAID];
} answer;
static uint32_t from;
static uint32_t to;

int main(void);

static void serve(const rig_request *request)
{
    semihosting_take(from, bytes, request->count);
    answer.head.count = (uint32_t)exchange(&devices[request->index], bytes, request->count, request->time, answer.said,
                                           sizeof answer.said, answer.head.motors);
    answer.head.enabled = exchange_enabled(&devices[request->index]) ? 1u : 0u;
    semihosting_save(to, &answer, sizeof answer.head + answer.head.count);
}

/* Said once after power-up. */
static void report_ready(void)
{
    (void)memcpy(answer.head.motors, GATE_SAFE, sizeof answer.head.motors);
    semihosting_save(to, &answer, sizeof answer.head);
}

int main(void)
{
    from = semihosting_open("wire.in", SEMIHOSTING_READ);
    to = semihosting_open("wire.out", SEMIHOSTING_WRITE);
    for (size_t i = 0; i < DEVICES; i++) {
        exchange_start(&devices[i], 0);
    }
    report_ready();
    for (;;) {
        rig_request request;
        semihosting_take(from, &request, sizeof request);
        if (request.index == RESTART) {
            RESET_REGISTER = RESET_REQUEST;
        } else if (request.index < DEVICES && request.count <= LARGEST) {
            serve(&request);
        } else {
            return 1;
        }
    }
}
