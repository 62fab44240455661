"""Batched least squares against numpy, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.search import leastsquares


@pytest.fixture
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    design = generator.uniform(0.1, 1, size=(7, 9, 3))
    weights = generator.uniform(0.5, 2, size=(4, 9))
    weights[1, 2] = 0.0
    return design, weights, generator.normal(size=(4, 9))


def test_coefficients_and_residuals_are_those_of_lstsq(problem: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    design, weights, values = problem
    solved = leastsquares.solve(design, weights, values)
    for s in range(4):
        root = np.sqrt(weights[s])
        for h in range(7):
            expected, *_ = np.linalg.lstsq(design[h] * root[:, None], values[s] * root, rcond=None)
            np.testing.assert_allclose(solved.coefficients[s, h], expected, rtol=1e-8)
            rest = root * (values[s] - design[h] @ expected)
            np.testing.assert_allclose(solved.residual[s, h], rest @ rest, rtol=1e-8)
            normal = (design[h] * weights[s][:, None]).T @ design[h]
            np.testing.assert_allclose(solved.determinant[s, h], np.log(np.linalg.det(normal)), rtol=1e-8)


def test_leave_one_out_has_its_closed_form(problem: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    design, weights, values = problem
    chosen = np.broadcast_to(design[:1], (4, *design[:1].shape))
    refined = leastsquares.refine(chosen, np.ones((4, 1, 3), dtype=bool), weights, values)
    for s in range(4):
        root, lost = np.sqrt(weights[s]), []
        for left_out in np.flatnonzero(weights[s] > 0):
            rest = np.arange(9) != left_out
            fit, *_ = np.linalg.lstsq((design[0] * root[:, None])[rest], (values[s] * root)[rest], rcond=None)
            lost.append(weights[s, left_out] * (values[s, left_out] - design[0, left_out] @ fit) ** 2)
        np.testing.assert_allclose(refined.press[s, 0], np.mean(lost), rtol=1e-9)


def test_root_gives_the_covariance_and_padding_is_left_out(problem: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    design, weights, values = problem
    padded = np.broadcast_to(design[0], (4, 1, 9, 3)).copy()
    padded[..., 2] = 0.0
    used = np.broadcast_to(np.array([True, True, False]), (4, 1, 3))
    refined = leastsquares.refine(padded, used, weights, values)
    two = design[0][:, :2]
    for s in range(4):
        inverse = np.linalg.inv((two * weights[s][:, None]).T @ two)
        root = refined.root[s, 0]
        np.testing.assert_allclose((root @ root.T)[:2, :2], inverse, rtol=1e-8)
        assert not root[2].any()
        assert refined.coefficients[s, 0, 2] == 0


def test_singular_hypotheses_are_marked() -> None:
    design = np.ones((1, 5, 2))
    solved = leastsquares.solve(design, np.ones((1, 5)), np.arange(5.0)[None])
    assert np.isinf(solved.residual[0, 0])
    assert solved.determinant[0, 0] == -np.inf
