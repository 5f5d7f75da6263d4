// Rooms of square cells of many environments: making them, and what a robot in each measures. See __init__.py.
//
// Cells of an environment are neighbours in memory, (n, ROWS, COLUMNS); what a robot measures is (numbers, n).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

constexpr int W = COLUMNS, H = ROWS, N = W * H;
constexpr int V = W + 1, CORNERS = V * (H + 1);
constexpr float FAR = 1e6f;
constexpr float DIAGONAL = 1.41421356f;
constexpr uint8_t UNMAPPED = 2;  // a cell that is filled, and free on the map
constexpr int MOST_BLOCKS = 100;
constexpr float NARROW = 3;  // weight of places that are a cell, not two, from what is filled

static inline uint64_t next(uint64_t &state) {  // splitmix64 (Steele, Lea, Flood 2014)
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static inline float uniform(uint64_t &state) { return (next(state) >> 40) * (1.0f / 16777216.0f); }

static int around(const uint8_t *cells, int p) {
  return cells[p - W - 1] + cells[p - W] + cells[p - W + 1] + cells[p - 1] + cells[p + 1] + cells[p + W - 1] +
         cells[p + W] + cells[p + W + 1];
}

// Cells at random, smoothed: those with many filled neighbours are filled, those with few are cleared.
static void grow(uint8_t *cells, float fill, int rounds, uint64_t &state) {
  for (int r = 0; r < H; r++)
    for (int c = 0; c < W; c++) {
      const bool border = r == 0 || c == 0 || r == H - 1 || c == W - 1;
      const bool inside = r >= STRIP && r < H - STRIP;
      const bool drawn = uniform(state) < fill;
      cells[r * W + c] = border || (inside && drawn);
    }
  uint8_t before[N];
  for (int round = 0; round < rounds; round++) {
    memcpy(before, cells, N);
    for (int r = STRIP; r < H - STRIP; r++)
      for (int c = 1; c < W - 1; c++) {
        const int filled = around(before, r * W + c);
        if (filled >= 5) cells[r * W + c] = 1;
        if (filled <= 1) cells[r * W + c] = 0;
      }
  }
}

// Lengths of the shortest ways (8 neighbours) on a grid (rows, columns) to where they are 0, over places that have a
// weight: a step costs its length times the weight of the place that it begins at. With ``corners``, a step across is
// one only where both places beside it have a weight: else it would lead between two filled cells that touch.
static void spread(float *way, const float *weight, int rows, int columns, bool corners) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int turn = 0; turn < 2; turn++)
      for (int k = 0, last = rows * columns - 1; k <= last; k++) {
        const int p = turn ? last - k : k;
        if (weight[p] <= 0) continue;  // places at the edges never have one
        const float straight = std::min(std::min(way[p - 1], way[p + 1]), std::min(way[p - columns], way[p + columns]));
        float across = FAR;
        for (int up = -columns; up <= columns; up += 2 * columns)
          for (int side = -1; side <= 1; side += 2)
            if (!corners || (weight[p + up] > 0 && weight[p + side] > 0)) across = std::min(across, way[p + up + side]);
        const float found = std::min(straight + weight[p], across + DIAGONAL * weight[p]);
        if (found < way[p] - 1e-4f) {
          way[p] = found;
          changed = true;
        }
      }
  }
}

// The corner of cells that is next to a place, of those that are not at the edge.
static int corner_of(const float *place, float cell) {
  const int column = (int)(place[0] / cell + 0.5f), row = (int)(place[1] / cell + 0.5f);
  return std::min(std::max(row, 1), H - 1) * V + std::min(std::max(column, 1), W - 1);
}

