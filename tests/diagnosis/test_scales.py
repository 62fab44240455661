"""Scaling verdicts, crossovers and efficiencies of times whose functions are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis import advice, efficiencies, ranking, scaling
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.kind import kind_of
from ranksight.analysis.diagnosis.layouts import layouts
from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.reports.growth import crossing, saturated

Make = Callable[..., Evidence]
RANKS = [2.0**e for e in range(11)]


def over(function: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    return [float(x) for x in function(np.array(RANKS)) * np.ones(len(RANKS))]


def test_weak_scaling(evidence: Make) -> None:
    line = evidence(
        {
            "steady": over(lambda p: 1 + 0 * p),
            "tree": over(lambda p: 0.1 * np.log2(2 * p)),
            "search": over(lambda p: 1e-2 * p),
            "late": over(lambda p: 1 + np.where(p > 64, 0.01 * (p - 64), 0.0)),
        },
        RANKS,
    )
    assert kind_of(line) == "weak"
    found = scaling.table(line, kind="weak").set_index("kernel")
    assert found["verdict"].to_dict() == {"search": "grows", "late": "grows", "steady": "scales", "tree": "scales"}
    # From two ranks on: one to two is as fast as a logarithm.
    assert found.loc["search", "growth"] == pytest.approx(512)
    assert found.loc["late", "at"] == 64
    assert found["named"].to_dict() == {"search": True, "late": True, "steady": False, "tree": False}


def test_a_kernel_that_one_rank_does_not_have_grows_from_where_it_was_seen(evidence: Make) -> None:
    tiny = np.array([1e-9, *[0.0] * 10])
    line = evidence(
        {
            "steady": over(lambda p: 1 + 0 * p),
            "tree": over(lambda p: 0.1 * np.log2(p) + tiny),
            "search": over(lambda p: 1e-2 * p * (p > 1) + tiny),
        },
        RANKS,
    )
    found = scaling.table(line, kind="weak", since=np.array([1.0, 2.0, 2.0])).set_index("kernel")
    assert found["verdict"].to_dict() == {"search": "grows", "tree": "scales", "steady": "scales"}
    assert found.loc["search", ["at", "growth", "first"]].tolist() == pytest.approx([2, 512, 0.02])
    assert found.loc["tree", "first"] == pytest.approx(0.1)


def test_one_number_of_ranks_shows_nothing_of_others(evidence: Make) -> None:
    line = evidence({"seen": over(lambda p: 1 / p), "once": over(lambda p: 1 + 0 * p)}, RANKS)
    found = scaling.table(line, kind="strong", since=np.array([1.0, np.inf])).set_index("kernel")
    assert found["verdict"].to_dict() == {"seen": "scales", "once": "undecided"}


def test_growth_of_times_alone_is_not_named_where_what_was_counted_stays(evidence: Make) -> None:
    line = evidence({"noisy": over(lambda p: p**0.3)}, RANKS, instructions={"noisy": [1e9] * len(RANKS)})
    found = scaling.table(line, kind="weak")
    assert found["verdict"].tolist() == ["grows"]
    assert found["named"].tolist() == [False]


def test_strong_scaling_saturates_where_a_floor_is_reached(evidence: Make) -> None:
    line = evidence(
        {
            "ideal": over(lambda p: 10 / p),
            "floor": over(lambda p: 10 / p + 0.1),
            "rise": over(lambda p: 10 / p + 1e-3 * p),
        },
        RANKS,
    )
    assert kind_of(line) == "strong"
    found = scaling.table(line, kind="strong").set_index("kernel")
    assert found["verdict"].to_dict() == {"ideal": "scales", "floor": "saturates", "rise": "grows"}
    # 10 / p equals the floor at 100 ranks; from 128 on, twice the ranks give less than a root of two.
    assert found.loc["floor", "at"] == 128
    assert found.loc["rise", "at"] == 128
    assert found.loc["ideal", "efficiency"] == pytest.approx(1)


def test_work_that_one_rank_does_for_all_is_divided_among_them(evidence: Make) -> None:
    # The mean of the ranks that read the input stays, that of all ranks falls.
    work = {"solve": over(lambda p: 4 / p), "input": over(lambda p: 6 + 0 * p)}
    first = {"input": over(lambda p: 1 / p)}
    assert kind_of(evidence(work, RANKS, having=first)) == "strong"
    assert kind_of(evidence(dict(work), RANKS, instructions=work, having=first)) == "strong"


def test_work_that_is_not_divided_is_named_by_what_dividing_it_would_save(evidence: Make) -> None:
    line = evidence(
        {"divided": over(lambda p: 100 / p), "serial": over(lambda p: 1 + 0 * p), "small": over(lambda p: 1e-3 + 0 * p),
         "sends": over(lambda p: 1e-9 + 0 * p)},
        RANKS,
        communication={"sends": over(lambda p: 1 + 0 * p)},
    )  # fmt: skip
    found = advice.undivided(line, scaling.table(line, kind="strong"))
    assert [(kind, kernel) for kind, kernel, *_ in found] == [("undivided work", "serial")]
    total = 100 / 1024 + 1 + 1e-3 + 1
    assert found[0][2] == pytest.approx((1 - 1 / 1024) / total)
    assert "beyond 1 rank: 1020 times" in found[0][3].replace(",", "")
    assert advice.undivided(line, scaling.table(line, kind="weak")) == []


def test_messages_may_rise_by_the_rounds_of_a_tree(evidence: Make) -> None:
    inside, between = 1e-6, 1e-5
    rounds = over(lambda p: inside * np.minimum(np.log2(p), 4) + between * np.maximum(np.log2(p) - 4, 0))
    pairwise = over(lambda p: between * p)
    line = evidence(
        {"allreduce": [0.0] * len(RANKS), "alltoall": [0.0] * len(RANKS)},
        RANKS,
        communication={"allreduce": rounds, "alltoall": pairwise},
    )
    found = scaling.table(line, kind="weak", node=16).set_index("kernel")
    assert found["verdict"].to_dict() == {"alltoall": "grows", "allreduce": "scales"}


def test_a_crossover_lies_where_the_functions_meet(evidence: Make) -> None:
    line = evidence(
        {"flat": [1.0] * len(RANKS), "linear": over(lambda p: p / 300), "small": [0.5] * len(RANKS)},
        RANKS,
        wide={"flat": 1.2, "linear": 1.2, "small": 1.2},
    )
    found = ranking.crossovers(line)
    first = found.iloc[0]
    assert (first["kernel"], first["over"], first["largest"]) == ("linear", "flat", True)
    assert first["ranks"] == pytest.approx(300, rel=0.01)
    # Errors of 1.2 either way at 90 % of both: the ratio is known to 1.2^sqrt(2).
    reach = 1.2 ** np.sqrt(2)
    assert first["lower"] == pytest.approx(300 / reach, rel=0.03)
    assert first["upper"] == pytest.approx(300 * reach, rel=0.03)
    second = found.iloc[1]
    assert (second["kernel"], second["over"], second["largest"]) == ("linear", "small", False)
    assert second["ranks"] == pytest.approx(150, rel=0.01)


def test_the_interval_of_a_crossover_is_of_whole_ranks_and_has_a_width(evidence: Make) -> None:
    times = {"flat": [1.0] * len(RANKS), "linear": over(lambda p: p / 8.01)}
    found = ranking.crossovers(evidence(times, RANKS, wide={"flat": 1.001, "linear": 1.001})).iloc[0]
    assert found["lower"] < found["ranks"] < found["upper"]
    assert found["lower"] % 1 == found["upper"] % 1 == 0


def test_kernels_as_far_apart_as_their_errors_have_an_open_end(evidence: Make) -> None:
    line = evidence({"a": [1.0] * len(RANKS), "b": over(lambda p: p / 900)}, RANKS, wide={"a": 2.0, "b": 2.0})
    found = ranking.crossovers(line)
    assert found["ranks"].item() == pytest.approx(900, rel=0.01)
    assert np.isnan(found["upper"].item())
    assert found["lower"].item() < 450


def test_ranks_of_kernels_follow_their_times(evidence: Make) -> None:
    line = evidence({"flat": [1.0] * len(RANKS), "linear": over(lambda p: p / 300)}, RANKS)
    found = ranking.rankings(line)
    top = found[found["place"] == 1].set_index("ranks")["kernel"]
    assert top[1] == "flat"
    assert top[1024] == "linear"
    assert found.groupby("ranks")["share"].sum().to_numpy() == pytest.approx(1)


def test_a_kernel_that_only_sends_may_be_the_largest(evidence: Make) -> None:
    """One rank sends nothing, so that no logarithm of its time exists there; and messages have an interval."""
    sent = over(lambda p: np.where(p > 1, p / 50, 0.0))
    line = evidence(
        {"flat": [1.0] * len(RANKS), "linear": over(lambda p: p / 300), "sends": [0.0] * len(RANKS)},
        RANKS,
        wide={"flat": 1.1, "linear": 1.1},
        communication={"sends": sent},
    )
    ends = np.zeros((2, *line.communication.shape))
    ends[0], ends[1] = line.communication * (1 / 1.5 - 1), line.communication * (1.5 - 1)
    found = ranking.crossovers(replace(line, message_ends=ends)).set_index(["kernel", "over"])
    assert found["largest"].to_dict() == {("sends", "flat"): True, ("linear", "flat"): False}
    row = found.loc[("sends", "flat")]
    assert row["ranks"] == pytest.approx(50, rel=0.01)
    reach = np.exp(np.hypot(np.log(1.5), np.log(1.1)))
    assert [row["lower"], row["upper"]] == pytest.approx([50 / reach, 50 * reach], rel=0.04)
    # What has no bounds is not said to cross, and is the largest all the same.
    high, ok = line.high.copy(), line.ok.copy()
    high[2], ok[2] = np.inf, False
    open_ = replace(line, high=high, ok=ok)
    assert not ranking.crossovers(open_)["largest"].any()


@pytest.mark.parametrize("last", [6, 7, 8, 9, 11])
def test_a_dent_of_the_times_does_not_turn_a_verdict(evidence: Make, last: int) -> None:
    """Between 64 and 128 ranks another algorithm makes messages dearer once, and then cheaper."""
    dent = np.where(np.array(RANKS) == 128, 1.6, 1.0)
    sent = over(lambda p: np.where(p > 1, 1e-3 * p, 0.0) * dent)[:last]
    line = evidence({"exchange": [0.0] * last, "steady": [1.0] * last}, RANKS[:last], communication={"exchange": sent})
    found = scaling.table(line, kind="weak", since=np.array([2.0, 1.0])).set_index("kernel")
    assert found["verdict"].to_dict() == {"exchange": "grows", "steady": "scales"}
    assert found.loc["exchange", "at"] == 4  # two to four ranks are twice the rounds of a tree


def test_growth_has_one_class_for_near_and_far_targets(evidence: Make) -> None:
    functions = {"late": lambda p: 1 + np.where(p > 64, 0.01 * (p - 64), 0.0), "steady": lambda p: 1 + 0 * p}

    def along(last: int) -> pd.DataFrame:
        times = {name: over(function)[:last] for name, function in functions.items()}
        return scaling.table(evidence(times, RANKS[:last]), kind="weak")

    # At 128 ranks, what has begun to grow at 64 is within the logarithm.
    near, far = along(8), along(11)
    near.loc[near["kernel"] == "late", ["verdict", "at"]] = ["scales", np.nan]
    known = scaling.with_classes(near, far, RANKS[7]).set_index("kernel")
    assert known.loc["late", ["verdict", "at", "named"]].tolist() == ["grows", 64, False]
    assert known.loc["late", "growth"] == pytest.approx(1.64)
    assert known.loc["steady", "verdict"] == "scales"
    # Before it has begun there is none.
    near = along(6)
    assert near["verdict"].tolist() == ["scales", "scales"]
    assert scaling.with_classes(near, far, RANKS[5]).equals(near)


def test_what_a_logarithm_would_leave_is_not_saved(evidence: Make) -> None:
    line = evidence({"search": over(lambda p: 1e-2 * p), "steady": over(lambda p: 1 + 0 * p)}, RANKS)
    ((kind, kernel, saves, _),) = advice.growing(scaling.table(line, kind="weak"))
    assert (kind, kernel) == ("growth", "search")
    # From 2 ranks on 512 times as long, where log2(p) allows 10.
    assert saves == pytest.approx(10.24 / 11.24 * (1 - 10 / 512), rel=0.01)


def test_growth_that_costs_nothing_is_no_trouble(evidence: Make) -> None:
    """0 % of the time is not listed among troubles, however many times as long it is."""
    line = evidence({"halo": over(lambda p: 1e-2 * p), "steady": over(lambda p: 1 + 0 * p)}, RANKS)
    table = scaling.table(line, kind="weak")
    assert [row[1] for row in advice.growing(table)] == ["halo"]
    assert not advice.growing(table.assign(share=0.004))


def test_efficiencies_multiply(evidence: Make) -> None:
    line = evidence(
        {"work": over(lambda p: 8 / p * 1.25 ** (np.log2(p) > 0))},
        RANKS,
        instructions={"work": over(lambda p: 8e9 / p * 1.1 ** (np.log2(p) > 0))},
        imbalance={"work": over(lambda p: np.where(p > 1, 2 / p, 0.0))},
        communication={"work": over(lambda p: np.where(p > 1, 1e-3 * np.log2(p), 0.0))},
    )
    found = efficiencies.table(line, kind="strong")
    last = found.iloc[-1]
    assert last["load_balance"] == pytest.approx(10 / 12)
    assert last["computation_scaling"] == pytest.approx(1 / 1.25)
    assert last["instruction_scaling"] == pytest.approx(1 / 1.1)
    assert last["ipc_scaling"] == pytest.approx(1.1 / 1.25)
    product = found["instruction_scaling"] * found["ipc_scaling"] * found["frequency_scaling"]
    assert found["computation_scaling"].to_numpy() == pytest.approx(product.to_numpy())
    assert found["parallel"].to_numpy() == pytest.approx((found["load_balance"] * found["communication"]).to_numpy())
    assert found["global"].to_numpy() == pytest.approx((found["parallel"] * found["computation_scaling"]).to_numpy())
    assert found["communication"].iloc[-1] == pytest.approx(12 / 1024 / (12 / 1024 + 0.01))


def test_another_layout_removes_a_direction() -> None:
    """Twelve ranks, Ding et al. 2018: (4, 3, 1) has no messages along the third direction and fewer in all."""
    grid = Cartesian(3, (False, False, False))
    found = {row["layout"]: row for row in layouts(grid, 12).to_dict("records")}
    assert all(np.prod(layout) == 12 for layout in found)
    assert [layout for layout, row in found.items() if row["default"]] == [(3, 2, 2)]
    now, other = found[3, 2, 2], found[4, 3, 1]
    assert now["messages"] * 12 == pytest.approx(len(grid.pairs(12)))
    assert other["messages"] * 12 == pytest.approx(2 * (3 * 3 + 4 * 2))
    assert other["directions"] == 2
    assert other["volume"] / now["volume"] == pytest.approx(5 / 4)


def test_layouts_of_ranks_that_run_along_the_first_side() -> None:
    """OpenFOAM numbers ranks along x first (Ding et al. 2018): a grid of rising extents in the order of MPI's."""
    along_x = Cartesian(3, (True, False, False), rising=True)
    found = {row["layout"]: row for row in layouts(along_x, 12, cubic=False).to_dict("records")}
    assert [layout for layout, row in found.items() if row["default"]] == [(3, 2, 2)]
    now, other = found[3, 2, 2], found[4, 3, 1]
    assert (now["directions"], other["directions"]) == (3, 2)
    ends = replace(along_x, periodic=(False,) * 3)
    first = next(row for row in layouts(ends, 12).to_dict("records") if row["default"])
    assert first["messages"] * 12 == pytest.approx(len(ends.pairs(12)))
    # Along the last side the grid is a ring, of two ranks there and of one.
    falling = {row["layout"]: row for row in layouts(Cartesian(3, (False, False, True)), 12, False).to_dict("records")}
    assert falling[3, 2, 2]["messages"] == pytest.approx(now["messages"])
    assert falling[4, 3, 1]["volume"] == pytest.approx(other["volume"])


