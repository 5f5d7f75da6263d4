// Vectors of floats, and the processor's instructions that C++ has no operator for. GCC has names of its own for them:
// to read <immintrin.h> takes longer than to compile a fused graph of usual size.
#include <stdint.h>
#include <string.h>
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));  // of truth values, all bits alike, and of integers
typedef uint32_t Word __attribute__((vector_size(4 * LANES)));
typedef uint64_t Words __attribute__((vector_size(4 * LANES)));  // of two neighbours each, the even one below
typedef uint8_t Bytes __attribute__((vector_size(LANES)));
// multiply_add: a * b + c, rounded once where the processor can. any: whether a bit is set. even_products: of words 0,
// 2, 4, …
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_vfmaddps512_mask) && \
    __has_builtin(__builtin_ia32_sqrtps512_mask) && __has_builtin(__builtin_ia32_pmuludq512_mask) && \
    __has_builtin(__builtin_ia32_ptestmd512)
constexpr unsigned short EVERY = 0xffff;
constexpr int ROUNDING = 4;  // as the thread has set it
typedef long long Longs __attribute__((vector_size(4 * LANES)));
static inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return __builtin_ia32_vfmaddps512_mask(a, b, c, EVERY, ROUNDING);
}
static inline Vector root(Vector a) { return __builtin_ia32_sqrtps512_mask(a, a, EVERY, ROUNDING); }
static inline bool any(Mask m) { return __builtin_ia32_ptestmd512(m, m, EVERY); }
static inline Words even_products(Word a, Word b) {
  return (Words)__builtin_ia32_pmuludq512_mask((Mask)a, (Mask)b, Longs{}, EVERY & 0xff);
}
#elif defined(__AVX512F__)
#include <immintrin.h>
static inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
static inline Vector root(Vector a) { return (Vector)_mm512_sqrt_ps((__m512)a); }
static inline bool any(Mask m) { return _mm512_test_epi32_mask((__m512i)m, (__m512i)m); }
static inline Words even_products(Word a, Word b) { return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
#else
static inline bool any(Mask m) {
  int32_t found = 0;
  for (int i = 0; i < LANES; i++) found |= m[i];
  return found;
}
#if defined(__AVX2__) && defined(__FMA__)
#if __has_builtin(__builtin_ia32_vfmaddps256) && __has_builtin(__builtin_ia32_sqrtps256) && \
    __has_builtin(__builtin_ia32_pmuludq256)
static inline Vector multiply_add(Vector a, Vector b, Vector c) { return __builtin_ia32_vfmaddps256(a, b, c); }
static inline Vector root(Vector a) { return __builtin_ia32_sqrtps256(a); }
static inline Words even_products(Word a, Word b) { return (Words)__builtin_ia32_pmuludq256((Mask)a, (Mask)b); }
#else
#include <immintrin.h>
static inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
static inline Vector root(Vector a) { return (Vector)_mm256_sqrt_ps((__m256)a); }
static inline Words even_products(Word a, Word b) { return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
#endif
#else
static inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
static inline Vector root(Vector a) {
  for (int i = 0; i < LANES; i++) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
static inline Words even_products(Word a, Word b) {
  Words c = {};
  for (int i = 0; i < LANES / 2; i++) c[i] = (uint64_t)a[2 * i] * b[2 * i];
  return c;
}
#endif
#endif
