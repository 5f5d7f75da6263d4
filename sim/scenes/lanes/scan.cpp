// Ranges of a planar lidar to rectangles, such as vehicles; see scan.py.
#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr float PI = 3.14159265f;

struct Lidar {
  int beams;
  float first, step, low, high;  // angles of the first beam and between beams, rad; least and greatest range, m
};

// Where a ray from the sensor enters a rectangle (m, far if it does not): between two pairs of parallel sides.
static float enters(float x, float y, float dx, float dy, float l, float w) {
  float from = 0, to = 1e9f;
  for (int axis = 0; axis < 2; axis++) {
    const float p = axis ? y : x, d = axis ? dy : dx, half = axis ? w : l;
    if (std::fabs(d) < 1e-9f) {
      if (std::fabs(p) > half) return 1e9f;
      continue;
    }
    const float a = (-half - p) / d, b = (half - p) / d;
    from = std::max(from, std::min(a, b)), to = std::min(to, std::max(a, b));
  }
  return from <= to ? from : 1e9f;
}

// places (m, 3): of sensors; rectangles (m, k, 3): x, y (m), heading (rad), NaN where there is none; out (m, beams).
extern "C" void scan(int64_t m, int k, const float *places, const float *rectangles, float length, float width,
                     const Lidar *lidar, float *out, int threads) {
  const float l = length / 2, w = width / 2, round = std::hypot(l, w), whole = 2 * PI / lidar->step;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (threads > 1)
  for (int64_t e = 0; e < m; e++) {
    const float *at = places + 3 * e;
    float *range = out + e * lidar->beams;
    std::fill(range, range + lidar->beams, lidar->high);
    for (int i = 0; i < k; i++) {
      const float *box = rectangles + (e * k + i) * 3;
      if (std::isnan(box[0])) continue;
      const float x = box[0] - at[0], y = box[1] - at[1], distance = std::hypot(x, y);
      if (distance - round > lidar->high) continue;
      // beams that can meet the circle around it
      const float half = distance > round ? std::asin(round / distance) : PI, angle = std::atan2(y, x) - at[2];
      const float c = std::cos(box[2]), s = std::sin(box[2]);
      const float middle = (angle - lidar->first) / lidar->step, reach = half / lidar->step;
      for (int turn = -2; turn <= 2; turn++) {
        const int from = std::max((int)std::ceil(middle - reach + turn * whole), 0);
        const int to = std::min((int)std::floor(middle + reach + turn * whole), lidar->beams - 1);
        for (int b = from; b <= to; b++) {
          const float ray = at[2] + lidar->first + b * lidar->step, rc = std::cos(ray), rs = std::sin(ray);
          range[b] = std::min(range[b], enters(-x * c - y * s, x * s - y * c, rc * c + rs * s, rs * c - rc * s, l, w));
        }
      }
    }
    for (int b = 0; b < lidar->beams; b++) range[b] = std::max(range[b], lidar->low);
  }
}
