"""Names that modules had before version 0.2.0, for one release: ``sim.tasks`` is ``robo_rl.sim.tasks``.

Tasks of users import them, also those that travel in bundles. A user's own package ``sim``, ``deploy`` or
``controllers`` comes first. A former name gives the very same module, and warns once.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

MOVED = {
    "controllers": "robo_rl.controllers",
    "controllers.approaching": "robo_rl.controllers.skills.approaching",
    "controllers.car_mppi": "robo_rl.controllers.car.mppi",
    "controllers.chain": "robo_rl.controllers.arm.chain",
    "controllers.footprint_window": "robo_rl.controllers.mobile_base.footprint_window",
    "controllers.gate_checks": "robo_rl.controllers.gate.checks",
    "controllers.gate_codes": "robo_rl.controllers.gate.codes",
    "controllers.gate_config": "robo_rl.controllers.gate.config",
    "controllers.gate_memory": "robo_rl.controllers.gate.memory",
    "controllers.gate_moves": "robo_rl.controllers.gate.moves",
    "controllers.held": "robo_rl.controllers.gate.held",
    "controllers.inserting": "robo_rl.controllers.skills.inserting",
    "controllers.mobile_base_follow": "robo_rl.controllers.mobile_base.follow",
    "controllers.mobile_base_mppi": "robo_rl.controllers.mobile_base.mppi",
    "controllers.placing": "robo_rl.controllers.skills.placing",
    "controllers.pushing": "robo_rl.controllers.skills.pushing",
    "controllers.reserve": "robo_rl.controllers.gate.reserve",
    "controllers.safety": "robo_rl.controllers.gate.safety",
    "controllers.traffic": "robo_rl.controllers.car.traffic",
    "deploy": "robo_rl.deploy",
    "deploy.actor": "robo_rl.deploy.robot.actor",
    "deploy.attachment": "robo_rl.deploy.robot.bundle.attachment",
    "deploy.bundle": "robo_rl.deploy.robot.bundle",
    "deploy.c": "robo_rl.deploy.build.c",
    "deploy.computer": "robo_rl.deploy.robot.computer",
    "deploy.doctor": "robo_rl.deploy.robot.doctor",
    "deploy.dormant": "robo_rl.deploy.build.dormant",
    "deploy.drawn_goals": "robo_rl.deploy.emulate.drawn_goals",
    "deploy.drivers": "robo_rl.deploy.robot.drivers",
    "deploy.drivers.simulated": "robo_rl.deploy.emulate.driver",
    "deploy.emulators": "robo_rl.deploy.emulate",
    "deploy.emulators.crazyflie_crtp": "robo_rl.deploy.emulate.crazyflie.crtp",
    "deploy.emulators.crazyflie_pid": "robo_rl.deploy.emulate.crazyflie.pid",
    "deploy.emulators.crazyflie_serve": "robo_rl.deploy.emulate.crazyflie.serve",
    "deploy.emulators.crazyflie_supervisor": "robo_rl.deploy.emulate.crazyflie.supervisor",
    "deploy.emulators.crazyflie_virtual": "robo_rl.deploy.emulate.crazyflie.virtual",
    "deploy.emulators.crazyflie_wire": "robo_rl.deploy.emulate.crazyflie.wire",
    "deploy.emulators.dynamixel_wire": "robo_rl.deploy.emulate.servos.dynamixel_wire",
    "deploy.emulators.dynamixels": "robo_rl.deploy.emulate.servos.dynamixel_bus",
    "deploy.emulators.f1tenth_serve": "robo_rl.deploy.emulate.f1tenth.serve",
    "deploy.emulators.f1tenth_virtual": "robo_rl.deploy.emulate.f1tenth.virtual",
    "deploy.emulators.f1tenth_wire": "robo_rl.deploy.emulate.f1tenth.wire",
    "deploy.emulators.franka_serve": "robo_rl.deploy.emulate.franka.serve",
    "deploy.emulators.franka_virtual": "robo_rl.deploy.emulate.franka.virtual",
    "deploy.emulators.franka_wire": "robo_rl.deploy.emulate.franka.wire",
    "deploy.emulators.go2_dds": "robo_rl.deploy.emulate.go2.dds",
    "deploy.emulators.go2_virtual": "robo_rl.deploy.emulate.go2.virtual",
    "deploy.emulators.go2_wire": "robo_rl.deploy.emulate.go2.wire",
    "deploy.emulators.px4_serve": "robo_rl.deploy.emulate.px4.serve",
    "deploy.emulators.px4_virtual": "robo_rl.deploy.emulate.px4.virtual",
    "deploy.emulators.px4_wire": "robo_rl.deploy.emulate.px4.wire",
    "deploy.emulators.servo_arm": "robo_rl.deploy.emulate.servos.arm",
    "deploy.emulators.servo_arm_virtual": "robo_rl.deploy.emulate.servos.arm_virtual",
    "deploy.emulators.ur_program": "robo_rl.deploy.emulate.ur.program",
    "deploy.emulators.ur_rtde": "robo_rl.deploy.emulate.ur.rtde",
    "deploy.emulators.ur_serve": "robo_rl.deploy.emulate.ur.serve",
    "deploy.emulators.ur_virtual": "robo_rl.deploy.emulate.ur.virtual",
    "deploy.emulators.ur_wire": "robo_rl.deploy.emulate.ur.wire",
    "deploy.examination": "robo_rl.deploy.build.examination",
    "deploy.export": "robo_rl.deploy.build.export",
    "deploy.firmware": "robo_rl.deploy.build.firmware",
    "deploy.fuzz_readers": "robo_rl.deploy.build.fuzz_readers",
    "deploy.gated": "robo_rl.deploy.robot.gated",
    "deploy.isolation": "robo_rl.deploy.robot.isolation",
    "deploy.joints": "robo_rl.deploy.robot.joints",
    "deploy.link": "robo_rl.deploy.robot.link",
    "deploy.link_messages": "robo_rl.deploy.robot.link.messages",
    "deploy.link_port": "robo_rl.deploy.robot.link.port",
    "deploy.log_arrays": "robo_rl.deploy.robot.logs.arrays",
    "deploy.log_reader": "robo_rl.deploy.robot.logs.reader",
    "deploy.log_recovery": "robo_rl.deploy.robot.logs.recovery",
    "deploy.logfile": "robo_rl.deploy.robot.logs.logfile",
    "deploy.loop": "robo_rl.deploy.robot.loop",
    "deploy.named_values": "robo_rl.deploy.robot.named_values",
    "deploy.native": "robo_rl.deploy.build.native",
    "deploy.onnx_file": "robo_rl.deploy.robot.bundle.onnx_file",
    "deploy.pack": "robo_rl.deploy.build.pack",
    "deploy.realtime": "robo_rl.deploy.robot.realtime",
    "deploy.record": "robo_rl.deploy.robot.logs.record",
    "deploy.replay": "robo_rl.deploy.robot.logs.replay",
    "deploy.runtime": "robo_rl.deploy.robot.runtime",
    "deploy.scans": "robo_rl.deploy.robot.scans",
    "deploy.search": "robo_rl.deploy.build.search",
    "deploy.service": "robo_rl.deploy.robot.service",
    "deploy.signing": "robo_rl.deploy.robot.bundle.signing",
    "deploy.simulated": "robo_rl.deploy.emulate.simulated",
    "deploy.step_log": "robo_rl.deploy.robot.logs.step_log",
    "deploy.structure": "robo_rl.deploy.build.structure",
    "deploy.successors": "robo_rl.deploy.robot.successors",
    "deploy.timing": "robo_rl.deploy.robot.timing",
    "deploy.verify": "robo_rl.deploy.build.verify",
    "deploy.watchdog": "robo_rl.deploy.robot.watchdog",
    "robo_rl.algorithms": "robo_rl.learn",
    "robo_rl.algorithms.live": "robo_rl.online.cloning",
    "robo_rl.algorithms.live_sac": "robo_rl.online.sac",
    "robo_rl.benchmark": "robo_rl.evaluate.benchmark",
    "robo_rl.checkpoint": "robo_rl.learn.runs.checkpoint",
    "robo_rl.comparison": "robo_rl.evaluate.comparison",
    "robo_rl.confined": "robo_rl.files.sandbox",
    "robo_rl.cores": "robo_rl.files.cores",
    "robo_rl.datasets": "robo_rl.adapters.datasets",
    "robo_rl.demonstrations": "robo_rl.learn.experience.demonstrations",
    "robo_rl.distill": "robo_rl.learn.distill",
    "robo_rl.elu": "robo_rl.policy.elu",
    "robo_rl.escaping": "robo_rl.files.escaping",
    "robo_rl.evaluation": "robo_rl.evaluate.evaluation",
    "robo_rl.exploration": "robo_rl.online.exploration",
    "robo_rl.flow": "robo_rl.policy.flow",
    "robo_rl.graphs": "robo_rl.learn.factory",
    "robo_rl.grid": "robo_rl.policies.grid",
    "robo_rl.group_figures": "robo_rl.evaluate.groups",
    "robo_rl.gym": "robo_rl.adapters.gym",
    "robo_rl.gym_picture": "robo_rl.adapters.gym_picture",
    "robo_rl.gym_window": "robo_rl.adapters.gym_window",
    "robo_rl.identification.arm_motion": "robo_rl.identification.arm.motion",
    "robo_rl.identification.arm_observer": "robo_rl.identification.arm.observer",
    "robo_rl.identification.arms": "robo_rl.identification.arm",
    "robo_rl.identification.flight": "robo_rl.identification.multirotor.flight",
    "robo_rl.identification.flight_fit": "robo_rl.identification.multirotor.fit",
    "robo_rl.identification.flight_model": "robo_rl.identification.multirotor.model",
    "robo_rl.identification.flying": "robo_rl.identification.multirotor",
    "robo_rl.identification.walking": "robo_rl.identification.legged",
    "robo_rl.included": "robo_rl.commands.catalog",
    "robo_rl.interventions": "robo_rl.online.interventions",
    "robo_rl.launch": "robo_rl.learn.distributed.launch",
    "robo_rl.learning_env": "robo_rl.learn.experience.learning_env",
    "robo_rl.led": "robo_rl.policy.led",
    "robo_rl.live_learning": "robo_rl.online.learner",
    "robo_rl.loading": "robo_rl.policies.loading",
    "robo_rl.modules": "robo_rl.adapters.modules",
    "robo_rl.native_step": "robo_rl.learn.experience.native_step",
    "robo_rl.networks": "robo_rl.policy.networks",
    "robo_rl.processes": "robo_rl.learn.distributed.processes",
    "robo_rl.project": "robo_rl.commands.project",
    "robo_rl.proportion": "robo_rl.evaluate.proportion",
    "robo_rl.received": "robo_rl.online.received",
    "robo_rl.report.legged_plots": "robo_rl.report.legged.plots",
    "robo_rl.report.multirotor_plots": "robo_rl.report.multirotor.plots",
    "robo_rl.reset_states": "robo_rl.learn.experience.reset_states",
    "robo_rl.residual": "robo_rl.learn.residual",
    "robo_rl.retraining": "robo_rl.identification.retraining",
    "robo_rl.rsl_rl_env": "robo_rl.adapters.rsl_rl_env",
    "robo_rl.run_table": "robo_rl.learn.runs.table",
    "robo_rl.runs": "robo_rl.learn.runs.folder",
    "robo_rl.sb3_env": "robo_rl.adapters.sb3_env",
    "robo_rl.scaling": "robo_rl.learn.distributed.scaling",
    "robo_rl.scripted_operator": "robo_rl.online.scripted_operator",
    "robo_rl.sharing": "robo_rl.policies.sharing",
    "robo_rl.standard_envs": "robo_rl.evaluate.standard_envs",
    "robo_rl.statistics": "robo_rl.evaluate.statistics",
    "robo_rl.sweeps.engines": "robo_rl.learn.distributed.engines",
    "robo_rl.tape": "robo_rl.learn.experience.tape",
    "robo_rl.terrain_evaluation": "robo_rl.evaluate.terrain_evaluation",
    "robo_rl.text_files": "robo_rl.files.text",
    "robo_rl.trackers": "robo_rl.learn.runs.trackers",
    "robo_rl.training": "robo_rl.learn.runs.training",
    "robo_rl.transfer": "robo_rl.evaluate.transfer",
    "robo_rl.transitions": "robo_rl.learn.experience.transitions",
    "robo_rl.untrained": "robo_rl.evaluate.untrained",
    "robo_rl.warm_start": "robo_rl.learn.runs.warm_start",
    "robo_rl.zoo.renew": "robo_rl.commands.renew_zoo",
    "robo_rl_ros": "robo_rl.ros",
    "robo_rl_ros.runner": "robo_rl.deploy.robot.session",
    "robo_rl_ros.switcher": "robo_rl.deploy.robot.switcher",
    "sim": "robo_rl.sim",
    "sim.fuse": "robo_rl.sim.accelerate.fuse",
    "sim.fused_reset": "robo_rl.sim.accelerate.fused_reset",
    "sim.lanes": "robo_rl.sim.scenes.lanes",
    "sim.plants.bullet_bodies": "robo_rl.sim.plants.bullet.bodies",
    "sim.plants.bullet_sensing": "robo_rl.sim.plants.bullet.sensing",
    "sim.plants.bullet_world": "robo_rl.sim.plants.bullet.world",
    "sim.plants.car_drawing": "robo_rl.sim.plants.car.drawing",
    "sim.plants.car_in_lanes": "robo_rl.sim.plants.car.in_lanes",
    "sim.plants.car_on_track": "robo_rl.sim.plants.car.on_track",
    "sim.plants.mobile_base_among_people": "robo_rl.sim.plants.mobile_base.among_people",
    "sim.plants.mobile_base_drawing": "robo_rl.sim.plants.mobile_base.drawing",
    "sim.plants.mobile_base_in_room": "robo_rl.sim.plants.mobile_base.in_room",
    "sim.plants.mujoco_gpu": "robo_rl.sim.plants.warp",
    "sim.plants.multirotor_drawing": "robo_rl.sim.plants.multirotor.drawing",
    "sim.plants.multirotor_mujoco": "robo_rl.sim.plants.multirotor.mujoco",
    "sim.plants.multirotor_rates": "robo_rl.sim.plants.multirotor.rates",
    "sim.plants.omni_base_in_room": "robo_rl.sim.plants.omni_base.in_room",
    "sim.plants.practising_car": "robo_rl.sim.plants.car.practising",
    "sim.plants.warp_kernels": "robo_rl.sim.plants.warp.kernels",
    "sim.plants.warp_worlds": "robo_rl.sim.plants.warp.worlds",
    "sim.robots.arm_chain": "robo_rl.sim.robots.arm.chain",
    "sim.robots.car_urdf": "robo_rl.sim.robots.car.urdf",
    "sim.robots.multirotor_urdf": "robo_rl.sim.robots.multirotor.urdf",
    "sim.rooms": "robo_rl.sim.scenes.rooms",
    "sim.solids": "robo_rl.sim.scenes.solids",
    "sim.terrain": "robo_rl.sim.scenes.terrain",
    "sim.tracks": "robo_rl.sim.scenes.tracks",
    "sim.transition": "robo_rl.sim.episode",
}
"""By a former name: the name since. What lies below a package is below its new name, unless it is listed itself."""
FOLDERS = {name for name in MOVED if "." not in name}
"""Packages that lay beside ``robo_rl``."""
HERE = Path(__file__).resolve().parent


def name_since(name: str) -> str:
    """The name of a module today; ``name`` itself where it has not moved."""
    known, rest = name, ""
    while known not in MOVED and "." in known:
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return MOVED.get(known, known) + rest


class Alias(Loader):
    """Loads a module under a former name: the one that has the name since."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of today."""
        module = importlib.import_module(self.name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been run. The import has just written the former name's spec into it."""
        module.__spec__ = self._spec


class FormerNames(MetaPathFinder):
    """Finds modules by their former names, before anything finds their files a second time."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for all that has not moved, and for what is somebody else's."""
        first, since = fullname.partition(".")[0], name_since(fullname)
        if since == fullname:
            return None
        if first in FOLDERS and not (_is_ours(fullname) if fullname == first else _moved_here(first)):
            return None
        if fullname in MOVED:
            warnings.warn(
                f"{fullname} is {since} since version 0.2.0; the former name goes with 0.3.0",
                FutureWarning,
                stacklevel=2,
            )
        return spec_from_loader(fullname, Alias(since))


def _is_ours(name: str) -> bool:
    """Whether a package of that name is robo-rl's folder, or there is none."""
    found = PathFinder.find_spec(name)
    if found is None:
        return True
    if found.origin is None:  # a folder without __init__.py, as that of somebody's models
        return False
    return Path(found.origin).resolve() == Path(_folder(name)).resolve()


def _folder(name: str) -> str:
    """The file of a package that has moved."""
    spec = PathFinder.find_spec(MOVED[name], [str(HERE)])
    return spec.origin if spec is not None and spec.origin else ""


def _moved_here(name: str) -> bool:
    """Whether a package that was imported by its former name is robo-rl's."""
    return sys.modules.get(name) is sys.modules.get(MOVED[name], name)


def install() -> None:
    """Let former names be found from now on."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())


def become(name: str) -> None:
    """Called by a package that is imported by its former name, from its own folder: it becomes the one of today."""
    install()
    sys.modules[name] = importlib.import_module(MOVED[name])
