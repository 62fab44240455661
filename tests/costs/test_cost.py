"""The one entry for costs: selection as data, two levels, messages, fitted forms."""

from __future__ import annotations

import tomllib
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.comm.costs.collective import OPERATIONS, collective
from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.fitted import fit_collective, fit_point_to_point
from ranksight.comm.costs.selection import TABLES, forced, read_selector, selector
from ranksight.comm.network import NetworkParameters
from ranksight.core.errors import InputError, InsufficientError

LINK = NetworkParameters.linear(2e-6, 1e-9, reduction=3e-10)
NEAR = NetworkParameters.linear(2e-7, 1e-10)


def chosen(name: str, operation: str, ranks: int, size: float) -> str:
    return str(selector(name).choose(operation, np.array([ranks]), np.array([size]))[0])


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_selector_covers_every_operation_everywhere(name: str, operation: str) -> None:
    ranks = np.array([2, 3, 4, 7, 8, 9, 31, 32, 100, 1000, 4096, 100_000])[:, None]
    size = np.array([0.0, 1, 7, 8, 9, 100, 4096, 65536, 1e6, 1e9])
    names = selector(name).choose(operation, ranks, size)
    assert names.shape == (12, 10)
    assert all(f"{collective(operation, kind).operation}/{kind}" for kind in np.unique(names.astype(str)))


def test_switch_points_of_open_mpi() -> None:
    for name in ("openmpi-4.1", "openmpi-5.0"):
        assert chosen(name, "allreduce", 64, 262143) == "recursive_doubling"
        assert chosen(name, "allreduce", 64, 262144) == "rabenseifner"
        assert chosen(name, "allgather", 2, 100) == "two_proc"
        assert chosen(name, "allgather", 31, 1e6) == "recursive_doubling"
        assert chosen(name, "allgather", 512, 2048) == "neighbor_exchange"
        assert chosen(name, "barrier", 4, 0) == "linear"
        assert chosen(name, "bcast", 5000, 2e6) == "scatter_recursive_doubling"
        # The sum of all blocks counts here: 16 ranks, 16 KiB each, is 256 KiB.
        assert chosen(name, "reduce_scatter", 16, 16383) == "recursive_halving"
        assert chosen(name, "reduce_scatter", 16, 16384) == "ring"
    assert "allreduce" in selector("openmpi-5.0").hierarchical
    assert not selector("openmpi-4.1").hierarchical


def test_switch_points_of_mpich() -> None:
    assert chosen("mpich", "bcast", 7, 1e8) == "binomial"
    assert chosen("mpich", "bcast", 64, 12288) == "binomial"
    assert chosen("mpich", "bcast", 64, 12289) == "scatter_recursive_doubling"
    assert chosen("mpich", "bcast", 65, 12289) == "scatter_ring"
    assert chosen("mpich", "allreduce", 64, 8) == "recursive_doubling"
    # 512 B are 64 doubles, as many as ranks; 504 B are fewer.
    assert chosen("mpich", "allreduce", 64, 504) == "recursive_doubling"
    assert chosen("mpich", "allreduce", 64, 512) == "rabenseifner"
    assert chosen("mpich", "allgather", 64, 8191) == "recursive_doubling"
    assert chosen("mpich", "allgather", 64, 8192) == "ring"
    assert chosen("mpich", "allgather", 63, 1000) == "bruck"
    assert chosen("mpich", "alltoall", 8, 256) == "bruck"
    assert chosen("mpich", "alltoall", 8, 257) == "scattered"
    assert chosen("mpich", "alltoall", 8, 32769) == "pairwise"


def test_cost_is_the_chosen_algorithm_elementwise() -> None:
    ranks, size = np.array([1, 3, 16, 64, 128])[:, None], np.array([8.0, 5e3, 1e6])
    time = cost("MPI_Allreduce", ranks, size, LINK, "mpich")
    for i, p in enumerate(ranks[:, 0]):
        for j, m in enumerate(size):
            expected = collective("allreduce", chosen("mpich", "allreduce", p, m))(p, m, Fabric.flat(LINK))
            assert time[i, j] == pytest.approx(float(expected))
    assert time[0].max() == 0.0


def test_an_algorithm_can_be_forced() -> None:
    ring = cost("allreduce", 64, 8.0, LINK, {"allreduce": "ring"})
    assert ring == pytest.approx(float(collective("allreduce", "ring")(64, 8.0, Fabric.flat(LINK))))
    assert cost("bcast", 64, 8.0, LINK, {"allreduce": "ring"}) == cost("bcast", 64, 8.0, LINK)
    with pytest.raises(InputError, match="allreduce/"):
        cost("allreduce", 64, 8.0, LINK, {"allreduce": "rign"})


