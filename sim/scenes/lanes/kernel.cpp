// Roads with lanes, crossings and lights, and the traffic on them; see __init__.py.
//
// A place on a road: station s (m along its right edge) and y (m to the left of it). Cross roads are straight, at right
// angles. VEHICLES, KNOTS, NEAREST, ROUTE and CROSSINGS are given when this is compiled.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr float WIDE = 3.5f, APART = 2.0f;       // m: of a lane; between knots of the line
constexpr float LENGTH = 4.5f, BROAD = 1.8f;     // m: of a vehicle
constexpr float SIDE = 0.2f;                     // m kept beside another vehicle
constexpr float ARM = 60.0f, BACK = 3.0f;        // m: of a cross road to either side; of stop lines before a crossing
constexpr float YELLOW = 3.0f, CLEARED = 2.0f;   // s: of yellow, and of red for all
constexpr float STAND = 2.0f, EMERGENCY = 8.0f;  // m between standing vehicles; m/s^2 that no vehicle brakes harder
constexpr float POLITE = 0.2f, SAFE = 4.0f, GAIN = 0.2f;  // MOBIL: politeness, m/s^2, m/s^2
constexpr float SHIFT = 1.2f, LOOK = 1.0f;       // m/s across in a change of lanes; s between looks at other lanes
constexpr float LATERAL = 2.5f;                  // m/s^2 in bends
constexpr float FAR = 100.0f, SEEN = 80.0f;      // m: of what there is none; within which neighbours are seen
constexpr float SPLIT = 60.0f;                   // m before the end of a route, from where only its own lane leads there
constexpr float HALF = LENGTH / 2, PI = 3.14159265f;
constexpr int N = VEHICLES, EGO = VEHICLES;

enum { S, Y, SPEED, LANE, ROAD, V0, TIME, ACC, BRAKE, WAIT, FIELDS };  // of a vehicle; ROAD −1: there is none
enum { LANES, BEGIN, END, GOAL, COUNT, FIRST, AT, OFFSET = AT + CROSSINGS, GREEN = OFFSET + CROSSINGS,
       RED = GREEN + CROSSINGS, FACTS = RED + CROSSINGS };  // of a road
constexpr float LONG = (KNOTS - 1) * APART;

