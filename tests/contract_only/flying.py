"""A multirotor of its own: a rigid body and rotors that lag, by the facts of a contract; Euler's steps of 2 ms."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.contract_only.interface import Arrays, Draws, Policy, Sensors, multiply, rotated

STEP, GRAVITY = 0.002, 9.80665


class Vehicles:
    """n of them, each with what was drawn for it."""

    def __init__(self, policy: Policy, draw: Draws) -> None:
        facts, task, n = policy.robot["facts"], policy.facts, policy.n
        rotors = facts["rotors"]
        self.place = np.array([rotor["position"] for rotor in rotors])
        self.spin = np.array([1.0 if rotor["spin"] == "ccw" else -1.0 for rotor in rotors])
        self.curve = np.array([rotor["thrust"] for rotor in rotors])
        count = len(rotors)
        self.scale = draw("thrust", otherwise=1.0)[:, None] * draw("thrust_of_one_rotor", count, otherwise=1.0)
        self.ratio = rotors[0]["torque_ratio"] * draw("torque_ratio", otherwise=1.0)[:, None]
        self.rise = rotors[0]["rise"] * draw("rise_time", otherwise=1.0)[:, None]
        self.fall = rotors[0]["fall"] * draw("fall_time", otherwise=1.0)[:, None]
        self.own_mass, self.own_inertia = facts["mass"], np.array(facts["inertia"])
        self.mass = facts["mass"] * draw("mass", otherwise=1.0)[:, None]
        self.inertia = self.own_inertia * draw("inertia", otherwise=1.0)[:, None]
        self.wheel = task["rotor_inertia"] * draw("rotor_inertia", otherwise=1.0)[:, None]
        self.drag, self.wind = task["drag"], draw("wind", 3)
        self.force, self.torque = draw("force", 3), draw("torque", 3)
        tilt, way, yaw = draw("initial.tilt"), draw("initial.direction"), draw("initial.yaw")
        lean = [np.sin(tilt / 2) * np.cos(way), np.sin(tilt / 2) * np.sin(way), 0.0 * tilt, np.cos(tilt / 2)]
        turn = [0.0 * yaw, 0.0 * yaw, np.sin(yaw / 2), np.cos(yaw / 2)]
        self.attitude = multiply(np.stack(lean, 1), np.stack(turn, 1))
        self.position, self.velocity = draw("initial.position", 3), draw("initial.linear_velocity", 3)
        self.rates = draw("initial.angular_velocity", 3)
        self.speed = task["rotor_speed_at_hover"] * np.ones((n, count))
        self.speed *= draw("initial.rotor_speed", otherwise=1.0)[:, None]
        law = next((c["law"] for c in policy.contract["commands"] if c["name"] == "body_rate"), None)
        if law:  # the loop of an autopilot that takes its vehicle for the facts' one
            slow, fast = np.array(law["trained"])
            tilt, yaw = draw.random.uniform(size=(2, n))
            part = np.stack([tilt, tilt, yaw], 1)
            self.gain, self.slope = slow + part * (fast - slow), draw("thrust_slope", otherwise=1.0)[:, None]
            x, y, _ = self.place.T
            shares = np.stack([np.ones(count), y, -x, -self.spin * rotors[0]["torque_ratio"]])
            self.mix = np.linalg.pinv(shares)
            self.most = self._thrust(np.full((1, count), policy.robot["actuators"][0]["upper"]), 1.0)

    def _thrust(self, speed: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
        c0, c1, c2 = self.curve.T
        return scale * (c0 + c1 * speed + c2 * speed**2)

    def wanted(self, commands: Arrays) -> np.ndarray:
        """(n, R) rad/s."""
        if "rotor_speed" in commands:
            return commands["rotor_speed"]
        torque = self.own_inertia * self.gain * (commands["body_rate"] - self.rates)
        lift = self.own_mass * np.maximum(0.0, GRAVITY + self.slope * (commands["thrust"] - GRAVITY))
        thrust = np.concatenate([lift, torque[:, :2]], 1) @ self.mix[:, :3].T
        yaw = torque[:, 2:] @ self.mix[:, 3:].T
        thrust = np.clip(thrust + np.clip(yaw, -0.15 * self.most, 0.15 * self.most), 1e-3 * self.most, self.most)
        return np.sqrt(thrust / self.curve[:, 2])

    def step(self, commands: Arrays) -> None:
        """2 ms."""
        target = self.wanted(commands)
        speeding = (target - self.speed) / np.where(target > self.speed, self.rise, self.fall)
        self.speed = self.speed + STEP * speeding
        thrust = self._thrust(self.speed, self.scale)
        yaw = -(self.spin * (self.ratio * thrust + self.wheel * speeding)).sum(1)
        torque = np.stack([thrust @ self.place[:, 1], -thrust @ self.place[:, 0], yaw], 1) + self.torque
        momentum = self.inertia * self.rates
        momentum[:, 2] += (self.wheel * self.spin * self.speed).sum(1)
        self.rates = self.rates + STEP * (torque - np.cross(self.rates, momentum)) / self.inertia
        half = 0.5 * STEP * self.rates
        self.attitude = multiply(self.attitude, np.concatenate([half, np.ones((len(half), 1))], 1))
        self.attitude /= np.linalg.norm(self.attitude, axis=1, keepdims=True)
        up = rotated(self.attitude, np.tile([[0.0, 0.0, 1.0]], (len(half), 1)))
        air, spinning = self.velocity - self.wind, self.speed.sum(1, keepdims=True)
        along = up * (up * air).sum(1, keepdims=True)
        force = thrust.sum(1, keepdims=True) * up + self.force
        force -= spinning * (self.drag["in_plane"] * (air - along) + self.drag["axial"] * along)
        force -= self.drag["body"] * np.linalg.norm(air, axis=1, keepdims=True) * air
        self.velocity = self.velocity + STEP * (force / self.mass - [0.0, 0.0, GRAVITY])
        self.position = self.position + STEP * self.velocity


class Eights:
    """Set-points on figures of eight, as docs/bundle.md has them; at the origin where the task has none."""

    def __init__(self, draw: Draws) -> None:
        size = draw("goal.size")
        self.shape = np.stack([size, size * draw("goal.width"), size * draw("goal.height")], 1)
        self.rate, self.phase = 2 * np.pi / draw("goal.period", otherwise=np.inf), draw("goal.phase")
        self.jump, self.when = draw("goal.step", 3), draw("goal.step_time", otherwise=np.inf)

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3) m and m/s."""
        p = self.phase + self.rate * time
        place = self.shape * np.stack([np.sin(p), np.sin(2 * p), np.sin(p)], 1)
        speed = self.shape * self.rate[:, None] * np.stack([np.cos(p), 2 * np.cos(2 * p), np.cos(p)], 1)
        return place + self.jump * (time > self.when)[:, None], speed


