// Closed tracks of many environments: making them, and what a car on each measures. See sim/scenes/tracks/__init__.py.
//
// Points of an environment are neighbours in memory, (n, P, 3) with z = 0; what a car measures is (numbers, n).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr float PI = 3.14159265358979f;
constexpr int P = POINTS;         // of the centre line and of each wall
constexpr int FINE = 4 * P;       // of the spline, before they are spread evenly
constexpr int NEAR = 16;          // points ahead and behind whose walls a car can touch
constexpr int SEARCHED = 8;       // points ahead and behind where the car may be after a step
constexpr int LANES = 16;         // environments that one thread writes at once
constexpr float FAR = 1e9f;

struct Point { float x, y, z; };

// atan2 within 3e-7 rad, without branches (Hastings 1955; 4.4.49 of Abramowitz and Stegun)
static inline float angle_of(float y, float x) {
  const float ax = std::fabs(x), ay = std::fabs(y), high = std::max(ax, ay), low = std::min(ax, ay);
  const float u = low / std::max(high, 1e-30f), s = u * u;
  float f = 0.0028662257f;
  f = f * s - 0.0161657367f;
  f = f * s + 0.0429096138f;
  f = f * s - 0.0752896400f;
  f = f * s + 0.1065626393f;
  f = f * s - 0.1420889944f;
  f = f * s + 0.1999355085f;
  f = f * s - 0.3333314528f;
  f = u + u * s * f;
  f = ay > ax ? 0.5f * PI - f : f;
  f = x < 0 ? PI - f : f;
  return y < 0 ? -f : f;
}

// A number of at most a million, or 0: a car may have been put anywhere, or diverge. By its bits, for the compiler is told
// that all numbers are finite.
static inline float sane(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (bits & 0x7fffffffu) <= 0x49742400u ? v : 0;
}

// The whole part of a place, from 0 to count - 1.
static inline int index_of(float place, int count) { return std::min(std::max((int)place, 0), count - 1); }

// As std::hypot, without a call.
static inline float length_of(float x, float y) { return (float)std::sqrt((double)x * x + (double)y * y); }

// --- making tracks ------------------------------------------------------------------------------------------------

// P points in a chain that is closed: MARGIN of them before the first and behind the last are those of the other end.
constexpr int MARGIN = 8;
struct Chain {
  alignas(64) float x[P + 2 * MARGIN], y[P + 2 * MARGIN];
  void close() {
    for (int k = 0; k < MARGIN; k++) {
      x[k] = x[k + P], y[k] = y[k + P];
      x[P + MARGIN + k] = x[MARGIN + k], y[P + MARGIN + k] = y[MARGIN + k];
    }
  }
};

// A closed chain of points at places along it, as P points at even distances; returns its length.
static float evenly(int points, const float *x, const float *y, const float *along, Chain &centre) {
  const float length = along[points];
  int before[P];
  for (int p = 0, i = 0; p < P; p++) {
    const float at = length * p / P;
    while (i < points - 1 && along[i + 1] < at) i++;
    before[p] = i;
  }
  for (int p = 0; p < P; p++) {
    const int i = before[p];
    const float t = (length * p / P - along[i]) / std::max(along[i + 1] - along[i], 1e-9f);
    centre.x[MARGIN + p] = x[i] + t * (x[i + 1] - x[i]);
    centre.y[MARGIN + p] = y[i] + t * (y[i + 1] - y[i]);
  }
  centre.close();
  return length;
}