static uint64_t next(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;  // splitmix64
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static float uniform(uint64_t &state, float low, float high) { return low + (high - low) * (next(state) >> 40) * 0x1p-24f; }

static float wrapped(float angle) { return angle - 2 * PI * std::floor((angle + PI) / (2 * PI)); }

// A number of at most a million, or 0: a car may have been put anywhere, or diverge. By its bits, for the compiler is told
// that all numbers are finite.
static inline float sane(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (bits & 0x7fffffffu) <= 0x49742400u ? v : 0;
}

// The whole part of a place, from 0 to count - 1.
static inline int index_of(float place, int count) { return std::min(std::max((int)place, 0), count - 1); }

static inline int crossings_of(const float *road) { return index_of(road[COUNT], CROSSINGS + 1); }

// The road of a vehicle: -1 where there is none, 0, or one of two for each that crosses.
static inline int road_of(float told) { return index_of(told + 1, 2 * CROSSINGS + 2) - 1; }

struct Pose {
  float x, y, heading;
};

// A place on the road in the world.
static Pose at(const float *line, float s, float y) {
  const float k = std::min(std::max(0.0f, s / APART), KNOTS - 1.001f);
  const int i = index_of(k, KNOTS - 1);
  const float t = k - i, *a = line + 3 * i, *b = a + 3;
  const float h = a[2] + t * (b[2] - a[2]);
  return {a[0] + t * (b[0] - a[0]) - std::sin(h) * y, a[1] + t * (b[1] - a[1]) + std::cos(h) * y, h};
}

static float bend(const float *line, float s) {
  const int i = std::max(index_of(s / APART, KNOTS - 1), 1);
  return (line[3 * i + 5] - line[3 * i - 1]) / (2 * APART);
}

// 0 green, 1 yellow, 2 red, for the road (along) or the one that crosses it; and the time until it changes.
static int light(const float *road, int j, float clock, bool along, float *left = nullptr) {
  const float green = road[GREEN + j], red = road[RED + j], cycle = green + red + 2 * (YELLOW + CLEARED);
  const float begin = along ? 0 : green + YELLOW + CLEARED, lasts = along ? green : red;
  float u = std::fmod(clock + road[OFFSET + j] - begin, cycle);
  if (u < 0) u += cycle;
  const int state = u < lasts ? 0 : u < lasts + YELLOW ? 1 : 2;
  if (left) *left = (state == 0 ? lasts : state == 1 ? lasts + YELLOW : cycle) - u;
  return state;
}

// The intelligent driver model: acceleration at a speed, behind a leader at a gap.
static float follow(const float *t, int i, float speed, float gap, float leader, float wanted) {
  const float a = t[ACC * N + i], b = t[BRAKE * N + i], part = speed / wanted;
  const float close = STAND + std::max(0.0f, speed * t[TIME * N + i] + speed * (speed - leader) / (2 * std::sqrt(a * b)));
  const float ratio = close / std::max(gap, 0.1f);
  return std::max(a * (1 - part * part * part * part - ratio * ratio), -EMERGENCY);
}

extern "C" void make(int64_t n, const int64_t *ids, const float *seeds, const float *shapes, float *lines, float *roads,
                     float *marks) {
#pragma omp parallel for schedule(dynamic, 8) if (n > 64)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    const float *shape = shapes + 3 * m;  // lanes, bends, crossings
    float *line = lines + e * KNOTS * 3, *road = roads + e * FACTS;
    uint64_t state = 0;
    memcpy(&state, seeds + 2 * m, sizeof state);
    const int lanes = std::min(std::max((int)shape[0], 1), 4), crossings = std::min((int)shape[2], CROSSINGS);
    const float slow = uniform(state, 200, 350), fast = uniform(state, 90, 140);  // m, wave lengths
    const float turn = uniform(state, 0, 2 * PI), other = uniform(state, 0, 2 * PI);
    float x = 0, y = 0;
    for (int k = 0; k < KNOTS; k++) {
      const float s = k * APART;
      const float h = shape[1] * (0.6f * std::sin(2 * PI * s / slow + turn) + 0.2f * std::sin(2 * PI * s / fast + other));
      line[3 * k] = x, line[3 * k + 1] = y, line[3 * k + 2] = h;
      const float middle = s + APART / 2;
      const float half = shape[1] * (0.6f * std::sin(2 * PI * middle / slow + turn) +
                                     0.2f * std::sin(2 * PI * middle / fast + other));
      x += APART * std::cos(half), y += APART * std::sin(half);
    }
    road[LANES] = lanes, road[BEGIN] = 50, road[END] = LONG - 50, road[COUNT] = crossings;
    road[FIRST] = (int)uniform(state, 0, lanes), road[GOAL] = (int)uniform(state, 0, lanes);
    for (int j = 0; j < CROSSINGS; j++) {
      const float share = (LONG - 200) / std::max(crossings, 1);  // m: at least 50 from begin and end
      road[AT + j] = 110 + share * j + share * uniform(state, 0.1f, 0.5f);
      road[GREEN + j] = uniform(state, 10, 20), road[RED + j] = uniform(state, 6, 12);
      road[OFFSET + j] = uniform(state, 0, 60);
    }
    for (int l = 0; l < 5; l++) {
      float *mark = marks + ((int64_t)e * 5 + l) * KNOTS * 3;
      for (int k = 0; k < KNOTS; k++) {
        const Pose p = at(line, k * APART, WIDE * std::min(l, lanes));
        mark[3 * k] = p.x, mark[3 * k + 1] = p.y, mark[3 * k + 2] = 0.02f;
      }
    }
  }
}

