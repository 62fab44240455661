"""One domain measured, a node predicted: programs of known nature by another law than the model's."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machines import truth, write

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model import modelfile
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.priors import PROGRAM_STEP
from ranksight.model.quantity import TAIL
from ranksight.platforms import load
from ranksight.reports.formula import python
from ranksight.reports.functions import functions

ONE = (1, 2, 3, 4, 6, 8, 9, 12, 16, 18)
NODE = "icelake-8360y"

PROGRAMS = {
    "bandwidth": {},
    "reads saved where busy": {"claimed": 0.15},
    "every rank reads a table": {"replicated": 4e11},
    "computing": {"traffic": 1e11, "cpi": 1.0},
    "partly serial": {"traffic": 1e11, "cpi": 1.0, "serial": 4e10},
    "half of both": {"traffic": 4e13, "cpi": 2.0},
    "caches take more": {"fits": 0.05},
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One domain of a program that bandwidth bounds."""
    return write(tmp_path_factory.mktemp("measured") / "e", ONE)


@pytest.fixture(scope="module")
def bounded(measured):
    """Its model on the platform it was measured on."""
    return fit(measured, platform=NODE)


def asked(model, ranks, metric="time"):
    answers = [a for a in model.predict(ranks=[ranks], metrics=[metric]).answers if a.kernel is None]
    assert len(answers) == 1
    return answers[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_node_from_one_domain(tmp_path, name):
    model = fit(write(tmp_path / "e", ONE, **PROGRAMS[name]), platform=NODE)
    for ranks in (36, 45, 72):
        answer, true = asked(model, ranks), truth(ranks, **PROGRAMS[name])[0]
        assert answer.ok
        assert answer.lower < true < answer.upper
        # What all ranks read again may as well be what sharing the domain costs: half of it goes on.
        rel = {"every rank reads a table": 0.12, "caches take more": 0.1}.get(name, 0.03)
        assert answer.value == pytest.approx(true, rel=rel)
        assert "shared memory bandwidth: instructions as the work, memory traffic" in answer.evidence
    cycles = asked(model, 72, "cycles")
    assert cycles.value == pytest.approx(asked(model, 72).value * 2.4e9, rel=1e-3)


def test_saturation_is_foreseen_from_a_few_ranks(tmp_path):
    model = fit(write(tmp_path / "e", (1, 2, 3, 4), cpi=0.7), platform=NODE)
    answer, true = asked(model, 72), truth(72, cpi=0.7)[0]
    assert answer.lower < true < answer.upper
    plain = fit(write(tmp_path / "p", (1, 2, 3, 4), cpi=0.7), platform=None)
    assert abs(np.log(answer.value / true)) < 0.5 * abs(np.log(asked(plain, 72).value / true))


def test_the_curve_of_one_domain_does_instead_of_a_platform(measured):
    model = fit(measured, platform=None, cores_per_domain=18)
    answer = asked(model, 72)
    assert answer.value == pytest.approx(truth(72)[0], rel=0.03)
    assert "measured curve of a domain" in answer.evidence
    # a wrong number of cores is another machine: the time of 72 ranks is then another
    wrong = fit(measured, platform=None, cores_per_domain=36)
    assert asked(wrong, 72).value > 1.3 * truth(72)[0]


def test_scattered_ranks_reach_more_bandwidth(bounded, tmp_path):
    scattered = bounded.placed("scattered")
    assert asked(scattered, 12).value == pytest.approx(truth(12, placement="scattered")[0], rel=0.03)
    assert asked(bounded, 12).value == pytest.approx(truth(12)[0], rel=0.03)
    assert asked(scattered, 72).value == pytest.approx(asked(bounded, 72).value)
    other = fit(
        write(tmp_path / "s", (1, 2, 4, 8, 16, 32, 72), placement="scattered"), platform=NODE, placement="scattered"
    )
    assert asked(other.placed("compact"), 18).value == pytest.approx(truth(18)[0], rel=0.05)


def test_a_few_slow_configurations_do_not_bend_the_rest(tmp_path):
    experiment = write(tmp_path / "e", tuple(p for p in ONE if p not in (9, 12)))
    slow = write(tmp_path / "slow", (9, 12), cpi=1.6)
    for run in slow.runs:
        experiment.add(run, slow.table(run, "counters"))
    answer = asked(fit(experiment, platform=NODE), 72)
    assert answer.value == pytest.approx(truth(72)[0], rel=0.03)
    assert answer.upper > 1.4 * answer.value  # what happened to two of ten may happen again


def test_traffic_alone_and_its_sum_alone_carry_as_well(tmp_path):
    alone = fit(write(tmp_path / "a", ONE, counters=("bytes",)), platform=NODE)
    assert asked(alone, 72).value == pytest.approx(truth(72)[0], rel=0.05)
    assert "memory traffic as the work" in asked(alone, 72).evidence
    summed = fit(write(tmp_path / "b", ONE, split=False), platform=NODE)
    assert asked(summed, 72).value == pytest.approx(truth(72)[0], rel=0.05)


def test_stalls_of_a_full_domain_do_not_grow_in_the_next_ones(tmp_path):
    """Whether they follow the ranks of a domain or the work of a rank, runs in one domain do not say: a triad of
    2 TB whose traffic fills the domain, with scatter of 1 %."""
    seconds = (129.5, 68.04, 42.13, 34.57, 27.7, 23.93, 21.2, 21.61)
    made = Experiment.create(tmp_path / "e", "stalls", ["ranks"])
    for p, time in zip((1, 2, 4, 6, 9, 12, 15, 18), seconds, strict=True):
        counted = {"time": time, "instructions": 2.5e11 / p, "cycles": time * 2.4e9, "bytes_mem": 2e12 / p}
        counted["stall_cycles"] = counted["cycles"] - 0.4 * counted["instructions"]
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([{"kernel": "triad", "rank": -1, **counted}]))
    answer = asked(fit(made, platform=NODE), 72)
    assert answer.value == pytest.approx(21.6 / 4, rel=0.3)
    assert answer.lower < 21.6 / 4 < answer.upper


