"""From event traces to what latency costs: the order of calls, the program at other ranks, and the verb."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.critical import path_shares
from ranksight.analysis.diagnosis.network import diagnose_network, prepared
from ranksight.cli.main import main
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.replay.laid import replay
from ranksight.comm.replay.settling import Settling
from ranksight.comm.topology.shape import Topology
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.replayed import replayed_seconds
from ranksight.model.fit import assemble
from ranksight.model.messages.fit_messages import fit_messages
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.order import NO_ORDER
from ranksight.model.messages.schedule import dealt_out, schedule
from ranksight.model.messages.table import MessageTable, Row, typical_row
from ranksight.model.messages.times import priced_on
from ranksight.platforms import load
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.sweep import sweep

LATENCY, G, SIZE, STEPS, WORK = 3e-6, 1e-9, 2000, 6, 4e-4
FLAT = Fabric.flat(NetworkParameters.linear(LATENCY, G))


def chain(rank: int, ranks: int) -> list[tuple[str, list[tuple[str, int]]]]:
    """Calls of a step, each with the transfers that it makes or completes: a line of ranks hands something on."""
    calls = []
    if rank > 0:
        calls.append(("Recv", [("Recv", rank - 1)]))
    if rank + 1 < ranks:
        calls.append(("Send", [("Send", rank + 1)]))
    return calls


def begun_by_the_first(rank: int, ranks: int) -> list[tuple[str, list[tuple[str, int]]]]:
    """A ring that rank 0 begins."""
    calls = [("Recv", [("Recv", (rank - 1) % ranks)]), ("Send", [("Send", (rank + 1) % ranks)])]
    return calls if rank else calls[::-1]


def halo(rank: int, ranks: int) -> list[tuple[str, list[tuple[str, int]]]]:
    """Both neighbours of a ring, nonblocking, and a sum of all."""
    near = [(rank - 1) % ranks, (rank + 1) % ranks]
    sends = [("Isend", [("Isend", other)]) for other in near]
    return [("Irecv", []), ("Irecv", []), *sends, ("Waitall", [("Irecv", other) for other in near]), ("Allreduce", [])]


def butterfly(rank: int, ranks: int) -> list[tuple[str, list[tuple[str, int]]]]:
    """An exchange with the rank at each doubling distance, one after the other."""
    others = [rank ^ (1 << turn) for turn in range(ranks.bit_length() - 1)]
    return [("Sendrecv", [("Sendrecv", other), ("Sendrecv_recv", other)]) for other in others]


def traced(path: Path, pattern, ranks=(4, 8), work=lambda rank, ranks: WORK, waits=lambda rank: 0.0) -> Experiment:
    """Event traces of a pattern, with as many microseconds in every call."""
    made = Experiment.create(path, "toy", ["ranks"])
    for p in ranks:
        events, messages, peers = [], [], []
        for rank in range(p):
            now = 0.0
            counts: dict[tuple[str, int], int] = {}
            for _ in range(STEPS):
                # Work comes before the first call that sends, or reduces.
                done = False
                for name, transfers in pattern(rank, p):
                    if not done and name in ("Send", "Irecv", "Allreduce"):
                        now, done = now + work(rank, p), True
                    size = 8 if name == "Allreduce" else SIZE * sum(1 for op, _ in transfers if op == name)
                    events.append((rank, 0, "step", name, p, now, now + 1e-6, size, None, None))
                    now += 1e-6
                    events += [(rank, 0, "step", op, p, now, now, SIZE, other, 0) for op, other in transfers]
                    counts[name, size] = counts.get((name, size), 0) + 1
                    for op, other in transfers:
                        peers.append((op, rank, other, op))
                now += 0.0 if done else work(rank, p)
            for (name, size), count in counts.items():
                if name != "Waitall":
                    messages.append(("step", rank, name, p, size, count, count * size))
        columns = ["rank", "thread", "kernel", "operation", "comm_size", "begin", "end", "bytes", "peer", "tag"]
        table = pd.DataFrame(events, columns=columns).astype({"peer": "Int32", "tag": "Int32"})
        held = pd.DataFrame(
            messages, columns=["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes"]
        )
        held["size_class"] = np.where(held["bytes"] > 0, 2048, 0)
        held.loc[held["operation"] == "Allreduce", "size_class"] = 8
        held["seconds"], held["peers"] = held["count"] * 1e-6, 1
        receives = held["operation"] == "Recv"
        held.loc[receives, "seconds"] += held.loc[receives, "rank"].map(waits)
        pairs = pd.DataFrame(peers, columns=["operation", "rank", "peer", "own"]).groupby(["operation", "rank", "peer"])
        partners = pairs.size().rename("count").reset_index()
        partners = partners.assign(kernel="step", comm_size=p, size_class=2048, bytes=partners["count"] * SIZE)
        run = Run({"ranks": p}, collector="pmpi-events", provenance={"time": "measured"})
        times = pd.DataFrame({"kernel": "step", "rank": range(p), "time": [STEPS * work(rank, p) for rank in range(p)]})
        made.add(run, times, held, tables={"peers": partners, "events": table})
    return made


def at(made: Experiment, ranks: int):
    messages = fit_messages(made)
    assert messages
    assert messages.order
    table = messages.predict(np.array([float(ranks)]))
    return messages.order, schedule(messages, table, dealt_out(messages.order, ranks, STEPS * WORK))


def test_a_chain_is_a_wave_at_any_number_of_ranks(tmp_path):
    order, made = at(traced(tmp_path / "e", chain), 20)
    assert [place.operation for place in order.places] == ["Recv", "Send"]
    assert made.program.steps == STEPS
    found = replay(made.program, FLAT)
    hop = LATENCY + SIZE * G
    assert found.time == pytest.approx(19 * (WORK + hop) + STEPS * WORK, rel=1e-6)


def test_a_ring_that_rank_0_begins_does_not_deadlock(tmp_path):
    order, made = at(traced(tmp_path / "e", begun_by_the_first), 12)
    assert {place.of for place in order.places} == {"all", "first"}
    found = replay(made.program, FLAT)
    # Every rank works between what it receives and what it sends.
    assert found.time == pytest.approx(STEPS * 12 * (LATENCY + SIZE * G + WORK), rel=1e-6)


def test_rounds_of_exchanges_wait_for_each_other_and_are_more_on_more_ranks(tmp_path):
    order, made = at(traced(tmp_path / "e", butterfly, ranks=(8, 16, 32)), 128)
    assert [place.operation for place in order.places] == ["Sendrecv"]
    found = replay(made.program, FLAT)
    assert found.time == pytest.approx(STEPS * (WORK + 7 * (LATENCY + SIZE * G)), rel=1e-6)


def test_both_neighbours_of_a_ring_of_two_are_one_rank(tmp_path):
    """A link that two messages of a step cross has as many more messages, and the program no more steps."""
    _, made = at(traced(tmp_path / "e", halo, ranks=(4, 8)), 2)
    assert made.program.steps == STEPS
    assert sum(len(channel.source) for channel in made.program.channels) == 4


def test_a_halo_with_a_sum_keeps_its_order_and_its_steps(tmp_path):
    order, made = at(traced(tmp_path / "e", halo), 16)
    assert [place.operation for place in order.places] == ["Irecv", "Isend", "Waitall", "Allreduce"]
    assert [call.what for call in made.program.calls].count("collective") == 1
    found = replay(made.program, FLAT, {"allreduce": "recursive_doubling"})
    exchange = LATENCY + 2 * SIZE * G  # two messages share the adapter
    assert found.time == pytest.approx(STEPS * (WORK + exchange + 4 * (LATENCY + 8 * G)), rel=1e-6)


@pytest.mark.parametrize(
    ("work", "pattern"),
    [
        (lambda rank, ranks: WORK * (1 + 0.1 * (rank * 0.618 % 1)), "rank"),
        (lambda rank, ranks: WORK * (1 + 0.2 * (rank + 0.5) / ranks), "place"),
        (lambda rank, ranks: WORK * (1 + 0.1 * (rank * rank * ranks * 0.618 % 1)), "chance"),
    ],
)
def test_imbalance_goes_with_the_rank_or_its_place_or_neither(tmp_path, work, pattern):
    messages = fit_messages(traced(tmp_path / "e", halo, (8, 16), work))
    assert messages
    assert messages.order
    assert messages.order.pattern == pattern
    shares = dealt_out(messages.order, 64, 1.0)
    true = np.array([work(rank, 64) for rank in range(64)])
    assert shares.mean() == pytest.approx(1.0)
    assert shares.std() == pytest.approx(true.std() / true.mean(), rel=0.25)
    if pattern == "place":
        assert shares == pytest.approx(true / true.mean(), rel=0.02)
    if pattern == "rank":
        assert shares[:16] / shares[0] == pytest.approx(true[:16] / true[0], rel=1e-3)


def test_without_an_event_trace_the_order_is_assumed(tmp_path):
    made = traced(tmp_path / "e", halo)
    plain = Experiment.create(tmp_path / "plain", "toy", ["ranks"])
    for run in made.runs:
        tables = {"peers": made.table(run, "peers")}
        plain.add(
            Run(run.configuration, collector="pmpi"),
            made.table(run, "counters"),
            made.table(run, "messages"),
            tables=tables,
        )
    messages = fit_messages(plain)
    assert messages
    assert not messages.order
    found = schedule(messages, messages.predict(np.array([16.0])), np.full(16, STEPS * WORK))
    assert found.assumed
    assert replay(found.program, FLAT).time > STEPS * WORK


def ring(kernel: str, ranks: int, count: float, size: float) -> Row:
    """`count` messages of `size` bytes of each rank to the next one."""
    each, of_links = np.arange(ranks), np.full(ranks, count)
    links = each * ranks + (each + 1) % ranks
    row = typical_row(kernel, "Isend", ranks, count, count * size).of_ranks(ranks)
    return replace(row, comm_size=0, links=links, link_count=of_links, link_bytes=of_links * size)


def test_where_the_order_is_assumed_every_operation_is_called_as_often_as_predicted():
    """One call at the start, another in every step, and two dot products in each."""
    rows = (
        typical_row("start", "Allgather", 8, 1, 24.0).of_ranks(8),
        ring("halo", 8, 50, 1000.0),
        typical_row("dots", "Allreduce", 8, 100, 800.0).of_ranks(8),
    )
    untraced = SimpleNamespace(order=NO_ORDER)
    found = schedule(untraced, MessageTable({"ranks": 8.0}, 8, rows), np.full(8, STEPS * WORK))
    made = found.program
    times = made.steps * found.times
    of = {kernel: [call for call in made.calls if call.kernel == kernel] for kernel in ("start", "halo", "dots")}
    assert sum(call.count for call in of["dots"]) * times == pytest.approx(100)
    assert sum(call.what == "send" for call in of["halo"]) * times == pytest.approx(50)
    assert made.computing * found.times == pytest.approx(np.full(8, STEPS * WORK))
    alone = schedule(untraced, MessageTable({"ranks": 8.0}, 8, rows[2:]), np.full(8, STEPS * WORK))
    both, dots = (replay(one.program, FLAT).time * one.times for one in (found, alone))
    assert both > dots > STEPS * WORK


def uneven(rank: int, ranks: int) -> float:
    return WORK * (1.0 + 0.2 * (rank / (ranks - 1) - 0.5))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    busy = Piecewise((0,), (2e-6,), (0.0,))
    link = NetworkParameters.linear(LATENCY + 4e-6, G, send_overhead=busy, receive_overhead=busy).to_dict()
    shape = {"kind": "fat tree", "source": "here", "nodes_per_switch": 8, "nodes": 64, "link_bandwidth": 1e9}
    platform = load("generic")
    layout = platform.layout.__class__(
        sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1, threads_per_core=1
    )
    caches = tuple(replace(cache, shared_by=1) for cache in platform.caches)
    network = {"inter": link, "topology": shape, "algorithms": {"allreduce": "linear"}}
    platform = replace(platform, layout=layout, caches=caches, network=network)
    found, _ = assemble(traced(folder / "e", halo, (4, 8, 16), uneven), ["time"], platform=platform)
    found.save(folder / "toy.model.json")
    return found, folder / "toy.model.json"


def test_latency_imbalance_and_algorithms_have_a_price(model):
    found = diagnose_network(model[0], np.array([64.0]))
    assert 0.99e-6 <= found.latency <= STEPS * 3.1e-6  # at most an exchange, and a sum there and back
    # Time grows ever steeper with latency: no more is tolerated than its first slope says.
    assert 0.5e-6 < found.tolerance <= 0.01 * found.time * 1e-6 / found.latency * 1.01
    assert found.balanced < found.time
    assert sum(found.waits.values()) > 0.03 * found.time
    assert found.ends[0] <= found.time <= found.ends[1]
    assert any(gain.change.startswith("allreduce by ") for gain in found.gains)
    text = " ".join(found.sentences())
    assert "1 us more latency costs" in text
    assert "tolerance 1 %" in text


def test_the_verb_prints_sentences_and_json(model, capsys):
    assert main(["diagnose", str(model[1]), "--ranks", "32", "--network"]) == 0
    assert "at 32 ranks" in capsys.readouterr().out.replace("\n", " ")
    assert main(["diagnose", str(model[1]), "--ranks", "32", "--network", "--format", "json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["network"]
    assert said["order"] == "traced"
    assert said["seconds_fastest"] <= said["seconds"] <= said["seconds_slowest"]


def test_the_critical_path_is_all_of_the_time_at_every_number_of_ranks(model):
    points = np.array([[1.0], [8.0], [64.0], [128.0]])
    shares = path_shares(model[0], points, model[0].breakdown(points[:3]).computing[[0, 1, 2, 2]])
    assert shares is not None
    assert shares.ranks.tolist() == [8, 64]
    assert "holds 64 nodes" in shares.left_out[128]
    parts = [*shares.compute.values(), *shares.messages.values()]
    assert sum(parts) == pytest.approx(np.ones(2))
    found = diagnose_network(model[0], points[2])
    assert shares.time[1] == pytest.approx(found.time)
    assert shares.compute["step"][1] == pytest.approx(found.compute["step"] / found.time)
    by_cause = {cause: sum(part for (_, of), part in found.waits.items() if of == cause) for cause in shares.waits}
    assert {cause: part[1] for cause, part in shares.waits.items()} == pytest.approx(
        {cause: seconds / found.time for cause, seconds in by_cause.items()}
    )


def test_what_was_replayed_is_not_settled_again(model, monkeypatch):
    messages, network = model[0].equation.communication.messages, model[0].equation.network
    point, work = np.array([[48.0]]), np.array([STEPS * WORK])
    first, _ = replayed_seconds(messages, network, point, work)

    def settle(_: object) -> None:
        raise AssertionError("settled again")

    monkeypatch.setattr(Settling, "settle", settle)
    again, _ = replayed_seconds(messages, network, point, work)
    assert again == pytest.approx(first)
    found = prepared(model[0], point[0], mean=float(work[0]))
    assert found.replayed.communication.mean() * found.made.times == pytest.approx(first[1, 0])
    with pytest.raises(AssertionError, match="settled again"):  # another question
        replayed_seconds(messages, network, point, 2 * work)


def test_the_report_asks_for_no_more_ranks_than_the_network_holds(model):
    """16 ranks were measured, and 16 times as many do not fit."""
    shown = sweep(model[0])
    assert shown.target == {"ranks": 64}
    assert shown.beyond is not None
    assert "fewer nodes" in shown.beyond.reason
    page = render(Context(model[0], shown))
    assert 'id="network"' in page
    assert 'data-figure="critical-path"' in page
    assert "1 µs more latency costs" in page
    assert "late sender" in page


@pytest.mark.parametrize(
    ("places", "words"),
    [("0 0\n1 1\n0 2\n", "rank 0 is placed twice"), ("0 0\n1 1\n", "has 2 ranks")],
)
def test_a_placement_of_other_ranks_is_refused(model, tmp_path, capsys, places, words):
    path = tmp_path / "places"
    path.write_text(places)
    assert main(["diagnose", str(model[1]), "--ranks", "32", "--network", "--places", str(path)]) == 1
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_held_out_runs_weigh_replay_against_prices(tmp_path):
    """A wave takes longer the more ranks it passes; prices of a rank's own messages do not show that."""
    made = traced(tmp_path / "e", chain, (4, 8, 16), waits=lambda rank: rank * (WORK + LATENCY + SIZE * G))
    link = NetworkParameters.linear(LATENCY, G).to_dict()
    model, _ = assemble(made, ["time"], platform=replace(load("generic"), network={"inter": link}))
    law = model.equation.communication.replayed
    assert law is not None
    assert law.weight > 0.5
    total = model.breakdown(np.array([[64.0]])).total
    expected = 63 * (WORK + LATENCY + SIZE * G) + STEPS * WORK
    assert total.value[0, 0] == pytest.approx(expected, rel=0.35)
    assert total.lower[0, 0] < expected < total.upper[0, 0]