// New traffic; density is the part of the vehicles that are there, speed (m/s) what they want at most.
extern "C" void fill(int64_t n, const int64_t *ids, const float *seeds, const float *density, const float *limit,
                     const float *roads, float *traffics) {
#pragma omp parallel for schedule(dynamic, 8) if (n > 64)
  for (int64_t m = 0; m < n; m++) {
    const int64_t e = ids[m];
    const float *road = roads + e * FACTS;
    float *t = traffics + e * FIELDS * N;
    uint64_t state = 0;
    memcpy(&state, seeds + 2 * m, sizeof state);
    state ^= 0x5bd1e995ull;
    const int lanes = road[LANES], there = index_of(density[m] * N + 0.5f, N + 1), crossing = std::min(4 * crossings_of(road), there);
    for (int i = 0; i < N; i++) {
      t[ACC * N + i] = uniform(state, 1.0f, 2.0f), t[BRAKE * N + i] = uniform(state, 1.5f, 2.5f);
      t[TIME * N + i] = uniform(state, 1.0f, 1.8f), t[V0 * N + i] = limit[m] * uniform(state, 0.7f, 1.0f);
      t[WAIT * N + i] = uniform(state, 0, LOOK), t[ROAD * N + i] = -1;
      t[S * N + i] = t[Y * N + i] = t[LANE * N + i] = t[SPEED * N + i] = 0;
      if (i < crossing) {
        const int one = i / 2, back = i % 2;  // two in each of the lanes across
        t[ROAD * N + i] = 1 + one;
        t[S * N + i] = -ARM + 5 + 22 * back + uniform(state, 0, 8);
        t[SPEED * N + i] = 4;
      } else if (i < there) {
        for (int trial = 0; trial < 20; trial++) {
          const int lane = (int)uniform(state, 0, lanes);
          const float s = uniform(state, 0, LONG);
          bool free = lane != (int)road[FIRST] || std::fabs(s - road[BEGIN]) > 15;
          for (int j = 0; j < crossings_of(road); j++) free &= s < road[AT + j] - 30 || s > road[AT + j] + 10;
          for (int k = crossing; k < i; k++) {
            const float gap = std::fabs(t[S * N + k] - s);
            free &= t[ROAD * N + k] < 0 || t[LANE * N + k] != lane || std::min(gap, LONG - gap) > 12;
          }
          if (!free) continue;
          t[ROAD * N + i] = 0, t[LANE * N + i] = lane, t[S * N + i] = s, t[Y * N + i] = (lane + 0.5f) * WIDE;
          t[SPEED * N + i] = t[V0 * N + i] * uniform(state, 0.4f, 0.7f);
          break;
        }
      }
    }
  }
}

struct Body {
  float middle, length, width;  // m, ahead of the centre of mass; of the ego
};

// Half of the width (m) of the road that a body takes, turned from its direction.
static float taken(const Body &body, float turn) {
  return 0.5f * (body.width * std::fabs(std::cos(turn)) + body.length * std::fabs(std::sin(turn)));
}

struct Ego {
  float s, y, speed, side;  // side: m, half of the width that it takes
};

// Station and y of a place in the world, looked for around a station.
static void project(const float *line, float x, float y, float &s, float &across, float &heading) {
  const int middle = index_of(s / APART, KNOTS + 8);
  float best = 1e30f, near = s;
  for (int i = std::max(middle - 4, 0); i < std::min(middle + 5, KNOTS - 1); i++) {
    const float *a = line + 3 * i, dx = a[3] - a[0], dy = a[4] - a[1], px = x - a[0], py = y - a[1];
    const float t = std::min(std::max((px * dx + py * dy) / (dx * dx + dy * dy), 0.0f), 1.0f);
    const float ox = px - t * dx, oy = py - t * dy, d = ox * ox + oy * oy;
    if (d < best) best = d, near = (i + t) * APART;
  }
  for (int k = 0; k < 2; k++) {  // Newton's: the normal of the heading between knots
    const Pose p = at(line, near, 0);
    const float c = std::cos(p.heading), w = std::sin(p.heading);
    across = (y - p.y) * c - (x - p.x) * w;
    near += ((x - p.x) * c + (y - p.y) * w) / std::max(1 - bend(line, near) * across, 0.3f);
    heading = p.heading;
  }
  s = near;
}

