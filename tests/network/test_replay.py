"""Replay against closed forms: collectives, exchanges, waves, who waits for whom, and what latency costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.replay.collectives import rounds_of
from ranksight.comm.replay.laid import Laid, replay
from ranksight.comm.replay.path import critical_path
from ranksight.comm.replay.program import Call, Channel, Program
from ranksight.comm.replay.wires import slower
from ranksight.comm.topology.shape import Topology
from ranksight.core.errors import InputError

LATENCY, G = 2e-6, 1e-9
SIZE_OF_TWO = 4e4
FLAT = Fabric.flat(NetworkParameters.linear(LATENCY, G))


def all_of(ranks: int) -> np.ndarray:
    return np.zeros(ranks, dtype=np.int64)


def collective(operation: str, ranks: int, size: float, **others) -> Program:
    return Program(ranks, (Call("collective", "k", operation, groups=all_of(ranks), size=size, **others),), ())


def ring(ranks: int, size: float, *order: str, steps: int = 1) -> Program:
    rank = np.arange(ranks)
    calls = tuple(Call(what, "ring", f"MPI_{what}", channel=0) for what in order)
    return Program(ranks, calls, (Channel(rank, (rank + 1) % ranks, np.full(ranks, size)),), steps)


def line(ranks: int, work: float, size: float, steps: int) -> Program:
    """Every rank receives from the one before, computes, and sends to the next."""
    rank = np.arange(ranks - 1)
    compute = Call("compute", "sweep", seconds=np.full(ranks, work))
    calls = (Call("post", "sweep", channel=0), Call("receive", "sweep", channel=0), compute)
    return Program(
        ranks, (*calls, Call("send", "sweep", channel=0)), (Channel(rank, rank + 1, np.full(ranks - 1, size)),), steps
    )


@pytest.mark.parametrize(
    ("operation", "algorithm"),
    [
        ("allreduce", "recursive_doubling"),
        ("allreduce", "ring"),
        ("allreduce", "rabenseifner"),
        ("allgather", "ring"),
        ("allgather", "bruck"),
        ("allgather", "recursive_doubling"),
        ("alltoall", "pairwise"),
        ("alltoall", "bruck"),
        ("barrier", "dissemination"),
        ("reduce", "binomial"),
        ("gather", "binomial"),
    ],
)
@pytest.mark.parametrize("size", [8.0, 1e5])
def test_ranks_that_enter_together_take_what_the_equation_says(operation, algorithm, size):
    chosen = {operation: algorithm}
    seconds = replay(collective(operation, 32, size), FLAT, chosen).time
    assert seconds == pytest.approx(float(cost(operation, 32, size, FLAT, chosen)))


@pytest.mark.parametrize("algorithm", ["binomial", "knomial"])
def test_messages_of_a_tree_that_wait_for_their_receivers_take_what_the_equation_says(algorithm):
    link = NetworkParameters.linear(LATENCY, G, gap=Piecewise((0,), (0.0,), (G,)), eager_limit=1000)
    fabric, chosen = Fabric.flat(link), {"bcast": algorithm}
    found = replay(collective("bcast", 32, 1e5), fabric, chosen).time
    assert found == pytest.approx(float(cost("bcast", 32, 1e5, fabric, chosen)))


def test_eager_messages_of_a_tree_share_the_adapter_of_the_rank_that_sends_them():
    size = 1e5
    found = replay(collective("bcast", 16, size), FLAT, {"bcast": "binomial"}).end
    # The root has four children, and the first of each level has one less.
    depth = [LATENCY + n * size * G for n in (4, 3, 2, 1)]
    assert found[8] == pytest.approx(depth[0])
    assert found[4] == found[1] == pytest.approx(depth[0])
    assert found.max() == pytest.approx(sum(depth))
    four = replay(collective("bcast", 16, size), FLAT, {"bcast": "knomial"}).end
    assert four.max() == pytest.approx(2 * LATENCY + (6 + 3) * size * G)
    two = replay(collective("bcast", 15, size), FLAT, {"bcast": "binary"}).end
    assert two.max() == pytest.approx(3 * (LATENCY + 2 * size * G))


def test_one_slow_pair_does_not_slow_an_exchange_of_neighbours_in_every_round():
    """Only every second round goes over it, and what waits for that has time until then."""
    shape = Topology("fat tree", (8, 16), 1e12, ((1.0, 1.0),), hop_latency=LATENCY / 4)
    link = NetworkParameters.linear(LATENCY, G)
    found = replay(
        collective("allgather", 16, 1e3), Fabric(None, link, 1, topology=shape), {"allgather": "neighbor_exchange"}
    )
    rounds = (LATENCY + 1e3 * G) + 7 * (LATENCY + 2e3 * G)
    assert rounds < found.time <= rounds + 2 * shape.hops(np.array([7]), np.array([8]))[0] * LATENCY / 4


def test_an_algorithm_without_rounds_costs_what_its_equation_says():
    chosen = {"bcast": "chain"}
    found = replay(collective("bcast", 20, 1e4, count=3), FLAT, chosen)
    assert found.time == pytest.approx(3 * float(cost("bcast", 20, 1e4, FLAT, chosen)))
    more = float(cost("bcast", 20, 1e4, slower(FLAT, latency=1e-6), chosen)) - float(
        cost("bcast", 20, 1e4, FLAT, chosen)
    )
    assert critical_path(found).latencies == pytest.approx(3 * more / 1e-6, rel=1e-3)


@pytest.mark.parametrize("late", [0.0, 0.25, 0.5, 1.0])
def test_ranks_that_come_later_to_a_cut_share_it_for_less_time_in_every_step(late):
    """Of two pairs whose messages share a cut, each takes 2 s G less by how much the other is late in the first step."""
    shape = Topology("fat tree", (2, 4), 1 / G, ((2.0, 2.0),))
    fabric = Fabric(None, NetworkParameters.linear(LATENCY, G), 1, topology=shape)
    size, work, steps = 1e5, 3e-4, 8
    first = np.full((steps, 4), work)
    first[0] += late * size * G * np.array([0, 1, 0, 1])
    channel = Channel(np.arange(4), np.array([2, 3, 0, 1]), np.full(4, size))
    calls = (Call("compute", "k", seconds=first), *(Call(what, "k", channel=0) for what in ("post", "send", "receive")))
    found = replay(Program(4, calls, (channel,), steps), fabric)
    ends = found.after[len(calls) - 1 :: len(calls)]
    expected = work + LATENCY + (2 - late) * size * G
    assert np.diff(ends, axis=0) == pytest.approx(np.full((steps - 1, 4), expected), rel=1e-3)


def test_a_late_rank_makes_all_others_wait():
    ranks, late = 8, 1e-3
    work = np.where(np.arange(ranks) == 5, late, 0.0)
    program = collective("allreduce", ranks, 8)
    program = replace(program, calls=(Call("compute", "solve", seconds=work), *program.calls))
    found = replay(program, FLAT, {"allreduce": "recursive_doubling"})
    own = 3 * (LATENCY + 8 * G)
    assert found.time == pytest.approx(late + own)
    wait = found.waits["k", "collective"]
    assert wait[5] == 0
    assert wait[[0, 1, 2]] == pytest.approx([late] * 3)
    path = critical_path(found)
    assert path.compute["solve"] == pytest.approx(late)
    assert path.of_ranks[5] >= late


def test_a_wave_goes_through_all_ranks_and_then_a_step_at_a_time():
    ranks, work, size, steps = 12, 1e-4, 1e3, 20
    found = replay(line(ranks, work, size, steps), FLAT)
    hop = LATENCY + size * G
    assert found.time == pytest.approx((ranks - 1) * (work + hop) + steps * work)
    # The n-th rank waits for the first wave only; from then on all messages have come.
    assert found.waits["sweep", "late sender"] == pytest.approx(
        np.arange(ranks) * (work + hop) - hop * (np.arange(ranks) > 0), abs=1e-9
    )
    path = critical_path(found)
    assert (path.latencies, path.changes) == (ranks - 1, ranks - 1)
    assert path.time == pytest.approx(found.time)


@pytest.mark.parametrize("program", [line(9, 1e-5, 3e4, 4), ring(8, 1e5, "post", "send", "receive", steps=5)])
def test_the_path_gives_the_derivative_by_latency(program):
    laid = Laid(program, FLAT).settled("openmpi-5.0")  # links are shared as before
    found, more = (each.replay("openmpi-5.0") for each in (laid, laid.slower(1e-9)))
    assert (more.time - found.time) / 1e-9 == pytest.approx(critical_path(found).latencies, rel=1e-4)


def test_the_path_gives_the_derivatives_by_overhead_and_bandwidth():
    overhead = Piecewise((0,), (3e-7,), (0.0,))
    link = NetworkParameters.linear(LATENCY, G, send_overhead=overhead, receive_overhead=overhead)
    program = ring(8, 1e5, "post", "send", "receive", steps=5)
    found = replay(program, Fabric.flat(link))
    path = critical_path(found)
    assert found.time == pytest.approx(5 * (LATENCY + 1e5 * G))
    assert path.overhead == pytest.approx(5 * 2 * 3e-7, rel=1e-5)
    faster = replay(program, slower(Fabric.flat(link), bandwidth=2.0))
    assert found.time - faster.time == pytest.approx(path.wire / 2, rel=1e-5)


def test_sends_in_a_ring_pass_while_they_are_eager_and_deadlock_from_there_on():
    order = ("send", "complete", "post", "receive")
    eager = Fabric.flat(NetworkParameters.linear(LATENCY, G, eager_limit=1000))
    assert replay(ring(5, 999, *order), eager).time == pytest.approx(LATENCY + 999 * G)
    with pytest.raises(InputError, match=r"rank 0 waits for rank 1 in MPI_complete of ring.*up to rank 4"):
        replay(ring(5, 1000, *order), eager)


def test_a_receive_that_nobody_sends_for_names_who_has_ended():
    empty = np.array([0])
    program = Program(2, (Call("receive", "k", "MPI_Recv", channel=0),), (Channel(empty, empty + 1, np.ones(1)),))
    with pytest.raises(InputError, match="rank 1 waits for rank 0 in MPI_Recv of k, which has made all of its calls"):
        replay(program, FLAT)


def test_a_long_message_waits_for_a_late_receiver():
    late = 1e-3
    link = Fabric.flat(NetworkParameters.linear(LATENCY, G, eager_limit=1000))
    calls = (
        Call("compute", "work", seconds=np.array([0.0, late])),
        *(Call(what, "k", channel=0) for what in ("post", "send", "complete", "receive")),
    )
    found = replay(Program(2, calls, (Channel(np.array([0]), np.array([1]), np.array([1e4])),)), link)
    assert found.end == pytest.approx([late + LATENCY + 1e-5] * 2)
    assert found.waits["k", "late receiver"] == pytest.approx([late, 0.0])
    assert critical_path(found).compute["work"] == pytest.approx(late)


def test_messages_of_a_switch_share_its_way_up():
    ranks, taper = 16, 4.0
    shape = Topology("fat tree", (4, 16), 1 / G, ((taper, taper),))
    fabric = Fabric(None, FLAT.far, 1, topology=shape)
    rank = np.arange(ranks)
    calls = tuple(Call(what, "k", channel=0) for what in ("post", "send", "receive"))
    program = Program(ranks, calls, (Channel(rank, (rank + 4) % ranks, np.full(ranks, 1e6)),))
    assert replay(program, fabric).time == pytest.approx(LATENCY + taper * 1e6 * G)
    # Placed so that partners share a switch, they do not.
    near = (rank % 4) * 4 + rank // 4
    assert replay(program, fabric, places=near).time == pytest.approx(LATENCY + 1e6 * G)


def test_what_a_stream_does_not_take_is_no_traffic():
    """Two messages of a rank share its adapter for what they take of a stream; the rest passes at the same time."""
    stream = Piecewise((0,), (0.0,), (G,))
    link = replace(NetworkParameters.linear(LATENCY, 3 * G), gap=stream)
    shaped = Fabric(None, link, 1, topology=Topology("fat tree", (16,), 1 / G))
    one, two = (Channel(np.zeros(n, int), np.arange(1, n + 1), np.full(n, SIZE_OF_TWO)) for n in (1, 2))
    calls = tuple(Call(what, "k", f"MPI_{what}", channel=0) for what in ("post", "send", "receive", "complete"))
    of_one, of_two = (replay(Program(3, calls, (each,)), shaped).time for each in (one, two))
    assert of_one == pytest.approx(LATENCY + 3 * G * SIZE_OF_TWO)
    assert of_two == pytest.approx(LATENCY + (3 + 1) * G * SIZE_OF_TWO)


def test_who_waits_for_several_waits_for_the_last_that_is_sent():
    """The last message sent is short, and comes before a long one that was sent earlier."""
    source, target, size = np.array([1, 2]), np.array([0, 0]), np.array([1e6, 8.0])
    late = np.array([0.0, 1e-4, 3e-4])
    calls = (
        Call("compute", "k", seconds=late),
        *(Call(what, "k", f"MPI_{what}", channel=0) for what in ("post", "send", "receive", "complete")),
    )
    replayed = replay(Program(3, calls, (Channel(source, target, size),)), FLAT)
    assert replayed.time > 1e-3
    assert replayed.waits["k", "late sender"][0] == pytest.approx(3e-4)


def test_a_wave_does_not_share_what_it_passes_one_after_the_other():
    ranks = 16
    shape = Topology("fat tree", (1, 16), 1 / G, ((8.0, 8.0),))
    fabric = Fabric(None, FLAT.far, 1, topology=shape)
    found = replay(line(ranks, 1e-3, 1e3, 1), fabric)
    assert found.time == pytest.approx(ranks * 1e-3 + (ranks - 1) * (LATENCY + 8e3 * G), rel=1e-3)


def test_communicators_of_part_of_the_ranks_do_not_wait_for_others():
    groups = np.repeat([0, 1], 4)
    work = np.where(groups == 1, 1e-3, 0.0)
    calls = (Call("compute", "w", seconds=work), Call("collective", "k", "MPI_Barrier", groups=groups))
    found = replay(Program(8, calls, ()), FLAT, {"barrier": "dissemination"})
    assert found.end == pytest.approx(work + 2 * LATENCY)
    assert found.waiting == pytest.approx(np.zeros(8))


def test_root_of_a_broadcast_is_who_the_others_wait_for():
    work = np.where(np.arange(8) == 3, 1e-3, 0.0)
    calls = (
        Call("compute", "w", seconds=work),
        Call("collective", "k", "MPI_Bcast", groups=all_of(8), size=8, root=3),
    )
    path = critical_path(replay(Program(8, calls, ()), FLAT, {"bcast": "binomial"}))
    assert path.compute["w"] == pytest.approx(1e-3)


def test_what_a_step_sends_the_next_one_receives():
    ranks, work, steps = 6, 1e-4, 10
    rank = np.arange(ranks)
    calls = (
        Call("post", "k", channel=0),
        Call("receive", "k", channel=0),
        Call("compute", "k", seconds=np.full(ranks, work)),
        Call("send", "k", channel=0),
    )
    program = Program(ranks, calls, (Channel(rank, (rank + 1) % ranks, np.full(ranks, 100.0), lag=1),), steps)
    found = replay(program, FLAT)
    assert found.time == pytest.approx(steps * work + (steps - 1) * (LATENCY + 100 * G))
    assert critical_path(found).latencies == steps - 1


def stencil(ranks: int, work: np.ndarray, lag: int, steps: int) -> Program:
    """A periodic line of ranks with both neighbours, and a sum."""
    rank = np.arange(ranks)
    source, target = np.tile(rank, 2), np.concatenate([(rank + 1) % ranks, (rank - 1) % ranks])
    calls = [Call(what, "halo", channel=0) for what in ("post", "send", "receive", "complete")]
    calls = [Call("compute", "halo", seconds=work), *calls]
    calls.append(Call("collective", "sum", "MPI_Allreduce", groups=all_of(ranks), size=8.0))
    channel = Channel(source, target, np.full(2 * ranks, 3e4), lag)
    return Program(ranks, tuple(calls[: 6 - lag]), (channel,), steps)


@pytest.mark.parametrize(
    ("lag", "uneven", "repeats"), [(0, 0.0, True), (0, 0.2, True), (1, 0.0, True), (1, 0.2, False)]
)
def test_steps_that_repeat_are_what_they_are_one_by_one(lag, uneven, repeats):
    """Where each step states what ranks compute, all steps are replayed."""
    steps, ranks = 12, 9
    work = 1e-4 * (1 + uneven * np.sin(np.arange(ranks)))
    short = replay(stencil(ranks, work, lag, steps), FLAT)
    every = replay(stencil(ranks, np.tile(work, (steps, 1)), lag, steps), FLAT)
    assert (len(short.after) < len(every.after)) == repeats  # two neighbours take turns to wait in the last case
    assert short.end == pytest.approx(every.end, rel=1e-6)
    assert short.waiting == pytest.approx(every.waiting, rel=1e-6, abs=1e-12)
    paths = critical_path(short), critical_path(every)
    assert paths[0].time == pytest.approx(short.time)
    assert paths[0].latencies == pytest.approx(paths[1].latencies)
    assert paths[0].compute == pytest.approx(paths[1].compute)


@pytest.mark.parametrize("count", [1, 3])
def test_rounds_of_a_ring_are_the_messages_of_a_program_of_as_many_steps(count):
    ranks, size = 12, 1e3
    work = np.where(np.arange(ranks) == 7, 1e-3, 0.0)
    program = collective("allgather", ranks, size, count=count)
    program = replace(program, calls=(Call("compute", "k", seconds=work), *program.calls))
    messages = ring(ranks, size, "post", "send", "receive", steps=count * (ranks - 1))
    first = np.zeros((messages.steps, ranks))
    first[0] = work
    messages = replace(messages, calls=(Call("compute", "k", seconds=first), *messages.calls))
    # A rank that is late has several messages under way when it goes on; rounds of a collective share no links.
    found = replay(program, FLAT, {"allgather": "ring"}).end
    assert found == pytest.approx(replay(messages, FLAT).end, rel=0.02)


def test_an_algorithm_of_too_many_messages_is_known_by_its_cost_alone():
    assert rounds_of("alltoall", "pairwise", 64, 8.0) is not None
    assert rounds_of("alltoall", "pairwise", 4096, 8.0) is None
    assert len(rounds_of("allgather", "ring", 4096, 8.0) or ()) == 1


def test_more_latency_of_a_program_that_is_laid_out_is_a_slower_network():
    link = NetworkParameters.linear(LATENCY, G, eager_limit=20000)
    fabric, more = Fabric.flat(link), 7e-7
    program = stencil(8, np.full(8, 1e-4), 0, 3)
    laid = Laid(program, fabric)
    slow = replay(program, slower(fabric, latency=more))
    assert laid.slower(more).replay("openmpi-5.0").time == pytest.approx(slow.time)
    # Messages that wait for their receiver cross three times, those of the sum once.
    assert slow.time - laid.replay("openmpi-5.0").time == pytest.approx(3 * (3 + 3) * more)


@pytest.mark.parametrize("change", [{"overhead": 2e-7}, {"bandwidth": 2.0}])
@pytest.mark.parametrize("taper", [1.0, 4.0])
def test_other_links_of_a_program_that_is_laid_out_are_shared_as_before(taper, change):
    """Where all ranks send at once who shares what does not depend on the links' speed."""
    shape = Topology("fat tree", (4, 8), 1 / G, ((taper, taper),))
    over = Piecewise((0,), (3e-7,), (0.0,))
    link = NetworkParameters.linear(LATENCY, G, send_overhead=over, receive_overhead=over)
    fabric = Fabric(None, link, 1, topology=shape)
    rank = np.arange(8)
    calls = tuple(Call(what, "k", channel=0) for what in ("post", "send", "receive"))
    program = Program(8, calls, (Channel(rank, (rank + 4) % 8, np.full(8, 1e5)),), 3)
    laid, other = Laid(program, fabric).settled("openmpi-5.0"), slower(fabric, **change)
    assert laid.replay("openmpi-5.0").time == pytest.approx(3 * (LATENCY + taper * 1e5 * G), rel=1e-6)
    assert laid.on(other).replay("openmpi-5.0").time == pytest.approx(replay(program, other).time, rel=1e-6)


def test_bytes_that_come_later_over_switches_take_what_others_left():
    """The adapter of the sender is busy from the first byte to the last: two messages take twice the time of one."""
    size, extra = 1e5, 1e-5
    for hop_latency in (extra / 2, Piecewise((0,), (extra / 2,), (0.0,))):
        shape = Topology("fat tree", (2, 8), 1 / G, ((1.0, 1.0),), hop_latency=hop_latency)
        source, target = np.array([0, 0]), np.array([1, 4])
        calls = tuple(Call(what, "k", channel=0) for what in ("post", "send", "receive"))
        program = Program(8, calls, (Channel(source, target, np.full(2, size)),))
        result = replay(program, Fabric(None, FLAT.far, 1, topology=shape))
        assert result.end[4] == pytest.approx(LATENCY + 2 * size * G)
        assert result.end[1] == pytest.approx(LATENCY + 2 * size * G - extra)
