/* SPDX-License-Identifier: Apache-2.0 */
/* The linear kernel for Cortex-M with a single-precision FPU: eight sums, eight inputs and sixteen weights fill the 32
 * registers, so that a multiply-add costs 1.1 instructions. GCC never forms multi-register loads itself. */
#ifndef KERNELS_LINEAR_FPU_H
#define KERNELS_LINEAR_FPU_H

/* sums s0 to s7 += sixteen weights in s16 to s31 times inputs a and b */
#define TWO_COLUMNS_OF_EIGHT(a, b)                                                                                     \
    "vldmia %[w]!, {s16-s31}\n"                                                                                        \
    "vfma.f32 s0, s16, " a "\n vfma.f32 s1, s17, " a "\n vfma.f32 s2, s18, " a "\n vfma.f32 s3, s19, " a "\n"          \
    "vfma.f32 s4, s20, " a "\n vfma.f32 s5, s21, " a "\n vfma.f32 s6, s22, " a "\n vfma.f32 s7, s23, " a "\n"          \
    "vfma.f32 s0, s24, " b "\n vfma.f32 s1, s25, " b "\n vfma.f32 s2, s26, " b "\n vfma.f32 s3, s27, " b "\n"          \
    "vfma.f32 s4, s28, " b "\n vfma.f32 s5, s29, " b "\n vfma.f32 s6, s30, " b "\n vfma.f32 s7, s31, " b "\n"

/* sums s0 to s3 += sixteen weights times four inputs */
#define FOUR_COLUMNS_OF_FOUR(a, b, c, d)                                                                               \
    "vldmia %[w]!, {s16-s31}\n"                                                                                        \
    "vfma.f32 s0, s16, " a "\n vfma.f32 s1, s17, " a "\n vfma.f32 s2, s18, " a "\n vfma.f32 s3, s19, " a "\n"          \
    "vfma.f32 s0, s20, " b "\n vfma.f32 s1, s21, " b "\n vfma.f32 s2, s22, " b "\n vfma.f32 s3, s23, " b "\n"          \
    "vfma.f32 s0, s24, " c "\n vfma.f32 s1, s25, " c "\n vfma.f32 s2, s26, " c "\n vfma.f32 s3, s27, " c "\n"          \
    "vfma.f32 s0, s28, " d "\n vfma.f32 s1, s29, " d "\n vfma.f32 s2, s30, " d "\n vfma.f32 s3, s31, " d "\n"

#define ALL_FLOAT_REGISTERS                                                                                            \
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16",       \
        "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31"

/* rows: a multiple of four */
__attribute__((noinline, unused)) static void linear(const float *w, const float *bias, const float *x, float *y,
                                                     uint32_t rows, uint32_t columns)
{
    const uint32_t eights = columns >> 3;
    const uint32_t ones = columns & 7u;
    for (uint32_t blocks = rows >> 3; blocks > 0u; blocks--) {
        const float *from = x;
        uint32_t left = eights;
        __asm__ volatile("vldmia %[bias]!, {s0-s7}\n"
                         "cmp %[left], #0\n"
                         "beq 2f\n"
                         "1:\n"
                         "vldmia %[x]!, {s8-s15}\n" TWO_COLUMNS_OF_EIGHT("s8", "s9")
                             TWO_COLUMNS_OF_EIGHT("s10", "s11") TWO_COLUMNS_OF_EIGHT("s12", "s13")
                                 TWO_COLUMNS_OF_EIGHT("s14", "s15")
                         "subs %[left], #1\n"
                         "bne 1b\n"
                         "2:\n"
                         "movs %[left], %[ones]\n"
                         "beq 4f\n"
                         "3:\n"
                         "vldmia %[x]!, {s8}\n"
                         "vldmia %[w]!, {s16-s23}\n"
                         "vfma.f32 s0, s16, s8\n vfma.f32 s1, s17, s8\n vfma.f32 s2, s18, s8\n"
                         "vfma.f32 s3, s19, s8\n vfma.f32 s4, s20, s8\n vfma.f32 s5, s21, s8\n"
                         "vfma.f32 s6, s22, s8\n vfma.f32 s7, s23, s8\n"
                         "subs %[left], #1\n"
                         "bne 3b\n"
                         "4:\n"
                         "vstmia %[y]!, {s0-s7}\n"
                         : [w] "+r"(w), [x] "+r"(from), [bias] "+r"(bias), [y] "+r"(y), [left] "+r"(left)
                         : [ones] "r"(ones)
                         : "cc", "memory", ALL_FLOAT_REGISTERS);
    }
    if ((rows & 4u) != 0u) {
        uint32_t left = eights;
        __asm__ volatile("vldmia %[bias], {s0-s3}\n"
                         "cmp %[left], #0\n"
                         "beq 2f\n"
                         "1:\n"
                         "vldmia %[x]!, {s8-s15}\n" FOUR_COLUMNS_OF_FOUR("s8", "s9", "s10", "s11")
                             FOUR_COLUMNS_OF_FOUR("s12", "s13", "s14", "s15")
                         "subs %[left], #1\n"
                         "bne 1b\n"
                         "2:\n"
                         "movs %[left], %[ones]\n"
                         "beq 4f\n"
                         "3:\n"
                         "vldmia %[x]!, {s8}\n"
                         "vldmia %[w]!, {s16-s19}\n"
                         "vfma.f32 s0, s16, s8\n vfma.f32 s1, s17, s8\n vfma.f32 s2, s18, s8\n"
                         "vfma.f32 s3, s19, s8\n"
                         "subs %[left], #1\n"
                         "bne 3b\n"
                         "4:\n"
                         "vstmia %[y], {s0-s3}\n"
                         : [w] "+r"(w), [x] "+r"(x), [left] "+r"(left)
                         : [bias] "r"(bias), [y] "r"(y), [ones] "r"(ones)
                         : "cc", "memory", ALL_FLOAT_REGISTERS);
    }
}

#endif