def test_growth_beyond_doubt_is_named_though_its_size_is_open(evidence: Make) -> None:
    line = evidence({"steady": over(lambda p: 1 + 0 * p), "search": over(lambda p: 1e-2 * p)}, RANKS)
    ok = line.ok.copy()
    ok[1, -3:] = False
    width = np.where(ok, 1.05, 5.0)
    line = replace(line, ok=ok, low=line.computing / width, high=line.computing * width)
    found = scaling.table(line, kind="weak").set_index("kernel")
    assert found.loc["search", "verdict"] == "grows"
    assert found.loc["search", "named"]
    # Least 5 times below 1e-2 * 1024 s at the end, most 1.05 times above 1e-2 s at the start.
    assert found.loc["search", "growth"] == pytest.approx(RANKS[-1] / 5 / 1.05)
    assert found["bound"].to_dict() == {"search": True, "steady": False}
    assert advice.times_as_long(found.loc["search"]) == "at least 195 times as long at 1024"
    # Nothing is known of the most ranks: what grew 128 times before did so all the same.
    width = np.where(ok, 1.05, 2e5)
    line = replace(line, low=line.computing / width, high=line.computing * width)
    found = scaling.table(line, kind="weak").set_index("kernel")
    assert found.loc["search", "verdict"] == "grows"
    assert advice.times_as_long(found.loc["search"]) == "at least 116 times as long at 128"
    # So wide that it may as well stay wherever it was: nothing is said.
    line = replace(line, low=line.computing / 2000, high=line.computing * 2000)
    found = scaling.table(line, kind="weak").set_index("kernel")
    assert found.loc["search", "verdict"] == "undecided"


