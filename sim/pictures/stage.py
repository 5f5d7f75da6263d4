"""Robots that can be placed and drawn with their ground, a sky, light that casts shadows, and markers.

MuJoCo only draws here; nothing is simulated. The shapes of a plant's drawing are put into a model of its own, once per
robot and body, on bodies that are placed where poses say.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.drawing import STONE, UNPAINTED, Arrow, Color, Frame, Line, Marker, Sphere, Text, Trail, is_plane, seen
from robo_rl.sim.pictures.canvas import Canvas

MOST_SHADOW = 4096
"""Numbers on a side of the map of what the light reaches. A small picture has a smaller one, which is drawn sooner."""
FIELD_OF_VIEW = 36.0
"""Degrees, vertical, of all pictures."""
LINE_PIXELS = 2.5
LINE_LIGHT = 0.5
"""Of their colours, with which lines must be given: MuJoCo draws them twice as light, whatever the lights are."""
LIFT = 0.005
"""Extents by which lines are drawn too high."""
AXES = ((0.85, 0.1, 0.1, 1.0), (0.1, 0.65, 0.1, 1.0), (0.1, 0.2, 0.9, 1.0))
SUN = np.array([1.25, -1.0, 5.0])
"""Where the light is, seen from what the camera looks at, in extents."""
SURROUNDINGS = """
<mujoco>
  <visual>
    <global offwidth="{width}" offheight="{height}" fovy="{field}"/>
    <quality offsamples="4" shadowsize="{shadow}" numslices="20" numstacks="10"/>
    <headlight ambient=".36 .36 .36" diffuse=".18 .18 .18" specular="0 0 0"/>
    <map znear=".02" zfar="40" shadowclip="2.6"/>
  </visual>
  <statistic extent="{extent}" center="0 0 0"/>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".56 .70 .84" rgb2=".93 .95 .97" width="128" height="512"/>
    <texture name="checker" type="2d" builtin="checker" rgb1=".84 .86 .88" rgb2=".76 .79 .82" width="256" height="256"/>
    <material name="floor" texture="checker" texrepeat="{repeat} {repeat}" texuniform="true" specular="0"/>
    <material name="matte" specular="0"/>
  </asset>
  <worldbody>
    <body name="sun" mocap="true">
      <light type="directional" dir="-.25 .2 -1" diffuse=".56 .56 .54" castshadow="true"/>
    </body>
  </worldbody>
