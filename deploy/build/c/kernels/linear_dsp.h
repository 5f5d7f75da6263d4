/* SPDX-License-Identifier: Apache-2.0 */
/* Integer sums for Cortex-M with DSP instructions: SMLAD multiplies and adds two pairs at once, four rows share every
 * load of the inputs. A multiply-add costs 0.7 instructions with weights of 16 bits, 1.2 with 8. */
#ifndef KERNELS_LINEAR_DSP_H
#define KERNELS_LINEAR_DSP_H

typedef struct {
    int32_t row[4];
} four_sums;

#define QUAD_OF_INT16                                                                                                  \
    "ldmia %[x]!, {r2, r3}\n"                                                                                          \
    "ldmia %[w]!, {r4, r5, r6, r12}\n"                                                                                 \
    "smlad %[a], r4, r2, %[a]\n smlad %[b], r6, r2, %[b]\n"                                                            \
    "smlad %[a], r5, r3, %[a]\n smlad %[b], r12, r3, %[b]\n"                                                           \
    "ldmia %[w]!, {r4, r5, r6, r12}\n"                                                                                 \
    "smlad %[c], r4, r2, %[c]\n smlad %[d], r6, r2, %[d]\n"                                                            \
    "smlad %[c], r5, r3, %[c]\n smlad %[d], r12, r3, %[d]\n"

#define ROW_OF_INT8(w, sum)                                                                                            \
    "sxtb16 %[t], " w "\n smlad %[" sum "], %[t], r2, %[" sum "]\n"                                                    \
    "sxtb16 %[t], " w ", ror #8\n smlad %[" sum "], %[t], r3, %[" sum "]\n"

#define QUAD_OF_INT8                                                                                                   \
    "ldmia %[x]!, {r2, r3}\n"                                                                                          \
    "ldmia %[w]!, {r4, r5, r6, r12}\n" ROW_OF_INT8("r4", "a") ROW_OF_INT8("r5", "b") ROW_OF_INT8("r6", "c")            \
        ROW_OF_INT8("r12", "d")

static inline __attribute__((always_inline)) four_sums sums_int16(const int16_t *w, const int16_t *x, uint32_t quads)
{
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (uint32_t fours = quads >> 2; fours > 0u; fours--) {
        __asm__ volatile(QUAD_OF_INT16 QUAD_OF_INT16 QUAD_OF_INT16 QUAD_OF_INT16
                         : [w] "+r"(w), [x] "+r"(x), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)
                         :
                         : "r2", "r3", "r4", "r5", "r6", "r12", "memory");
    }
    for (uint32_t ones = quads & 3u; ones > 0u; ones--) {
        __asm__ volatile(QUAD_OF_INT16
                         : [w] "+r"(w), [x] "+r"(x), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)
                         :
                         : "r2", "r3", "r4", "r5", "r6", "r12", "memory");
    }
    return (four_sums){{a, b, c, d}};
}

static inline __attribute__((always_inline)) four_sums sums_int8(const int8_t *w, const int16_t *x, uint32_t quads)
{
    int32_t a = 0, b = 0, c = 0, d = 0;
    int32_t t;
    for (uint32_t fours = quads >> 2; fours > 0u; fours--) {
        __asm__ volatile(QUAD_OF_INT8 QUAD_OF_INT8 QUAD_OF_INT8 QUAD_OF_INT8
                         : [w] "+r"(w), [x] "+r"(x), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [t] "=&r"(t)
                         :
                         : "r2", "r3", "r4", "r5", "r6", "r12", "memory");
    }
    for (uint32_t ones = quads & 3u; ones > 0u; ones--) {
        __asm__ volatile(QUAD_OF_INT8
                         : [w] "+r"(w), [x] "+r"(x), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [t] "=&r"(t)
                         :
                         : "r2", "r3", "r4", "r5", "r6", "r12", "memory");
    }
    return (four_sums){{a, b, c, d}};
}

/* The function of sum * multiplier / 2^32 + offset that the table holds: values below, increments above 16 bits */
static inline int16_t looked_up(int32_t sum, int32_t multiplier, int32_t offset, const uint32_t *table)
{
    uint32_t place;
    int32_t value;
    __asm__("smmla %0, %1, %2, %3\n usat %0, #25, %0" : "=r"(place) : "r"(sum), "r"(multiplier), "r"(offset));
    const uint32_t entry = table[place >> 16];
    __asm__("smlawt %0, %1, %2, %3"
            : "=r"(value)
            : "r"(place & 0xFFFFu), "r"(entry), "r"((int32_t)(int16_t)(uint16_t)(entry & 0xFFFFu)));
    return (int16_t)value;
}

/* The nearest integer within -limit ... limit */
static inline int32_t nearest(float x, int32_t limit)
{
#if defined(__ARM_FP)
    float rounded;
    int32_t whole;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(rounded) : "t"(x));
    (void)memcpy(&whole, &rounded, sizeof whole);
    return (whole > limit) ? limit : ((whole < -limit) ? -limit : whole);
#else
    const float bound = (float)limit;
    return (int32_t)rintf((x > bound) ? bound : ((x >= -bound) ? x : -bound));
#endif
}

#endif
