// Closed lanes with sharp corners for many environments: polygons whose corners are rounded little. See __init__.py.
//
// The centre line is a polygon with arcs at its corners. The wall on the inside of a corner is an arc around the same
// middle; that on the outside is anything from an arc around it to two straight walls that meet. Lengths for which no
// unit is given are in widths of the lane. SHARPEST (rad) is by what a corner turns at most, INNER and ROUNDEST the least and
// greatest radius of the inner wall of corners.

#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr float PI = 3.14159265358979f;
constexpr int P = POINTS;
constexpr int MOST = 24;  // corners
constexpr int TRIALS = 28;
constexpr float APART = 0.1f;  // between parts of a lane
constexpr float LONGEST = 7;  // lane, in sizes

// The whole part of a number, from 0 to count - 1: a file may tell any shape.
static inline int index_of(float place, int count) { return std::min(std::max((int)place, 0), count - 1); }

struct Point { float x, y, z; };
struct Polygon { int count; float x[MOST], y[MOST]; };
struct Lane { float x[P], y[P], tx[P], ty[P], half[2][P], length; };  // half: from the centre to the left, right wall

// Corners around a middle, as those of a regular polygon for part = 0.
static void star(const float *u, float size, float part, Polygon &polygon) {
  const int count = polygon.count = 3 + index_of(6 * u[21], 6);
  for (int k = 0; k < count; k++) {
    const float radius = size * (0.85f + part * 0.8f * (u[k] - 0.5f));
    const float turn = 2 * PI * (k + part * 0.7f * (u[8 + k] - 0.5f)) / count;
    polygon.x[k] = radius * std::cos(turn);
    polygon.y[k] = radius * std::sin(turn);
  }
}

// A rectangle, sheared, of whose corners some are cut out, with a bay between two parts of the lane in its first side;
// the first so many of these five are left out. `unit` is the radius of the centre line's corners.
static void rectangle(const float *u, float size, float unit, float width, float shear, int left_out, Polygon &polygon) {
  const float w = size * (1 + u[0]), h = size * (1 + u[1]), least = 2.3f * unit;
  const float sx[] = {0, w, w, 0}, sy[] = {0, 0, h, h}, dx[] = {1, -1, -1, 1}, dy[] = {1, 1, -1, -1};
  int count = 0;
  const auto add = [&](float x, float y) { polygon.x[count] = x + shear * y, polygon.y[count++] = y; };
  for (int k = 0; k < 4; k++) {
    const float px = least + std::max(0.5f * w - least, 0.0f) * u[2 + k], py = least + std::max(0.5f * h - least, 0.0f) * u[6 + k];
    if (k + 1 >= left_out && u[10 + k] < 0.35f) {
      const float cx = sx[k] + dx[k] * px, cy = sy[k] + dy[k] * py;
      const bool along = k % 2 == 0;  // corners 0 and 2 are come to along y
      add(along ? sx[k] : cx, along ? cy : sy[k]);
      add(cx, cy);
      add(along ? cx : sx[k], along ? sy[k] : cy);
    } else {
      add(sx[k], sy[k]);
    }
    if (k == 0 && left_out == 0 && u[14] < 0.6f) {
      const float across = std::max((1 + 1.3f * APART) * width, 2.02f * unit) + 0.3f * size * u[15] * u[15];
      const float deep = least + std::max(h - least - 1.3f * width, 0.0f) * u[16], from = std::max(w - across - 2 * least, 0.0f) * u[17] + least;
      add(from, 0), add(from, deep), add(from + across, deep), add(from + across, 0);
    }
  }
  polygon.count = count;
}