def test_two_levels_are_the_sum_of_their_stages() -> None:
    fabric = Fabric(NEAR, LINK, 8)
    forms = {"allreduce": "recursive_doubling", "reduce": "binomial", "bcast": "binomial"}
    rules = forced({**forms, "gather": "binomial", "allgather": "ring"}, selector("openmpi-5.0"))
    rules = forced({"allreduce": "hierarchical", "bcast": "hierarchical", "allgather": "hierarchical"}, rules)
    m, near, far = 1000.0, 2e-7 + 1e-7, 2e-6 + 1e-6
    # Fixing one algorithm puts the operation back to one level, asking for hierarchical puts it on two.
    assert cost("bcast", 64, m, fabric, rules) == pytest.approx(3 * near + 3 * far)
    # 8 nodes of 8 ranks: reduce inside, allreduce between, broadcast inside; the combining rate is the same everywhere.
    inside = Fabric(NEAR, None, 8)
    expected = (
        float(collective("reduce", "binomial")(8, m, inside))
        + float(collective("allreduce", "recursive_doubling")(8, m, Fabric.flat(LINK)))
        + 3 * near
    )
    assert cost("allreduce", 64, m, fabric, rules) == pytest.approx(expected)
    gather = 3 * 2e-7 + 7 * m * 1e-10
    between = 7 * (2e-6 + 8 * m * 1e-9)
    assert cost("allgather", 64, m, fabric, rules) == pytest.approx(gather + between + 3 * (2e-7 + 64 * m * 1e-10))
    # On one node there is one level.
    assert cost("bcast", 8, m, fabric, rules) == pytest.approx(3 * near)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(OPERATIONS), st.integers(1, 3000), st.floats(0, 1e7), st.sampled_from(sorted(TABLES)))
def test_any_operation_has_a_finite_cost(operation: str, p: int, m: float, name: str) -> None:
    time = float(cost(operation, p, m, Fabric(NEAR, LINK, 12), name))
    assert np.isfinite(time)
    assert (time == 0) == (p == 1)


def test_messages_count_once_where_they_are_sent() -> None:
    fabric = Fabric(NEAR, LINK, 8)
    assert cost("MPI_Isend", 64, 1000.0, fabric) == pytest.approx(3e-6)
    assert cost("MPI_Send", 8, 1000.0, fabric) == pytest.approx(3e-7)
    assert cost("MPI_Waitall", 64, 1000.0, fabric) == 0.0
    with pytest.raises(InputError, match="Fly"):
        cost("MPI_Fly", 4, 8.0, LINK)
    with pytest.raises(InputError, match="nompi"):
        cost("bcast", 4, 8.0, LINK, "nompi")


def test_fitted_forms_recover_their_coefficients_and_errors() -> None:
    rng = np.random.default_rng(7)
    p = np.repeat([2.0, 4, 8, 16, 32, 64], 5)
    s = np.tile([8.0, 1e3, 1e4, 1e5, 1e6], 6)
    exact = 3e-6 * np.log2(p) + 2e-10 * s + 1e-6
    found = fit_collective(p, s, exact)
    np.testing.assert_allclose(found.coefficients, [3e-6, 2e-10, 1e-6], rtol=1e-9)
    np.testing.assert_allclose(found(p, s), exact, rtol=1e-9)
    scatter = [fit_collective(p, s, exact + rng.normal(0, 1e-6, 30)) for _ in range(300)]
    spread = np.std([fit.coefficients[0] for fit in scatter])
    assert np.median([fit.errors[0] for fit in scatter]) == pytest.approx(spread, rel=0.2)
    assert fit_point_to_point([0.0, 1e3, 1e6], [1e-6, 2e-6, 1.001e-3]).formula == "t = 1e-09 n + 1e-06"


def test_fitted_coefficients_are_never_negative() -> None:
    found = fit_collective([2, 4, 8, 16, 32], [1e3, 5e3, 2e3, 9e3, 1e3], [5e-6, 4e-6, 3e-6, 2e-6, 1e-6])
    assert min(found.coefficients) >= 0
    assert np.isnan(found.errors[found.coefficients.index(0.0)])


def test_fits_that_do_not_show_coefficients_apart_are_refused() -> None:
    with pytest.raises(InsufficientError):
        fit_collective([8] * 9, np.arange(9.0), np.ones(9))
    with pytest.raises(InsufficientError):
        fit_point_to_point([8.0] * 5, [1e-6] * 5)
    with pytest.raises(InputError):
        fit_point_to_point([8.0, 16, 32], [1e-6, np.nan, 1e-6])


def test_a_malformed_table_of_rules_is_refused() -> None:
    text = resources.files("ranksight.comm.costs").joinpath("mpich.toml").read_text(encoding="utf-8")
    for damage in (
        text.replace('"scatter_ring"', '"scatter_rign"', 1),
        text.replace("fewer_elements", "fewest_elements"),
        text.replace("[12289,", "[0,"),
        text.replace("source =", "origin ="),
    ):
        with pytest.raises(InputError, match="mine.toml"):
            read_selector("mine", tomllib.loads(damage), "mine.toml")


def test_a_ring_needs_an_element_for_every_rank() -> None:
    rules = selector("openmpi-5.0")
    assert rules.choose("allreduce", np.array([16, 32]), np.array([8.0, 8.0])).tolist() == ["recursive_doubling"] * 2
    assert rules.choose("allreduce", np.array([4]), np.array([8.0 * 200])).tolist() != [""]
