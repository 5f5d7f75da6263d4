// What a lidar has seen, and the value of every cell on the way to the goal, of many robots. See seen_map.py, whose
// formulas in torch give the same numbers: these here are for training, where a batch of grids does not fit the cache.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int W = ACROSS, H = ALONG, N = W * H, PAD = W + 1;
constexpr float LOWEST = -2 * AWAY, DIAGONAL = 1.41421356f;

static inline float clamped(float x, float low, float high) { return std::min(std::max(x, low), high); }

struct Frame {
  float x, y, cosine, sine;
};

// Cells along and across of a place that is so much further in the world than x, y.
static inline void cells(const Frame &f, float x, float y, float further_x, float further_y, float cell, float *along,
                         float *across) {
  const float dx = (x - f.x) + further_x, dy = (y - f.y) + further_y;
  *along = (f.cosine * dx + f.sine * dy) / cell + 0.5f * (H - 1);
  *across = (f.cosine * dy - f.sine * dx) / cell + 0.5f * (W - 1);
}

// Calls do(cell, bilinear weight) for the cells about a point that are in the grid.
template <class Do>
static inline void about(float along, float across, Do apply) {
  if (!(along > -1 && along < H && across > -1 && across < W)) return;
  const int r = (int)std::floor(along), c = (int)std::floor(across);
  const float u = along - r, v = across - c;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      if (r + i >= 0 && r + i < H && c + j >= 0 && c + j < W)
        apply((r + i) * W + c + j, (i ? u : 1 - u) * (j ? v : 1 - v));
}

// The direction that a robot had when its scan was taken, and how much the scan counts.
struct Turned {
  float cosine, sine, slow;
  Turned(const float *at, float turning) {
    const float late = LATE * turning;
    slow = std::max(1 - std::fabs(turning) / SHARP, 0.0f);
    cosine = 1 - 2 * at[2] * at[2], sine = 2 * at[2] * at[3];
    const float turned = cosine + late * sine;
    sine -= late * cosine;
    cosine = turned;
  }
};

// What every second beam has hit.
static void hits(const Frame &frame, const float *at, const Turned &turned, const float *ranges, bool changed,
                 int64_t beams, const float *directions, float cell, float reach, float forward, float behind,
                 float *seen) {
  for (int64_t b = changed ? 0 : 1; b < beams; b += 2) {
    const float r = ranges[b], deep = r + behind;
    const float hit = GAIN * turned.slow * clamped(20 * (reach - r) - 1, 0, 1) * std::min(r / DENSE, 1.0f);
    const float x = deep * directions[b] + forward, y = deep * directions[beams + b];
    float along, across;
    cells(frame, at[0], at[1], turned.cosine * x - turned.sine * y, turned.sine * x + turned.cosine * y, cell, &along,
          &across);
    about(along, across, [&](int p, float weight) { seen[p] += hit * weight; });
  }
}

// What steps to the sides and across cost from every cell.
static void costs(const float *solid, const float *edge, float *cost, float *across_cost) {
  float wide[N + 2 * PAD] = {};
  for (int p = 0; p < N; p++) wide[PAD + p] = clamped((solid[p] - SOFT) / (HARD - SOFT), 0, 1);
  for (int p = 0; p < N; p++) {
    const float *s = wide + PAD + p, beside = std::max(std::max(s[-1], s[1]), std::max(s[-W], s[W]));
    cost[p] = CLEAR * beside + WALL * s[0] + edge[p];
    across_cost[p] = DIAGONAL * cost[p] + WALL * beside;
  }
}

// Cells from a goal, straight; it is brought into the grid.
static void straight(float along, float across, float *far) {
  along = clamped(along, 0, H - 1), across = clamped(across, 0, W - 1);
  for (int r = 0; r < H; r++)
    for (int c = 0; c < W; c++)
      far[r * W + c] = std::sqrt((along - r) * (along - r) + (across - c) * (across - c));
}