// The closed uniform cubic B-spline of control points in polar coordinates, as P points at even distances.
static float spread(const float *shape, int knots, float size, float direction, float part, Chain &centre) {
  float cx[64 + 3], cy[64 + 3], fx[FINE + 1], fy[FINE + 1], apart[FINE + 1], along[FINE + 1];
  float mean = 0;
  for (int k = 0; k < knots; k++) mean += shape[k] / knots;
  for (int k = 0; k < knots; k++) {
    const float radius = size * (0.2f + 0.8f * (mean + part * (shape[k] - mean)));
    const float turn = 2 * PI * (k + part * 0.7f * (shape[knots + k] - 0.5f)) / knots;
    cx[k] = radius * std::cos(turn);
    cy[k] = (direction < 0 ? -1 : 1) * radius * std::sin(turn);
  }
  for (int k = 0; k < 3; k++) cx[knots + k] = cx[k % knots], cy[knots + k] = cy[k % knots];
  for (int i = 0; i < FINE; i++) {
    const float place = (float)i * knots / FINE;
    const int k = (int)place;
    const float t = place - k, r = 1 - t;
    const float w[] = {r * r * r / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * r * r * r - 6 * r * r + 4) / 6, t * t * t / 6};
    fx[i] = fy[i] = 0;
    for (int j = 0; j < 4; j++) {
      fx[i] += w[j] * cx[k + j];
      fy[i] += w[j] * cy[k + j];
    }
  }
  fx[FINE] = fx[0], fy[FINE] = fy[0];
  for (int i = 0; i < FINE; i++) apart[i + 1] = length_of(fx[i + 1] - fx[i], fy[i + 1] - fy[i]);
  along[0] = 0;
  for (int i = 1; i <= FINE; i++) along[i] = along[i - 1] + apart[i];
  return evenly(FINE, fx, fy, along, centre);
}

// Whether the bend at a point is tighter than a radius: the circle through it and points on either side (4 area / abc).
static inline bool tighter(const Chain &centre, int p, float radius) {
  const float *x = centre.x + MARGIN + p, *y = centre.y + MARGIN + p;
  const float ux = x[0] - x[-3], uy = y[0] - y[-3], vx = x[3] - x[0], vy = y[3] - y[0], wx = x[3] - x[-3], wy = y[3] - y[-3];
  const float sides = (ux * ux + uy * uy) * (vx * vx + vy * vy) * (wx * wx + wy * wy), area = ux * vy - uy * vx;
  return 4 * area * area * radius * radius > sides;
}

// Make bends wider than a radius by smoothing around those that are not; returns the new length.
static float widen(Chain &centre, float radius) {
  float fx[P + 1], fy[P + 1], apart[P + 1], along[P + 1], length = 0;
  for (int round = 0; round < 60; round++) {
    int tight[P + 2 * MARGIN], any = 0;
    for (int p = 0; p < P; p++) tight[MARGIN + p] = tighter(centre, p, 1.05f * radius);
    for (int p = 0; p < P; p++) any |= tight[MARGIN + p];
    for (int k = 0; k < MARGIN; k++) tight[k] = tight[k + P], tight[P + MARGIN + k] = tight[MARGIN + k];
    for (int p = 0; p < P; p++) {
      const float *x = centre.x + MARGIN + p, *y = centre.y + MARGIN + p;
      int near = 0;
      for (int k = -6; k <= 6; k++) near |= tight[MARGIN + p + k];
      const float w = near ? 0.7f : 0;
      fx[p] = x[0] + w * (x[-4] / 6 + x[-2] / 6 + x[-1] / 6 + x[1] / 6 + x[2] / 6 + x[4] / 6 - x[0]);
      fy[p] = y[0] + w * (y[-4] / 6 + y[-2] / 6 + y[-1] / 6 + y[1] / 6 + y[2] / 6 + y[4] / 6 - y[0]);
    }
    fx[P] = fx[0], fy[P] = fy[0];
    for (int p = 0; p < P; p++) apart[p + 1] = length_of(fx[p + 1] - fx[p], fy[p + 1] - fy[p]);
    along[0] = 0;
    for (int p = 1; p <= P; p++) along[p] = along[p - 1] + apart[p];
    length = evenly(P, fx, fy, along, centre);
    if (!any) break;
  }
  return length;
}

// Whether a track of this width fits: bends wide enough for the inner wall, and nothing meets another part of it.
static bool fits(const Chain &centre, float length, float width, float inside) {
  const float step = length / P, radius = 0.5f * width + inside, apart = width + 0.3f;
  for (int p = 0; p < P; p++) {
    if (tighter(centre, p, radius)) return false;
  }
  const int least = index_of(PI * radius / step, P) + 1;
  const float *x = centre.x + MARGIN, *y = centre.y + MARGIN;
  for (int p = 0; p < P; p += 2)
    for (int q = p + least; q < P && q - p <= P - least; q += 2) {
      const float dx = x[q] - x[p], dy = y[q] - y[p];
      if (dx * dx + dy * dy < apart * apart) return false;
    }
  return true;
}