// Ways from the corners of cells, where a robot fits if all four cells about it are free: it is a cell away from what
// is filled. So gaps of two cells are passed by their middle, and gaps of one cell are none.
static void lead(float *way, const uint8_t *cells, const float *goal, float cell) {
  float weight[CORNERS];
  const int at = corner_of(goal, cell);
  for (int r = 0; r <= H; r++)
    for (int c = 0; c <= W; c++) {
      int filled = 0, about = 0;
      for (int v = r - 2; v < r + 2; v++)
        for (int u = c - 2; u < c + 2; u++) {
          const bool here = v < 0 || u < 0 || v >= H || u >= W || cells[v * W + u];
          about += here;
          filled += here && v >= r - 1 && v < r + 1 && u >= c - 1 && u < c + 1;
        }
      weight[r * V + c] = filled ? 0 : about ? NARROW : 1;
      way[r * V + c] = FAR;
    }
  way[at] = 0;
  spread(way, weight, H + 1, V, true);
  for (int p = 0; p < CORNERS; p++) way[p] = way[p] < FAR ? way[p] * cell : FAR;
}

// Lines where filled cells end, or those that are not on the map: along rows, then along columns, each as its two ends
// and NaN; as many as there is room for.
static void draw(float *outline, const uint8_t *cells, float cell) {
  int used = 0;
  std::fill(outline, outline + 3 * N, NAN);
  auto line = [&](int row, int column, int to_row, int to_column) {
    if (used + 3 > N) return;
    for (const auto &[r, c] : {std::pair(row, column), std::pair(to_row, to_column)}) {
      float *point = outline + 3 * used++;
      point[0] = c * cell, point[1] = r * cell, point[2] = 0;
    }
    used++;
  };
  for (int r = 1; r < H; r++)
    for (int c = 0, begun = -1; c <= W; c++) {
      const bool edge = c < W && cells[r * W + c] != cells[(r - 1) * W + c];
      if (edge && begun < 0) begun = c;
      if (!edge && begun >= 0) line(r, begun, r, c), begun = -1;
    }
  for (int c = 1; c < W; c++)
    for (int r = 0, begun = -1; r <= H; r++) {
      const bool edge = r < H && cells[r * W + c] != cells[r * W + c - 1];
      if (edge && begun < 0) begun = r;
      if (!edge && begun >= 0) line(begun, c, r, c), begun = -1;
    }
}

static int cell_of(const float *place, float cell) {
  const int c = (int)(place[0] / cell), r = (int)(place[1] / cell);
  return std::min(std::max(r, 2), H - 3) * W + std::min(std::max(c, 2), W - 3);
}

extern "C" void make(int64_t n, const int64_t *ids, const float *seeds, const float *fills, const float *starts,
                     const float *goals, uint8_t *rooms, float *ways, float *outline, float cell) {
#pragma omp parallel for schedule(dynamic, 4) if (n > 8)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    uint8_t *cells = rooms + e * N;
    float open[N], length[N], fill = fills[m];
    uint64_t state = 0;
    memcpy(&state, seeds + 2 * m, sizeof state);
    const int rounds = 2 + next(state) % 3;
    const int start = cell_of(starts + 2 * e, cell), goal = cell_of(goals + 2 * e, cell);
    for (int trial = 0; trial < 20; trial++, fill *= trial < 19 ? 0.9f : 0.0f) {
      grow(cells, fill, rounds, state);
      for (int p = 0; p < N; p++) {
        const int r = p / W, c = p % W;
        const bool border = r == 0 || c == 0 || r == H - 1 || c == W - 1;
        open[p] = !border && !cells[p] && !around(cells, p);
        length[p] = FAR;
      }
      length[goal] = 0;
      spread(length, open, H, W, false);
      if (length[start] < FAR) break;
    }
    lead(ways + e * CORNERS, cells, goals + 2 * e, cell);
    draw(outline + 3 * e * N, cells, cell);
  }
}

// Ways and pictures of rooms whose cells are given.
extern "C" void finish(int64_t n, const int64_t *ids, const uint8_t *rooms, const float *goals, float *ways,
                       float *outline, float cell) {
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    lead(ways + e * CORNERS, rooms + e * N, goals + 2 * e, cell);
    draw(outline + 3 * e * N, rooms + e * N, cell);
  }
}