def test_beyond_the_node_the_first_step_is_uncertain(bounded):
    several, one = asked(bounded, 144), asked(bounded.placed(None, 144), 144)  # all of them on one node, two a core
    assert one.ok
    assert several.upper / several.lower > np.exp(2 * TAIL * PROGRAM_STEP)


def test_a_platform_that_was_not_measured_is_refused(tmp_path):
    experiment = write(tmp_path / "e", ONE, jitter=0.0)
    machine = load(NODE)
    slow = replace(machine, memory=replace(machine.memory, scaling={}, bandwidth_core=5e9, bandwidth_domain=40e9))
    with pytest.raises(InputError, match=r"moved .* GB/s on a domain") as raised:
        fit(experiment, platform=slow)
    assert "--platform" in raised.value.remedy


@pytest.mark.parametrize("counters", [("instructions", "cycles"), ("instructions",)])
@pytest.mark.parametrize("name", ["bandwidth", "computing", "half of both"])
def test_without_traffic_the_curve_of_a_domain_shows(tmp_path, name, counters):
    experiment = write(tmp_path / "e", ONE, counters=counters, **PROGRAMS[name])
    model = fit(experiment, platform=NODE)
    answer, true = asked(model, 72), truth(72, **PROGRAMS[name])[0]
    assert answer.ok
    assert answer.lower < true < answer.upper
    assert answer.value == pytest.approx(true, rel=0.04)
    assert "instructions as the work and as the traffic, measured curve of a domain" in answer.evidence
    assert asked(fit(experiment, platform=None, cores_per_domain=18), 72).value == pytest.approx(answer.value)