// One period of all vehicles of an environment.
static void drive(float *t, const float *line, const float *road, float clock, const Ego &ego, float period) {
  const int lanes = road[LANES], crossings = crossings_of(road);
  const float middle = 0.5f * lanes * WIDE, arm = ARM + middle;  // m
  float s[N + 1], y[N + 1], v[N + 1], aim[N + 1], gained[N], wanted[N], acceleration[N];
  int way[N + 1], cross[N], crosses = 0, lit[2][CROSSINGS];
  for (int j = 0; j < crossings; j++)
    for (int along = 0; along < 2; along++) lit[along][j] = light(road, j, clock, along);
  for (int i = 0; i < N; i++) {
    way[i] = road_of(t[ROAD * N + i]), v[i] = t[SPEED * N + i];
    if (way[i] > 0) {
      cross[crosses++] = i;
      const int j = (way[i] - 1) / 2, back = (way[i] - 1) % 2;
      s[i] = road[AT + j] + (back ? -WIDE / 2 : WIDE / 2), aim[i] = y[i] = middle + (back ? -1 : 1) * t[S * N + i];
    } else {
      s[i] = t[S * N + i], y[i] = t[Y * N + i], aim[i] = (t[LANE * N + i] + 0.5f) * WIDE;
    }
  }
  s[EGO] = ego.s, aim[EGO] = y[EGO] = ego.y, v[EGO] = std::max(ego.speed, 0.0f), way[EGO] = 0;
  constexpr float ABREAST = BROAD + SIDE, BESIDE = HALF + BROAD / 2 + 2 * SIDE, NEVER = 1e6f;
  float beside[N + 1], on[N + 1], to[N + 1], away[N + 1];  // as y and aim; NEVER off the road
  for (int j = 0; j <= N; j++) {
    beside[j] = j == EGO ? ego.side + BROAD / 2 + SIDE : ABREAST;
    on[j] = way[j] == 0 ? y[j] : NEVER, to[j] = way[j] == 0 ? aim[j] : NEVER;
  }
  for (int i = 0; i < N; i++) {
    if (way[i] < 0) continue;
    if (way[i] == 0) {
      float gap = FAR, leader = v[i], blocked = FAR;
      for (int k = 0; k < crosses; k++) {
        const float ahead = s[cross[k]] - s[i];
        if (ahead > 0 && ahead < FAR && std::fabs(y[cross[k]] - y[i]) < BESIDE)
          blocked = std::min(blocked, ahead - HALF - BROAD / 2);
      }
      for (int j = 0; j <= N; j++) {
        const float ahead = s[j] - s[i], rounded = ahead < 0 ? ahead + LONG : ahead;
        const bool same = (std::fabs(on[j] - y[i]) < beside[j]) | (std::fabs(on[j] - aim[i]) < beside[j]) |
                          (std::fabs(to[j] - aim[i]) < 1);
        away[j] = same ? rounded : NEVER;
      }
      away[i] = NEVER;
      float least = NEVER;
      for (int j = 0; j <= N; j++) least = std::min(least, away[j]);
      if (least - LENGTH < gap) {
        gap = least - LENGTH;
        leader = v[std::find(away, away + N, least) - away];
      }
      const float curve = std::fabs(bend(line, s[i]));
      wanted[i] = std::min(t[V0 * N + i], std::sqrt(LATERAL / std::max(curve, 1e-4f)));
      gained[i] = follow(t, i, v[i], gap, leader, wanted[i]);
      float &own = acceleration[i] = gained[i];
      if (blocked < FAR) own = std::min(own, follow(t, i, v[i], blocked, 0, wanted[i]));
      for (int j = 0; j < crossings; j++) {
        const float stop = road[AT + j] - WIDE - BACK - (s[i] + HALF);
        if (stop < -1 || stop > FAR) continue;
        const int state = lit[1][j];
        const bool full = gap + HALF < stop + 2 * (WIDE + BACK) + LENGTH && leader < 2;  // no room behind the crossing
        if (state == 2 || (state == 1 && v[i] * v[i] < 6 * stop) || full)
          own = std::min(own, follow(t, i, v[i], stop + STAND - 0.5f, 0, wanted[i]));
      }
      t[WAIT * N + i] -= period;
      bool near = false;
      for (int j = 0; j < crossings; j++) near |= s[i] > road[AT + j] - 30 && s[i] < road[AT + j] + 10;
      if (t[WAIT * N + i] <= 0 && !near && std::fabs(y[i] - aim[i]) < 0.3f && v[i] > 1) {
        t[WAIT * N + i] = LOOK;
        float most = GAIN;
        int chosen = (int)t[LANE * N + i];
        int old = -1;
        float old_gap = FAR;
        for (int j = 0; j < N; j++) {
          float after = s[i] - s[j];
          if (j == i || way[j] != 0 || std::fabs(aim[j] - aim[i]) > 1) continue;
          if (after < 0) after += LONG;
          if (after - LENGTH < old_gap) old_gap = after - LENGTH, old = j;
        }
        for (int side = -1; side <= 1; side += 2) {
          const int lane = (int)t[LANE * N + i] + side;
          if (lane < 0 || lane >= lanes) continue;
          const float there = (lane + 0.5f) * WIDE;
          float front = FAR, back = FAR, front_speed = v[i];
          int follower = -1;
          for (int j = 0; j <= N; j++) {
            if (j == i || way[j] != 0 || (std::fabs(y[j] - there) > beside[j] && std::fabs(aim[j] - there) > 1)) continue;
            float ahead = s[j] - s[i];
            if (ahead < 0) ahead += LONG;
            if (ahead - LENGTH < front) front = ahead - LENGTH, front_speed = v[j];
            if (LONG - ahead - LENGTH < back) back = LONG - ahead - LENGTH, follower = j;
          }
          if (front < STAND || back < STAND) continue;
          float gain = follow(t, i, v[i], front, front_speed, wanted[i]) - gained[i];
          if (follower >= 0) {
            const int f = follower == EGO ? i : follower;  // of the ego it takes its own manners
            const float w = t[V0 * N + f], now = follow(t, f, v[follower], back, v[i], w);
            if (now < -SAFE) continue;
            const float whole = front < FAR ? front + back + LENGTH : FAR;
            gain += POLITE * (now - follow(t, f, v[follower], whole, front < FAR ? front_speed : v[follower], w));
          }
          if (old >= 0) {
            const float w = t[V0 * N + old], whole = gap < FAR ? old_gap + gap + LENGTH : FAR;
            gain += POLITE * (follow(t, old, v[old], whole, gap < FAR ? leader : v[old], w) - follow(t, old, v[old], old_gap, v[i], w));
          }
          if (gain > most) most = gain, chosen = lane;
        }
        t[LANE * N + i] = chosen, to[i] = aim[i] = (chosen + 0.5f) * WIDE;
      }
    } else {
      const int j = (way[i] - 1) / 2, back = (way[i] - 1) % 2;
      const float sign = back ? -1 : 1, c = t[S * N + i];
      float gap = FAR, leader = v[i], blocked = FAR;
      for (int k = 0; k <= N; k++) {
        if (k == i || way[k] < 0) continue;
        if (way[k] == way[i]) {
          float ahead = t[S * N + k] - c;
          if (ahead < 0) ahead += 2 * arm;
          if (ahead - LENGTH < gap) gap = ahead - LENGTH, leader = v[k];
        } else if (way[k] == 0 && std::fabs(s[k] - s[i]) < BESIDE) {
          const float ahead = sign * (y[k] - y[i]);
          if (ahead > 0) blocked = std::min(blocked, ahead - HALF - BROAD / 2);
        }
      }
      wanted[i] = t[V0 * N + i];
      float &own = acceleration[i] = follow(t, i, v[i], gap, leader, wanted[i]);
      if (blocked < FAR) own = std::min(own, follow(t, i, v[i], blocked, 0, wanted[i]));
      const float stop = -middle - BACK - (c + HALF);
      const int state = lit[0][j];
      if (stop > -1 && (state == 2 || (state == 1 && v[i] * v[i] < 6 * stop)))
        own = std::min(own, follow(t, i, v[i], stop + STAND - 0.5f, 0, wanted[i]));
    }
  }
  for (int i = 0; i < N; i++) {
    if (way[i] < 0) continue;
    const float after = std::max(v[i] + acceleration[i] * period, 0.0f), moved = 0.5f * (v[i] + after) * period;
    t[SPEED * N + i] = after;
    float place = t[S * N + i] + moved;
    if (way[i] == 0) {
      t[S * N + i] = place >= LONG ? place - LONG : place;
      const float left = aim[i] - y[i], most = std::min(SHIFT, 0.3f * v[i]) * period;
      t[Y * N + i] = y[i] + std::min(std::max(left, -most), most);
    } else {
      t[S * N + i] = place >= arm ? place - 2 * arm : place;
    }
  }
}