</mujoco>
"""


class Stage(Canvas):
    """``robots`` copies of a model.

    with Stage(model, 2, size=(640, 480)) as stage:
        stage.place(poses)
        stage.look(at, distance, azimuth, elevation)
        stage.begin(); stage.mark(marker, 0)
        pixels = stage.finish()
    """

    def __init__(
        self, model: mujoco.MjModel, robots: int, size: tuple[int, int], extent: float,
        offsets: np.ndarray | None = None, floor: float | None = None,
    ) -> None:  # fmt: skip
        """``size``: width and height in pixels; ``extent`` (m): of what is looked at, near enough.

        ``offsets`` (robots, 3) m are added to all that belongs to a robot, its copy of the world's finite shapes
        included; without them robots have one world. ``floor`` (m) is the height of a floor to be added.
        """
        self.extent = extent
        self.offsets = np.zeros((robots, 3)) if offsets is None else offsets
        repeat = 0.5 / 10 ** np.floor(np.log10(0.4 * extent))  # tiles of 1 m, 10 cm, … that are small beside the extent
        shadow = min(MOST_SHADOW, 2 ** round(np.log2(4 * max(size))))
        width, height = size
        spec = mujoco.MjSpec.from_string(
            SURROUNDINGS.format(
                width=width, height=height, shadow=shadow, field=FIELD_OF_VIEW, extent=extent, repeat=repeat
            )
        )
        materials = _add_assets(spec, model)
        if floor is not None:
            plane = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, floor])
            plane.material, plane.castshadow = "floor", False
        shapes = seen(model)
        for shape in shapes:
            if model.geom_bodyid[shape] == 0 and (offsets is None or is_plane(model, shape)):
                _add_shape(spec.worldbody, model, shape, materials)
        self._moving: list[tuple[int, int]] = []
        for robot, body in itertools.product(range(robots), range(model.nbody)):
            mine = [s for s in shapes if model.geom_bodyid[s] == body]
            if body == 0:
                mine = [] if offsets is None else [s for s in mine if not is_plane(model, s)]
            if mine:
                part = spec.worldbody.add_body(name=f"robot {robot} body {body}", mocap=True)
                self._moving.append((robot, body))
                for shape in mine:
                    _add_shape(part, model, shape, materials)
        super().__init__(spec.compile(), size)
        self._sun = int(self.stage.body("sun").mocapid[0])
        names = [f"robot {robot} body {body}" for robot, body in self._moving]
        self._places = [int(self.stage.body(name).mocapid[0]) for name in names]

    def place(self, poses: np.ndarray) -> None:
        """Put the robots where ``poses`` (robots, bodies, 7) say: m and quaternion x, y, z, w."""
        still = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        for (robot, body), at in zip(self._moving, self._places, strict=True):
            pose = poses[robot, body - 1] if body else still
            self.data.mocap_pos[at] = pose[:3] + self.offsets[robot]
            self.data.mocap_quat[at] = pose[[6, 3, 4, 5]]

    def look(self, at: np.ndarray, distance: float, azimuth: float, elevation: float) -> None:
        """As ``Canvas.look``; the light goes along, so that shadows are sharp where one looks."""
        super().look(at, distance, azimuth, elevation)
        self.data.mocap_pos[self._sun] = at + self.extent * SUN

    def begin(self) -> None:
        mujoco.mj_kinematics(self.stage, self.data)
        mujoco.mj_camlight(self.stage, self.data)
        super().begin()

    def mark(self, marker: Marker, robot: int) -> None:
        """Draw what a marker, with arrays (robots, …), shows for a robot. Trails are drawn by ``trail``."""
        if isinstance(marker, Trail):
            return
        if isinstance(marker, Line):
            lifted = np.array([0.0, 0.0, LIFT * self.extent])  # else the ground that they lie on hides parts of them
            self.trail(marker.points[robot] + self.offsets[robot] + lifted, marker.color)
            return
        place = np.asarray(marker.position[robot] + self.offsets[robot], float)
        if not np.isfinite(place).all():
            return
        if isinstance(marker, Sphere):
            self.shape(mujoco.mjtGeom.mjGEOM_SPHERE, (marker.radius,) * 3, place, marker.color)
        elif isinstance(marker, Arrow):
            self._arrow(place, np.asarray(marker.vector[robot], float), marker)
        elif isinstance(marker, Frame):
            turn = np.empty(9)
            mujoco.mju_quat2Mat(turn, np.asarray(marker.orientation[robot], float)[[3, 0, 1, 2]])
            for axis, color in zip(turn.reshape(3, 3).T, AXES, strict=True):
                capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
                self.connect(capsule, 0.03 * marker.size, place, place + marker.size * axis, color)
        elif isinstance(marker, Text):
            self.write(str(marker.text[robot]), place)

    def _arrow(self, place: np.ndarray, vector: np.ndarray, marker: Arrow) -> None:
        if np.isfinite(vector).all() and np.linalg.norm(vector) > 2 * marker.width:
            self.connect(mujoco.mjtGeom.mjGEOM_ARROW, marker.width, place, place + vector, marker.color)

    def trail(self, points: np.ndarray, color: Color, fading: bool = False) -> None:
        """A line through points (k, 3), oldest first; the oldest part is the faintest if it is ``fading``."""
        points = np.asarray(points, float)
        there = np.isfinite(points).all(-1)
        paint = np.array([*(LINE_LIGHT * part for part in color[:3]), color[3]], np.float32)
        for k in np.flatnonzero(there[:-1] & there[1:]).tolist():
            if fading:
                paint[3] = (0.1 + 0.85 * (k + 1) / len(points)) * color[3]
            self.connect(mujoco.mjtGeom.mjGEOM_LINE, LINE_PIXELS, points[k], points[k + 1], paint)

    def marked(self, markers: Sequence[Marker], robots: Sequence[int]) -> np.ndarray:
        """Pixels (height, width, 3) of a picture with markers of one moment, of those robots."""
        self.begin()
        for marker, robot in itertools.product(markers, robots):
            self.mark(marker, robot)
        return self.finish()


def _add_assets(spec: mujoco.MjSpec, model: mujoco.MjModel) -> list[str]:
    """Meshes, height fields, textures and materials of a model; names of the materials by number."""
    for i in range(model.nmesh):
        vertices = slice(model.mesh_vertadr[i], model.mesh_vertadr[i] + model.mesh_vertnum[i])
        faces = slice(model.mesh_faceadr[i], model.mesh_faceadr[i] + model.mesh_facenum[i])
        mesh = spec.add_mesh(name=f"mesh {i}", uservert=model.mesh_vert[vertices].ravel())
        mesh.userface = model.mesh_face[faces].ravel()
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # a flat one has no volume
        if model.mesh_texcoordnum[i]:
            first = model.mesh_texcoordadr[i]
            mesh.usertexcoord = model.mesh_texcoord[first : first + model.mesh_texcoordnum[i]].ravel()
            mesh.userfacetexcoord = model.mesh_facetexcoord[faces].ravel()
    for i in range(model.nhfield):
        rows, columns, first = model.hfield_nrow[i], model.hfield_ncol[i], model.hfield_adr[i]
        heights = model.hfield_data[first : first + rows * columns]
        field = spec.add_hfield(name=f"field {i}", nrow=rows, ncol=columns, size=model.hfield_size[i])
        field.userdata = heights
    for i in range(model.ntex):
        if model.tex_type[i] == mujoco.mjtTexture.mjTEXTURE_SKYBOX:
            continue
        width, height, channels = model.tex_width[i], model.tex_height[i], model.tex_nchannel[i]
        first = model.tex_adr[i]
        texture = spec.add_texture(name=f"texture {i}", width=width, height=height, nchannel=channels)
        texture.type = mujoco.mjtTexture(int(model.tex_type[i]))
        texture.data = model.tex_data[first : first + width * height * channels].tobytes()
    for i in range(model.nmat):
        material = spec.add_material(
            name=f"material {i}", rgba=model.mat_rgba[i], texrepeat=model.mat_texrepeat[i],
            texuniform=bool(model.mat_texuniform[i]), specular=model.mat_specular[i], emission=model.mat_emission[i],
        )  # fmt: skip
        for role in (mujoco.mjtTextureRole.mjTEXROLE_RGB, mujoco.mjtTextureRole.mjTEXROLE_RGBA):
            texture = model.mat_texid[i, int(role)]
            if texture >= 0 and model.tex_type[texture] != mujoco.mjtTexture.mjTEXTURE_SKYBOX:
                material.textures[int(role)] = f"texture {texture}"
    return [f"material {i}" for i in range(model.nmat)]


def _add_shape(body: Any, model: mujoco.MjModel, shape: int, materials: Sequence[str]) -> None:
    """One shape of a model on a body."""
    kind = mujoco.mjtGeom(int(model.geom_type[shape]))
    given: dict[str, Any] = {"pos": model.geom_pos[shape], "quat": model.geom_quat[shape], "type": kind}
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        given["meshname"] = f"mesh {model.geom_dataid[shape]}"
    elif kind == mujoco.mjtGeom.mjGEOM_HFIELD:
        given["hfieldname"] = f"field {model.geom_dataid[shape]}"
    else:
        given["size"] = model.geom_size[shape]
    material, color = model.geom_matid[shape], model.geom_rgba[shape]
    if material >= 0:
        given["material"] = materials[material]
    elif kind == mujoco.mjtGeom.mjGEOM_PLANE and (np.allclose(color, UNPAINTED) or np.allclose(color, STONE)):
        given["material"] = "floor"
    else:
        given["rgba"] = color
    if model.geom_bodyid[shape] == 0:
        given = {"material": "matte", "castshadow": False, **given}
    body.add_geom(contype=0, conaffinity=0, **given)