@pytest.mark.parametrize("name", ["bandwidth", "computing", "half of both"])
def test_times_alone_of_a_domain_that_fills_hold_what_further_domains_bring(tmp_path, name):
    """They leave open whether work is divided."""
    experiment = write(tmp_path / "e", ONE, counters=(), **PROGRAMS[name])
    answer, true = asked(fit(experiment, platform=NODE), 72), truth(72, **PROGRAMS[name])[0]
    assert answer.lower < true < answer.upper
    assert asked(fit(experiment, platform=None, cores_per_domain=18), 72).value == pytest.approx(answer.value)


@pytest.mark.parametrize("ranks", [(1, 18, 36), (12, 16, 18, 36)])
def test_times_that_show_neither_work_nor_traffic_are_functions(tmp_path, ranks):
    """Two numbers of ranks in a domain, and times that do not begin as strong scaling does."""
    model = fit(write(tmp_path / "e", ranks, counters=()), platform=NODE)
    assert model.equation.sharing is None


def test_flat_times_inside_one_domain_show_nothing_of_further_ones(tmp_path):
    """A full interface looks like weak scaling: no time of four domains, and that of the measured one by a function."""
    model = fit(write(tmp_path / "e", (12, 13, 14, 16, 18), counters=()), platform=NODE)
    answer = asked(model, 72)
    assert not answer.ok
    assert "do not show what further domains bring" in answer.reason
    assert asked(model, 15).ok
    assert asked(fit(write(tmp_path / "i", (12, 13, 14, 16, 18), counters=("instructions",)), platform=NODE), 72).ok


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_messages_beyond_the_node_are_as_uncertain_as_the_first_step_there(tmp_path, share):
    """A program whose messages take little is answered; one that sends much, and the messages alone, are not."""
    made = Experiment.create(tmp_path / "e", "kernels", ["ranks"])
    for p in ONE:
        time, volume, work = truth(p)
        rows = [
            {"kernel": "sweep", "time": time, "instructions": work, "bytes_mem": sum(volume)},
            {"kernel": "MPI_Allreduce", "time": share * np.log2(p) / np.log2(72) * truth(72)[0]},
        ]
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([{"rank": -1, **row} for row in rows]))
    model = fit(made, platform=NODE)
    assert asked(model, 72).ok
    far = asked(model, 144)
    said = {answer.kernel: answer for answer in model.predict(ranks=144, metrics=["time"]).answers}
    sweep, messages = said["sweep"], said["MPI_Allreduce"]
    assert sweep.ok
    assert sweep.value == pytest.approx(truth(144)[0], rel=0.05)
    assert "what messages between nodes cost was not seen" in messages.reason
    assert messages.upper / messages.lower > 4
    assert far.ok
    assert any("144 ranks, two full nodes, would show it" in note for note in model.predict(ranks=144).notes)
    assert not any("two full nodes" in note for note in model.predict(ranks=72).notes)
    rise = [each.upper - each.value for each in (far, sweep, messages)]
    assert rise[0] > 0.98 * np.hypot(*rise[1:])
    assert far.upper / far.lower < 4


def _with_messages(path, ranks, share, counters=False):
    """A node's law and messages that cost `share` of the full node's time there, and grow as the ranks do."""
    made = Experiment.create(path, "messages", ["ranks"])
    for p in ranks:
        time, volume, work = truth(p)
        row = {"kernel": WHOLE, "rank": -1, "time": time + share * truth(72)[0] * (p > 1) * p / 72}
        row |= {"instructions": work, "bytes_mem": sum(volume)} if counters else {}
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([row]))
    return made


@pytest.mark.parametrize("counters", [False, True])
def test_what_grows_from_node_to_node_is_no_outlier_of_the_law(tmp_path, counters):
    """Messages that outgrow the computation: the law of bandwidth alone would be off by a factor of 6."""
    ranks = (1, 2, 4, 8, 18, 36, 72, 144, 288, 576)
    model = fit(_with_messages(tmp_path / "e", ranks, 0.05, counters), platform=NODE)
    true = truth(1152)[0] + 0.05 * truth(72)[0] * 16
    assert truth(1152)[0] < true / 6
    answer = asked(model, 1152)
    assert not answer.ok or answer.lower < true < answer.upper
    assert answer.value == pytest.approx(true, rel=0.4)
    broken = model.breakdown(np.array([[72.0], [1152.0]]))
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    assert broken.parts["direct"][1] > 0.5 * broken.total.value[0, 1]
    model.save(tmp_path / "m.json")
    assert asked(Model.load(tmp_path / "m.json"), 1152).value == pytest.approx(answer.value, rel=1e-6)
    content = modelfile.read(tmp_path / "m.json")
    content["equation"]["laws"]["sharing"]["beyond"]["scatter"] = []
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError, match="beyond"):
        Model.load(tmp_path / "m.json").predict(ranks=72)