// The shortest way from a place to the goal, corner by corner, smoothed (twice a quarter of either neighbour); how many
// points.
static int trace(const float *way, const float *start, const float *goal, float *path, float cell) {
  int at = corner_of(start, cell), count = 0;
  while (count < POINTS) {
    path[2 * count] = (at % V) * cell;
    path[2 * count + 1] = (at / V) * cell;
    count++;
    if (way[at] <= 0) break;
    int next = at;
    for (int up = -V; up <= V; up += V)
      for (int side = -1; side <= 1; side++) {
        const bool across = up && side;
        if (across && !(way[at + up] < FAR && way[at + side] < FAR)) continue;
        if (way[at + up + side] < way[next]) next = at + up + side;
      }
    if (next == at) break;
    at = next;
  }
  memcpy(path + 2 * (count - 1), goal, 2 * sizeof(float));
  for (int round = 0; round < 2; round++) {
    float x = path[0], y = path[1];
    for (int k = 1; k < count - 1; k++) {
      const float here[2] = {path[2 * k], path[2 * k + 1]};
      path[2 * k] = 0.25f * x + 0.5f * here[0] + 0.25f * path[2 * k + 2];
      path[2 * k + 1] = 0.25f * y + 0.5f * here[1] + 0.25f * path[2 * k + 3];
      x = here[0];
      y = here[1];
    }
  }
  for (int k = count; k < POINTS; k++) memcpy(path + 2 * k, path + 2 * (count - 1), 2 * sizeof(float));
  return count;
}

// Plans the paths of rooms that are made, then puts ``blocks`` of one or two cells a side on each path, which are not
// on the map. One that would make the shortest way longer than LONGER times what it was is left out.
extern "C" void clutter(int64_t n, const int64_t *ids, const float *seeds, const float *blocks, const float *starts,
                        const float *goals, uint8_t *rooms, float *ways, float *paths, float *outline, float cell) {
#pragma omp parallel for schedule(dynamic, 4) if (n > 8)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    uint8_t *cells = rooms + e * N, before[N];
    float *way = ways + e * CORNERS, *path = paths + e * 2 * POINTS, known[CORNERS];
    const int count = trace(way, starts + 2 * e, goals + 2 * e, path, cell);
    const int start = corner_of(starts + 2 * e, cell);
    const float most = LONGER * way[start];
    uint64_t state = 0;
    memcpy(&state, seeds + 2 * m, sizeof state);
    state ^= 0x9e3779b97f4a7c15ull;  // other numbers than those of the room
    const int count_of_blocks = std::min((int)(blocks[m] + 0.5f), MOST_BLOCKS);
    for (int k = 0; k < count_of_blocks; k++) {
      const float *at = path + 2 * (int)(uniform(state) * count);
      const int wide = 1 + next(state) % 2, deep = 1 + next(state) % 2;
      const int left = (int)(at[0] / cell - 0.5f * wide + uniform(state));
      const int low = (int)(at[1] / cell - 0.5f * deep + uniform(state));
      memcpy(before, cells, N);
      memcpy(known, way, sizeof known);
      for (int r = std::max(low, STRIP); r < std::min(low + deep, H - STRIP); r++)
        for (int c = std::max(left, 1); c < std::min(left + wide, W - 1); c++)
          if (!cells[r * W + c]) cells[r * W + c] = UNMAPPED;
      lead(way, cells, goals + 2 * e, cell);
      if (way[start] > most) {
        memcpy(cells, before, N);
        memcpy(way, known, sizeof known);
      }
    }
    draw(outline + 3 * e * N, cells, cell);
  }
}

struct Lidar {
  int beams;
  float first, step, low, high;  // angles of the first beam and between beams, rad; least and greatest range, m
};