@pytest.mark.parametrize(("width", "verdict"), [(1.1, "grows"), (400.0, "grows"), (600.0, "undecided")])
def test_growth_that_the_interval_of_the_time_does_not_hold_is_not_named(
    evidence: Make, width: float, verdict: str
) -> None:
    # 512 times as long at the end as where it begins to grow: the least that it may take is that over the width.
    line = evidence({"search": over(lambda p: 1e-2 * p)}, RANKS)
    line = replace(line, low=line.computing / width, high=line.computing * width)
    row = scaling.table(line, kind="weak").iloc[0]
    assert row["verdict"] == verdict
    assert bool(row["named"]) == (verdict == "grows")


@pytest.mark.parametrize(("width", "verdict"), [(400.0, "grows"), (600.0, "undecided")])
def test_growth_that_the_interval_of_the_count_does_not_hold_is_not_named(
    evidence: Make, width: float, verdict: str
) -> None:
    line = evidence({"search": over(lambda p: 1e-2 * p)}, RANKS, instructions={"search": over(lambda p: 1e6 * p)})
    ok = line.ok.copy()
    ok[:, -1] = False
    line = replace(line, ok=ok, counted_ok=np.ones_like(ok), least_instructions=line.instructions / width)
    row = scaling.table(replace(line, low=0 * line.low, high=np.inf * line.high), kind="weak").iloc[0]
    assert (row["by"], row["verdict"]) == ("instructions", verdict)