def test_messages_hidden_in_the_noise_of_the_runs_are_in_the_upper_end(tmp_path):
    """A fiftieth of the time of the most ranks measured, growing with them, is a third of that on four times as many."""
    ranks, true = (1, 2, 4, 8, 18, 36, 72, 144, 288), truth(1152)[0] * 1.33
    made, rng = Experiment.create(tmp_path / "e", "hidden", ["ranks"]), np.random.default_rng(3)
    for p in ranks:
        time = truth(p)[0] * (1 + 0.02 * (p / 288) ** 2) * np.exp(rng.normal(0, 0.03))
        row = {"kernel": WHOLE, "rank": -1, "time": time, "instructions": truth(p)[2]}
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([row]))
    answer = asked(fit(made, platform=NODE), 1152)
    assert answer.lower < true < answer.upper
    assert answer.upper / answer.value > answer.value / answer.lower


def test_where_nothing_else_grows_the_law_holds_beyond_the_nodes_measured(tmp_path):
    model = fit(_with_messages(tmp_path / "e", (1, 2, 4, 8, 18, 36, 72, 144), 0.0), platform=NODE)
    answer = asked(model, 576)
    assert answer.value == pytest.approx(truth(576)[0], rel=0.02)
    assert answer.upper / answer.lower < 1.4


def test_traffic_that_outgrew_a_cache_may_grow_no_further(tmp_path):
    """Bytes per instruction rise tenfold over the sizes measured; that they stay at the next one is in the interval."""
    made = Experiment.create(tmp_path / "e", "outgrowing", ["ranks", "size"])
    for p in (1, 2, 4, 9, 18):
        for size, traffic in ((1, 0.1e13), (2, 0.4e13), (4, 4e13)):
            time, volume, work = truth(p, instructions=1e13 * size, traffic=traffic)
            row = {"kernel": WHOLE, "rank": -1, "time": time, "instructions": work, "bytes_mem": sum(volume)}
            made.add(Run({"ranks": p, "size": size}, collector="made-up"), pd.DataFrame([row]))
    model = fit(made, platform=NODE)
    (answer,) = model.predict(ranks=72, size=8, metrics=["time"]).answers
    no_more, as_before = (truth(72, instructions=8e13, traffic=8e13 * ratio)[0] for ratio in (1, 4))
    assert answer.lower < no_more < as_before < 1.1 * answer.upper
    (known,) = model.predict(ranks=72, size=4, metrics=["time"]).answers
    assert known.value == pytest.approx(truth(72, instructions=4e13, traffic=4e13)[0], rel=0.05)
    assert known.upper / known.lower < 0.7 * answer.upper / answer.lower


def test_more_ranks_in_a_domain_than_were_measured_widen_the_interval(tmp_path):
    """A truth whose interface gives a fifth more to the second half of its cores than to the first."""
    made = Experiment.create(tmp_path / "e", "soft", ["ranks"])
    for p in range(1, 10):
        row = {"kernel": WHOLE, "rank": -1, "time": max(1 / p, 0.3), "instructions": 1e12 / p}
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([row]))
    model = fit(made, platform=None, cores_per_domain=18)
    inside, full = asked(model, 9), asked(model, 18)
    assert inside.upper / inside.lower < 1.2
    assert full.lower < 0.25 < full.value * 1.02
    assert full.upper / full.lower < 2