// car: rows x, y, heading, forward speed, speed to the left, … (8, n).
extern "C" void advance(int64_t n, const float *car, const float *lines, const float *roads, float *traffics,
                        float *clocks, const float *stations, const Body *body, float period,
                        int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (threads > 1)
  for (int64_t e = 0; e < n; e++) {
    const float *line = lines + e * KNOTS * 3, *road = roads + e * FACTS;
    float s = sane(stations[e]), y, way;
    project(line, sane(car[e]), sane(car[n + e]), s, y, way);
    const float turn = sane(car[2 * n + e]) - way;
    const float c = std::cos(turn), d = std::sin(turn);
    const Ego ego = {s, y, sane(car[3 * n + e]) * c - sane(car[4 * n + e]) * d, taken(*body, turn)};
    drive(traffics + e * FIELDS * N, line, road, clocks[e], ego, period);
    clocks[e] += period;
  }
}

static bool vehicle(const float *t, const float *line, const float *road, int i, Pose &pose) {
  const int way = road_of(t[ROAD * N + i]);
  if (way < 0) return false;
  if (way == 0) {
    pose = at(line, t[S * N + i], t[Y * N + i]);
    return true;
  }
  const int j = (way - 1) / 2, back = (way - 1) % 2;
  const float sign = back ? -1 : 1, y = 0.5f * road[LANES] * WIDE + sign * t[S * N + i], along = sign * WIDE / 2;
  const Pose p = at(line, road[AT + j], y);
  pose = {p.x + along * std::cos(p.heading), p.y + along * std::sin(p.heading), wrapped(p.heading + sign * PI / 2)};
  return true;
}

