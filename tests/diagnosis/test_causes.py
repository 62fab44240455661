"""Verdicts of kernels whose nature is plain, and figures that add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ranksight.analysis.diagnosis.causes import CAUSES, VERDICTS, causes_of
from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.few import PLACES, Samples, draws
from ranksight.analysis.diagnosis.roofline import table
from ranksight.analysis.diagnosis.verdicts import CHANGES, savings
from ranksight.analysis.diagnosis.verdicts import table as verdicts_table
from ranksight.core.errors import InputError

Make = Callable[..., Evidence]
N = 1e9
KERNELS: dict[str, tuple[float, list[float], str]] = {
    # seconds at 1 GHz, loads served by L1, L2, L3, memory in 1e9; 1e9 instructions each
    "polynomial": (0.4, [0.1, 0.0, 0.0, 0.0], "compute-bound"),
    "division": (5.0, [0.1, 0.001, 0.0, 0.0], "compute-bound"),
    "stream": (1.0, [0.2, 0.0, 0.0, 0.12], "memory-bound"),  # 7.7 GB at 8 GB/s
    "stream in L2": (0.9, [0.4, 0.42, 0.0, 0.0], "cache-bound"),  # 26.9 GB at 32 GB/s
    "stream in L3": (1.0, [0.2, 0.0, 0.24, 0.0], "cache-bound"),  # 15.4 GB at 16 GB/s
    "chase": (25.0, [0.0, 0.0, 0.0, 0.25], "latency-bound"),
    "chase in L3": (10.0, [0.0, 0.0, 0.25, 0.0], "latency-bound"),
    "gather": (3.0, [0.2, 0.0, 0.0, 0.1], "latency-bound"),  # three loads in flight, 2.1 GB/s
}


def made(evidence: Make, **more: object) -> Evidence:
    return evidence(
        {name: [time] for name, (time, _, _) in KERNELS.items()},
        [1],
        instructions={name: [N] for name in KERNELS},
        loads={name: [[N * x] for x in served] for name, (_, served, _) in KERNELS.items()},
        **more,
    )


def test_each_kernel_is_what_it_is(evidence: Make) -> None:
    found = causes_of(made(evidence))
    assert [VERDICTS[v] for v in found.verdict[:, 0]] == [verdict for _, _, verdict in KERNELS.values()]


def test_shares_add_up_within_their_ends(evidence: Make) -> None:
    found = causes_of(made(evidence, communication={"chase": [3.0]}, imbalance={"stream": [0.1]}))
    assert found.share.sum(axis=0) == pytest.approx(1)
    assert (found.low <= found.share + 1e-12).all()
    assert (found.share <= found.high + 1e-12).all()


def test_messages_and_imbalance_lead_where_they_take_the_time(evidence: Make) -> None:
    given = made(evidence, communication={"division": [20.0]}, imbalance={"stream": [4.0]})
    found = causes_of(given)
    said = dict(zip(given.kernels, (VERDICTS[v] for v in found.verdict[:, 0]), strict=True))
    assert said["division"] == "communication-bound"
    assert said["stream"] == "imbalance-bound"
    assert said["polynomial"] == "compute-bound"


def test_what_is_unknown_is_undecided(evidence: Make) -> None:
    """A CPI near the usual, loads that could explain it all or nothing, and no bandwidth near its roof."""
    given = evidence(
        {"either": [1.0]}, [1], instructions={"either": [N]}, loads={"either": [[0], [0], [0], [0.03 * N]]}
    )
    found = causes_of(given)
    assert VERDICTS[found.verdict[0, 0]] == "undecided"
    bare = evidence({"timed": [1.0]}, [1])
    found = causes_of(bare)
    assert VERDICTS[found.verdict[0, 0]] == "undecided"
    assert found.share[CAUSES.index("unknown"), 0, 0] == 1


def test_an_estimated_machine_decides_less(evidence: Make, machine: Ceilings) -> None:
    guessed = replace(machine, certain=np.zeros(4, dtype=bool))
    sure, unsure = (causes_of(made(evidence, ceilings=each)) for each in (machine, guessed))
    at = list(KERNELS).index("stream in L2")
    assert VERDICTS[sure.verdict[at, 0]] == "cache-bound"
    assert VERDICTS[unsure.verdict[at, 0]] == "undecided"


def test_a_domain_shares_its_bandwidth(machine: Ceilings) -> None:
    found = machine.share(np.array([1, 2, 3, 4, 100]))
    assert found[3] == pytest.approx([8e9, 6e9, 6e9, 6e9, 6e9])
    assert found[2] == pytest.approx([16e9, 16e9, 40e9 / 3, 10e9, 10e9])
    assert found[1] == pytest.approx(32e9)


def test_a_kernel_at_the_roof_of_a_shared_cache_is_cache_bound(evidence: Make) -> None:
    """15.4 GB of lines from L3 on each of 4 ranks, a quarter of 40 GB/s for each: faster execution saves nothing."""
    given = evidence(
        {"stream in L3": [1.0, 1.6]},
        [1, 4],
        instructions={"stream in L3": [N, N]},
        loads={"stream in L3": [[0.2 * N] * 2, [0.0] * 2, [0.24 * N] * 2, [0.0] * 2]},
    )
    found = causes_of(given)
    assert [VERDICTS[v] for v in found.verdict[0]] == ["cache-bound"] * 2
    assert found.used[1, 0] == pytest.approx([0.96, 0.96])
    saved = savings(found, given.computing, given.whole)
    assert saved[CHANGES.index("execution"), 0, 1] <= 0.041
    assert saved[CHANGES.index("caches"), 0, 1] == pytest.approx(0.48, abs=0.02)


def test_a_damaged_machine_is_refused(machine: Ceilings) -> None:
    content = machine.to_dict()
    assert Ceilings.from_dict(content).to_dict() == content
    for damage in ({"shared": [1.0]}, {"shared": [None] * 4}, {"shared": [None, None, -1.0, 1e9]}, {"cores": [0] * 4}):
        with pytest.raises(InputError, match="ceilings"):
            Ceilings.from_dict({**content, **damage})


def test_counterfactuals_halve_the_part_and_keep_to_the_roof(evidence: Make) -> None:
    given = made(evidence, communication={"division": [5.0]})
    found = causes_of(given)
    saved = savings(found, given.computing, given.whole)
    at = {name: i for i, name in enumerate(given.kernels)}
    of = {name: i for i, name in enumerate(CHANGES)}
    assert saved[of["execution"], at["polynomial"], 0] == pytest.approx(0.5, abs=0.01)
    assert saved[of["network"], at["division"], 0] == pytest.approx(0.25)
    # Bytes take 96 % of the stream's time: execution twice as fast cannot save more than 4 %.
    assert saved[of["execution"], at["stream"], 0] <= 0.041
    assert saved[of["memory"], at["stream"], 0] == pytest.approx(0.48, abs=0.02)
    assert saved[of["memory"], at["chase"], 0] == pytest.approx(0.5, abs=0.05)


def test_a_time_that_is_not_predicted_keeps_a_verdict_only_where_its_ends_agree(evidence: Make) -> None:
    given = made(evidence, wide=dict.fromkeys(KERNELS, 3.0))
    given = replace(given, ok=np.zeros_like(given.ok))
    found = causes_of(given)
    said = dict(zip(given.kernels, (VERDICTS[v] for v in found.verdict[:, 0]), strict=True))
    assert said["polynomial"] == said["division"] == "compute-bound"
    assert said["stream in L2"] == "undecided"


def sampled(evidence: Evidence, time: float, counts: float) -> Evidence:
    """The same made of so many samples of time and of each count."""
    shape = evidence.computing.shape
    behind = Samples(
        np.full(shape, time),
        np.full(shape, counts),
        np.full((4, *shape), counts),
        np.full(shape, np.inf),
        evidence.loads * np.nan + evidence.loads.sum(axis=0) / 4 / counts,
    )
    return replace(evidence, drawn=tuple(draws(evidence, behind)))


def test_what_waits_for_others_is_known_without_a_sample(evidence: Make) -> None:
    """Messages a hundred times as long as an assumed time bound a kernel, whatever that is; computing stays open."""
    given = made(evidence, communication={"division": [500.0], "gather": [10.0]}, imbalance={"stream": [90.0]})
    shape = given.computing.shape
    ends = {"low": given.computing / 5, "high": given.computing * 5}
    found = causes_of(replace(given, imputed=np.ones(shape, dtype=bool), **ends))
    said = dict(zip(given.kernels, (VERDICTS[v] for v in found.verdict[:, 0]), strict=True))
    assert said.pop("division") == "communication-bound"
    assert said.pop("stream") == "imbalance-bound"
    # Three seconds of computing may be fifteen, more than its ten of messages.
    assert set(said.values()) == {"undecided"}


def test_few_samples_of_time_leave_what_is_plain(evidence: Make) -> None:
    """Times so short that no memory could bring their bytes are no reason for doubt."""
    given = made(evidence)
    found = causes_of(sampled(given, 8, np.inf))
    said = dict(zip(given.kernels, (VERDICTS[v] for v in found.verdict[:, 0]), strict=True))
    for name in ("polynomial", "division", "stream", "stream in L3", "chase", "chase in L3"):
        assert said[name] == KERNELS[name][2]


@pytest.mark.parametrize("number", [1.0, 2.0, 3.0, 5.0, 8.0, 20.0])
def test_few_samples_of_all_give_no_wrong_verdict(evidence: Make, number: float) -> None:
    given = made(evidence)
    found = causes_of(sampled(given, number, number))
    for verdict, (_, _, true) in zip(found.verdict[:, 0], KERNELS.values(), strict=True):
        assert VERDICTS[verdict] in (true, "undecided")


def test_few_samples_widen_shares(evidence: Make) -> None:
    given = made(evidence)
    exact = causes_of(given)
    widths = [causes_of(sampled(given, number, number)) for number in (3.0, 30.0, 1e9)]
    few, more, many = ((each.high - each.low).sum() for each in widths)
    assert few > more > many == pytest.approx((exact.high - exact.low).sum(), rel=1e-3)
    assert all((each.low <= exact.share).all() and (exact.share <= each.high).all() for each in widths)


def test_a_verdict_between_two_by_its_samples_is_open(evidence: Make) -> None:
    """Loads that wait one by one: their level or execution takes the time, as more samples were due or fewer."""
    given = made(evidence)
    at = list(KERNELS).index("chase in L3")
    found = [causes_of(sampled(given, number, np.inf)).verdict[at, 0] for number in (1e9, 4)]
    assert [VERDICTS[each] for each in found] == ["latency-bound", "undecided"]


def test_more_bytes_than_a_level_delivers_are_undecided(evidence: Make) -> None:
    loads = {name: [[0.2 * N], [0.0], [0.0], [x * N]] for name, x in (("near", 0.12), ("over", 0.14))}  # of 0.125
    names = {name: [N] for name in loads}
    found = causes_of(evidence({name: [1.0] for name in loads}, [1], instructions=names, loads=loads))
    assert [VERDICTS[v] for v in found.verdict[:, 0]] == ["memory-bound", "undecided"]
    assert np.isnan(found.chance[1, 0])


def test_more_cycles_than_code_takes_are_undecided_where_no_stalls_were_counted(evidence: Make) -> None:
    """A chain of divisions executes 5 cycles an instruction; 60 are waiting that loads served by caches do not show."""
    seconds = {"division": [5.0], "lookup": [60.0], "counted": [60.0]}
    given = evidence(
        seconds,
        [1],
        instructions={name: [N] for name in seconds},
        loads={name: [[0.3 * N], [0.01 * N], [0.0], [0.0]] for name in seconds},
        stalled={"counted": [0.01]},
    )
    found = causes_of(given)
    assert [VERDICTS[v] for v in found.verdict[:, 0]] == ["compute-bound", "undecided", "compute-bound"]
    assert np.isnan(found.chance[1, 0])
    said = verdicts_table(given, found).set_index("kernel")["reason"]
    assert said["lookup"].startswith("CPI 60 is more than execution takes")
    assert said["division"] == said["counted"] == ""


@pytest.mark.parametrize(("stalled", "passing", "memory"), [(0.05, 0.3, 0.05), (0.3, 0.9, 0.9)])
def test_bytes_that_pass_while_a_kernel_executes_hold_nothing_up(
    evidence: Make, stalled: float, passing: float, memory: float
) -> None:
    loads = {"k": [[N], [0.0], [0.0], [passing * 0.125 * N]]}
    given = evidence({"k": [1.0]}, [1], instructions={"k": [N]}, loads=loads)
    waits = np.full((1, 1), stalled)
    each = {**given.broken.each, "execution": 1 - waits, "loads_mem": waits}
    given = replace(given, counted=np.array([True]), broken=replace(given.broken, each=each))
    assert causes_of(given).share[1:4].sum() == pytest.approx(memory, abs=0.01)


def test_places_of_draws_cover_each_quantile_once() -> None:
    thirtyseconds = np.sort((len(PLACES) * PLACES).astype(int), axis=0)
    assert (thirtyseconds == np.arange(len(PLACES))[:, None]).all()
    assert PLACES.shape == (32, 8)
    assert np.abs(np.corrcoef(PLACES.T) - np.eye(8)).max() < 0.3


def test_a_rank_has_the_peak_of_its_cores(evidence: Make, machine: Ceilings) -> None:
    known = replace(machine, instructions=4.0, flops=16.0)
    given = {"instructions": {"k": [1e9, 1e9]}, "loads": {"k": [[0, 0], [0, 0], [0, 0], [1e6, 1e6]]}}
    counts = evidence({"k": [1.0, 0.5]}, [1, 2], **given, ceilings=known)
    for kind, flops, peak in (("instructions", np.nan, 4e9), ("flops", 5e8, 16e9)):
        made = replace(counts, flops=np.full((1, 2), flops))
        found = table(made)
        assert set(found["operations"]) == {kind}
        assert found["peak"].tolist() == pytest.approx([peak] * len(found))
    unknown = evidence({"k": [1.0, 0.5]}, [1, 2], **given)
    assert table(unknown)["peak"].isna().all()
    again = Ceilings.from_dict(known.to_dict())
    assert (again.peak("flops"), again.peak("instructions")) == (16e9, 4e9)
    with pytest.raises(InputError, match="ceilings"):
        Ceilings.from_dict({**known.to_dict(), "flops": -1.0})
