// A map that goes with the robot, of many robots: see local_map.py. Compiled after seen_map.cpp, whose parts it has.

// A grid moved by so many cells, with ``out`` in what was outside.
static const float *moved(const float *grid, int rows, int columns, float out, float *found) {
  if (!rows && !columns) return grid;
  for (int r = 0; r < H; r++)
    for (int c = 0; c < W; c++) {
      const int from_r = r + rows, from_c = c + columns;
      const bool inside = from_r >= 0 && from_r < H && from_c >= 0 && from_c < W;
      found[r * W + c] = inside ? grid[from_r * W + from_c] : out;
    }
  return found;
}

static inline int beyond(float off) { return off > MOVED ? MOVED : off < -MOVED ? -MOVED : 0; }

// The greatest of a cell and its neighbours to the sides, as far as MARKED.
static void about_path(const float *mark, float *near) {
  float wide[N + 2 * PAD] = {};
  for (int p = 0; p < N; p++) wide[PAD + p] = std::min(mark[p], 1.0f);
  for (int p = 0; p < N; p++) {
    const float *s = wide + PAD + p;
    near[p] = std::max(std::max(std::max(s[-1], s[1]), std::max(s[-W], s[W])), s[0]);
  }
}

extern "C" void remember_local(int64_t n, int64_t beams, int64_t points, const float *frames, const float *occupied,
                               const float *value, const float *here, const float *heading, const float *told,
                               const float *scan, const float *pose, const uint8_t *changed, const float *turning,
                               const float *directions, const float *edge, float cell, float reach, float forward,
                               float kept, float behind, float *new_frames, float *new_occupied, float *new_value) {
#pragma omp parallel for schedule(dynamic, 64) if (n > 2048)
  for (int64_t e = 0; e < n; e++) {
    const float *place = here + 2 * e, *at = pose + 4 * e, *ranges = scan + beams * e, *path = told + 2 * points * e;
    const bool known = frames[5 * e] > 0.5f;
    Frame frame = {place[0], place[1], heading[2 * e], heading[2 * e + 1]};
    if (known) memcpy(&frame, frames + 5 * e + 1, sizeof frame);
    float along, across;
    cells(frame, place[0], place[1], 0, 0, cell, &along, &across);
    const int rows = beyond(along - 0.5f * (H - 1)), columns = beyond(across - 0.5f * (W - 1));
    frame.x += cell * (rows * frame.cosine - columns * frame.sine);
    frame.y += cell * (rows * frame.sine + columns * frame.cosine);
    new_frames[5 * e] = 1;
    memcpy(new_frames + 5 * e + 1, &frame, sizeof frame);

    float seen[N] = {}, free[N] = {}, mark[N] = {}, near[N], aside[N];
    const Turned turned(at, turning[e]);
    hits(frame, at, turned, ranges, changed[e], beams, directions, cell, reach, forward, behind, seen);
    for (int64_t b = changed[e] ? 0 : 1; b < beams; b += 2)
      for (int k = 1; k <= CLEARED; k++) {
        const float cells_far = BETWEEN * k, weight = turned.slow * clamped(ranges[b] / cell - (cells_far + 1), 0, 1);
        if (weight <= 0) break;
        const float x = cells_far * cell * directions[b] + forward, y = cells_far * cell * directions[beams + b];
        float u, v;
        cells(frame, at[0], at[1], turned.cosine * x - turned.sine * y, turned.sine * x + turned.cosine * y, cell, &u,
              &v);
        about(u, v, [&](int p, float part) { free[p] += weight * part; });
      }
    cells(frame, place[0], place[1], 0, 0, cell, &along, &across);
    about(along, across, [&](int p, float weight) { mark[p] += MARKED * weight; });
    for (int64_t k = 0; k < points; k++)
      for (int half = 0; half < 2; half++) {
        const float *last = k ? path + 2 * k - 2 : place, *next = path + 2 * k;
        const float x = half ? next[0] : 0.5f * (last[0] + next[0]), y = half ? next[1] : 0.5f * (last[1] + next[1]);
        float u, v;
        cells(frame, x, y, 0, 0, cell, &u, &v);
        about(u, v, [&](int p, float weight) { mark[p] += MARKED * weight; });
      }
    const float *before = moved(occupied + N * e, rows, columns, 0, aside);
    float *solid = new_occupied + N * e;
    for (int p = 0; p < N; p++) {
      const float left = 1 - CLEARING * std::min(free[p], 1.0f);
      solid[p] = std::max(kept * left * before[p], std::min(seen[p], 1.0f));
    }
    about(along, across, [&](int p, float weight) { solid[p] *= 1 - weight; });

    float cost[N], across_cost[N], far[N];
    about_path(mark, near);
    for (int p = 0; p < N; p++) mark[p] = edge[p] + OFF * (1 - near[p]);
    costs(solid, mark, cost, across_cost);
    const float *goal = path + 2 * points - 2;
    cells(frame, goal[0], goal[1], 0, 0, cell, &along, &across);
    straight(along, across, far);
    swept(moved(value + N * e, rows, columns, LOWEST / KEPT, aside), known, cost, across_cost, far, new_value + N * e);
  }
}
