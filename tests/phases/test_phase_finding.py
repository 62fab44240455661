"""Repeated sequences, and phases of different ranks and rank counts related to each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.analysis.phases.repeats import find_phases


def found(text: str, work: list[float] | None = None) -> list[tuple[str, int]]:
    letters = sorted(set(text))
    symbols = np.array([letters.index(letter) for letter in text])
    phases = find_phases(symbols, None if work is None else np.array(work))
    return [("".join(letters[s] for s in body), int(w)) for body, w in zip(phases.bodies, phases.weights)]


def test_a_loop_is_a_phase() -> None:
    assert found("xy" + "abc" * 5 + "z") == [("xy", 1), ("abc", 5), ("z", 1)]


def test_loops_in_loops() -> None:
    assert found("p" + ("s" + "uvw" * 4) * 3 + "t") == [("p", 1), ("s", 3), ("uvw", 12), ("t", 1)]
    assert found("i" + ("h" + ("k" + "ab" * 6) * 4 + "e") * 2) == [("i", 1), ("h", 2), ("k", 8), ("ab", 48), ("e", 2)]


def test_loops_with_other_numbers_of_turns_are_one_loop() -> None:
    assert found("".join("ab" * n + "c" for n in (3, 5, 4, 7))) == [("ab", 19), ("c", 4)]


def test_two_alike_in_a_row_are_no_loop() -> None:
    assert found("ISWAA" * 6) == [("ISWAA", 6)]
    assert found("abcde") == [("abcde", 1)]
    assert found("a") == [("a", 1)]
    assert found("") == []


def test_computation_shows_where_a_loop_begins() -> None:
    # Read from either end, the loop could be 'abc' or 'bca': the first a computes as no other does.
    text = "abcabcabcabca"
    usual = {"a": 1.0, "b": 2.0, "c": 3.0}
    work = [usual[letter] for letter in text]
    assert found(text, work) == [("abc", 4), ("a", 1)]
    work[0] = 50.0
    assert found(text, work) == [("a", 1), ("bca", 4)]


def test_runs_of_one_loop_are_cut_at_the_same_place() -> None:
    # Each step's loop can be read as AISWA or ISWAA; the A before it computes as no other. Times scatter.
    text = "x" + ("nAISWA" + "ISWAA" * 25 + "k") * 20 + "m"
    random = np.random.default_rng(3)
    work = random.lognormal(0, 0.5, len(text))
    for step in range(20):
        work[1 + 132 * step + 5] *= 3.0
    assert found(text, work.tolist()) == [("x", 1), ("nAISWA", 20), ("ISWAA", 500), ("k", 20), ("m", 1)]


def test_cg_as_it_is_written() -> None:
    text = "x" + ("nAISW" + "AISWA" * 25 + "m") * 40 + "zzz"
    assert found(text) == [("x", 1), ("nAISW", 40), ("AISWA", 1000), ("m", 40), ("zzz", 1)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=0, max_size=120))
def test_phases_spell_the_trace(symbols: list[int]) -> None:
    given_ = np.array(symbols, dtype=np.int64)
    phases = find_phases(given_)
    at = 0
    while at < len(symbols):
        body = phases.bodies[phases.phase[at]]
        assert tuple(symbols[at : at + len(body)]) == body
        assert (
            len(set(zip(phases.phase[at : at + len(body)].tolist(), phases.occurrence[at : at + len(body)].tolist())))
            == 1
        )
        at += len(body)
    assert sum(len(body) * int(w) for body, w in zip(phases.bodies, phases.weights)) == len(symbols)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(3, 30), st.integers(3, 12), st.integers(1, 3), st.integers(1, 3))
def test_a_nest_is_found_whatever_its_size(body: int, inner: int, outer: int, before: int, after: int) -> None:
    loop = "abcdef"[:body] * inner
    text = "X" + ("pqr"[:before] + loop + "uvw"[:after]) * outer + "Y"
    assert found(text) == [
        ("X", 1), ("pqr"[:before], outer), ("abcdef"[:body], inner * outer), ("uvw"[:after], outer), ("Y", 1)
    ]  # fmt: skip


def test_long_traces_take_seconds() -> None:
    pattern = np.array([0, 1, 2, 3, 4, *([5, 6, 7, 8, 5] * 30), 9])
    phases = find_phases(np.tile(pattern, 1500))
    assert phases.weights.tolist() == [1500, 45000, 1500]


def test_relating_by_order_and_by_bodies() -> None:
    import pandas as pd

    from ranksight.analysis.phases.calls import Calls
    from ranksight.analysis.phases.relate import UNRELATED, relate

    def calls(p: int, text: str) -> Calls:
        table = pd.DataFrame({"kernel": "k", "operation": list(text), "computation": 1.0})
        table["token"] = np.arange(len(text))
        return Calls({"ranks": float(p)}, pd.concat([table.assign(rank=r) for r in range(p)], ignore_index=True))

    related = relate([calls(1, "i" + "w" * 9 + "f"), calls(4, "i" + "rsw" * 9 + "f")])
    assert related.how == {"same sequence": 4, "order": 1, "bodies": 0}
    assert related.labelled[0].groupby("phase")["occurrence"].max().tolist() == [0, 8, 0]
    related = relate([calls(1, "i" + "rsw" * 2 + "q" + "rsw" * 3 + "f"), calls(4, "i" + "rsw" * 9 + "f")])
    assert related.how["bodies"] == 1
    first = related.labelled[0]
    assert first.loc[first["operation"] == "q", "phase"].tolist() == [UNRELATED]
    assert first[first["operation"] == "s"]["occurrence"].tolist() == [0, 1, 2, 3, 4]
    assert [body[0][1] for body in related.bodies] == ["i", "r", "f"]


@pytest.mark.parametrize("calls", [["Irecv", "Irecv", "Isend", "Waitall"], ["Irecv", "Isend", "Isend", "Waitall"]])
def test_numbers_of_partners_make_no_other_phase(calls: list[str]) -> None:
    import pandas as pd

    from ranksight.analysis.phases.calls import _tokens

    table = pd.DataFrame({"rank": 0, "kernel": "k", "operation": calls})
    assert _tokens(table)["token"].max() == 2
    assert _tokens(table.assign(operation="Allreduce"))["token"].tolist() == [0, 1, 2, 3]
