"""How hard arm-insert presses: the force on the block with the hole, at every physics step of every episode.

    python benchmarks/insertion_force.py [POLICY] [EPISODES]        by default zoo:arm-insert, 500

The force is what MuJoCo's contacts of hand and peg with the block add up to (N, its length), computed anew from the
state after each step of 5 ms. It is called static where the tool has moved by less than 0.5 mm in 0.25 s: then the mean
over that time counts. An impedance that cuts its deflection allows stiffness times clip at rest; stiffness is each
episode's own, drawn from 0.8 to 1.2 times the card's. Everything else that the task randomizes is drawn, too.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from results import words, write

from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv

BATCH = 100
WINDOW = 5
"""Control steps of 50 ms."""
STILL = 5e-4
"""m."""


class Watched:
    """The simulations of a plant, whose forces on one body are summed up after each physics step."""

    def __init__(self, batch: Any, body: str) -> None:
        self._batch, self.models = batch, [batch.get_model(i) for i in range(batch.nsim)]
        self.data = [mujoco.MjData(model) for model in self.models]
        self.body, self.under_way = self.models[0].body(body).id, np.ones(batch.nsim, bool)
        self.forces: list[np.ndarray] = []
        """(n,) N, after each physics step since it was last emptied."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def step(self, **given: Any) -> None:
        self._batch.step(**given)
        self.forces.append(np.array([self._force(i) if on else 0.0 for i, on in enumerate(self.under_way)]))

    def _force(self, i: int) -> float:
        model, data, on = self.models[i], self.data[i], np.zeros(3)
        self._batch.get_data(i, data)
        mujoco.mj_forward(model, data)
        wrench = np.zeros(6)
        for k in range(data.ncon):
            contact = data.contact[k]
            touching = {int(model.geom_bodyid[shape]) for shape in contact.geom}
            if self.body in touching and 0 not in touching:  # 0 is the ground that it stands on
                mujoco.mj_contactForce(model, data, k, wrench)
                sign = 1.0 if model.geom_bodyid[contact.geom[1]] == self.body else -1.0
                on += sign * (contact.frame.reshape(3, 3).T @ wrench[:3])
        return float(np.linalg.norm(on))


def run(policy: Any, task: Any, count: int, first: int) -> dict[str, np.ndarray]:
    """Of episodes (count,): the greatest force, the greatest static one, what K · clip is, and success."""
    env = VecEnv(task, count, HELD_OUT, evaluation=True, episode_length=2 * task.spec.episode_length, first=first)
    clip = task.card.impedance.clip[0]
    allowed = env.plant.param("impedance_stiffness")[:, 0, 0].numpy().copy() * clip
    env.plant.batch = watched = Watched(env.plant.batch, "hole")
    peak, static, won = np.zeros(count), np.zeros(count), np.zeros(count, bool)
    places, means = [], []
    state, signals = policy.initial_state(count), env.signals()
    for _ in range(task.spec.episode_steps):
        places.append(env.plant.truth()["tool_position"].double().numpy().copy())
        commands, state = policy(signals, state)
        watched.forces.clear()
        step = env.step(commands)
        signals = step.signals
        means.append(np.mean(watched.forces, 0))
        on = watched.under_way & ~(step.failed | step.succeeded).numpy()
        peak = np.where(watched.under_way, np.maximum(peak, np.max(watched.forces, 0)), peak)
        won |= watched.under_way & step.succeeded.numpy()
        watched.under_way = on
        if len(places) > WINDOW:
            now = env.plant.truth()["tool_position"].double().numpy()
            moved = np.linalg.norm(np.array(places[-WINDOW:]) - now, axis=2).max(0)
            resting = on & (moved < STILL)
            static = np.where(resting, np.maximum(static, np.mean(means[-WINDOW:], 0)), static)
        if not on.any():
            break
    return {"peak": peak, "static": static, "allowed": allowed, "won": won}


def main() -> None:
    given = words(__doc__, 2)
    target, episodes = (*given, *("zoo:arm-insert", "500")[len(given) :])
    loaded = load(target)
    parts = []
    for first in range(0, int(episodes), BATCH):
        parts.append(run(loaded.policy, loaded.task, min(BATCH, int(episodes) - first), first))
        print(f"{first + len(parts[-1]['peak'])} of {episodes}", flush=True)
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    over = found["static"] / found["allowed"]
    card = loaded.task.card.impedance
    row = {
        "policy": target, "episodes": int(episodes), "success": float(found["won"].mean()),
        "k_clip_of_the_card_n": card.stiffness[0] * card.clip[0], "rested": int((found["static"] > 0).sum()),
        "static_n": quantiles(found["static"]), "static_over_k_clip": quantiles(over),
        "above_k_clip_and_10_percent": int((over > 1.1).sum()), "peak_n": quantiles(found["peak"]),
    }  # fmt: skip
    print(
        f"static force at most {over.max():.2f} of K · clip ({row['above_k_clip_and_10_percent']} episodes above 1.1), "
        f"{found['static'].max():.1f} N; peak {np.median(found['peak']):.0f} N (median), {found['peak'].max():.0f} N"
    )
    write("insertion_force", row)


def quantiles(values: np.ndarray) -> dict[str, float]:
    return {name: float(np.quantile(values, part)) for name, part in (("median", 0.5), ("p99", 0.99), ("most", 1.0))}


if __name__ == "__main__":
    main()
