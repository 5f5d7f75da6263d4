"""Rotations against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from robo_rl.controllers import rotation

GENERATOR = np.random.default_rng(0)
TURNS = Rotation.random(200, random_state=1)
QUATERNIONS = tuple(TURNS.as_quat().T)  # x, y, z, w


def test_product_is_the_second_turn_followed_by_the_first() -> None:
    others = Rotation.random(200, random_state=2)
    product = np.stack(rotation.multiply(QUATERNIONS, tuple(others.as_quat().T)), -1)
    difference = (Rotation.from_quat(product).inv() * (TURNS * others)).magnitude()
    assert difference.max() < 1e-7
    np.testing.assert_allclose(np.linalg.norm(product, axis=-1), 1.0, atol=1e-12)


def test_matrix_and_body_z_are_scipys() -> None:
    rows = np.moveaxis(np.array(rotation.matrix(QUATERNIONS)), -1, 0)
    np.testing.assert_allclose(rows, TURNS.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(np.stack(rotation.body_z(QUATERNIONS), -1), TURNS.apply([0, 0, 1]), atol=1e-12)


def test_small_rotation_is_the_exponential_map_up_to_one_radian() -> None:
    directions = GENERATOR.normal(size=(200, 3))
    angles = directions / np.linalg.norm(directions, axis=-1, keepdims=True) * GENERATOR.uniform(0, 1, (200, 1))
    found = np.stack(rotation.small_rotation(tuple(angles.T)), -1)
    np.testing.assert_allclose(found, Rotation.from_rotvec(angles).as_quat(), atol=1e-7)


def test_newton_step_restores_unit_norm_to_second_order() -> None:
    off = 1.001
    found = np.linalg.norm(rotation.nearly_normalized(tuple(off * q for q in QUATERNIONS)), axis=0)
    np.testing.assert_allclose(found, 1.0, atol=2 * (off - 1) ** 2)


@pytest.mark.parametrize("yaw", [-3.1, -1.0, 0.0, 0.4, 3.0])
def test_heading_is_the_yaw_that_remains_without_tilt(yaw: float) -> None:
    tilt = Rotation.from_rotvec([0.6, -0.9, 0.0])  # about a horizontal axis
    turned = (Rotation.from_euler("z", yaw) * tilt).as_quat()
    cosine, sine = rotation.heading(tuple(turned))
    np.testing.assert_allclose([cosine, sine], [np.cos(yaw), np.sin(yaw)], atol=1e-5)


def test_turning_back_is_the_inverse_turn_about_world_z() -> None:
    vectors = GENERATOR.normal(size=(50, 3))
    found = np.stack(rotation.turn_back(tuple(vectors.T), np.cos(0.7), np.sin(0.7)), -1)
    np.testing.assert_allclose(found, Rotation.from_euler("z", 0.7).inv().apply(vectors), atol=1e-12)


def test_cross_and_dot_are_numpys() -> None:
    a, b = GENERATOR.normal(size=(2, 50, 3))
    np.testing.assert_allclose(np.stack(rotation.cross(tuple(a.T), tuple(b.T)), -1), np.cross(a, b), atol=1e-12)
    np.testing.assert_allclose(rotation.dot(tuple(a.T), tuple(b.T)), (a * b).sum(-1), atol=1e-12)
    np.testing.assert_allclose(np.stack(rotation.add(tuple(a.T), tuple(b.T), 2.0), -1), a + 2 * b, atol=1e-12)
