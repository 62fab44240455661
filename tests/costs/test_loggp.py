"""LogGP parameters from timings: known truth under heavy tails, identifiability, and two clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.comm.loggp import fit_loggp
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.readers.pingpong import load
from ranksight.comm.segments import _function, fit_pieces
from ranksight.comm.sizes import SizeTable, order_statistics, summarise
from ranksight.core.errors import InputError, InsufficientError

SIZES = np.unique(np.round(np.geomspace(1, 1 << 20, 120)).astype(int))
EAGER = Piecewise((0, 4096, 65536), (1.5e-6, 3e-6, 9e-6), (1e-9, 4e-10, 2e-10))


def timings(op: str, function: Piecewise, rng: np.random.Generator, repetitions: int = 40) -> pd.DataFrame:
    """Repetitions with one in ten interrupted: a heavy tail upwards, as networks have it."""
    size = np.repeat(SIZES, repetitions)
    noise = rng.gamma(2.0, 0.01, len(size)) + (rng.random(len(size)) < 0.1) * rng.pareto(1.5, len(size))
    return pd.DataFrame({"op": op, "bytes": size, "duration": function(size) * (1 + noise)})


def constant(value: float) -> Piecewise:
    return Piecewise((0,), (value,), (0.0,))


def test_pieces_and_coefficients_are_found_under_heavy_tails() -> None:
    table = summarise(timings("pingpong", EAGER, np.random.default_rng(1)))
    fit = fit_pieces(table)
    assert fit.function.first == (0, 4096, 65536)
    np.testing.assert_allclose(fit.function.beta, EAGER.beta, rtol=0.05)
    np.testing.assert_allclose(fit.function(SIZES), EAGER(SIZES), rtol=0.05)


def test_pieces_of_the_fewest_sizes_are_found() -> None:
    """Each fold leaves out one of a piece's four sizes, and the sizes around it may be of two pieces."""
    breaks = (0, 256, 1625, 4096, 10321, 26008, 65536)
    alpha, beta = (8e-6, 9e-6, 8e-6, 9e-6, 16e-6, 14e-6, 46e-6), (1.8e-9, 1e-9, 1e-9, 7e-10, 1.3e-9, 1.1e-9, 8e-10)
    size = np.unique(np.round(2 ** np.linspace(0, 20, 61)))
    exact = pd.DataFrame({"bytes": size, "duration": Piecewise(breaks, alpha, beta)(size)})
    function = fit_pieces(summarise(exact)).function
    assert len(function.first) == len(breaks)
    np.testing.assert_allclose(function(size), exact["duration"], rtol=1e-6)


def test_a_size_that_has_jumped_is_of_the_piece_after_the_jump() -> None:
    """Whichever piece relative residuals, which are never above 1 for it, have left it in."""
    size = 2.0 ** np.arange(8, 20)
    table = SizeTable(size, np.where(size < 65536, 1e-5, 6e-5), *np.ones((2, len(size))))
    for start in (8, 9, 10):
        assert _function(table, (0, start)).first == (0, 65536)


def test_one_line_stays_one_piece() -> None:
    for seed in range(5):
        table = summarise(timings("pingpong", Piecewise((0,), (2e-6,), (3e-10,)), np.random.default_rng(seed)))
        assert len(fit_pieces(table).starts) == 1


def test_intervals_cover_the_slope_as_often_as_they_say_and_are_no_wider() -> None:
    truth = Piecewise((0,), (2e-6,), (3e-10,))
    size = SIZES.astype(float)
    # Weighted least squares: the variance of a slope is 1 / sum w (s - mean s)^2, with w = 1 / variance.
    weight = (0.03 * truth(size)) ** -2.0
    width = 2 * 1.96 / np.sqrt((weight * (size - np.average(size, weights=weight)) ** 2).sum())
    hits, widths = 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        error = np.full(len(SIZES), 0.03)
        time = truth(SIZES) * (1 + rng.normal(0, 0.03, len(SIZES)))
        fit = fit_pieces(SizeTable(SIZES.astype(float), time, error, 1 / error**2), most=1)
        low, high = fit.interval(0, 1)
        hits += low <= 3e-10 <= high
        widths.append((high - low) / width)
    # 95 % of 60 is 57; fewer than 51 has a chance of 1 in 5,000 if the interval holds what it says.
    assert hits >= 51
    assert 0.8 < np.median(widths) < 1.2


