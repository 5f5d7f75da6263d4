"""Arms with joints that slide, written into a folder: a SCARA as URDF, a gantry and a lift with a telescope as MJCF."""

from __future__ import annotations

from pathlib import Path

KEYS = ("range", "effort", "velocity", "stiffness", "damping", "armature", "friction")
SLIDE = ("m", "N", "m/s", "N/m", "N*s/m", "kg", "N")
HINGE = ("rad", "N*m", "rad/s", "N*m/rad", "N*m*s/rad", "kg*m^2", "N*m")

SCARA = """<robot name="scara">
<link name="base"><inertial><mass value="5"/><inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.35"/>
<axis xyz="0 0 1"/><limit lower="-2.3" upper="2.3" effort="40" velocity="7"/></joint>
<link name="upper"><inertial><origin xyz="0.12 0 0"/><mass value="3"/>
<inertia ixx="0.005" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.25 0 0"/>
<axis xyz="0 0 1"/><limit lower="-2.6" upper="2.6" effort="20" velocity="10"/></joint>
<link name="fore"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.003" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="quill" type="prismatic"><parent link="fore"/><child link="spindle"/><origin xyz="0.2 0 0"/>
<axis xyz="0 0 -1"/><limit lower="0" upper="0.2" effort="120" velocity="1.1"/></joint>
<link name="spindle"><inertial><mass value="0.6"/>
<inertia ixx="0.002" iyy="0.002" izz="0.0003" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="wrist" type="revolute"><parent link="spindle"/><child link="flange"/><origin xyz="0 0 -0.1"/>
<axis xyz="0 0 -1"/><limit lower="-6.28" upper="6.28" effort="3" velocity="20"/></joint>
<link name="flange"><inertial><mass value="0.3"/>
<inertia ixx="0.0005" iyy="0.0005" izz="0.0003" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="tool" type="fixed"><parent link="flange"/><child link="grip"/>
<origin xyz="0 0 -0.05" rpy="3.141592653589793 0 0"/></joint>
<link name="grip"/></robot>"""

GANTRY = """<mujoco><worldbody><body name="base">
<inertial pos="0 0 0" mass="20" diaginertia="1 1 1"/><geom type="box" size="0.02 0.02 0.02" pos="-0.5 0 0.8"/>
<body name="bridge" pos="0 0 0.8"><joint name="x" type="slide" axis="1 0 0" range="-0.4 0.4"/>
<geom type="box" size="0.03 0.5 0.03" mass="6"/>
<body name="trolley"><joint name="y" type="slide" axis="0 1 0" range="-0.4 0.4"/>
<geom type="box" size="0.05 0.05 0.05" mass="3"/>
<body name="quill"><joint name="z" type="slide" axis="0 0 -1" range="0 0.6"/>
<geom type="box" size="0.02 0.02 0.2" mass="1.5"/><site name="grip" pos="0 0 -0.2" quat="0 1 0 0"/>
</body></body></body></body></worldbody></mujoco>"""

LIFT = """<mujoco><worldbody><body name="base"><inertial pos="0 0 0" mass="20" diaginertia="1 1 1"/>
<body name="carriage" pos="0 0 0.2"><joint name="lift" type="slide" axis="0 0 1" range="0 1.1"/>
<geom type="box" size="0.05 0.05 0.05" mass="2"/>
<body name="telescope" pos="0 -0.1 0"><joint name="arm" type="slide" axis="0 -1 0" range="0 0.52"/>
<geom type="box" size="0.03 0.1 0.03" mass="1"/>
<body name="wrist" pos="0.05 -0.1 0"><joint name="yaw" type="hinge" axis="0 0 1" range="-1.7 1.7"/>
<geom type="box" size="0.02 0.1 0.02" pos="0 -0.1 0" mass="0.5"/>
<site name="grip" pos="0 -0.2 0" quat="0.7071068 0.7071068 0 0"/>
</body></body></body></body></worldbody></mujoco>"""

