// Depth images of cameras on bodies, for many environments: sim/cameras/__init__.py says what for. Every pixel's ray is
// (u, v, 1) in the optical frame, so the parameter at which it meets a shape is the depth along the optical axis.
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Kind { BOX, CAPSULE, CYLINDER, PLANE };

struct Shape {
  int32_t kind, body;     // body: number in the engine's model
  int32_t own;            // which of the environments' own sizes is its; -1: size is for all
  float place[3], turn[9];  // in the body's frame; of a plane the third column is its normal
  float size[3];          // half lengths; radius and half length along z
};

struct Camera {
  int32_t body, pixels;
  float place[3], turn[9];  // of the optical frame in the body's
  float nearest, longest;
  float slope;  // greatest |(u, v)| of a pixel
};

struct Frame {
  float place[3], turn[9];
};

// The frame b, which is given in the frame a, in a's own surroundings.
Frame chained(const Frame &a, const float *place, const float *turn) {
  Frame out;
  for (int i = 0; i < 3; i++) {
    out.place[i] = a.place[i];
    for (int k = 0; k < 3; k++) {
      out.place[i] += a.turn[3 * i + k] * place[k];
      float sum = 0;
      for (int j = 0; j < 3; j++) sum += a.turn[3 * i + j] * turn[3 * j + k];
      out.turn[3 * i + k] = sum;
    }
  }
  return out;
}

Frame body_of(const double *place, const double *turn, int body, const double *origin) {
  Frame out;
  for (int i = 0; i < 3; i++) out.place[i] = float(place[3 * body + i] - origin[i]);
  for (int i = 0; i < 9; i++) out.turn[i] = float(turn[9 * body + i]);
  return out;
}

// A small turn about the axis and by the angle of a vector (rad).
void turned(const double *w, float *out) {
  const double angle = std::sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const double s = angle > 1e-9 ? std::sin(angle) / angle : 1.0;
  const double c = angle > 1e-9 ? (1 - std::cos(angle)) / (angle * angle) : 0.5;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) out[3 * i + k] = float(c * w[i] * w[k] + (i == k ? std::cos(angle) : 0.0));
  out[1] -= s * w[2], out[2] += s * w[1], out[3] += s * w[2], out[5] -= s * w[0], out[6] -= s * w[1], out[7] += s * w[0];
}

// Where a ray o + t d enters a box of these half lengths; beyond longest if it does not.
inline float into_box(const float *o, float dx, float dy, float dz, const float *half, float longest) {
  const float ix = 1 / dx, iy = 1 / dy, iz = 1 / dz;  // infinite where parallel: then both ends are, of unlike signs
  const float ax = (-half[0] - o[0]) * ix, bx = (half[0] - o[0]) * ix;
  const float ay = (-half[1] - o[1]) * iy, by = (half[1] - o[1]) * iy;
  const float az = (-half[2] - o[2]) * iz, bz = (half[2] - o[2]) * iz;
  const float lx = ax < bx ? ax : bx, hx = ax < bx ? bx : ax;
  const float ly = ay < by ? ay : by, hy = ay < by ? by : ay;
  const float lz = az < bz ? az : bz, hz = az < bz ? bz : az;
  float low = lx > ly ? lx : ly, high = hx < hy ? hx : hy;
  low = low > lz ? low : lz, high = high < hz ? high : hz;
  const float first = low > 0 ? low : high;  // from inside, its far side
  return (low <= high) & (high > 0) ? first : longest;
}

// Of a ball about (0, 0, z).
inline float into_ball(const float *o, float dx, float dy, float dz, float radius, float z, float longest) {
  const float oz = o[2] - z, a = dx * dx + dy * dy + dz * dz, b = o[0] * dx + o[1] * dy + oz * dz;
  const float c = o[0] * o[0] + o[1] * o[1] + oz * oz - radius * radius, root = b * b - a * c;
  const float t = (-b - std::sqrt(root > 0 ? root : 0.0f)) / a;
  return (root >= 0) & (t > 0) ? t : longest;
}

// Of the side of a cylinder along z, between its ends.
inline float into_side(const float *o, float dx, float dy, float dz, float radius, float half, float longest) {
  const float a = dx * dx + dy * dy, b = o[0] * dx + o[1] * dy, c = o[0] * o[0] + o[1] * o[1] - radius * radius;
  const float root = b * b - a * c, t = (-b - std::sqrt(root > 0 ? root : 0.0f)) / (a > 1e-12f ? a : 1e-12f);
  const float z = o[2] + t * dz;
  return (root >= 0) & (t > 0) & (z >= -half) & (z <= half) ? t : longest;
}

inline float into_cap(const float *o, float dx, float dy, float dz, float radius, float z, float longest) {
  const float t = (z - o[2]) / dz, x = o[0] + t * dx, y = o[1] + t * dy;
  return (t > 0) & (x * x + y * y <= radius * radius) ? t : longest;
}