def test_the_parts_add_up_and_a_file_says_the_same(bounded, tmp_path):
    points = np.array([[1.0], [72.0], [200.0]])
    broken = bounded.breakdown(points)
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    assert broken.kernels == (WHOLE,)
    assert broken.parts["contention"][0] == pytest.approx(0.0)
    assert broken.parts["contention"][1] > 0.3 * broken.total.value[0, 1]
    bounded.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json").breakdown(points)
    assert again.total.value == pytest.approx(broken.total.value, rel=1e-6)
    assert again.total.upper == pytest.approx(broken.total.upper, rel=1e-3)


@pytest.mark.parametrize(
    "damage",
    [
        {"mode": [[1, 2, 3]]},
        {"kernels": ["a", "b"]},
        {"evidence": []},
        {"counts": None},
        {"trained": [[1, None]]},
        {
            "domains": {
                "cores": 0,
                "count": 1,
                "ranks_per_node": 1,
                "placement": "compact",
                "core": None,
                "domain": None,
            }
        },
    ],
)
def test_a_damaged_file_is_refused(bounded, tmp_path, damage):
    bounded.save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    content["equation"]["laws"]["sharing"].update(damage)
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError):
        Model.load(tmp_path / "m.json").predict(ranks=72)


def test_the_verbs(tmp_path, capsys):
    write(tmp_path / "e", ONE)
    model = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "e"), "--platform", NODE, "-o", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), "--ranks", "72", "--metric", "time"]) == 0
    printed = capsys.readouterr().out
    assert "1 value by shared bandwidth 1: shared memory bandwidth" in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if not line.startswith("next: "))
    assert main(["predict", str(model), "--ranks", "12", "--placement", "scattered", "--format", "json"]) == 0
    answers = json.loads(capsys.readouterr().out)["predictions"]
    timed = next(a for a in answers if a["metric"] == "time")
    assert timed["evidence"].startswith("shared bandwidth")
    assert timed["method"] == "shared-bandwidth"
    assert main(["predict", str(model), "--ranks", "72", "--ranks-per-node", "0"]) == 1


def test_real_programs(shared, tmp_path):
    """SPEChpc on Ice Lake: one domain predicts the node where bandwidth limits (RRZE-HPC/PMBS23-AD)."""
    folder = shared / "data" / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    for name, within in (("tealeaf", 0.03), ("clvleaf", 0.03), ("lbm", None)):
        files = [str(f) for f in folder.glob(f"{name}-*") if int(f.name.split("Rank")[1].split("-")[0]) <= 18]
        out = tmp_path / f"{name}.exp"
        assert main(["import", "likwid", *files, "--parameter", r"ranks=Rank(\d+)", "-o", str(out), "--quiet"]) == 0
        from ranksight.core.experiment import read
        from ranksight.core.reading import READERS

        (held,) = list(READERS["likwid"].read(folder / f"{name}-FritzRank72-MEM_DP.txt"))
        true = float(held.counters["time"].max())
        answer = asked(fit(read(out), platform=NODE), 72)
        assert answer.lower < true < answer.upper
        if within:
            assert answer.value == pytest.approx(true, rel=within)


def test_what_is_printed_of_a_time_is_nearest_to_what_laws_predict(bounded):
    """A function of the runs of one domain is several times too high or too low on sixteen."""
    (row,) = [each for each in functions(bounded) if each["metric"] == "time"]
    written = python(row["formula"], ("ranks",))
    for ranks in (4, 18, 72):
        answer = asked(bounded, ranks).value
        difference = abs(np.log(eval(written, {"ranks": ranks, "log2": np.log2}) / answer))
        assert difference <= np.log1p(row["difference_from_predict"]) + 0.01
    assert row["difference_from_predict"] < 1
    assert bounded.functions.formula(bounded.functions.rows[row["kernel"], "time"]) != row["formula"]
    assert bounded.formula(bounded.functions.rows[row["kernel"], "time"]) == row["formula"]
    assert [each["term"] for each in row["coefficients"]]