def test_a_crossover_of_open_times_is_reported_where_the_order_is_sure(evidence: Make) -> None:
    times = {"steady": over(lambda p: 1 + 0 * p), "search": over(lambda p: 1e-2 * p)}
    line = evidence(times, RANKS)
    ok = line.ok.copy()
    ok[1, -1:] = False
    for width, expected in ((2.0, 1), (9.0, 0)):
        given = replace(line, ok=ok, low=line.computing / width, high=line.computing * width)
        assert len(ranking.crossovers(given)) == expected


def test_what_nothing_shows_has_no_efficiency(evidence: Make) -> None:
    work = over(lambda p: 8 / p)
    alone = efficiencies.table(evidence({WHOLE: work}, RANKS), kind="strong")
    assert alone["global"].to_numpy() == pytest.approx(1)
    assert alone[["parallel", "load_balance", "communication", "computation_scaling"]].isna().all(axis=None)
    sent = {"work": over(lambda p: np.where(p > 1, 1e-3 * np.log2(p), 0.0))}
    found = efficiencies.table(evidence({"work": work}, RANKS, communication=sent), kind="strong")
    assert found[["parallel", "load_balance"]].isna().all(axis=None)
    assert found["communication"].iloc[-1] == pytest.approx((8 / 1024) / (8 / 1024 + 0.01))
    assert found["global"].iloc[-1] == pytest.approx((8 / 1024) / (8 / 1024 + 0.01))


