"""Messages that computation hides: a wait of zero is measured, and hiding ends where there is less to compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.exchanges import blocking_table
from ranksight.comm.network import NetworkParameters
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import assemble, fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform, load

RANKS, WORK, CALLS, SIZE = (4, 8, 16, 32), 10.0, 100, 1_000_000
LINK = NetworkParameters.linear(2e-6, 1e-10)
PRICE = CALLS * float(LINK.transfer_time(np.array([float(SIZE)]))[0])
FORWARD, BACK, STEPS = 1, -1, 10


def machine() -> Platform:
    plain = load("generic")
    layout = replace(plain.layout, sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1)
    caches = tuple(replace(cache, shared_by=1) for cache in plain.caches)
    return replace(plain, layout=layout, caches=caches, network={"inter": LINK.to_dict(), "collectives": "openmpi-4.1"})


def program(path: Path, waited: Callable[[float], float], send: str = "Isend", reduced: float = 0.0) -> Model:
    """Fixed work over ranks that each send as much; they wait so long for it, and as long for a reduction."""
    made = Experiment.create(path / "e", "solver", ["ranks"])
    for ranks in RANKS:
        took = {send: 0.0, "Waitall": waited(WORK / ranks), **({"Allreduce": reduced} if reduced else {})}
        rows = [
            ("solve", rank, name, CALLS, 0 if name == "Waitall" else size, seconds)
            for rank in range(ranks)
            for (name, seconds), size in zip(took.items(), (CALLS * SIZE, 0, CALLS * 8), strict=False)
        ]
        messages = pd.DataFrame(rows, columns=["kernel", "rank", "operation", "count", "bytes", "seconds"])
        messages = messages.assign(comm_size=ranks, size_class=1 << 20, peers=1)
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": WORK / ranks})
        whole = pd.DataFrame(
            {"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": WORK / ranks + sum(took.values())}
        )
        made.add(Run({"ranks": ranks}), pd.concat([whole, solve]), messages)
    return fit(made, ["time"], platform=machine())


def outside(model: Model, ranks: float) -> tuple[float, float, float]:
    """Interval and value of the time outside of computation."""
    found = model.breakdown(np.array([[ranks]]))
    return tuple(
        float(end[0, 0] - found.computing[0]) for end in (found.total.lower, found.total.value, found.total.upper)
    )


@pytest.mark.parametrize("waited", [lambda work: 0.0, lambda work: 1e-3 * work], ids=["nothing", "little"])
def test_hidden_messages_take_nothing_until_less_is_computed_than_they_take(tmp_path, waited):
    model = program(tmp_path, waited)
    for ranks in (32, 64, 128):
        _, value, _ = outside(model, ranks)
        assert value < 0.01 * WORK / ranks
    for ranks in (256, 512, 4096):
        low, value, high = outside(model, ranks)
        computed = WORK / ranks
        seen = PRICE / (WORK / RANKS[-1])  # the part of computation that was seen to hide messages
        # All computation may hide them, or little more than was seen.
        assert low <= max(PRICE - computed, 0.0) + 0.01 * computed
        assert high >= PRICE - (0.1 + seen) * computed
        assert value <= high <= 2 * PRICE + 0.05 * computed
    assert outside(model, 4096)[1] == pytest.approx(PRICE - WORK / 4096, rel=0.2)


def test_a_wait_of_nothing_is_a_measured_factor_of_nothing(tmp_path):
    model = program(tmp_path, lambda work: 0.0)
    table = blocking_table(model, np.array([[16.0], [4096.0]]), 0.9)
    assert table["method"].tolist() == ["measured", "fitted"]
    assert table["factor"][0] < 1e-3
    assert 0.6 < table["factor"][1] < 1
    assert not any("BF_comm is assumed" in note for note in model.predict(ranks=[64]).notes)
    model.save(tmp_path / "m.json")
    assert outside(Model.load(tmp_path / "m.json"), 512) == pytest.approx(outside(model, 512))


def test_messages_are_hidden_one_kind_apart_from_others(tmp_path):
    model = program(tmp_path, lambda work: 0.0, reduced=0.01)
    assert outside(model, 64)[1] == pytest.approx(0.01, rel=0.3)


def test_a_send_that_returns_when_it_is_done_hides_nothing(tmp_path):
    model = program(tmp_path, lambda work: 0.0, send="Send")
    assert outside(model, 64)[1] == pytest.approx(PRICE, rel=0.05)
    assert any("BF_comm is assumed" in note for note in model.predict(ranks=[64]).notes)


def traced(path: Path, work: Callable[[int], float]) -> Experiment:
    """Event traces of a ring whose ranks compute while their messages are under way."""
    made = Experiment.create(path, "ring", ["ranks"])
    for ranks in (4, 8, 16):
        events, messages, partners = [], [], []
        for rank in range(ranks):
            near = [(rank + way) % ranks for way in (FORWARD, BACK)]
            for step in range(STEPS):
                now = step * work(ranks)
                done = now + work(ranks)
                moved = [("Irecv", now, 0), ("Irecv", now, 0), *[("Isend", now, SIZE)] * 2, ("Waitall", done, 0)]
                events += [(rank, "step", name, at, at, size, None, None) for name, at, size in moved]
                events += [(rank, "step", "Isend", now, now, SIZE, other, 0) for other in near]
                events += [(rank, "step", "Irecv", done, done, SIZE, other, 0) for other in near]
            for name, count in (("Irecv", 2), ("Isend", 2), ("Waitall", 1)):
                messages.append(("step", rank, name, count * STEPS, SIZE * STEPS * count * (name == "Isend")))
            partners += [("step", rank, name, other) for name in ("Isend", "Irecv") for other in near]
        columns = ["rank", "kernel", "operation", "begin", "end", "bytes", "peer", "tag"]
        table = pd.DataFrame(events, columns=columns).astype({"peer": "Int32", "tag": "Int32"})
        table = table.sort_values(["rank", "begin"], kind="stable").assign(thread=0, comm_size=ranks)
        sent = pd.DataFrame(messages, columns=["kernel", "rank", "operation", "count", "bytes"])
        sent = sent.assign(comm_size=ranks, size_class=1 << 20, seconds=0.0, peers=2)
        peers = pd.DataFrame(partners, columns=["kernel", "rank", "operation", "peer"])
        peers = peers.assign(comm_size=ranks, size_class=1 << 20, count=STEPS, bytes=STEPS * SIZE)
        run = Run({"ranks": ranks}, collector="pmpi-events", provenance={"time": "measured"})
        times = pd.DataFrame({"kernel": "step", "rank": range(ranks), "time": STEPS * work(ranks)})
        made.add(run, times, sent, tables={"peers": peers, "events": table})
    return made


@pytest.mark.parametrize("hidden", [True, False])
def test_replay_knows_what_computation_hides(tmp_path, hidden):
    """By replay alone, whose doubt is that of the messages and not of what is left of them."""
    price = 2 * float(LINK.transfer_time(np.array([float(SIZE)]))[0])  # of both messages, which share the adapter
    model, _ = assemble(traced(tmp_path / "e", lambda ranks: 24 * price / ranks), ["time"], platform=machine())
    ranks = 20 if hidden else 32
    computed = STEPS * 24 * price / ranks
    low, value, high = outside(model, ranks)
    truth = max(STEPS * price - computed, 0.0)
    assert value == pytest.approx(truth, abs=0.02 * computed)
    assert high > truth
    assert high < truth + 0.6 * STEPS * price
    assert low < truth or not hidden