extern "C" void make(int64_t n, const int64_t *ids, int knots, const float *shapes, const float *sizes,
                     const float *widths, const float *directions, float inside, Point *centres, Point *lefts,
                     Point *rights, float *lengths) {
#pragma omp parallel for schedule(dynamic, 4) if (n > 8)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    Point *centre = centres + e * P, *left = lefts + e * P, *right = rights + e * P;
    Chain chain;
    float length = 0, part = 1.0f;
    for (int trial = 0; trial < 40; trial++, part *= trial < 38 ? 0.9f : 0.0f) {
      spread(shapes + m * 2 * knots, knots, sizes[m], directions[m], part, chain);
      length = widen(chain, 0.5f * widths[m] + inside);
      if (fits(chain, length, widths[m], inside)) break;
    }
    for (int p = 0; p < P; p++) centre[p] = Point{chain.x[MARGIN + p], chain.y[MARGIN + p], 0};
    for (int p = 0; p < P; p++) {
      const Point a = centre[(p + P - 1) % P], b = centre[(p + 1) % P];
      const float tx = b.x - a.x, ty = b.y - a.y, half = 0.5f * widths[m] / std::max(length_of(tx, ty), 1e-9f);
      left[p] = Point{centre[p].x - half * ty, centre[p].y + half * tx, 0};
      right[p] = Point{centre[p].x + half * ty, centre[p].y - half * tx, 0};
    }
    lengths[e] = length;
  }
}

// --- scans --------------------------------------------------------------------------------------------------------

struct Lidar {
  int beams;
  float first, step, low, high;  // angles of the first beam and between beams, rad; least and greatest range, m
};

struct Walls {
  alignas(64) float x[2][P + 1], y[2][P + 1], turn[2][P + 1];  // in the sensor's frame; turn in beams
};

// A wall's vertices in order give every beam between two of them to the segment between. Only the side of a wall that
// faces the track is seen. No beam is asked whether it meets a segment: each segment knows which beams it can meet.
static void draw(const Walls &walls, const Lidar &lidar, const float *cosine, const float *sine, float *range) {
  const float whole = 2 * PI / lidar.step;
  const int last = lidar.beams - 1;
  const int above = whole - (PI + lidar.first) / lidar.step <= last;  // angles may be counted from 0 as well as from −π
  for (int side = 0; side < 2; side++) {
    const float *x = walls.x[side], *y = walls.y[side], *turn = walls.turn[side];
    alignas(64) float low[P], high[P];
    for (int p = 0; p < P; p++) {
      const float a = side ? turn[p] : turn[p + 1], b = side ? turn[p + 1] : turn[p];  // free side on the inside
      float d = b - a;
      d = d > 0.5f * whole ? d - whole : d;
      d = d < -0.5f * whole ? d + whole : d;
      low[p] = a;
      high[p] = d > 0 ? (b < a ? b + whole : b) : a;
    }
    // few segments are met: the list of those that may be, without branches that depend on which
    int may[P], met[P], count = 0;
    for (int p = 0; p < P; p++) {
      may[p] = 0;
      for (int turns = -1; turns <= 1; turns++) {
        const float from = std::max(std::ceil(low[p] + turns * whole), 0.0f);
        may[p] |= from < std::min(std::ceil(high[p] + turns * whole), last + 1.0f);
      }
    }
    for (int p = 0; p < P; p++) {
      met[count] = p;
      count += may[p];
    }
    for (int m = 0; m < count; m++) {
      const int p = met[m];
      for (int turns = high[p] >= whole ? -1 : 0; turns <= above; turns++) {
        const int from = std::max((int)std::ceil(low[p] + turns * whole), 0);
        const int to = std::min((int)std::ceil(high[p] + turns * whole) - 1, last);
        if (to < from) continue;
        const float ex = x[p + 1] - x[p], ey = y[p + 1] - y[p], k = ey * x[p] - ex * y[p];
        const float px = k < 0 ? -ey : ey, py = k < 0 ? ex : -ex, distance = std::fabs(k);
        for (int i = from; i <= to; i++) {
          const float along = px * cosine[i] + py * sine[i];
          range[i] = std::min(range[i], distance / std::max(along, 1e-9f));
        }
      }
    }
  }
  for (int i = 0; i <= last; i++) range[i] = std::min(std::max(range[i], lidar.low), lidar.high);
}

// --- cars on tracks -----------------------------------------------------------------------------------------------