def test_what_the_network_lacks_in_the_runs_it_lacks_beyond_them(tmp_path):
    """Hops that take longer than the network says, in proportion to it: replay is as much too short everywhere."""
    hop, link = WORK + LATENCY + SIZE * G, NetworkParameters.linear(LATENCY, G).to_dict()
    platform, longer = replace(load("generic"), network={"inter": link}), 1.3
    at_64 = []
    for factor in (1.0, longer):
        made = traced(tmp_path / f"e{factor}", chain, (4, 8, 16), waits=lambda rank, f=factor: f * rank * hop)
        model, _ = assemble(made, ["time"], platform=platform)
        at_64.append((model.equation.communication.replayed.ratio, model.breakdown(np.array([[64.0]]))))
    (before, short), (after, long) = at_64
    assert after / before == pytest.approx(longer, rel=0.02)
    ends = (long.parts["communication"] / short.parts["communication"], long.total.upper - short.total.upper)
    assert ends[0] == pytest.approx(longer, rel=0.05)
    assert ends[1] > 0


def test_more_ranks_than_the_network_holds_are_refused(model):
    with pytest.raises(InputError, match="holds 64 nodes"):
        diagnose_network(model[0], np.array([128.0]))


def test_messages_whose_partners_are_not_known_need_the_nodes_too():
    shape = Topology("fat tree", (8, 64), 1e9, ((1.0, 1.0),))
    fabric = Fabric(None, NetworkParameters.linear(LATENCY, G), 1, topology=shape)

    def priced(ranks: int) -> list[dict[tuple[str, str], float]]:
        table = MessageTable({"ranks": float(ranks)}, ranks, (typical_row("halo", "Isend", ranks, 6, 6e4),))
        return priced_on([(table, "bytes")], fabric, "openmpi-5.0")

    assert priced(64)[0]["halo", "Isend"] > 0
    with pytest.raises(InputError, match="holds 64 nodes, a job of 128 ranks needs 128"):
        priced(128)