// Poses (m, N, 3) of all vehicles: x, y (m), heading (rad); NaN where there is none.
extern "C" void poses(int64_t m, const int64_t *ids, const float *lines, const float *roads, const float *traffics,
                      float *out) {
  for (int64_t k = 0; k < m; k++)
    for (int i = 0; i < N; i++) {
      const int64_t e = ids[k];
      Pose p = {NAN, NAN, NAN};
      vehicle(traffics + e * FIELDS * N, lines + e * KNOTS * 3, roads + e * FACTS, i, p);
      memcpy(out + (k * N + i) * 3, &p, sizeof p);
    }
}

// Whether rectangles overlap (separating axes): at a relative place and heading, of half lengths and widths.
static bool touch(float x, float y, float turn, float l, float w, float other_l, float other_w) {
  const float c = std::cos(turn), d = std::sin(turn), ac = std::fabs(c), ad = std::fabs(d);
  return std::fabs(x) < l + other_l * ac + other_w * ad && std::fabs(y) < w + other_l * ad + other_w * ac &&
         std::fabs(x * c + y * d) < other_l + l * ac + w * ad && std::fabs(y * c - x * d) < other_w + l * ad + w * ac;
}

// When, at constant velocities, rectangles first overlap: at a relative place and heading, of half lengths and widths.
static float meets(float x, float y, float vx, float vy, float turn, float l, float w, float other_l, float other_w) {
  const float c = std::fabs(std::cos(turn)), d = std::fabs(std::sin(turn));
  float from = 0, to = 1e6f;
  for (int axis = 0; axis < 2; axis++) {  // along each, they overlap from (p - half) / v to (p + half) / v, v towards
    const float half = axis ? w + other_l * d + other_w * c : l + other_l * c + other_w * d;
    const float p = axis ? y : x, v = axis ? -vy : -vx;
    if (std::fabs(v) < 1e-3f) {
      if (std::fabs(p) >= half) return 1e6f;
      continue;
    }
    const float a = (p - half) / v, b = (p + half) / v;
    from = std::max(from, std::min(a, b)), to = std::min(to, std::max(a, b));
  }
  return from < to ? from : 1e6f;
}

static const float reach[] = {4, 8, 14, 20, 28, 36, 48, 60};  // m along the lane, of the points of the route
static_assert(sizeof reach == ROUTE * sizeof(float), "");