def success(file: Path, n: int, seed: int = 0) -> float:
    """The part of n flights that stay within what the contract calls success."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    vehicles, goal, sensors = Vehicles(policy, draw), Eights(draw), Sensors(policy, draw, STEP)
    place, speed = goal.at(0.0)
    vehicles.position, vehicles.velocity = vehicles.position + place, vehicles.velocity + speed
    limits, good = policy.facts["success"], np.ones(n, bool)
    per = round(policy.period / STEP)
    for k in range(round(policy.facts["episode"] / policy.period)):
        truth = {
            "position": vehicles.position, "orientation": vehicles.attitude, "linear_velocity": vehicles.velocity,
            "angular_velocity": vehicles.rates,
        }  # fmt: skip
        if not k:
            for name, value in truth.items():
                sensors.note(name, value)
        place, speed = goal.at(k * policy.period)
        commands = policy({**sensors.read(), "position_setpoint": place, "linear_velocity_setpoint": speed})
        for _ in range(per):
            vehicles.step(commands)
            sensors.note("position", vehicles.position)
            sensors.note("orientation", vehicles.attitude)
            sensors.note("linear_velocity", vehicles.velocity)
            sensors.note("angular_velocity", vehicles.rates)
        away = np.linalg.norm(vehicles.position - goal.at((k + 1) * policy.period)[0], axis=1)
        good &= (away < limits["within_m"]) & (np.abs(vehicles.rates).max(1) < limits["turning_slower_than_rad_s"])
        good &= ~policy.refused
        lost = ~good  # they fly on elsewhere, for nothing
        for array, value in ((vehicles.position, place), (vehicles.velocity, speed), (vehicles.rates, 0.0 * speed)):
            array[lost] = value[lost]
    return float(good.mean())