def test_work_that_is_dealt_out_by_chance_widens_the_prediction(model):
    """At as many ranks as were traced nothing is drawn."""
    equation = model[0].equation
    messages = equation.communication.messages
    points, computing = np.array([[16.0], [64.0]]), np.full(2, STEPS * WORK)
    drawn = replace(messages, order=replace(messages.order, pattern="chance"))
    seconds, deviation = replayed_seconds(drawn, equation.network, points, computing)
    assert (seconds > 0).all()
    assert (deviation[:, 0] == 0).all()
    assert (deviation[:, 1] > 0).all()
    even = replace(drawn, order=replace(messages.order, uneven=np.ones(16)))
    assert (replayed_seconds(even, equation.network, points, computing)[1] == 0).all()


@pytest.mark.parametrize(("ranks", "words"), [(65, "holds 64 nodes"), (1 << 27, "too many to replay")])
def test_what_cannot_be_replayed_is_refused_before_its_messages_are_laid_out(model, monkeypatch, ranks, words):
    """Messages of that many ranks may not fit into memory."""

    def laid_out(*_):
        raise AssertionError("messages were predicted")

    monkeypatch.setattr(Messages, "predict", laid_out)
    with pytest.raises(InputError, match=words):
        diagnose_network(model[0], np.array([float(ranks)]))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="SimGrid's smpicc is missing: apt install libsimgrid-dev")
def test_a_simulated_all_to_all_on_a_tapered_tree(tmp_path):
    """Predicted from traces of 8, 16 and 32 ranks, 15 % at 64."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from benchmarks.network import compare, prepare

    prepare(tmp_path)
    (row,) = compare(tmp_path, "fat tree", 4, "alltoall", (64,))
    assert abs(row["replay %"]) < 15
    assert abs(row["predict, no topology %"]) > abs(row["replay %"])