def test_what_one_rank_does_alone_is_lost_balance_and_not_lost_speed(evidence: Make) -> None:
    ranks = [1.0, 4.0, 16.0]
    divided, serial = [8.0, 2.0, 0.5], [2.0, 2.0, 2.0]
    found = efficiencies.table(
        evidence(
            {"divided": divided, "serial": serial},
            ranks,
            instructions={"divided": [1e9 * t for t in divided], "serial": [1e9 * t for t in serial]},
            having={"serial": [1 / p for p in ranks]},
        ),
        kind="strong",
    )
    # Amdahl: all ranks do 10 s of work together in 2.5 s and more.
    assert found["load_balance"].tolist() == pytest.approx([10 / p / (8 / p + 2) for p in ranks])
    assert found["computation_scaling"].tolist() == pytest.approx([1, 1, 1])
    assert found["ipc_scaling"].tolist() == pytest.approx([1, 1, 1])
    product = found["load_balance"] * found["computation_scaling"]
    assert found["global"].tolist() == pytest.approx(product.tolist())


def test_kernels_of_one_size_are_not_said_to_cross() -> None:
    rows = [
        ("a", "b", 10.0, np.nan, np.nan), ("c", "d", 10.0, 5.0, np.nan), ("c", "e", 10.0, 5.0, np.nan),
        ("e", "c", 20.0, np.nan, 40.0), ("f", "g", 10.0, 8.0, 12.0), ("g", "f", 90.0, 80.0, 99.0),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["kernel", "over", "ranks", "lower", "upper"])
    assert (ranking.clear(table)["kernel"] + ranking.clear(table)["over"]).tolist() == ["cd", "fg", "gf"]
    assert ranking.clear(table[:0]).empty


