// The squared distance (n, COUNT) from places (2, COUNT) to the nearest of points x, y (n, k). See clearance.py.

#include <cstdint>

extern "C" void nearest(int64_t n, int64_t k, const float *x, const float *y, const float *places, float *found) {
#pragma omp parallel for schedule(dynamic, 64) if (n > 2048)
  for (int64_t e = 0; e < n; e++) {
    float best[COUNT];
    for (int q = 0; q < COUNT; q++) best[q] = 1e12f;
    for (int64_t p = e * k; p < (e + 1) * k; p++)
      for (int q = 0; q < COUNT; q++) {
        const float dx = places[q] - x[p], dy = places[COUNT + q] - y[p], apart = dx * dx + dy * dy;
        best[q] = apart < best[q] ? apart : best[q];
      }
    for (int q = 0; q < COUNT; q++) found[e * COUNT + q] = best[q];
  }
}
