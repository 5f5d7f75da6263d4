"""Hyperparameters of the learning algorithms. Apart from the algorithms, so that reading them loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ApgConfig:
    """Hyperparameters of the analytic policy gradient."""

    updates: int = 110
    """Gradient steps, times the task's effort; the learning rate falls to zero along half a cosine over them."""
    environments: int = 192
    """Robots simulated at once."""
    horizon: int = 32
    """Control steps that a gradient sees."""
    learning_rate: float = 0.016
    """Adam's step size at the start."""
    betas: tuple[float, float] = (0.8, 0.9)
    """Adam's averaging. The gradient is exact but for the draw of environments, so short averages do."""
    gradient_norm: float = 0.1
    """Longer gradients are cut to this norm."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the policy's hidden layers."""
    activation: Literal["tanh"] = "tanh"
    """What follows the hidden layers."""


@dataclass(frozen=True)
class PpoConfig:
    """Hyperparameters of proximal policy optimisation, by rsl_rl's names where it has them."""

    updates: int = 300
    """Iterations of collecting and learning, times the task's effort."""
    environments: int = 1024
    """Robots simulated at once."""
    horizon: int = 32
    """Control steps collected per environment and update."""
    learning_rate: float = 1e-3
    """Adam's step size at the start; it adapts to the wanted divergence."""
    desired_kl: float = 0.02
    """Divergence between policies before and after an update that the step size aims at."""
    epochs: int = 4
    mini_batches: int = 4
    gamma: float = 0.99
    """Discount per control step."""
    lam: float = 0.95
    """λ of generalised advantage estimation."""
    clip: float = 0.2
    entropy: float = 0.002
    """Weight of the entropy bonus."""
    gradient_norm: float = 1.0
    initial_deviation: float = 0.4
    """Standard deviation of exploration at the start, in actions."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the policy's hidden layers."""
    critic_hidden: tuple[int, ...] = (128, 128)
    activation: Literal["tanh", "elu", "relu", "silu"] = "tanh"
    recurrent: int = 0
    """Width of a recurrent network (GRU) in front of the policy's hidden layers; 0 for none."""
    normalize: bool = True
    """Normalise observations by their running mean and deviation."""


@dataclass(frozen=True)
class DistillConfig:
    """Hyperparameters of distillation (``robo_rl.distill``)."""

    hidden: tuple[int, ...]
    """Widths of the student's hidden layers."""
    activation: str
    normalize: bool = False
    """Normalise observations, by the teacher's mean and deviation."""
    updates: int = 4000
    """Steps of learning, and of all robots."""
    environments: int = 256
    """Robots simulated at once."""
    mixed: int = 16
    """Past moments that join every update."""
    learning_rate: float = 1e-3
    """Adam's step size at the start; it falls to zero along half a cosine."""
    teacher: str = ""
    """Folder of the teacher's run; "" if the teacher is a bundle."""


CONFIGS = {"apg": ApgConfig, "ppo": PpoConfig, "distilled": DistillConfig}