def test_memory_is_named_where_even_the_least_of_it_doubles(evidence: Make) -> None:
    line = evidence({"a": [1.0, 1.0, 1.0]}, [8.0, 64.0, 512.0])
    assert advice.memory(line, 8) == ""
    held = replace(line, memory=np.array([[2e7, 5e7, 3e8], [1e7, 3e7, 5e7], [3e7, 1e8, 2e9]]))
    assert advice.memory(held, 8) == "the memory of a rank grows with the ranks: 20 MB at 8, at least 50 MB at 512"
    # 50 MB or more: no twice 50 MB; and nothing is said of what was measured.
    assert advice.memory(held, 64) == ""
    assert advice.memory(held, 512) == ""


@pytest.mark.parametrize(
    ("ranks", "lower", "upper", "words"),
    [
        (123.0, 80.0, 190.0, "a becomes the largest kernel above 123 ranks, 90%: 80 to 190"),
        (123.0, 80.0, np.nan, "a becomes the largest kernel above 123 ranks, 90%: from 80 on"),
        (20.0, np.nan, 40.0, "a becomes the largest kernel above 20 ranks, 90%: up to 40"),
        (1.0, np.nan, 1.2, "a becomes the largest kernel above 1 rank"),
    ],
)
def test_a_crossover_in_words(ranks: float, lower: float, upper: float, words: str) -> None:
    ends = {"ranks": ranks, "lower": lower, "upper": upper}
    row: dict[object, object] = {"kernel": "a", "over": "b", "largest": True, **ends}
    assert crossing(row, 0.9, {"a": "a", "b": "b"}) == words


def test_what_took_no_time_at_first_has_no_efficiency() -> None:
    assert saturated(0.25, 0.5, "16") == "250 ms at 16, 2 times its share of divided work"
    assert saturated(0.25, 0.0, "16") == "250 ms at 16"
    # 16 ranks leave a sixteenth: what takes as long has not been divided, what takes far longer has grown from nothing
    assert saturated(0.25, 1 / 16, "16", 16.0) == "250 ms at 16, 16 times its share of divided work"
    assert saturated(0.25, 1e-4, "16", 16.0) == "250 ms at 16"


def test_time_outside_of_kernels_is_a_factor_and_helps(evidence: Make) -> None:
    given = evidence({"k": [4.0, 2.0]}, [1, 2], communication={"k": [1.0, 1.0]})
    none = np.zeros((1, 2))
    seconds = np.array([[5.0, 3.0]])
    rest = Forecast(seconds, seconds, seconds, none.astype(int), none.astype(object), none)
    found = efficiencies.table(replace(given, broken=replace(given.broken, others=rest)), "strong")
    assert found["outside"].to_numpy() == pytest.approx([5 / 10, 3 / 6])
    alone = efficiencies.table(given, "strong")
    assert alone["outside"].isna().all()
    assert found["global"].to_numpy() == pytest.approx(alone["global"].to_numpy() * found["outside"].to_numpy())


def test_what_one_rank_has_nothing_of_does_not_grow_from_there(tmp_path: Path) -> None:
    """Messages that fall from two ranks on were 452 times as long at 128 as the 0.3 ms that one rank takes."""
    made = Experiment.create(tmp_path / "halo.exp", "halo", ["ranks"])
    for at, ranks in enumerate((1.0, 2, 4, 8, 16, 32)):
        halo = 3e-4 if ranks == 1 else 1.5 / ranks ** (2 / 3) + 0.01 * np.log2(ranks)
        scatter = np.exp(0.01 * np.random.default_rng(at).normal(size=(3, 2)))
        for repetition, (one, other) in enumerate(scatter):
            table = pd.DataFrame({"kernel": ["work", "halo"], "rank": [0, 0], "time": [64 / ranks * one, halo * other]})
            made.add(Run({"ranks": ranks}, repetition), table)
    diagnosis = fit(made).diagnose(ranks=128)
    rows = diagnosis.scaling().set_index("kernel")
    assert rows.loc["halo", "verdict"] != "grows"
    assert "growth" not in set(diagnosis.advice()["kind"])
