"""An arm that does what a LeRobotDataset shows: a task made from its description, and demonstrations for it.

    class Policy(RecordedArm):
        description = "policy.toml"
        files = ("policy.toml",)

in a file of the user's is such a task; ``robo-rl adopt FOLDER`` writes one. Its contract is what the recording has:
measured positions of joints, targets for them, the recorded rate; limits and gains are the robot's. What the
recorded person saw of the world is not in it, so the simulation has the arm alone, and tells how far its pose is from
those in which recorded episodes ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from robo_rl.adapters.datasets import Dataset, DatasetError
from robo_rl.adapters.datasets.arm_recording import Recording, driven, parse
from robo_rl.contract import Safety, StateBlock
from robo_rl.files import read_bytes
from robo_rl.files.text import loads_toml
from robo_rl.learn.experience.demonstrations import COMMAND, SIGNAL
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.arm.hand import gripper_commands, gripper_signals
from robo_rl.sim.tasks.arm.joints import Joints
from robo_rl.sim.tasks.arm.physical import arm_ranges, randomize_arm, simulated

MOST_BYTES = 1 << 20
"""Of a description."""
SILENT = 3.0
"""Control periods without signals until the gate stops the arm; 60 ms at least."""


def read(path: Path) -> Recording:
    """The description in a file."""
    try:
        return parse(loads_toml(read_bytes(path, MOST_BYTES)), str(path))
    except DatasetError:
        raise
    except (ValueError, OSError) as error:
        raise DatasetError(f"{path}: {str(error)[:300]}; expected what 'robo-rl adopt' writes") from None


class RecordedArm(Task[Articulated]):
    """Move as recorded."""

    name = "recorded-arm"
    summary = "move an arm as a recording shows"
    description: ClassVar[str] = ""
    """The file, beside the class's own."""
    card_type = ArmCard
    plants = ("mujoco", "warp")
    solving: Mapping[str, float] = MappingProxyType({})
    measures = (Measure("end_pose_error", "rad", "end", 0.2),)
    perturbed = ("stiffness", "damping", "command_delay", "noise")
    algorithms = ("bc",)
    goal_size = 1
    expected = 0.0

    def __init__(self, card: ArmCard | None = None, told: Recording | None = None) -> None:
        told = told or read(Path(inspect.getfile(type(self))).parent / self.description)
        self.told, self.card = told, card or load_arm(told.robot)
        joints = driven(self.card)
        self.joints, self.action_size = Joints(self.card), len(joints)
        self.action_names = tuple(joint.name for joint in joints)
        self.lower, self.upper = (
            torch.tensor([[getattr(joint, side) for joint in joints]]) for side in ("lower", "upper")
        )
        self.observation_size = self.action_size * told.history
        middle = (0.5 * (self.lower + self.upper)).tolist()
        self.starts, self.ends = torch.tensor(told.starts or middle), torch.tensor(told.ends or middle)
        self.spec = self._specified()

    def _specified(self) -> Spec:
        period, past = 1.0 / self.told.rate, self.told.history - 1
        signals = (*self.joints.signals(), *gripper_signals(self.card))
        return Spec(
            name=self.name,
            summary=self.summary,
            robot=self.card,
            control_period=period,
            episode_length=round(1.2 * self.told.seconds / period) * period,
            signals=tuple(signal for signal in signals if "velocity" not in signal.name),
            commands=(*self.joints.commands(), *gripper_commands(self.card)),
            memory=self._memory(past) if past else (),
            safety=Safety(signal_timeout=max(0.06, SILENT * period)),
            reward={"near_end": 1.0},
            ranges={"initial/pose": Range.fixed(0.0, 1.0), **arm_ranges()},
            facts={"recording": {"rate": self.told.rate, "units": self.told.units}},
        )

    def _memory(self, past: int) -> tuple[StateBlock, ...]:
        positions = StateBlock("past", (past, self.action_size), (0.0,) * past * self.action_size)
        return positions, StateBlock("started", (1,), (0.0,))

    # --- simulation ----------------------------------------------------------------------------------------------

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        return simulated(self, n, device)

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated:
        """n arms in an engine, a class of ``robo_rl.sim.plants``."""
        return engine(self.card.mechanism, n, self.spec.control_period, **settings)

    def randomize(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        randomize_arm(self.card, plant, ids, drawn)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        return torch.zeros(len(drawn["noise"]), 1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        count = len(self.starts)
        pose = self.starts[(drawn["initial/pose"] * count).long().clamp(max=count - 1)]
        pose = torch.minimum(torch.maximum(pose, self.lower), self.upper)
        gripper = {"gripper_position": pose[:, -1:]} if self.card.fingers else {}
        plant.place(ids, **self.joints.apart(pose[:, : self.joints.count], "position"), **gripper)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {}

    # --- what runs on the robot ----------------------------------------------------------------------------------

    def _measured(self, signals: Tensors) -> Any:
        """(n, J) positions, −1 to 1 between the limits of the commands."""
        row = self.joints.row(signals, "position")
        if self.card.fingers:
            row = torch.cat([row, signals["gripper_position"]], -1)
        return 2.0 * (row - self.lower) / (self.upper - self.lower) - 1.0

    def _past(self, now: Any, memory: Tensors) -> Any:
        """(n, steps, J), oldest first; at first what is measured now."""
        past, started = memory["past"], memory["started"][:, :, None]
        return started * past + (1.0 - started) * now[:, None].expand(-1, past.shape[1], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        now = self._measured(signals)
        return torch.cat([self._past(now, memory), now[:, None]], 1).flatten(1) if "past" in memory else now

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        target = self.lower + 0.5 * (torch.clamp(action, -1.0, 1.0) + 1.0) * (self.upper - self.lower)
        gripper = {"gripper_position_target": target[:, -1:]} if self.card.fingers else {}
        return {**self.joints.apart(target[:, : self.joints.count], "position_target"), **gripper}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        if "past" not in memory:
            return {}
        now = self._measured(signals)
        past = torch.cat([self._past(now, memory)[:, 1:], now[:, None]], 1)
        return {"past": past, "started": torch.ones_like(memory["started"])}

    # --- how well it does ----------------------------------------------------------------------------------------

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """(n,) rad, root mean square over the joints, from the nearest pose in which an episode ended."""
        row = self.joints.row(truth, "position")
        away = row[:, None] - self.ends[None, :, : self.joints.count]
        return {"end_pose_error": torch.sqrt(away.square().mean(-1).amin(-1))}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        return {"near_end": torch.exp(-10.0 * self.errors(truth)["end_pose_error"])}

    def failed(self, truth: Tensors) -> Any:
        """An arm alone can't fail."""
        return self.joints.row(truth, "position")[:, 0].abs() > 100.0

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        return self._measured(truth)

    # --- demonstrations ------------------------------------------------------------------------------------------

    def demonstrations(self, data: Dataset, measured: np.ndarray, commanded: np.ndarray) -> dict[str, Tensor]:
        """The tensors of a file of ``robo_rl.learn.experience.demonstrations``; angles (s, J) rad as ``driven``.

        Measured angles are within the signals' limits, and targets within the commands' afterwards.
        """
        seen = self._signals(torch.from_numpy(measured).float())
        target = torch.from_numpy(commanded).float()
        action = (2.0 * (target - self.lower) / (self.upper - self.lower) - 1.0).clamp(-1.0, 1.0)
        episode, lengths = torch.from_numpy(data.episode), torch.from_numpy(data.lengths)
        first = lengths.cumsum(0) - lengths
        observation = torch.zeros(len(episode), self.observation_size)
        memory = self.first_memory(len(lengths))
        for step in range(int(lengths.max())):  # of all episodes at once; those that are over are not written
            rows = first + torch.clamp(torch.full_like(first, step), max=lengths - 1)
            signals = {name: value[rows] for name, value in seen.items()}
            now, going = self.observe(signals, memory), step < lengths
            observation[rows[going]] = now[going]
            memory = self.remember(memory, signals, {})
        last = torch.zeros(len(episode), dtype=torch.bool)
        last[first + lengths - 1] = True
        following = torch.arange(len(episode)) + (~last).long()
        commands = self.command(action, {})
        return {
            "observation": observation, "action": action, "reward": torch.zeros(len(episode)), "ended": last.float(),
            "next_observation": observation[following], "episode": episode,
            **{SIGNAL + name: value for name, value in seen.items()},
            **{COMMAND + name: value for name, value in commands.items()},
        }  # fmt: skip

    def _signals(self, row: Tensor) -> dict[str, Tensor]:
        gripper = {"gripper_position": row[:, -1:]} if self.card.fingers else {}
        found = {**self.joints.apart(row[:, : self.joints.count], "position"), **gripper}
        limits = {s.name: (torch.tensor(s.lower), torch.tensor(s.upper)) for s in self.spec.signals}
        return {name: torch.clamp(value, *limits[name]).contiguous() for name, value in found.items()}