// Values some sweeps after those in memory, which there are if it is ``known``, with a goal so ``far`` from the cells.
static void swept(const float *value, bool known, const float *cost, const float *across_cost, const float *far,
                  float *found) {
  float wide[N + 2 * PAD], other[N + 2 * PAD], end[N];
  for (int p = 0; p < N; p++) {
    end[p] = -far[p] - AWAY * std::max(far[p] - 1, 0.0f);
    wide[PAD + p] = known ? KEPT * value[p] : -far[p];
  }
  for (float *grid : {wide, other})
    std::fill(grid, grid + PAD, LOWEST), std::fill(grid + PAD + N, grid + N + 2 * PAD, LOWEST);
  float *from = wide, *into = other;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    for (int p = 0; p < N; p++) {
      const float *v = from + PAD + p;
      const float beside = std::max(std::max(v[-1], v[1]), std::max(v[-W], v[W]));
      const float corner = std::max(std::max(v[-W - 1], v[-W + 1]), std::max(v[W - 1], v[W + 1]));
      const float best = std::max(beside - cost[p], corner - across_cost[p]);
      into[PAD + p] = std::max(std::max(best, LOWEST), end[p]);
    }
    std::swap(from, into);
  }
  for (int p = 0; p < N; p++) found[p] = from[PAD + p] / KEPT;
}

extern "C" void remember(int64_t n, int64_t beams, const float *frames, const float *occupied, const float *value,
                         const float *here, const float *goal, const float *scan, const float *pose,
                         const uint8_t *changed, const float *turning, const float *directions, const float *edge,
                         float cell, float reach, float forward, float kept, float behind, float *new_frames, float *new_occupied,
                         float *new_value) {
#pragma omp parallel for schedule(dynamic, 64) if (n > 2048)
  for (int64_t e = 0; e < n; e++) {
    const float *place = here + 2 * e, *to = goal + 2 * e, *at = pose + 4 * e, *ranges = scan + beams * e;
    const bool known = frames[5 * e] > 0.5f;
    Frame frame;
    if (known)
      memcpy(&frame, frames + 5 * e + 1, sizeof frame);
    else {
      const float dx = to[0] - place[0], dy = to[1] - place[1], length = std::sqrt(dx * dx + dy * dy + 1e-4f);
      frame = {0.5f * (place[0] + to[0]), 0.5f * (place[1] + to[1]), dx / length, dy / length};
    }
    new_frames[5 * e] = 1;
    memcpy(new_frames + 5 * e + 1, &frame, sizeof frame);

    float seen[N] = {};
    const Turned turned(at, turning[e]);
    hits(frame, at, turned, ranges, changed[e], beams, directions, cell, reach, forward, behind, seen);
    float *solid = new_occupied + N * e;
    for (int p = 0; p < N; p++) solid[p] = std::max(kept * occupied[N * e + p], std::min(seen[p], 1.0f));
    float along, across;
    cells(frame, place[0], place[1], 0, 0, cell, &along, &across);
    about(along, across, [&](int p, float weight) { solid[p] *= 1 - weight; });

    float cost[N], across_cost[N], far[N];
    costs(solid, edge, cost, across_cost);
    cells(frame, to[0], to[1], 0, 0, cell, &along, &across);
    straight(along, across, far);
    swept(value + N * e, known, cost, across_cost, far, new_value + N * e);
  }
}

// By how much values at places (n, points) of the grids are higher than ``base`` (n,); they are given as cells along and
// across.
extern "C" void higher(int64_t n, int64_t points, const float *value, const float *base, const float *along,
                       const float *across, float *found) {
  for (int64_t k = 0; k < n * points; k++) {
    const int64_t e = k / points;
    float sum = 0;
    about(along[k], across[k], [&](int p, float weight) { sum += weight * (KEPT * value[N * e + p] - base[e]); });
    found[k] = sum;
  }
}