inline float least(float a, float b) { return a < b ? a : b; }

// Whether a shape can be seen: the ball around it is in front of the camera, within reach and in the cone of the view.
bool in_view(const Frame &seen, const Shape &shape, const float *size, const Camera &camera) {
  if (shape.kind == PLANE) return true;
  float radius = shape.kind == BOX        ? std::sqrt(size[0] * size[0] + size[1] * size[1] + size[2] * size[2])
                 : shape.kind == CAPSULE ? size[0] + size[1]
                                         : std::sqrt(size[0] * size[0] + size[1] * size[1]);
  const float *p = seen.place, aside = std::sqrt(p[0] * p[0] + p[1] * p[1]);
  const float beyond = (aside - camera.slope * p[2]) / std::sqrt(1 + camera.slope * camera.slope);
  return p[2] + radius > 0 && p[2] - radius < camera.longest && beyond < radius;
}

void draw(const Frame &seen, const Shape &shape, const float *size, const Camera &camera, const float *rays,
          float *image) {
  const float *u = rays, *v = rays + camera.pixels, *t = seen.turn, far = camera.longest;
  float o[3];  // the camera in the shape's frame
  for (int k = 0; k < 3; k++) o[k] = -(t[k] * seen.place[0] + t[3 + k] * seen.place[1] + t[6 + k] * seen.place[2]);
#define EVERY(meets)                                                                        \
  for (int i = 0; i < camera.pixels; i++) {                                                 \
    const float dx = t[0] * u[i] + t[3] * v[i] + t[6], dy = t[1] * u[i] + t[4] * v[i] + t[7]; \
    const float dz = t[2] * u[i] + t[5] * v[i] + t[8];                                      \
    image[i] = least(image[i], meets);                                                      \
  }
  const float r = size[0], h = size[1];
  if (shape.kind == BOX) EVERY(into_box(o, dx, dy, dz, size, far))
  if (shape.kind == PLANE) EVERY((-o[2] / dz > 0) & (o[2] > 0) ? -o[2] / dz + 0 * (dx + dy) : far)
  if (shape.kind == CAPSULE)
    EVERY(least(into_side(o, dx, dy, dz, r, h, far),
                least(into_ball(o, dx, dy, dz, r, h, far), into_ball(o, dx, dy, dz, r, -h, far))))
  if (shape.kind == CYLINDER)
    EVERY(least(into_side(o, dx, dy, dz, r, h, far),
                least(into_cap(o, dx, dy, dz, r, h, far), into_cap(o, dx, dy, dz, r, -h, far))))
#undef EVERY
}

}  // namespace

// place (·, bodies, 3) and turn (·, bodies, 9) of the bodies; mount (·, 6) m, rad: the camera's error in its own frame,
// or null; own (·, owns, 3) m: sizes, or null. Rows of these and of images (·, pixels) are environments; ids may be null.
extern "C" void render(int64_t m, const int64_t *ids, const double *place, const double *turn, int64_t bodies,
                       const Shape *shapes, int64_t count, const double *own, int64_t owns, const Camera *camera,
                       const float *rays, const double *mount, float *images, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
  for (int64_t row = 0; row < m; row++) {
    const int64_t e = ids ? ids[row] : row;
    const double *places = place + e * bodies * 3, *turns = turn + e * bodies * 9;
    float *image = images + e * camera->pixels;
    const double *origin = places + 3 * camera->body;  // all is seen from here, so float32 is fine anywhere
    Frame eye = chained(body_of(places, turns, camera->body, origin), camera->place, camera->turn);
    if (mount) {
      float way[3], off[9];
      for (int k = 0; k < 3; k++) way[k] = float(mount[6 * e + k]);
      turned(mount + 6 * e + 3, off);
      eye = chained(eye, way, off);
    }
    for (int i = 0; i < camera->pixels; i++) image[i] = camera->longest;
    for (int s = 0; s < count; s++) {
      const Shape &shape = shapes[s];
      float size[3];
      for (int k = 0; k < 3; k++)
        size[k] = shape.own < 0 || !own ? shape.size[k] : float(own[(e * owns + shape.own) * 3 + k]);
      const Frame at = chained(body_of(places, turns, shape.body, origin), shape.place, shape.turn);
      Frame seen;  // in the optical frame
      for (int i = 0; i < 3; i++) {
        seen.place[i] = 0;
        for (int k = 0; k < 3; k++) {
          seen.place[i] += eye.turn[3 * k + i] * (at.place[k] - eye.place[k]);
          seen.turn[3 * i + k] = 0;
          for (int j = 0; j < 3; j++) seen.turn[3 * i + k] += eye.turn[3 * j + i] * at.turn[3 * j + k];
        }
      }
      if (in_view(seen, shape, size, *camera)) draw(seen, shape, size, *camera, rays, image);
    }
    for (int i = 0; i < camera->pixels; i++) image[i] = image[i] < camera->nearest ? 0.0f : image[i];
  }
}