struct Body { float middle, length, width; };  // middle: of the body, forward of the car's reference point, m

// Least distance between a segment and the car's rectangle, 0 if they meet.
static inline float gap(float ax, float ay, float bx, float by, float hl, float hw) {
  const float mx = 0.5f * (ax + bx), my = 0.5f * (ay + by), ex = 0.5f * (bx - ax), ey = 0.5f * (by - ay);
  const bool meets = std::fabs(mx) <= hl + std::fabs(ex) && std::fabs(my) <= hw + std::fabs(ey) &&
                     std::fabs(mx * ey - my * ex) <= hl * std::fabs(ey) + hw * std::fabs(ex);
  const float per = 1.0f / std::max(ex * ex + ey * ey, 1e-20f);
  float least = FAR;
  for (int corner = 0; corner < 4; corner++) {
    const float cx = corner & 1 ? hl : -hl, cy = corner & 2 ? hw : -hw;
    const float t = std::min(std::max(((cx - mx) * ex + (cy - my) * ey) * per, -1.0f), 1.0f);
    const float dx = mx + t * ex - cx, dy = my + t * ey - cy;
    least = std::min(least, dx * dx + dy * dy);
  }
  const float adx = std::max(std::fabs(ax) - hl, 0.0f), ady = std::max(std::fabs(ay) - hw, 0.0f);
  least = std::min(least, adx * adx + ady * ady);
  return meets ? 0 : std::sqrt(least);
}

static inline int wrapped(int p) { return p < 0 ? p + P : p >= P ? p - P : p; }

// What is measured of one car, into out: progress this time (m), way along the track (m), lateral offset (m, left is
// positive), heading relative to the track (rad), clearance (m), and the places ahead (x, y in the car's frame).
static void locate(float x, float y, float heading, float station, const Point *centre, const Point *left,
                   const Point *right, float length, float width, const Body &body, const float *ahead, int aheads,
                   float *out) {
  const float step = length / P;
  const int guess = wrapped(index_of(station / step, P + 1));
  constexpr int SPAN = 2 * SEARCHED + 1;
  float px[SPAN + 1], py[SPAN + 1], part[SPAN], apart[SPAN];
  for (int k = 0; k <= SPAN; k++) {
    const Point a = centre[wrapped(wrapped(guess - SEARCHED + k))];
    px[k] = a.x;
    py[k] = a.y;
  }
  for (int k = 0; k < SPAN; k++) {
    const float ex = px[k + 1] - px[k], ey = py[k + 1] - py[k], size = std::max(ex * ex + ey * ey, 1e-12f);
    part[k] = std::min(std::max(((x - px[k]) * ex + (y - py[k]) * ey) / size, 0.0f), 1.0f);
    const float dx = x - px[k] - part[k] * ex, dy = y - py[k] - part[k] * ey;
    apart[k] = dx * dx + dy * dy;
  }
  int nearest = 0;
  for (int k = 1; k < SPAN; k++) nearest = apart[k] < apart[nearest] ? k : nearest;
  const float ex = px[nearest + 1] - px[nearest], ey = py[nearest + 1] - py[nearest];
  const float per = 1.0f / std::sqrt(std::max(ex * ex + ey * ey, 1e-12f)), tx = ex * per, ty = ey * per;
  const float place = (wrapped(guess - SEARCHED + nearest) + part[nearest]) * step;
  const float side = tx * (y - py[nearest] - part[nearest] * ey) - ty * (x - px[nearest] - part[nearest] * ex);
  const float offset = std::copysign(std::sqrt(apart[nearest]), side);
  float moved = place - station;
  moved = moved > 0.5f * length ? moved - length : moved < -0.5f * length ? moved + length : moved;
  const float c = std::cos(heading), s = std::sin(heading);
  out[0] = moved;
  out[1] = place >= length ? place - length : place;
  out[2] = offset;
  out[3] = angle_of(tx * s - ty * c, tx * c + ty * s);
  float least = std::fabs(offset) < 0.5f * width ? FAR : 0;
  const int here = index_of(place / step, P + 1);
  for (int side = 0; side < 2; side++) {
    const Point *wall = side ? right : left;
    float bx[2 * NEAR + 1], by[2 * NEAR + 1], found[2 * NEAR];
    for (int k = 0; k <= 2 * NEAR; k++) {
      const Point w = wall[wrapped(wrapped(here - NEAR + k))];
      bx[k] = c * (w.x - x) + s * (w.y - y) - body.middle;
      by[k] = c * (w.y - y) - s * (w.x - x);
    }
    for (int k = 0; k < 2 * NEAR; k++)
      found[k] = gap(bx[k], by[k], bx[k + 1], by[k + 1], 0.5f * body.length, 0.5f * body.width);
    for (int k = 0; k < 2 * NEAR; k++) least = std::min(least, found[k]);
  }
  out[4] = std::min(least, 10.0f);
  for (int a = 0; a < aheads; a++) {
    const float turns = (place + ahead[a]) / length, at = P * (turns - std::floor(turns));
    const int p = index_of(at, P);
    const Point u = centre[p], v = centre[wrapped(p + 1)];
    const float t = at - p, dx = u.x + t * (v.x - u.x) - x, dy = u.y + t * (v.y - u.y) - y;
    out[5 + 2 * a] = c * dx + s * dy;
    out[6 + 2 * a] = c * dy - s * dx;
  }
}

