/* SPDX-License-Identifier: Apache-2.0 */
/* Devices on a test rig, which has their time: the wire is one serial port, the rig's line another.
 *
 * The rig says what time it is, and for which device how many bytes have arrived on the wire by then. The image takes
 * them from the wire, lets the device act, sends its answer over the wire, and tells the rig how long that answer is
 * and what the actuators get. No time passes that the rig does not tell, so it may take as long as it likes. */
#include <string.h>

#include "exchange.h"
#include "uart.h"

#define WIRE ((uart *)${wire})
#define RIG ((uart *)${rig})
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
    uint32_t count; /* bytes on the wire */
} rig_request;

typedef struct {
    uint32_t count; /* bytes on the wire */
    uint32_t enabled;
    float motors[GATE_COMMAND_SIZE];
} rig_answer;

static device devices[DEVICES];
static uint8_t bytes[LARGEST];
static uint8_t said[MOST_SAID];

int main(void);

static rig_request next_request(void)
{
    uint8_t raw[sizeof(rig_request)];
    rig_request request;
    for (size_t i = 0; i < sizeof raw; i++) {
        raw[i] = uart_read(RIG);
    }
    (void)memcpy(&request, raw, sizeof request);
    return request;
}

static void serve(const rig_request *request)
{
    rig_answer answer;
    for (size_t i = 0; i < request->count; i++) {
        bytes[i] = uart_read(WIRE);
    }
    answer.count = (uint32_t)exchange(&devices[request->index], bytes, request->count, request->time, said,
                                      sizeof said, answer.motors);
    answer.enabled = exchange_enabled(&devices[request->index]) ? 1u : 0u;
    uart_write(WIRE, said, answer.count);
    uart_write(RIG, (const uint8_t *)&answer, sizeof answer);
}

/* Said once after power-up: a rig that sends before is not heard. */
static void report_ready(void)
{
    rig_answer answer = {0};
    (void)memcpy(answer.motors, GATE_SAFE, sizeof answer.motors);
    uart_write(RIG, (const uint8_t *)&answer, sizeof answer);
}

int main(void)
{
    uart_start(WIRE);
    uart_start(RIG);
    for (size_t i = 0; i < DEVICES; i++) {
        exchange_start(&devices[i], 0);
    }
    report_ready();
    for (;;) {
        const rig_request request = next_request();
        if (request.index == RESTART) {
            RESET_REGISTER = RESET_REQUEST;
        } else if (request.index < DEVICES && request.count <= LARGEST) {
            serve(&request);
        } else {
            return 1;
        }
    }
}