// The lane of a polygon, as P points at even distances; false if a corner is too sharp for it or a side too short.
static bool lane_of(const Polygon &polygon, float width, float radius, float outer, Lane &lane) {
  const int count = polygon.count;
  float side[MOST], tx[MOST], ty[MOST], turn[MOST], cut[MOST];
  for (int k = 0; k < count; k++) {
    const float x = polygon.x[(k + 1) % count] - polygon.x[k], y = polygon.y[(k + 1) % count] - polygon.y[k];
    side[k] = std::sqrt(x * x + y * y);
    tx[k] = x / side[k], ty[k] = y / side[k];
  }
  for (int k = 0; k < count; k++) {
    const int b = (k + count - 1) % count;
    turn[k] = std::atan2(tx[b] * ty[k] - ty[b] * tx[k], tx[b] * tx[k] + ty[b] * ty[k]);
    cut[k] = radius * std::tan(0.5f * std::fabs(turn[k]));
    if (std::fabs(turn[k]) > SHARPEST) return false;
  }
  float straight[MOST];
  lane.length = 0;
  for (int k = 0; k < count; k++) {
    straight[k] = side[k] - cut[k] - cut[(k + 1) % count];
    if (straight[k] < 0) return false;
    lane.length += straight[k] + radius * std::fabs(turn[k]);
  }
  // piece k: the arc at corner k, then the side behind it
  const float half = 0.5f * width, far = radius + half, round = outer * far;
  int k = 0;
  float before = 0;
  for (int p = 0; p < P; p++) {
    const float station = lane.length * p / P;
    while (k < count - 1 && station >= before + radius * std::fabs(turn[k]) + straight[k])
      before += radius * std::fabs(turn[k]) + straight[k], k++;
    const int b = (k + count - 1) % count;
    const float arc = radius * std::fabs(turn[k]), sign = turn[k] < 0 ? -1 : 1, s = station - before;
    lane.half[0][p] = lane.half[1][p] = half;
    if (s >= arc) {
      const float along = cut[k] + s - arc;
      lane.x[p] = polygon.x[k] + along * tx[k], lane.y[p] = polygon.y[k] + along * ty[k];
      lane.tx[p] = tx[k], lane.ty[p] = ty[k];
      continue;
    }
    const float turned = s / radius, c = std::cos(turned), q = sign * std::sin(turned);
    lane.tx[p] = c * tx[b] - q * ty[b], lane.ty[p] = q * tx[b] + c * ty[b];
    const float mx = polygon.x[k] - cut[k] * tx[b] - sign * radius * ty[b];
    const float my = polygon.y[k] - cut[k] * ty[b] + sign * radius * tx[b];
    lane.x[p] = mx + sign * radius * lane.ty[p], lane.y[p] = my - sign * radius * lane.tx[p];
    // along a ray from the arc's middle: a straight wall, or the arc that rounds where both meet
    const float whole = 0.5f * std::fabs(turn[k]), off = std::fabs(turned - whole);
    const float corner = (far - round) / std::cos(whole), across = corner * std::sin(off);
    float outside = far / std::cos(whole - off);
    if (std::tan(whole - off) * far > (far - round) * std::tan(whole))
      outside = corner * std::cos(off) + std::sqrt(std::max(round * round - across * across, 0.0f));
    lane.half[turn[k] < 0 ? 0 : 1][p] = outside - radius;
  }
  return true;
}

static Point wall(const Lane &lane, int p, int side) {
  const float half = side ? -lane.half[1][p] : lane.half[0][p];
  return Point{lane.x[p] - half * lane.ty[p], lane.y[p] + half * lane.tx[p], 0};
}

// Whether no wall of a lane is in another part of it.
static bool is_apart(const Lane &lane, float width, float radius) {
  const int least = index_of(PI * radius / (lane.length / P), P) + 1;
  for (int p = 0; p < P; p += 2)
    for (int side = 0; side < 2; side++) {
      const Point w = wall(lane, p, side);
      for (int k = least; k <= P - least; k++) {
        const int q = p + k < P ? p + k : p + k - P;
        const float dx = w.x - lane.x[q], dy = w.y - lane.y[q];
        const float there = lane.half[lane.tx[q] * dy - lane.ty[q] * dx < 0][q] + APART * width;
        if (dx * dx + dy * dy < there * there) return false;
      }
    }
  return true;
}

// `shapes` are 22 numbers of 0 to 1 of each. `widest` gets twice the greatest distance of a wall from the centre line.
extern "C" void make_corners(int64_t n, const int64_t *ids, const float *kinds, const float *shapes, const float *sizes,
                             const float *widths, const float *directions, float tightest,
                             Point *centres, Point *lefts, Point *rights, float *lengths, float *widest) {
#pragma omp parallel for schedule(static) if (n > 8)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    float u[22];
    for (int k = 0; k < 22; k++) u[k] = std::min(std::max(shapes[22 * m + k], 0.0f), 1.0f);
    const float width = widths[m], size = 0.55f * sizes[m] + width;
    const float inner = INNER + (ROUNDEST - INNER) * u[19] * u[19];
    const float radius = std::max((0.5f + inner) * width, tightest);
    Polygon polygon;
    Lane lane = {};
    for (int trial = 0; trial < TRIALS; trial++) {
      const bool last = trial == TRIALS - 1;
      const float part = last ? 0 : std::pow(0.88f, trial), larger = last ? 2 : 1 + 0.1f * (trial % 4);
      if (kinds[m] < 1.5f)
        star(u, size * (last ? 2 : 1), part, polygon);
      else
        rectangle(u, size * larger, radius, width, (u[18] - 0.5f) * part, std::min(trial / 4, 5), polygon);
      for (int k = 0; k < polygon.count; k++) polygon.y[k] *= directions[m] < 0 ? -1 : 1;
      const bool made = lane_of(polygon, width, radius, u[20], lane);
      if (made && (last || (lane.length < LONGEST * sizes[m] && is_apart(lane, width, radius)))) break;
    }
    lengths[e] = lane.length;
    widest[e] = 0;
    for (int p = 0; p < P; p++) {
      centres[e * P + p] = Point{lane.x[p], lane.y[p], 0};
      lefts[e * P + p] = wall(lane, p, 0);
      rights[e * P + p] = wall(lane, p, 1);
      widest[e] = std::max(widest[e], 2 * std::max(lane.half[0][p], lane.half[1][p]));
    }
  }
}
