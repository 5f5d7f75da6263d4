// Functions of vectors that fused graphs are made of. Every lane's result depends on that lane alone.
static inline Vector load(const float *p) { Vector v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, Vector v) { memcpy(p, &v, sizeof v); }
static inline void store(uint8_t *p, Mask m) {
  Bytes b = __builtin_convertvector((Word)m & 1u, Bytes);
  memcpy(p, &b, sizeof b);
}
static inline Vector all(float x) { return x - Vector{}; }
// NaN if either is; the test of a costs nothing where a is a constant.
static inline Vector minimum(Vector a, Vector b) { return (a <= b) | (a != a) ? a : b; }
static inline Vector maximum(Vector a, Vector b) { return (a >= b) | (a != a) ? a : b; }
static inline Vector absolute(Vector a) { return (Vector)((Mask)a & 0x7fffffff); }
// exp by range reduction and the polynomial of the Cephes library (expf), relative error below 2e-7. Two to the
// n is applied in halves, so that the result overflows to infinity and underflows to 0 where it should.
static inline Vector power_of_two(Mask n) { return (Vector)((n + 127) << 23); }
static inline Vector exponential(Vector x) {
  Vector y = minimum(all(89.f), maximum(all(-104.f), x));
  Vector n = multiply_add(y, all(1.44269504f), all(12582912.f)) - 12582912.f;
  Vector r = multiply_add(n, all(-0.693359375f), y);
  r = multiply_add(n, all(2.12194440e-4f), r);
  Vector p = multiply_add(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
  p = multiply_add(p, r, all(8.3334519073e-3f));
  p = multiply_add(p, r, all(4.1665795894e-2f));
  p = multiply_add(p, r, all(1.6666665459e-1f));
  p = multiply_add(p, r, all(5.0000001201e-1f));
  p = multiply_add(p * r, r, r) + 1.f;
  Mask whole = __builtin_convertvector(n, Mask), half = whole >> 1;
  return x == x ? p * power_of_two(half) * power_of_two(whole - half) : x;
}
static inline Vector hyperbolic_tangent(Vector x) {
  Vector small = x * (1.f - x * x * (1.f / 3.f - x * x * (2.f / 15.f)));
  Vector large = 1.f - 2.f / (exponential(2.f * x) + 1.f);
  return absolute(x) < 0.04f ? small : large;
}
// log by the polynomial of the Cephes library (logf), relative error below 2e-7.
static inline Vector logarithm(Vector x) {
  Mask tiny = x < 1.17549435e-38f;  // subnormal
  Mask bits = (Mask)(tiny ? x * 33554432.f : x) - 0x3f3504f3;  // so that the mantissa is sqrt(1/2) to sqrt(2)
  Vector f = (Vector)((bits & 0x7fffff) + 0x3f3504f3) - 1.f;
  Vector e = __builtin_convertvector(bits >> 23, Vector) - (tiny ? all(25.f) : Vector{});
  Vector p = multiply_add(all(7.0376836292e-2f), f, all(-1.1514610310e-1f));
  p = multiply_add(p, f, all(1.1676998740e-1f));
  p = multiply_add(p, f, all(-1.2420140846e-1f));
  p = multiply_add(p, f, all(1.4249322787e-1f));
  p = multiply_add(p, f, all(-1.6668057665e-1f));
  p = multiply_add(p, f, all(2.0000714765e-1f));
  p = multiply_add(p, f, all(-2.4999993993e-1f));
  p = multiply_add(p, f, all(3.3333331174e-1f));
  Vector z = f * f;
  Vector y = multiply_add(e, all(-2.12194440e-4f), p * f * z);
  y = f + multiply_add(z, all(-0.5f), y);
  y = multiply_add(e, all(0.693359375f), y);
  y = x < __builtin_inff() ? y : x;  // infinite, not a number
  return x > 0.f ? y : x == 0.f ? all(-__builtin_inff()) : all(__builtin_nanf(""));
}
// sin and cos: the angle less whole quarter turns, in three parts, and the polynomials of the Cephes library (sinf,
// cosf). Up to 8192 rad the error is below 1e-7; the standard library does what lies beyond.
struct Quarter { Vector rest; Mask number; };
static inline Quarter quarter_turns(Vector x) {
  Vector n = multiply_add(x, all(0.636619772f), all(12582912.f)) - 12582912.f;
  Vector r = multiply_add(n, all(-1.5703125f), x);
  r = multiply_add(n, all(-4.837512969970703125e-4f), r);
  r = multiply_add(n, all(-7.549789954891882e-8f), r);
  return {r, __builtin_convertvector(n, Mask)};
}
static inline Vector sine_near_0(Vector r, Vector z) {
  Vector p = multiply_add(all(-1.9515295891e-4f), z, all(8.3321608736e-3f));
  p = multiply_add(p, z, all(-1.6666654611e-1f));
  return multiply_add(p * z, r, r);
}
static inline Vector cosine_near_0(Vector z) {
  Vector p = multiply_add(all(2.443315711809948e-5f), z, all(-1.388731625493765e-3f));
  p = multiply_add(p, z, all(4.166664568298827e-2f));
  return multiply_add(p * z, z, multiply_add(z, all(-0.5f), all(1.f)));
}
static inline Vector turned(Vector x, Quarter q, int ahead, float (*exactly)(float)) {
  Vector z = q.rest * q.rest;
  Mask number = q.number + ahead;
  Vector y = number & 1 ? cosine_near_0(z) : sine_near_0(q.rest, z);
  y = (Vector)((Mask)y ^ ((number & 2) << 30));
  Mask far = absolute(x) > 8192.f;
  if (__builtin_expect(any(far), 0))
    for (int i = 0; i < LANES; i++) y[i] = far[i] ? exactly(x[i]) : y[i];
  return y;
}
static float exact_sine(float x) { return __builtin_sinf(x); }
static float exact_cosine(float x) { return __builtin_cosf(x); }
static inline Vector sine(Vector x) { return turned(x, quarter_turns(x), 0, exact_sine); }
static inline Vector cosine(Vector x) { return turned(x, quarter_turns(x), 1, exact_cosine); }
// Philox4x32-10 (Salmon et al. 2011, Parallel Random Numbers: As Easy as 1, 2, 3): four numbers from 0 to below 1 for
// a key and a counter, which are whole numbers.
static inline Word high_half(Word a, uint32_t factor) {
  Word f = Word{} + factor, odd = (Word)((Words)a >> 32);
  Words even = even_products(a, f) >> 32;
  return (Word)(even | (even_products(odd, f) & 0xffffffff00000000u));
}
static inline Word whole(Vector x) { return (Word)__builtin_convertvector(x, Mask); }
static inline Vector part_of_1(Word w) { return __builtin_convertvector((Mask)(w >> 8), Vector) * 5.9604644775390625e-8f; }
static inline void random(Vector *to, Vector key0, Vector key1, Vector c0, Vector c1, Vector c2, Vector c3) {
  Word k0 = whole(key0), k1 = whole(key1), a = whole(c0), b = whole(c1), c = whole(c2), d = whole(c3);
  for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
    Word first = high_half(a, 0xd2511f53u), second = high_half(c, 0xcd9e8d57u);
    Word lower = a * 0xd2511f53u;
    a = second ^ b ^ k0, b = c * 0xcd9e8d57u;
    c = first ^ d ^ k1, d = lower;
  }
  to[0] = part_of_1(a), to[1] = part_of_1(b), to[2] = part_of_1(c), to[3] = part_of_1(d);
}