// The way from a place inside free space to the first filled cell, in cells (Amanatides, Woo 1987).
static float cast(const uint8_t *cells, float x, float y, float dx, float dy, float most) {
  int c = (int)x, r = (int)y;
  if (c < 0 || r < 0 || c >= W || r >= H || cells[r * W + c]) return 0;
  const float px = 1 / std::max(std::fabs(dx), 1e-9f), py = 1 / std::max(std::fabs(dy), 1e-9f);
  const int sx = dx < 0 ? -1 : 1, sy = dy < 0 ? -1 : 1;
  float tx = (dx < 0 ? x - c : c + 1 - x) * px, ty = (dy < 0 ? y - r : r + 1 - y) * py, t = 0;
  while (t < most) {
    if (tx < ty) {
      t = tx;
      tx += px;
      c += sx;
    } else {
      t = ty;
      ty += py;
      r += sy;
    }
    if (cells[r * W + c]) return t;  // the border is filled
  }
  return most;
}

constexpr float NEAREST = 1.6f;

// For robots e (all, or ids): pose rows x, y, heading (3, n); how the lidar is mounted (n each). Writes clearance (m),
// length of the way to the goal (m), and a point of it some cells ahead, x and y in the robot's frame.
extern "C" void measure(int64_t n, int64_t m, const int64_t *ids, const float *pose, const float *forward,
                        const float *yaw, const uint8_t *rooms, const float *ways, const Lidar *lidar, float cell,
                        float radius, float *located, float *ranges, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (threads > 1)
  for (int64_t k = 0; k < m; k++) {
    const int64_t e = ids ? ids[k] : k;
    const uint8_t *cells = rooms + e * N;
    const float *way = ways + e * CORNERS;
    const float heading = pose[2 * n + e], cosine = std::cos(heading), sine = std::sin(heading);
    const float x = pose[e] / cell, y = pose[n + e] / cell;
    const int c = std::min(std::max((int)x, 0), W - 1), r = std::min(std::max((int)y, 0), H - 1);
    float clearance = 3 * cell, length = FAR;
    for (int v = std::max(r - 3, 0); v <= std::min(r + 3, H - 1); v++)
      for (int u = std::max(c - 3, 0); u <= std::min(c + 3, W - 1); u++)
        if (cells[v * W + u]) {
          const float ox = std::max(std::fabs(x - u - 0.5f) - 0.5f, 0.0f), oy = std::max(std::fabs(y - v - 0.5f) - 0.5f, 0.0f);
          clearance = std::min(clearance, cell * std::sqrt(ox * ox + oy * oy));
        }
    int best = r * V + c;
    for (int v = std::max(r - 1, 0); v <= std::min(r + 2, H); v++)
      for (int u = std::max(c - 1, 0); u <= std::min(c + 2, W); u++) {
        const float gx = x - u, gy = y - v, apart = std::sqrt(gx * gx + gy * gy);
        const float there = way[v * V + u] + cell * apart;
        if (apart <= NEAREST && there < length) {  // none behind a wall is as near
          best = v * V + u;
          length = there;
        }
      }
    for (int step = 0; step < 2; step++) {
      int lower = best;
      const int row = best / V, column = best % V;
      if (row == 0 || column == 0 || row == H || column == W) break;
      for (int v = -1; v <= 1; v++)
        for (int u = -1; u <= 1; u++) lower = way[best + v * V + u] < way[lower] ? best + v * V + u : lower;
      best = lower;
    }
    const float ax = (best % V - x) * cell, ay = (best / V - y) * cell;
    located[e] = std::max(clearance - radius, 0.0f);
    located[n + e] = length;
    located[2 * n + e] = cosine * ax + sine * ay;
    located[3 * n + e] = cosine * ay - sine * ax;
    const float sx = x + cosine * forward[e] / cell, sy = y + sine * forward[e] / cell;
    for (int i = 0; i < lidar->beams; i++) {
      const float turn = heading + yaw[e] + lidar->first + i * lidar->step;
      const float found = cell * cast(cells, sx, sy, std::cos(turn), std::sin(turn), lidar->high / cell);
      ranges[i * n + e] = std::min(std::max(found, lidar->low), lidar->high);
    }
  }
}