// Writes rows of n in the order of Located; moves stations on.
extern "C" void measure(int64_t n, int64_t m, const int64_t *ids, const float *car, const float *lines, const float *roads,
                        const float *traffics, const float *clocks, float *stations, const Body *body, float *out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (threads > 1)
  for (int64_t q = 0; q < m; q++) {
    const int64_t e = ids ? ids[q] : q;
    const float *line = lines + e * KNOTS * 3, *road = roads + e * FACTS, *t = traffics + e * FIELDS * N;
    const float x = sane(car[e]), y = sane(car[n + e]), heading = sane(car[2 * n + e]);
    const float speed = sane(car[3 * n + e]), left = sane(car[4 * n + e]);
    const float c = std::cos(heading), d = std::sin(heading), clock = clocks[e], before = sane(stations[e]);
    float s = before, across, way;
    project(line, x, y, s, across, way);
    stations[e] = s;
    int64_t row = e;
    const auto put = [&](float value) {
      out[row] = value;
      row += n;
    };
    const int lanes = road[LANES], lane = std::min(std::max((int)std::floor(across / WIDE), 0), lanes - 1);
    const float turn = wrapped(heading - way), offset = across - (lane + 0.5f) * WIDE;
    put(s);
    put(s - before);
    put(across);
    const float side = taken(*body, turn);
    put(std::min(across - side, lanes * WIDE - across - side));
    put(std::min(std::max((s - road[BEGIN]) / (road[END] - road[BEGIN]), 0.0f), 1.0f));
    put(road[END] - SPLIT - s);
    put(offset);
    put(turn);
    put(lanes - 1 - lane), put(lane), put(road[GOAL] - lane);
    for (float ahead : reach) {
      const Pose p = at(line, s + ahead, (lane + 0.5f) * WIDE);
      put((p.x - x) * c + (p.y - y) * d), put((p.y - y) * c - (p.x - x) * d);
    }
    const float front = body->middle + body->length / 2;
    float stop = FAR, change = 0, run = 0, cx = 0, cy = 0;
    int state = 0;
    for (int j = 0; j < crossings_of(road); j++) {
      const float at_line = road[AT + j] - WIDE - BACK, far = at_line - (s + front);
      if (before + front < at_line && far <= 0 && light(road, j, clock, true) == 2) run = 1;
      if (far > -1 && far < stop) {
        stop = far, state = light(road, j, clock, true, &change);
        const Pose p = at(line, at_line, lanes * WIDE + 1);
        cx = p.x, cy = p.y;
      }
    }
    put(stop), put(state == 2), put(state == 1), put(change), put(cx), put(cy);
    float found[NEAREST][6], far[NEAREST];
    int count = 0;
    float gap = FAR, leader = speed, time = 10, hit = 0;
    for (int i = 0; i < N; i++) {
      Pose p;
      if (!vehicle(t, line, road, i, p)) continue;
      const float px = (p.x - x) * c + (p.y - y) * d, py = (p.y - y) * c - (p.x - x) * d, v = t[SPEED * N + i];
      float distance = std::sqrt(px * px + py * py);
      if (distance > SEEN) continue;
      const float other = wrapped(p.heading - heading), vx = v * std::cos(other) - speed, vy = v * std::sin(other) - left;
      const bool main = (int)t[ROAD * N + i] == 0;
      if (distance < 8 && touch(px - body->middle, py, other, body->length / 2, body->width / 2, HALF, BROAD / 2)) hit = 1;
      if (main) {
        const float ahead = t[S * N + i] - s - HALF - front;
        if (t[S * N + i] > s && ahead < gap && std::fabs(t[Y * N + i] - across) < 0.5f * (BROAD + body->width) + SIDE)
          gap = ahead, leader = v;
      }
      if (px > 0 || std::fabs(py) > 0.5f * (BROAD + body->width))  // whoever is straight behind looks out itself
        time = std::min(time, meets(px - body->middle, py, vx, vy, other, body->length / 2, body->width / 2, HALF, BROAD / 2));
      if (px < 0) distance *= 1.5f;  // what is ahead matters more
      int k = count < NEAREST ? count++ : distance < far[NEAREST - 1] ? NEAREST - 1 : -1;
      if (k < 0) continue;
      for (; k > 0 && far[k - 1] > distance; k--) far[k] = far[k - 1], memcpy(found[k], found[k - 1], sizeof found[k]);
      far[k] = distance;
      const float row_of[6] = {px, py, vx, vy, other, 1};
      memcpy(found[k], row_of, sizeof row_of);
    }
    for (int k = count; k < NEAREST; k++) std::fill(found[k], found[k] + 6, 0.0f);
    for (int k = 0; k < NEAREST; k++) put(found[k][0]), put(found[k][1]);
    for (int k = 0; k < NEAREST; k++) put(found[k][2]), put(found[k][3]);
    for (int k = 0; k < NEAREST; k++) put(found[k][4]);
    for (int k = 0; k < NEAREST; k++) put(found[k][5]);
    put(gap), put(leader), put(time), put(hit), put(run), put(bend(line, s));
  }
}
