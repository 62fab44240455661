"""One domain measured, a node predicted: programs of known nature by another law than the model's."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machines import truth, write

from ranksight.cli import main
from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.model.assembly import fit
from ranksight.model.model import Model
from ranksight.platforms import load

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
        assert answer.value == pytest.approx(
            true, rel=0.1 if name in ("every rank reads a table", "caches take more") else 0.03
        )
        assert answer.evidence.startswith("shared memory bandwidth: instructions as the work, memory traffic")
    cycles = asked(model, 72, "cycles")
    assert cycles.value == pytest.approx(asked(model, 72).value * 2.4e9, rel=1e-3)


def test_saturation_is_foreseen_from_a_few_ranks(tmp_path):
    model = fit(write(tmp_path / "e", (1, 2, 3, 4), cpi=0.7), platform=NODE)
    answer, true = asked(model, 72), truth(72, cpi=0.7)[0]
    assert answer.lower < true < answer.upper
    plain = fit(write(tmp_path / "p", (1, 2, 3, 4), cpi=0.7), platform=None)
    assert abs(np.log(answer.value / true)) < 0.5 * abs(np.log(asked(plain, 72).value / true))


def test_the_curve_of_one_domain_does_instead_of_a_platform(tmp_path):
    experiment = write(tmp_path / "e", ONE)
    model = fit(experiment, platform=None, cores_per_domain=18)
    answer = asked(model, 72)
    assert answer.value == pytest.approx(truth(72)[0], rel=0.03)
    assert "measured curve of a domain" in answer.evidence
    # a wrong number of cores is another machine: the time of 72 ranks is then another
    wrong = fit(experiment, platform=None, cores_per_domain=36)
    assert asked(wrong, 72).value > 1.3 * truth(72)[0]


def test_scattered_ranks_reach_more_bandwidth(tmp_path):
    model = fit(write(tmp_path / "e", ONE), platform=NODE)
    scattered = model.placed("scattered")
    assert asked(scattered, 12).value == pytest.approx(truth(12, placement="scattered")[0], rel=0.03)
    assert asked(model, 12).value == pytest.approx(truth(12)[0], rel=0.03)
    assert asked(scattered, 72).value == pytest.approx(asked(model, 72).value)
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


def test_beyond_the_node_nothing_was_seen(tmp_path):
    model = fit(write(tmp_path / "e", ONE), platform=NODE)
    answer = asked(model, 144)
    assert not answer.ok
    assert "measure 144 ranks" in answer.reason
    assert asked(model.placed(None, 144), 144).ok  # all of them on one node, two a core


def test_a_platform_that_was_not_measured_is_refused(tmp_path):
    experiment = write(tmp_path / "e", ONE, jitter=0.0)
    machine = load(NODE)
    slow = replace(machine, memory=replace(machine.memory, scaling={}, bandwidth_core=5e9, bandwidth_domain=40e9))
    with pytest.raises(InputError, match=r"moved .* GB/s on a domain") as raised:
        fit(experiment, platform=slow)
    assert "--platform" in raised.value.remedy


def test_without_traffic_times_are_functions(tmp_path):
    experiment = write(tmp_path / "e", ONE, counters=("instructions", "cycles"))
    model = fit(experiment, platform=NODE)
    assert model.equation.sharing is None
    assert asked(model, 16).evidence.startswith("function of 10 configurations")
    with pytest.raises(InputError, match="does not tell what ranks on a node share"):
        model.placed("scattered")


def test_the_parts_add_up_and_a_file_says_the_same(tmp_path):
    model = fit(write(tmp_path / "e", ONE), platform=NODE)
    points = np.array([[1.0], [72.0], [200.0]])
    broken = model.breakdown(points)
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    assert broken.kernels == (WHOLE,)
    assert broken.parts["contention"][0] == pytest.approx(0.0)
    assert broken.parts["contention"][1] > 0.3 * broken.total.value[0, 1]
    model.save(tmp_path / "m.json")
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
def test_a_damaged_file_is_refused(tmp_path, damage):
    model = fit(write(tmp_path / "e", ONE), platform=NODE)
    model.save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["extras"]["application"]["sharing"].update(damage)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(InputError):
        Model.load(tmp_path / "m.json").predict(ranks=72)


def test_the_verbs(tmp_path, capsys):
    write(tmp_path / "e", ONE)
    model = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "e"), "--platform", NODE, "-o", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), "--ranks", "72", "--metric", "time"]) == 0
    printed = capsys.readouterr().out
    assert "1 value by shared memory bandwidth" in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if not line.startswith("next: "))
    assert main(["predict", str(model), "--ranks", "12", "--placement", "scattered", "--format", "json"]) == 0
    answers = json.loads(capsys.readouterr().out)["predictions"]
    assert next(a for a in answers if a["metric"] == "time")["evidence"].startswith("shared memory")
    assert main(["predict", str(model), "--ranks", "72", "--ranks-per-node", "0"]) == 1


def test_real_programs(shared, tmp_path):
    """SPEChpc on Ice Lake: one domain tells the node where bandwidth does (RRZE-HPC/PMBS23-AD)."""
    folder = shared / "data" / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    for name, within in (("tealeaf", 0.03), ("clvleaf", 0.03), ("lbm", None)):
        files = [str(f) for f in folder.glob(f"{name}-*") if int(f.name.split("Rank")[1].split("-")[0]) <= 18]
        out = tmp_path / f"{name}.exp"
        assert main(["import", "likwid", *files, "--parameter", r"ranks=Rank(\d+)", "-o", str(out), "--quiet"]) == 0
        from ranksight.experiment import read
        from ranksight.reading import READERS

        (held,) = list(READERS["likwid"].read(folder / f"{name}-FritzRank72-MEM_DP.txt"))
        true = float(held.counters["time"].max())
        answer = asked(fit(read(out), platform=NODE), 72)
        assert answer.lower < true < answer.upper
        if within:
            assert answer.value == pytest.approx(true, rel=within)