JOINTS = {
    "scara": {
        "shoulder": (False, [-2.3, 2.3], 40, 7, 900, 60, 0.05),
        "elbow": (False, [-2.6, 2.6], 20, 10, 400, 25, 0.02),
        "quill": (True, [0.0, 0.2], 120, 1.1, 8000, 200, 1.0),
        "wrist": (False, [-6.28, 6.28], 3, 20, 20, 0.4, 0.001),
    },
    "gantry": {
        "x": (True, [-0.4, 0.4], 300, 1.5, 20000, 800, 2.0),
        "y": (True, [-0.4, 0.4], 200, 1.5, 12000, 450, 1.0),
        "z": (True, [0.0, 0.6], 120, 1.0, 9000, 250, 1.0),
    },
    "lift": {
        "lift": (True, [0.0, 1.1], 120, 0.6, 12000, 400, 3.0),
        "arm": (True, [0.0, 0.52], 60, 0.6, 6000, 200, 2.0),
        "yaw": (False, [-1.7, 1.7], 8, 6, 60, 2, 0.01),
    },
}
MODELS = {"scara": ("scara.urdf", SCARA), "gantry": ("gantry.xml", GANTRY), "lift": ("lift.xml", LIFT)}
HOME = {"scara": [-0.6, 1.2, 0.05, 0.0], "gantry": [0.0, 0.0, 0.3], "lift": [0.4, 0.2, 0.0]}
WORKSPACE = {
    "scara": ([0.2, -0.15, 0.05], [0.38, 0.15, 0.15]),
    "gantry": ([-0.3, -0.3, 0.05], [0.3, 0.3, 0.4]),
    "lift": ([-0.05, -0.75, 0.4], [0.15, -0.5, 0.9]),
}
NAMES = tuple(JOINTS)


def sliding_arm(name: str, folder: Path) -> Path:
    """The card of one of ``NAMES``, written with its model into ``folder``."""
    model, text = MODELS[name]
    (folder / model).write_text(text)
    joints = JOINTS[name]
    units = ", ".join(f'"{"m" if slides else "rad"}"' for slides, *_ in joints.values())
    lines = [
        'kind = "arm"', f'title = "{name}"', f'model = "{model}"', 'base = "base"', 'tool = "grip"',
        "weightless = false", f"joints = {list(joints)}".replace("'", '"'),
        f'home = {{ value = {HOME[name]}, unit = [{units}], source = "test" }}', "[workspace]",
        *(
            f'{k} = {{ value = {corner}, unit = "m", source = "test" }}'
            for k, corner in zip(("lower", "upper"), WORKSPACE[name], strict=True)
        ),
    ]  # fmt: skip
    for joint, (slides, *figures) in joints.items():
        lines += ["[[motors]]", f'name = "{joint}"', f'joints = ["{joint}"]', *(["slides = true"] if slides else [])]
        lines += [
            f'{key} = {{ value = {value}, unit = "{unit}", source = "test" }}'
            for key, value, unit in zip(KEYS, (*figures, 0.0), SLIDE if slides else HINGE, strict=True)
        ]
    (folder / "card.toml").write_text("\n".join(lines) + "\n")
    return folder / "card.toml"


def two_scaras(apart: float = 1.0) -> str:
    """A URDF of two SCARAs on one base, the second so far (m) to the left of the first; its names end in _2."""
    inside = SCARA.replace("</robot>", "").partition('<joint name="shoulder"')[2]
    for name in ("shoulder", "upper", "elbow", "fore", "quill", "spindle", "wrist", "flange", "tool", "grip"):
        inside = inside.replace(f'"{name}"', f'"{name}_2"')
    inside = inside.replace('xyz="0 0 0.35"', f'xyz="0 {apart} 0.35"', 1)
    return SCARA.replace("</robot>", f'<joint name="shoulder_2"{inside}</robot>')