// For cars e (all, or ids): pose rows x, y, heading (3, n); station, lidar's forward offset and yaw (n each).
extern "C" void measure(int64_t n, int64_t m, const int64_t *ids, const float *pose, const float *station,
                        const float *forward, const float *yaw, const float *widths, const Point *centres,
                        const Point *lefts, const Point *rights, const float *lengths, const Lidar *lidar,
                        const Body *body, const float *ahead, int aheads, float *located, float *ranges, int threads) {
  const int beams = lidar->beams, numbers = 5 + 2 * aheads;
  float *cosine = new float[2 * beams], *sine = cosine + beams;
  for (int i = 0; i < beams; i++) {
    cosine[i] = std::cos(lidar->first + i * lidar->step);
    sine[i] = std::sin(lidar->first + i * lidar->step);
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
  for (int64_t begin = 0; begin < m; begin += LANES) {
    const int here = (int)std::min<int64_t>(LANES, m - begin);
    static thread_local float *room = nullptr;
    static thread_local int size = 0;
    if (size < LANES * (beams + numbers)) {
      delete[] room;
      room = new float[size = LANES * (beams + numbers)];
    }
    float *found = room + LANES * beams;
    for (int l = 0; l < here; l++) {
      const int64_t e = ids ? ids[begin + l] : begin + l;
      const Point *centre = centres + e * P, *left = lefts + e * P, *right = rights + e * P;
      const float x = sane(pose[e]), y = sane(pose[n + e]), heading = sane(pose[2 * n + e]);
      locate(x, y, heading, sane(station[e]), centre, left, right, lengths[e], widths[e], *body, ahead, aheads,
             found + l * numbers);
      const float ahead_of = sane(forward[e]), turned = heading + sane(yaw[e]);
      const float c = std::cos(heading), s = std::sin(heading), sx = x + c * ahead_of, sy = y + s * ahead_of;
      const float cy = std::cos(turned), sy2 = std::sin(turned), per = 1.0f / lidar->step;
      Walls walls;
      for (int side = 0; side < 2; side++) {
        const Point *wall = side ? right : left;
        float *wx = walls.x[side], *wy = walls.y[side], *turn = walls.turn[side];
        for (int p = 0; p < P; p++) {
          const float dx = wall[p].x - sx, dy = wall[p].y - sy;
          wx[p] = cy * dx + sy2 * dy;
          wy[p] = cy * dy - sy2 * dx;
        }
        for (int p = 0; p < P; p++) turn[p] = (angle_of(wy[p], wx[p]) - lidar->first) * per;
        wx[P] = wx[0];
        wy[P] = wy[0];
        turn[P] = turn[0];
      }
      float *range = room + l * beams;
      for (int i = 0; i < beams; i++) range[i] = FAR;
      draw(walls, *lidar, cosine, sine, range);
    }
    for (int l = 0; l < here; l++) {
      const int64_t e = ids ? ids[begin + l] : begin + l;
      for (int k = 0; k < numbers; k++) located[k * n + e] = found[l * numbers + k];
    }
    for (int i = 0; i < beams; i++)
      for (int l = 0; l < here; l++) ranges[i * n + (ids ? ids[begin + l] : begin + l)] = room[l * beams + i];
  }
  delete[] cosine;
}