def test_order_statistics_bracket_the_quantile_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    low, high = order_statistics(50, 0.25)
    draws = np.sort(rng.pareto(1.0, (2000, 50)), axis=1)
    truth = (1 - 0.25) ** -1.0 - 1
    assert ((draws[:, low] <= truth) & (truth <= draws[:, high])).mean() >= 0.95


def test_latency_and_overheads_are_distinguished() -> None:
    rng = np.random.default_rng(2)
    found = fit_loggp(
        pd.concat(
            [
                timings("pingpong", EAGER, rng),
                timings("isend", constant(3e-7), rng),
                timings("recv", constant(4e-7), rng),
                timings("gap", constant(5e-7), rng),
                timings("send", Piecewise((0, 65536), (3e-7, 9e-6), (1e-11, 2e-10)), rng),
            ]
        )
    )
    assert found.latency == pytest.approx(1.5e-6 - 7e-7, rel=0.1)
    low, high = found.intervals["latency"]
    assert 0 < low <= found.latency <= high
    assert found.gap is not None
    assert found.gap(1) == pytest.approx(5e-7, rel=0.05)
    assert found.eager_limit == 65536
    assert found.send_overhead is not None
    assert found.send_overhead(1e6) == pytest.approx(3e-7, rel=0.1)


def test_a_latency_that_would_be_negative_is_not_reported() -> None:
    rng = np.random.default_rng(4)
    found = fit_loggp(
        pd.concat(
            [
                timings("pingpong", EAGER, rng),
                timings("isend", constant(9e-7), rng),
                timings("recv", constant(8e-7), rng),
            ]
        )
    )
    assert found.latency is None
    assert any("L is not identifiable" in note for note in found.notes)
    np.testing.assert_allclose(found.transfer(SIZES), EAGER(SIZES), rtol=0.05)
    assert "latency" not in found.to_dict()


def test_what_was_not_timed_is_named() -> None:
    found = fit_loggp(timings("pingpong", EAGER, np.random.default_rng(5)))
    text = " ".join(found.notes)
    for name in ("o_s", "o_r", "L is not", "g is not"):
        assert name in text
    assert found.send_overhead is found.receive_overhead is found.latency is found.gap is None
    assert NetworkParameters.from_dict(found.to_dict()) == found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(4, 40), st.floats(0.0, 1.5))
def test_any_noise_gives_a_valid_function(seed: int, sizes: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    size = np.unique(np.round(2 ** rng.uniform(0, 22, sizes)))
    if len(size) < 4:
        return
    table = pd.DataFrame({"bytes": np.repeat(size, 5), "duration": np.exp(rng.normal(-12, noise, 5 * len(size)))})
    function = fit_pieces(summarise(table)).function
    asked = np.concatenate([[0.0], size, size - 1, [1e9]])
    assert (function(asked) >= 0).all()
    assert Piecewise.from_dict(function.to_dict(), "here") == function


def test_bad_timings_are_refused() -> None:
    good = timings("pingpong", EAGER, np.random.default_rng(6))
    for bad, message in (
        (good.drop(columns="op"), "op"),
        (good.assign(op="pong"), "pong"),
        (good.assign(op="isend"), "no ping-pong"),
        (good.assign(duration=0.0), "not positive"),
        (good.assign(bytes=-1), "size"),
    ):
        with pytest.raises(InputError, match=message):
            fit_loggp(bad)
    with pytest.raises(InsufficientError):
        fit_loggp(good[good["bytes"] < 3])


@pytest.mark.parametrize(("cluster", "bound"), [("stampede", 0.02), ("taurus", 0.10)])
def test_held_out_sizes_of_two_clusters(shared: Path, cluster: str, bound: float) -> None:
    trips = load([shared / "data" / "network" / f"{cluster}_PingPong.csv"])
    table = summarise(trips[trips["op"] == "pingpong"])
    left_out = np.arange(len(table)) % 5 == 2
    fit = fit_pieces(table.take(~left_out))
    asked = table.take(left_out)
    assert float(np.median(np.abs(fit.function(asked.size) / asked.time - 1))) < bound


def test_parameters_of_a_real_cluster(shared: Path) -> None:
    found = fit_loggp(load(sorted((shared / "data" / "network").glob("taurus*.csv"))))
    assert found.eager_limit == 65536
    # 10 Gbit/s Ethernet carries no more than 1.25 GB/s.
    assert found.transfer.beta[-1] > 1 / 1.25e9
    assert found.latency is not None
    assert 0 < found.latency < float(found.transfer(1))
    other = fit_loggp(load(sorted((shared / "data" / "network").glob("stampede*.csv"))))
    assert other.latency is None
    assert 16384 <= (other.eager_limit or 0) <= 17500
